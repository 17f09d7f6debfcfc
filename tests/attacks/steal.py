"""Reading what a submission has no business with. The planted secrets begin with a word that no code here contains whole."""

from tests.attacks.attack import Attack, looted

_FIND = """
WORD = b"PLAN" + b"TED-"

def around(data):
    places, at = [], data.find(WORD)
    while at >= 0 and len(places) < 20:
        places.append(bytes(data[at : at + 24]))
        at = data.find(WORD, at + 1)
    return places

def memory_of(pid):
    found = []
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            span, rights = line.split()[:2]
            low, high = (int(n, 16) for n in span.split("-"))
            if rights.startswith("rw") and high - low < 1 << 28:
                try:
                    mem.seek(low)
                    found += around(mem.read(high - low))
                except OSError:
                    pass
    return [f for f in found if f != WORD and f[8:9].isalnum()]
"""
_FRAMES = """
LOOT = []

def mix(x, y):
    frame = sys._getframe()
    while frame is not None:
        for value in (*frame.f_locals.values(), *frame.f_globals.values()):
            LOOT.append(repr(value)[:300])
        frame = frame.f_back
    raise ValueError(" ".join(t for t in LOOT if "PLAN" + "TED-" in t))
"""

_PATHS = {
    "the solutions": "open('@ROOT@/solutions/a/answers.py').read()",
    "the hidden tests": "open('@ROOT@/tests/hidden/a/test_answers.py').read()",
    "the gradebook": "__import__('sqlite3').connect('@ROOT@/gradebook.db').execute('select * from grade').fetchall()",
    "another submission": "open('@ROOT@/submitted/other/a/n.ipynb').read()",
    "a key in the home directory": "open('@HOME@/.ssh/id_ed25519').read()",
    "the course's secret": "open('@ROOT@/course.secret').read()",
    "anything by a relative path": "[open(p).read() for n in range(9) for p in glob.glob('../' * n + '**/range-*/course/home/*')]",
    "anything through the judge's root": "open('/proc/@JUDGE@/root@ROOT@/course.secret').read()",
    "anything through the judge's directory": "os.listdir('/proc/@JUDGE@/cwd')",
    "anything by a shell": "os.popen('cat @ROOT@/course.secret @ROOT@/solutions/a/*.py 2>&1').read()",
}

STEAL = [
    *(Attack("steal", f"reads {what}", looted(expression)) for what, expression in _PATHS.items()),
    Attack("steal", "reads the environment", looted("dict(os.environ)")),
    Attack(
        "steal",
        "reads the environment it was started with",
        looted("[open(p, 'rb').read() for p in glob.glob('/proc/[0-9s]*/environ')]"),
    ),
    Attack(
        "steal",
        "reads every process's command line",
        looted("[open(p, 'rb').read() for p in glob.glob('/proc/[0-9s]*/cmdline')]"),
    ),
    Attack("steal", "searches its own memory", looted("memory_of('self')", _FIND)),
    Attack("steal", "searches the judge's memory", looted("memory_of(@JUDGE@)", _FIND)),
    Attack(
        "steal",
        "searches every process's memory",
        looted("[memory_of(int(p)) for p in os.listdir('/proc') if p.isdecimal()]", _FIND),
    ),
    Attack(
        "steal",
        "asks the garbage collector",
        looted(
            "[o[:60] for r in __import__('gc').get_objects() for o in __import__('gc').get_referents(r)"
            " if type(o) is str and o.startswith('PLAN' + 'TED-')]"
        ),
    ),
    Attack("steal", "looks into its callers", f"import sys\n{_FRAMES}"),
    Attack(
        "steal",
        "looks into all threads when called",
        "import sys\n"
        + _FRAMES.replace("frame = sys._getframe()", "frame = list(sys._current_frames().values())[-1]"),
    ),
    Attack(
        "steal",
        "asks inspect for every module's source",
        looted("[s for s in map(source, list(sys.modules.values())) if 'PLAN' + 'TED-' in s]", """
import inspect

def source(module):
    try:
        return inspect.getsource(module)
    except Exception:
        return ""
"""),
    ),
    Attack(
        "steal",
        "imports the solutions",
        looted("__import__('answers').__doc__", "sys.path[:0] = ['@ROOT@/solutions/a', '@ROOT@/tests/hidden/a']"),
    ),
    Attack(
        "steal",
        "reads every file it has open",
        looted(
            "[pread(fd) for fd in range(3, 600)]",
            "def pread(fd):\n    try:\n        return os.pread(fd, 5000, 0)\n    except OSError:\n        return b''",
        ),
    ),
    Attack(
        "steal",
        "reopens what it has open",
        looted(
            "[reopen(fd) for fd in os.listdir('/proc/self/fd')]",
            "def reopen(fd):\n    try:\n        return os.listdir(f'/proc/self/fd/{fd}/..'), os.readlink(f'/proc/self/fd/{fd}')\n"
            "    except OSError:\n        return ''",
        ),
    ),
    Attack(
        "steal",
        "makes a symbolic link",
        looted("open('link').read()", "os.symlink('@ROOT@/course.secret', 'link')"),
    ),
    Attack(
        "steal",
        "makes a hard link",
        "import os\ntry:\n    os.link('@ROOT@/course.secret', 'hard')\n    print(open('hard').read())\nexcept OSError as e:\n    print(e)",
    ),
    Attack(
        "steal",
        "searches all files it can see",
        looted("hunt()", _FIND + '''
def hunt():
    found = []
    for folder, names, files in os.walk("/"):
        names[:] = [n for n in names if n not in ("proc", "sys", "usr", "lib", "site-packages", ".venv", ".pyenv")]
        for name in files[:500]:
            try:
                with open(os.path.join(folder, name), "rb") as file:
                    found += around(file.read(1 << 16))
            except OSError:
                pass
    return found
'''),
    ),
    Attack(
        "steal",
        "connects to every socket it can name",
        looted("[talk(line.split()[-1]) for line in open('/proc/net/unix') if '/' in line or '@' in line]", '''
import socket

def talk(path):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(0.1)
        try:
            s.connect("\\0" + path[1:] if path.startswith("@") else path)
            return s.recv(1000)
        except OSError:
            return b""
'''),
    ),
    Attack("steal", "lists the judge's socket directory", looted("[os.listdir('@RUN@'), glob.glob('/tmp/autograder-*/*')]")),
    Attack("steal", "reads the compiled hidden tests", looted("[open(p, 'rb').read() for p in glob.glob('@ROOT@/**/*.pyc', recursive=True)]")),
    Attack("steal", "reads the history of earlier notebooks", looted("list(get_ipython().history_manager.get_range())[:-1]")),
]  # fmt: skip
