"""What a student's code can reach: nothing of the judge's, of other students', or of the machine's."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from nbclient.exceptions import DeadKernelError

import autograder

REPOSITORY = Path(autograder.__path__[0]).parent


def readable(notebook, path: object) -> bool:
    return notebook.value(
        f"import os\ntry: opened = os.open({str(path)!r}, os.O_RDONLY)\nexcept OSError: opened = 0\nbool(opened)"
    )


def denied(notebook, statement: str) -> str:
    """Name of the OSError that a statement must end with."""
    return notebook.value(f"try:\n  {statement}\n  denied = ''\nexcept OSError as e: denied = type(e).__name__\ndenied")


def test_given_files_are_in_the_working_directory(notebook):
    assert notebook.value("open('data/numbers.csv').read()") == "1,2,3\n"
    assert notebook.value("open('notes.txt', encoding='utf-8').read()") == "注意力"


def test_files_of_the_judge_cannot_be_read(notebook, tmp_path):
    tmp_path.chmod(0o755)
    gradebook = tmp_path / "gradebook.db"
    gradebook.write_text("scores")
    gradebook.chmod(0o644)
    for path in (gradebook, tmp_path, "/etc/passwd", "/etc/hostname", Path.home(), "/var", notebook.box.run_dir):
        assert os.path.exists(path)
        assert not readable(notebook, path), path


@pytest.mark.parametrize("name", ["solutions", "tests", "source", "pyproject.toml", ".git"])
def test_a_checkout_beside_the_package_cannot_be_read(notebook, name):
    assert (REPOSITORY / name).exists()
    assert not readable(notebook, REPOSITORY / name)


def test_the_package_and_the_libraries_can_be_read(notebook):
    assert readable(notebook, autograder.__path__[0])
    assert notebook.value("import torch\nint(torch.ones(3).sum())") == 3


def test_nothing_of_the_installation_can_be_changed(notebook):
    for path in (torch_file(), Path(autograder.__path__[0]) / "text.py", "/usr/bin/env"):
        assert denied(notebook, f"open({str(path)!r}, 'a')") in ("PermissionError", "OSError")
    for directory in ("/", "/usr", "/etc", "/dev", autograder.__path__[0], os.path.dirname(torch_file())):
        assert denied(notebook, f"open({directory!r} + '/planted', 'w')") != ""


def torch_file() -> str:
    import torch

    return torch.__file__


def test_rights_and_times_of_the_judges_files_cannot_be_changed(notebook, tmp_path):
    """Landlock does not govern these, and the judge's files may belong to the same user."""
    tmp_path.chmod(0o755)
    gradebook = tmp_path / "gradebook.db"
    gradebook.write_text("scores")
    gradebook.chmod(0o644)
    before = gradebook.stat()
    for change in (
        "os.chmod(path, 0)",
        "os.utime(path, (1, 1))",
        "os.setxattr(path, 'user.a', b'')",
        "os.truncate(path, 0)",
    ):
        notebook.run(f"import os\npath = {str(gradebook)!r}\n{change}")
    after = gradebook.stat()
    assert (after.st_mode, after.st_mtime_ns, after.st_size) == (before.st_mode, before.st_mtime_ns, 6)
    assert os.listxattr(gradebook) == []


def test_files_can_be_copied(notebook):
    assert (
        notebook.value("import shutil\nshutil.copy('notes.txt', 'copy')\nopen('copy', encoding='utf-8').read()")
        == "注意力"
    )


def test_the_environment_is_the_sandboxes_own(notebook):
    names = set(notebook.value("import os\nsorted(os.environ)"))
    assert "JUDGES_SECRET" in os.environ
    assert not names & {"JUDGES_SECRET", "SSH_AUTH_SOCK", "XDG_RUNTIME_DIR", "PWD"}


def test_no_privilege_is_left(notebook):
    assert notebook.value("import os\n[os.getuid() != 0, os.getgid() != 0, os.getgroups() in ([], [os.getgid()])]") == [
        True,
        True,
        True,
    ]
    status = Path(f"/proc/{notebook.box.kernel_pid}/status").read_text()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert int(fields["Uid"].split()[1]) != 0, "the user as the kernel knows it"
    assert [int(fields[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")] == [0, 0, 0, 0]
    assert fields["NoNewPrivs"].strip() == "1"
    assert fields["Seccomp"].strip() == "2"


def test_kernel_settings_cannot_be_changed(notebook):
    for name in ("core_pattern", "modprobe", "hostname", "panic"):
        assert denied(notebook, f"open('/proc/sys/kernel/{name}', 'a')") != ""


def test_no_network_of_any_family(notebook):
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        port = server.getsockname()[1]
        name = f"\0autograder-test-{os.getpid()}"
        abstract.bind(name)
        abstract.listen()
        assert denied(notebook, f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)") != ""
        assert denied(notebook, "import socket; socket.create_connection(('192.0.2.1', 80), 2)") != ""
        assert denied(notebook, "import socket; socket.getaddrinfo('example.org', 80)") != ""
        send = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))"
        assert denied(notebook, send) != ""
        connect = f"import socket; socket.socket(socket.AF_UNIX).connect({name!r})"
        assert denied(notebook, connect) != ""
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_no_socket_of_the_judges_by_path(notebook, tmp_path_factory):
    with socket.socket(socket.AF_UNIX) as listener:
        path = str(tmp_path_factory.mktemp("s") / "s")
        listener.bind(path)
        listener.listen()
        os.chmod(path, 0o777)
        assert denied(notebook, f"import socket; socket.socket(socket.AF_UNIX).connect({path!r})") != ""


CALLS = {
    "io_uring_setup": (425, "8, 0"),
    "keyctl": (250, "0, 0"),
    "add_key": (248, "0, 0, 0, 0"),
    "bpf": (321, "0, 0, 0"),
    "ptrace": (101, "0, 0, 0, 0"),
    "process_vm_readv": (310, "1, 0, 0, 0, 0, 0"),
    "userfaultfd": (323, "0"),
    "perf_event_open": (298, "0, 0, -1, -1, 0"),
    "memfd_create": (319, "b'x', 0"),
    "shmget": (29, "0, 4096, 0o1600"),
    "mq_open": (240, "b'x', 0o102, 0o600, 0"),
    "unshare a user namespace": (272, "0x10000000"),
    "setns": (308, "0, 0"),
    "mount": (165, "b'none', b'/tmp', b'tmpfs', 0, 0"),
    "chroot": (161, "b'/'"),
    "clock_settime": (227, "0, 0"),
    "open_by_handle_at": (304, "0, 0, 0"),
    "prctl PR_SET_PDEATHSIG": (157, "1, 0, 0, 0, 0"),
    "ioctl TIOCSTI": (16, "0, 0x5412, b'x'"),
}


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of system calls are those of x86-64")
@pytest.mark.parametrize("name", CALLS)
def test_system_calls_that_no_notebook_needs_are_refused(notebook, name):
    number, arguments = CALLS[name]
    code = f"import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nresult = libc.syscall({number}, {arguments})\n"
    assert notebook.value(code + "[result, ctypes.get_errno()]") == [-1, errno.EPERM]


def test_processes_of_the_judge_are_out_of_reach(notebook, warm_parent):
    warm_parent.wait_until_ready()
    for pid in (os.getpid(), warm_parent.pid):
        # In a PID namespace the numbers name nobody, without one these are refused.
        assert denied(notebook, f"import os; os.kill({pid}, 0)") in ("ProcessLookupError", "PermissionError")
        for file in ("environ", "mem", "cmdline", "maps", "root", "cwd", "fd"):
            assert not readable(notebook, f"/proc/{pid}/{file}")
    assert os.getpid() not in visible_pids(notebook)


def visible_pids(notebook) -> list[int]:
    listed = notebook.run("import os; print(*[n for n in os.listdir('/proc') if n.isdigit()])")
    return [int(word) for word in listed.split() if word.isdigit()]


def test_only_its_own_processes_are_listed(notebook):
    if notebook.box.tier == "landlock":
        assert "PermissionError" in notebook.run("import os; os.listdir('/proc')")
    else:
        assert 2 <= len(visible_pids(notebook)) <= 4


def test_killing_everybody_reaches_nobody_else(fresh, open_notebook, way):
    other = open_notebook(way)
    if fresh.box.tier == "landlock":
        assert denied(fresh, "import os; os.kill(-1, 9)") == "PermissionError"
    else:
        with pytest.raises(DeadKernelError):
            fresh.run("import os\ntry: os.kill(-1, 9)\nexcept OSError: pass\nos.kill(os.getpid(), 9)")
    assert other.value("1 + 1") == 2


def test_siblings_do_not_see_each_other(notebook, open_notebook, way):
    other = open_notebook(way, files={"answer.txt": b"42"})
    work = other.value("import os\nos.getcwd()")
    assert other.value("open('answer.txt').read()") == "42"
    if notebook.box.tier == "landlock":
        assert not readable(notebook, f"{work}/answer.txt")
    assert not notebook.value("import os\nos.path.exists('answer.txt')")
    assert other.box.kernel_pid not in visible_pids(notebook)
    if os.geteuid() == 0:
        uids = [os.stat(f"/proc/{box.kernel_pid}").st_uid for box in (notebook.box, other.box)]
        assert len({0, *uids}) == 3, "a user of its own for each"


def test_no_open_file_of_the_judge_is_inherited(way, open_notebook, tmp_path):
    secret = tmp_path / "open.txt"
    secret.write_text("secret")
    with open(secret) as file:
        os.set_inheritable(file.fileno(), True)
        notebook = open_notebook(way)
        inodes = notebook.value(
            "import os\nfound = []\nfor fd in range(256):\n  try: found.append(os.fstat(fd).st_ino)\n"
            "  except OSError: pass\nfound"
        )
        assert os.fstat(file.fileno()).st_ino not in inodes


def test_a_planted_link_is_nothing_to_the_judge(way, open_box: Callable, notebook_in: Callable):
    """The judge's sockets lie where the sandbox cannot write."""
    with open_box(way) as box:
        names = {p.name for p in box.run_dir.iterdir()} - {"work"}
        assert names == {"lock", "agent.sock", "k-1", "k-2", "k-3", "k-4"}
        assert all(p.is_socket() for p in box.run_dir.iterdir() if p.name not in ("lock", "work"))
        assert box.run_dir.stat().st_mode & 0o066 == 0
        listed = notebook_in(box).run(f"import os; os.listdir({str(box.run_dir)!r})")
        assert listed.startswith(("FileNotFoundError", "PermissionError"))


def test_the_second_line_of_defence_holds_too(notebook):
    """Landlock denies what only lies outside of the mounts by chance: the executable that a fork keeps mapped."""
    assert denied(notebook, "open('/proc/self/exe', 'r+b')") != ""
