"""A JupyterHub as docs/deploy.md sets it up: its own files and commands, on a machine that exists for the test only."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.conftest import browser, pictures  # noqa: F401  (fixtures)
from tests.integration import docpages
from tests.postgresql import programs

PROJECT = Path(__file__).resolve().parents[2]
PROXY = PROJECT / "node_modules" / ".bin" / "configurable-http-proxy"
PASSWORD = "correct horse battery staple"
USERS = ("instructor", "li_hua", "wang_wei")


def blocks(language: str) -> list[str]:
    """The blocks of one language in docs/deploy.md, as they are for the environment of these tests."""
    page = docpages.blocks(PROJECT / "docs" / "deploy.md")
    return [block.text.replace("/opt/autograder", sys.prefix) for block in page if block.language == language]


def steps() -> str:
    """What docs/deploy.md has root do, and then the instructor; the passwords without a terminal."""
    entries = "".join(f"{user}:{PASSWORD}\\n" for user in USERS)
    found = []
    for block in blocks("sh"):
        if block.startswith("# as root\n"):
            found.append(re.sub(r"^passwd .*$", f"printf '{entries}' | chpasswd", block, flags=re.MULTILINE))
        if block.startswith("# as instructor\n"):
            found.append("su - instructor -c " + shlex.quote("set -e\n" + block))
    return "\n".join(found)


def _hidden(path: Path) -> Path | None:
    """The first folder above a path that others may not enter."""
    return next((each for each in reversed(path.parents) if each.stat().st_mode & 0o005 != 0o005), None)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _course(folder: Path) -> Path:
    """The course as the repository has it, with the gradebook that docs/deploy.md names."""
    ignore = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints")
    for name in ("source", "solutions", "tests/hidden"):
        shutil.copytree(PROJECT / name, folder / name, ignore=ignore)
    shutil.copy(PROJECT / "nbgrader_config.py", folder)
    text = (PROJECT / "course.yaml").read_text(encoding="utf-8")
    text = re.sub(r"due: \d{4}-", "due: 2099-", text)  # nobody is late, whenever this runs
    text += "".join(block for block in blocks("yaml") if block.startswith("database:"))
    (folder / "course.yaml").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the running hub."""
    if os.geteuid() != 0:
        pytest.skip("only root can become other users: JupyterHub is NOT TESTED")
    pytest.importorskip("jupyterhub", reason="JupyterHub is not installed (make test-hub): it is NOT TESTED")
    if not PROXY.exists():
        pytest.skip("configurable-http-proxy is not installed (make test-hub): JupyterHub is NOT TESTED")
    space = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]
    if shutil.which("unshare") is None or subprocess.run([*space, "true"], capture_output=True).returncode != 0:
        pytest.skip("this machine lets root make no namespaces: JupyterHub is NOT TESTED")
    postgres = programs()
    if postgres is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql): JupyterHub is NOT TESTED")
    folder = tmp_path_factory.mktemp("hub")
    interpreter, environment = Path(sys.base_prefix), Path(sys.prefix)
    url, ports = f"http://127.0.0.1:{_free_port()}", (_free_port(), _free_port())
    needed = (interpreter, environment, PROJECT / "autograder", PROXY.parent.parent)
    covers = {*map(Path, ("/home", "/run", "/srv", "/tmp")), PROJECT, *map(_hidden, needed)} - {None}
    keep = [path for path in needed if any(path.is_relative_to(cover) for cover in covers if cover)]
    command = [
        *(str(environment / "bin" / "jupyterhub"), "--config", "/etc/jupyterhub/jupyterhub_config.py"),
        *(f"--JupyterHub.bind_url={url}", f"--JupyterHub.hub_port={ports[0]}"),
        f"--ConfigurableHTTPProxy.api_url=http://127.0.0.1:{ports[1]}",
    ]
    setting = {
        "PATH": f"{PROXY.parent}:{environment / 'bin'}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "DEPLOY": str(PROJECT / "deploy"),
        "COURSE": str(_course(folder / "course")),
        "STEPS": steps(),
        "KEEP": "\n".join(map(str, keep)),
        "COVER": "\n".join(sorted(map(str, covers))),
        "POSTGRES": str(postgres),
        "HUB": " ".join(command),
    }
    log = folder / "log"
    with log.open("wb") as output:
        machine = subprocess.Popen(
            [*space, "sh", str(Path(__file__).parent / "machine.sh")],
            env=setting,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        deadline = time.monotonic() + 120
        while not _answers(url):
            assert machine.poll() is None and time.monotonic() < deadline, log.read_text(errors="replace")
        yield url
    finally:
        machine.kill()  # and with it, all its processes
        machine.wait()
        print(log.read_text(errors="replace"))


def _answers(url: str) -> bool:
    try:
        return bool(urllib.request.urlopen(f"{url}/hub/api/", timeout=1).status == 200)
    except OSError:
        time.sleep(0.2)
        return False
