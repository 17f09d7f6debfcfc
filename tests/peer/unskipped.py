"""A pytest plugin that runs the two tests which nbgrader skips: ``python -m pytest -p tests.peer.unskipped --pyargs nbgrader.tests…``.

One "takes too long and consumes a lot of memory", which a sandbox bounds; the other wants a PostgreSQL server of few connections. Neither has
run for years, so each is given what it takes for granted.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgresql import postgresql

# It expects that autograding fails; by default nbgrader now interrupts the cell, and goes on with the rest of the notebook.
_FAILS_AT_A_TIMEOUT = "c.Execute.timeout = 3\nc.Execute.interrupt_on_timeout = False\n"
# nbgrader's default, no name, is refused by a database that checks foreign keys.
_NAMED_COURSE = "c.CourseDirectory.course_id = 'course'\n"
# How it names its server, once between an option and its value.
_SERVER = "postgresql://localhost:5432/gradebook"
_TORN = ["--duedate", "--db", _SERVER]


@pytest.fixture(autouse=True)
def unskipped(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let their first line, ``pytest.skip(…)``, do nothing."""
    match request.node.name:
        case "test_infinite_loop_with_output":
            _configure(request, _FAILS_AT_A_TIMEOUT)
            monkeypatch.setattr(pytest, "skip", lambda reason: None)
            yield
        case "test_many_students":
            _configure(request, _NAMED_COURSE)
            with postgresql("max_connections=5") as url:
                run, ours = request.module.run_nbgrader, url.replace("postgresql:", "postgresql+psycopg:")

                def run_with_our_server(args: list[str], **options: object) -> str:
                    if _TORN[0] in args and args[args.index(_TORN[0]) :][:3] == _TORN:
                        at = args.index(_TORN[0])
                        args = [*args[:at], *_TORN[1:], _TORN[0], *args[at + 3 :]]
                    return run([ours if a == _SERVER else a for a in args], **options)

                monkeypatch.setattr(request.module, "run_nbgrader", run_with_our_server)
                monkeypatch.setattr(pytest, "skip", lambda reason: None)
                yield
        case _:
            yield


def _configure(request: pytest.FixtureRequest, lines: str) -> None:
    with Path(request.getfixturevalue("temp_cwd"), "nbgrader_config.py").open("a") as file:
        file.write(lines)
