"""Using up or bringing down what other submissions need. Each costs its own notebook and nobody else's."""

from dataclasses import replace
from typing import Any

from tests.attacks.attack import Attack


def called(body: str, setup: str = "") -> str:
    """Code that runs when the judge calls the answer."""
    indented = "\n".join(f"    {line}" for line in body.strip().splitlines())
    return f"import os, signal, sys, threading, time\n{setup}\ndef mix(x, y):\n{indented}\n"


def run(body: str) -> str:
    """Code that runs with the cell."""
    return f"import os, signal, sys, threading, time\n{body}\n"


_IGNORE = "for s in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):\n    signal.signal(s, signal.SIG_IGN)\n"
_DAEMON = "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        for s in range(1, 32):\n            if s not in (9, 19):\n                signal.signal(s, signal.SIG_IGN)\n        time.sleep(600)\n    os._exit(0)"

# what the cell does, and whether the other answer of the notebook has to survive it
_ANSWERS = """
import autograder.judge.agent as agent

def serve(listener, namespace):
    kernel = get_ipython().kernel
    identity = kernel._parent_ident["shell"]
    while True:
        kernel.session.send(kernel.shell_stream.socket, "execute_reply", {"status": "ok"}, ident=identity)

agent.serve = serve
"""
_CELL = {
    "ends the process": ("os._exit(0)", True),
    "exits": ("exit()", True),
    "crashes": ("import ctypes\nctypes.string_at(0)", True),
    "aborts": ("os.abort()", True),
    "kills everybody": ("os.kill(-1, signal.SIGKILL)", True),
    "kills process 1": ("os.kill(1, signal.SIGKILL)", True),
    "stops itself": ("os.kill(os.getpid(), signal.SIGSTOP)", True),
    "closes every open file": ("os.closerange(0, 600)", True),
    "closes the judge's socket": ("os.close(int(os.environ['AUTOGRADER_AGENT_FD']))", False),
    "names another file as the judge's socket": ("os.environ['AUTOGRADER_AGENT_FD'] = '0'", False),
    "answers the kernel's client without end instead of serving": (_ANSWERS, False),
    "leaves daemons": (_DAEMON, True),
    "hangs at the end": ("import atexit\natexit.register(time.sleep, 600)", True),
    "changes answers from a thread": (
        "def change():\n    while True:\n        globals()['running_sum'] = lambda x: x\n        time.sleep(0.001)\nthreading.Thread(target=change, daemon=True).start()",
        False,
    ),
    "ends the process a little later": ("threading.Timer(0.3, lambda: os._exit(0)).start()", False),
    "forks without an end": ("try:\n    while True:\n        os.fork()\nexcept OSError:\n    pass", False),
    "forks processes that fork": ("def bomb():\n    while True:\n        try:\n            os.fork()\n        except OSError:\n            pass\nbomb()", False),
    "starts threads without an end": ("try:\n    while True:\n        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\nexcept RuntimeError:\n    pass", False),
    "takes all memory": ("hoard = []\nwhile True:\n    hoard.append(bytearray(1 << 26))", True),
    "takes all memory as a tensor": ("hoard = torch.ones(1 << 33)", True),
    "takes shared memory": ("import mmap\nhoard = []\nwhile True:\n    m = mmap.mmap(-1, 1 << 26)\n    for i in range(0, 1 << 26, 4096):\n        m[i] = 1\n    hoard.append(m)", True),
    "takes memory in many processes": ("for _ in range(8):\n    if os.fork() == 0:\n        h = bytearray(b'1') * (400 << 20)\n        time.sleep(600)\ntime.sleep(600)", False),
    "fills the disk": ("for n in range(10**6):\n    open(f'f{n}', 'wb').write(bytes(1 << 20))", True),
    "fills the shared memory file system": ("for n in range(10**6):\n    open(f'/dev/shm/f{n}', 'wb').write(bytes(1 << 20))", True),
    "makes files without an end": ("for n in range(10**7):\n    open(f'f{n}', 'w').close()", True),
    "writes into a file that has no name": ("f = os.memfd_create('x')\nwhile True:\n    os.write(f, bytes(1 << 20))", True),
    "makes a directory a thousand deep": ("for n in range(1000):\n    os.mkdir('d')\n    os.chdir('d')", True),
    "makes names that nobody can read": ("for name in (b'\\xff\\xfe', b'a\\nb', b'\\x1b[2J', b'-rf'):\n    open(name, 'w').close()\nos.mkdir('locked', 0)", True),
    "opens files without an end": ("hoard = []\ntry:\n    while True:\n        hoard.append(open('/dev/null'))\nexcept OSError:\n    pass", False),
    "prints 300 MB in one line": ("print('x' * (300 << 20))", True),
    "prints a million lines": ("for n in range(1_000_000):\n    print(n)", True),
    "prints without an end": ("while True:\n    print('x' * 1000)", True),
    "writes 300 MB past Python": ("for _ in range(300):\n    os.write(1, b'x' * (1 << 20))\n    os.write(2, b'y' * (1 << 20))", True),
    "shows a nested output": ("deep = []\nfor _ in range(900):\n    deep = [deep]\ndisplay({'application/json': deep, 'text/plain': 'x'}, raw=True)", True),
    "shows a giant image": ("display({'image/png': 'A' * (100 << 20)}, raw=True)", True),
    "shows ten thousand outputs": ("for n in range(10_000):\n    display(n)", True),
    "updates one output without an end": ("h = display('x', display_id=True)\nfor n in range(20_000):\n    h.update(n)", True),
    "recurses without an end": ("def f():\n    f()\nsys.setrecursionlimit(10**9)\nf()", True),
    "raises an exception that cannot be shown": ("class Bad(Exception):\n    def __str__(self):\n        while True:\n            pass\n    __repr__ = __str__\nraise Bad", True),
    "runs for ever": ("while True:\n    pass", True),
    "runs for ever and ignores signals": (_IGNORE + "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass", True),
    "computes on every processor": ("for _ in range(8):\n    if os.fork() == 0:\n        while True:\n            pass", False),
    "waits for the keyboard": ("input('name? ')", True),
    "deletes what Python needs": ("import builtins\nfor n in ('print', 'len', 'isinstance', 'getattr'):\n    delattr(builtins, n)", False),
    "forgets every module": ("sys.modules.clear()", False),
    "clears the namespace": ("globals().clear()", False),
    "removes its directory": ("import shutil\nshutil.rmtree(os.getcwd(), ignore_errors=True)\nos.chdir('/')", True),
    "shuts the kernel's loop down": ("get_ipython().kernel.do_shutdown(False)\nget_ipython().kernel.io_loop.stop()", True),
    "closes the kernel's sockets": ("k = get_ipython().kernel\nk.shell_stream.close()\nk.iopub_socket.close()", False),
}  # fmt: skip

_CALL = {
    "ends the process": "os._exit(0)",
    "crashes": "import ctypes\nctypes.string_at(0)",
    "kills everybody": "os.kill(-1, signal.SIGKILL)",
    "stops itself": "os.kill(os.getpid(), signal.SIGSTOP)",
    "closes every open file": "os.closerange(0, 600)",
    "exits": "sys.exit(0)",
    "interrupts itself": "raise KeyboardInterrupt",
    "runs for ever": "while True:\n    pass",
    "catches every interrupt": "while True:\n    try:\n        time.sleep(60)\n    except BaseException:\n        pass",
    "takes all memory": "hoard = []\nwhile True:\n    hoard.append(bytearray(1 << 26))",
    "recurses without an end": "return mix(x, y)",
    "prints 300 MB": "print('x' * (300 << 20))\nos.write(1, b'x' * (300 << 20))",
    "forks and both answer": "os.fork()\nreturn x",
    "leaves daemons": _DAEMON + "\nreturn x",
    "raises what cannot be shown": "raise type('Bad', (Exception,), {'__str__': lambda self: time.sleep(600)})()",
    "shows outputs": "for n in range(3000):\n    display(n)\nreturn x",
}
# In these the call, or what is left of it, also ends the kernel in which the other answer waits to be called, more often than it is revived.
_FATAL = {"forks and both answer"}


def _surrogates(document: dict[str, Any]) -> None:
    document["cells"][0]["source"] += "\n# \ud800\nprint('\udfff')"
    document["metadata"]["\ud800"] = "\udfff"


def _deep(document: dict[str, Any]) -> None:
    deep: list[Any] = []
    for _ in range(400):
        deep = [deep]
    document["metadata"]["deep"] = document["cells"][1]["metadata"]["deep"] = deep


def _many_cells(document: dict[str, Any]) -> None:
    cell = {"cell_type": "markdown", "source": "x", "metadata": {}}
    document["cells"] += [cell | {"id": f"more{n}"} for n in range(200)]


def _hostile_names(document: dict[str, Any]) -> None:
    document["metadata"]["kernelspec"] = {"name": "../../bin/sh", "display_name": "<script>", "language": "sh"}
    document["cells"][0]["id"] = "../../x"
    document["cells"][0]["attachments"] = {"../../../etc/passwd": {"text/plain": "x"}}


_FILES = {
    "half surrogates": _surrogates,
    "nested metadata": _deep,
    "two hundred cells": _many_cells,
    "hostile names": _hostile_names,
}
# Most of their time is a limit that runs out; of each sort one stays in the default run.
_SLOW = {
    "cell: names another file as the judge's socket",
    "cell: opens files without an end",
    "cell: forks processes that fork",
    "cell: stops itself",
    "cell: forgets every module",
    "cell: recurses without an end",
    "cell: raises an exception that cannot be shown",
    "cell: closes the kernel's sockets",
    "cell: takes shared memory",
    "cell: takes memory in many processes",
    "cell: shows ten thousand outputs",
    "cell: prints without an end",
    "cell: prints a million lines",
    "cell: runs for ever",
    "cell: updates one output without an end",
    "cell: writes 300 MB past Python",
    "cell: takes all memory",
    "call: shows outputs",
    "call: catches every interrupt",
    "call: raises what cannot be shown",
    "call: prints 300 MB",
    "call: runs for ever",
}

_ATTACKS = [
    *(Attack("break", f"cell: {n}", run(code), ruins_itself=not spares) for n, (code, spares) in _CELL.items()),
    *(Attack("break", f"call: {n}", called(code), ruins_itself=n in _FATAL) for n, code in _CALL.items()),
    *(Attack("break", f"file: {n}", edit=edit) for n, edit in _FILES.items()),
]
BREAK = [replace(attack, slow=attack.name in _SLOW) for attack in _ATTACKS]
