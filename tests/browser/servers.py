"""Two Jupyter servers, one a role, that share nothing but nbgrader's exchange: the instructor's for a course, and a student's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
_DEADLINE = 120.0
TOKEN = "loopback-only"
_SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},  # every cell is on the page, seen or not
}
_CONFIG = "c = get_config()\nc.Exchange.root = {exchange!r}\nc.CourseDirectory.student_id = {user!r}\n"
_EVERYBODY = "*"
_HIDDEN_FROM_STUDENTS = ("formgrader", "create-assignment", "course-list")


def make_course(root: Path, notebook: str) -> Path:
    """This repository's course with one notebook of its first assignment, not released yet."""
    for name in ("solutions", "tests/hidden"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    others = [path.name for path in (ROOT / "source/ch18").glob("*.ipynb") if path.stem != notebook]
    shutil.copytree(ROOT / "source/ch18", root / "source/ch18", ignore=shutil.ignore_patterns(*others))
    for name in ("course.yaml", "nbgrader_config.py"):
        shutil.copyfile(ROOT / name, root / name)
    return root


@contextmanager
def instructor(course: Path, home: Path, exchange: Path) -> Iterator[str]:
    """`autograder lab` for a course; gives the address of its JupyterLab."""
    with _server(["-m", "autograder.cli", "lab"], course, home, exchange, _EVERYBODY) as url:
        yield url


@contextmanager
def student(work: Path, home: Path, exchange: Path, name: str) -> Iterator[str]:
    """A student's own JupyterLab, with nbgrader's panels for students alone; gives its address."""
    work.mkdir(parents=True)
    off = {f"nbgrader.server_extensions.{panel}": False for panel in ("formgrader", "course_list")}
    _write(home / ".jupyter/jupyter_server_config.json", {"ServerApp": {"jpserver_extensions": off}})
    hidden = {f"@jupyter/nbgrader:{panel}": True for panel in _HIDDEN_FROM_STUDENTS}
    _write(home / ".jupyter/labconfig/page_config.json", {"disabledExtensions": hidden})
    with _server(["-m", "jupyterlab"], work, home, exchange, name) as url:
        yield url


@contextmanager
def _server(command: list[str], folder: Path, home: Path, exchange: Path, user: str) -> Iterator[str]:
    jupyter = home / ".jupyter"
    for name, values in _SETTINGS.items():
        _write(jupyter / f"lab/user-settings/{name}.jupyterlab-settings", values)
    (jupyter / "nbgrader_config.py").write_text(_CONFIG.format(exchange=str(exchange), user=user), encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "JPY", "PYTEST"))}
    env = {
        **kept,
        "HOME": str(home),
        "JUPYTER_CONFIG_DIR": str(jupyter),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "IPYTHONDIR": str(home / "ipython"),
        "JUPYTER_TOKEN": TOKEN,
    }
    with (home / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, *command, "--no-browser", "--allow-root", "--port=0"],
            cwd=folder,
            env=env,
            stdout=log,
            stderr=log,
        )
    try:
        yield f"{_address(home / 'runtime', process)}lab?token={TOKEN}"
    finally:
        process.terminate()
        process.wait(_DEADLINE)


def _address(runtime: Path, process: subprocess.Popen[bytes]) -> str:
    end = time.monotonic() + _DEADLINE
    while time.monotonic() < end and process.poll() is None:
        for path in runtime.glob("jpserver-*.json"):
            with suppress(ValueError, OSError):  # half written, or not answering yet
                url = str(json.loads(path.read_text(encoding="utf-8"))["url"])
                with urllib.request.urlopen(f"{url}api", timeout=_DEADLINE):
                    return url
        time.sleep(0.05)
    raise AssertionError(f"JupyterLab did not start: see {runtime.parent / 'log'}")


def _write(path: Path, values: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values), encoding="utf-8")
