"""A notebook driven cell by cell in a sandbox of every kind this machine can give."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from autograder.sandbox import Limits, Sandbox, WarmParent
from autograder.sandbox.probe import probe

WAYS = ("bubblewrap-cold", "bubblewrap-warm", "landlock-cold", "landlock-warm")
LIMITS = Limits(
    cell_seconds=20,
    notebook_seconds=60,
    memory_bytes=1 << 30,
    processes=64,
    file_bytes=16 << 20,
    disk_bytes=32 << 20,
    output_bytes=1 << 20,
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What forked kernels are tested for in every run, fresh ones are too in the slow one: starting them takes long."""
    for item in items:
        if item.path.name in ("test_limits.py", "test_jupyter.py") and "-cold" in item.name:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def limits() -> Limits:
    return LIMITS


class Notebook:
    """Runs cells in a sandbox by an unmodified nbclient."""

    def __init__(self, box: Sandbox) -> None:
        self.box = box
        self.client = NotebookClient(nbformat.v4.new_notebook(), km=box.kernel_manager, allow_errors=True)
        self._runner = asyncio.Runner()
        self._setup = self.client.async_setup_kernel()
        self._runner.run(self._setup.__aenter__())

    def run(self, source: str) -> str:
        """What a cell printed, and ``Name: message`` of the exception it ended with. Raises DeadKernelError."""
        cell = nbformat.v4.new_code_cell(source)
        self.client.nb.cells = [cell]
        self._runner.run(self.client.async_execute_cell(cell, 0))
        return "".join(
            f"{o.ename}: {o.evalue}" if o.output_type == "error" else o.get("text", "") for o in cell.outputs
        )

    def value(self, source: str) -> Any:
        """The value of an expression after some statements, by JSON."""
        *statements, expression = source.strip().splitlines()
        text = self.run("\n".join([*statements, f"print(__import__('json').dumps({expression}))"]))
        try:
            return json.loads(text)
        except ValueError:
            raise AssertionError(f"the cell failed: {text}") from None

    def close(self) -> None:
        """Close the channels; the sandbox goes on."""
        self.client.kc.stop_channels()
        self._runner.close()


@pytest.fixture(scope="session")
def warm_parent() -> Iterator[WarmParent]:
    with WarmParent() as parent:
        yield parent


@pytest.fixture(scope="session")
def open_box(warm_parent: WarmParent) -> Callable[..., Sandbox]:
    """Makes a sandbox, not yet started, of a way in WAYS."""

    def make(way: str, limits: Limits = LIMITS, **options: Any) -> Sandbox:
        tier, kind = way.split("-")
        found = probe(tier)
        if not found.holds:
            pytest.skip(f"NOT TESTED HERE: {found.missing}")
        return Sandbox(limits, tier=tier, warm=warm_parent if kind == "warm" else None, **options)

    return make


@pytest.fixture
def open_notebook(open_box: Callable[..., Sandbox]) -> Iterator[Callable[..., Notebook]]:
    """Makes a notebook in a sandbox of its own, which lives as long as the test."""
    with ExitStack() as boxes:

        def make(way: str, limits: Limits = LIMITS, **options: Any) -> Notebook:
            box = boxes.enter_context(open_box(way, limits, **options))
            notebook = Notebook(box)
            boxes.callback(notebook.close)
            return notebook

        yield make


@pytest.fixture
def notebook_in() -> Iterator[Callable[[Sandbox], Notebook]]:
    """Drives a sandbox that a test has started itself."""
    with ExitStack() as opened:

        def drive(box: Sandbox) -> Notebook:
            notebook = Notebook(box)
            opened.callback(notebook.close)
            return notebook

        yield drive


@pytest.fixture(scope="session", params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="session")
def notebook(way: str, open_box: Callable[..., Sandbox]) -> Iterator[Notebook]:
    """One sandbox for all tests that leave it as it was, with the judge holding a secret."""
    os.environ["JUDGES_SECRET"] = "not for students"
    files = {"data/numbers.csv": b"1,2,3\n", "notes.txt": "注意力".encode()}
    with open_box(way, dataclasses.replace(LIMITS, notebook_seconds=600), files=files) as box:
        driven = Notebook(box)
        yield driven
        driven.close()


@pytest.fixture
def fresh(way: str, open_notebook: Callable[..., Notebook]) -> Notebook:
    """A sandbox for one test that may ruin it."""
    return open_notebook(way)
