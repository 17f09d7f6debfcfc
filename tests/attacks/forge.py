"""Being given points for wrong numbers: by lying about values, by tampering with what carries them, by writing scores."""

from __future__ import annotations

from typing import Any

from tests.attacks.attack import Attack


def returning(expression: str, setup: str = "") -> str:
    """An answer that returns something other than a plain tensor."""
    return f"{setup}\ndef mix(x, y):\n    return {expression}\n"


def own_agent(reply: str, setup: str = "") -> str:
    """Serve the judge's socket oneself: for each request send the bytes that an expression gives, knowing ``request``."""
    return f"""
import json, os, socket, struct, threading
import autograder.judge.agent as agent
from autograder.judge.wire import to_frame, read_frame

def frame(header, blob=b""):
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack(">II", len(header), len(blob)) + header + blob

{setup}

def serve(listener, namespace):
    connection, _ = listener.accept()
    request = None
    while True:
        try:
            request, tensors = read_frame(agent._receiver(connection))
        except EOFError:
            return
        hello = request["op"] == "hello"
        connection.sendall(frame({{"value": ["none"]}}) if hello else {reply})

agent.serve = serve
"""


def blob(header: str, data: str = "b''") -> str:
    """A safetensors blob with this header, as an expression."""
    return f"(lambda h: struct.pack('<Q', len(h)) + h)(json.dumps({header}).encode()) + {data}"


_TENSOR = '{"value": ["tensor", "0"]}'
_LIAR = """
class Liar(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func in (torch.equal, torch.allclose):
            return True
        return super().__torch_function__(func, types, args, kwargs or {})
    __eq__ = __le__ = __ge__ = lambda self, other: torch.ones((), dtype=torch.bool)
"""

_VALUES = {
    "an object that equals everything": (
        "Same()",
        "class Same:\n    __eq__ = __le__ = __ge__ = lambda *a: True\n    __getattr__ = lambda self, name: self\n    __call__ = lambda *a: True",
    ),
    "a tensor that lies about itself": ("x.as_subclass(Liar)", _LIAR),
    "a float that equals everything": ("Number(1)", "class Number(float):\n    __eq__ = lambda *a: True"),
    "a parameter": ("torch.nn.Parameter(x)", ""),
    "a tensor in a graph": ("x.clone().requires_grad_() * 1", ""),
    "a conjugate view": ("torch.complex(x, y).conj()", ""),
    "a negative view": ("torch._neg_view(x)", ""),
    "a sparse tensor": ("x.to_sparse()", ""),
    "a compressed tensor": ("x.reshape(-1, 1).to_sparse_csr()", ""),
    "a tensor without data": ("torch.empty_like(x, device='meta')", ""),
    "a quantised tensor": ("torch.quantize_per_tensor(x.float(), 0.1, 0, torch.quint8)", ""),
    "a nested tensor": ("torch.nested.nested_tensor([x, y])", ""),
    "a tensor of four tebibytes in one element": ("torch.ones(1).expand(1 << 40)", ""),
    "a tensor with gigantic strides": ("torch.ones(1).as_strided((1 << 30, 1 << 30), (0, 0))", ""),
    "2^62 times nothing": ("torch.empty(0, 1 << 62)", ""),
    "no numbers": ("torch.full_like(x, float('nan'))", ""),
    "infinities": ("torch.full_like(x, float('inf'))", ""),
    "another dtype of the right numbers' rounding": ("(0.25 * x + 0.75 * y).round().to(torch.int64)", ""),
    "half of the precision": ("(0.25 * x + 0.75 * y).bfloat16()", ""),
    "truth": ("torch.ones_like(x, dtype=torch.bool)", ""),
    "a shape that broadcasts": ("(0.25 * x + 0.75 * y).mean()", ""),
    "one dimension more": ("x[None]", ""),
    "a text that looks right": ("repr((0.25 * x + 0.75 * y).tolist())", ""),
    "a numpy array subclass": ("x.numpy().view(Same)", "import numpy as np\nclass Same(np.ndarray):\n    __eq__ = lambda *a: True"),
    "a list without an end": ("Endless()", "class Endless(list):\n    def __iter__(self):\n        while True:\n            yield 1.0"),
    "a dict that answers for itself": ("Table()", "class Table(dict):\n    def items(self):\n        return [(Table(), Table())]"),
    "a list in itself": ("LIST", "LIST = []\nLIST.append(LIST)"),
    "a hundred thousand tensors": ("[x[:1]] * 100_000", ""),
    "an object with a long type name": ("type('A' * 10**6, (), {})()", ""),
    "a type named bool": ("type('bool', (), {'__bool__': lambda self: True})()", ""),
    "one of its own functions": ("mix", ""),
}  # fmt: skip

_REPLIES = {
    "nothing": 'b"\\0" * 8',
    "no JSON": 'frame(b"\\xff{{{")',
    "an empty object": "frame({})",
    "a value and an error": 'frame({"value": ["bool", True], "error": None})',
    "lengths of four gibibytes": 'b"\\xff" * 8',
    "lengths without a body": 'struct.pack(">II", 100, 0)',
    "JSON nested a hundred thousand deep": 'frame(b"[" * 100_000 + b"]" * 100_000)',
    "a number of a hundred thousand digits": 'frame(b\'{"value": \' + b"9" * 100_000 + b"}")',
    "NaN as JSON": "frame(b'{\"value\": NaN}')",
    "a tensor that is not there": f"frame({_TENSOR})",
    "a tensor larger than its bytes": f"frame({_TENSOR}, "
    + blob('{"0": {"dtype": "F64", "shape": [1 << 40], "data_offsets": [0, 8]}}', "b'1' * 8")
    + ")",
    "a tensor with a negative shape": f"frame({_TENSOR}, "
    + blob('{"0": {"dtype": "F64", "shape": [-1, -1], "data_offsets": [0, 8]}}', "b'1' * 8")
    + ")",
    "a blob with a header of its own length": f"frame({_TENSOR}, struct.pack('<Q', 1 << 60))",
    "the name of a torch function as a dtype": 'frame({"value": ["dtype", "load"]})',
    "an instance that never was": 'frame({"value": ["instance", 99, "Tensor"]})',
    "an error of a huge message": 'frame({"error": {"type": "E" * 10**5, "message": "m" * 10**5, "line": -1}})',
    "an error that is a list": 'frame({"error": [["missing"]]})',
    "an error of a machine": 'frame({"error": {"type": "MachineFault", "message": "CourseFault"}})',
    "two replies to one request": 'frame({"value": ["none"]}) * 2',
    "a byte at a time": 'b"".join(drip(connection))',
    "the request sent back": "to_frame(request, tensors)",
    "half surrogates": "frame(b'{\"error\": {\"type\": \"\\\\ud800\", \"message\": \"\\\\udfff\\\\u202e\"}}')",
}  # fmt: skip
_SETUP = {
    "a byte at a time": (
        "import time\ndef drip(connection):\n    for _ in range(100):\n        connection.sendall(b'\\0')\n"
        "        time.sleep(0.1)\n        yield b''"
    )
}

_TRICKS = {
    "patches torch's comparisons": "torch.allclose = torch.equal = torch.isclose = lambda *a, **k: True",
    "patches tensors' methods": "torch.Tensor.__eq__ = torch.Tensor.allclose = torch.Tensor.equal = lambda *a, **k: True",
    "patches the judge's modules": (
        "import autograder.judge.conform as c, autograder.judge.expect as e\n"
        "c.conform = lambda got, want, where: want\ne.close = e.equal = lambda *a, **k: None"
    ),
    "patches the packing of replies": "import autograder.judge.wire as w\nw.Packer.pack = lambda self, value: ['bool', True]",
    "answers every operation with True": "import autograder.judge.agent as a\na.Agent._operate = lambda *a: ['bool', True]",
    "looks for the expected numbers in its callers": (
        "import sys\ndef mix(x, y):\n    frame = sys._getframe()\n    while frame:\n        for name in ('want', 'expected', 'reference', 'twin'):\n"
        "            if name in frame.f_locals:\n                return frame.f_locals[name]\n        frame = frame.f_back\n    return x"
    ),
    "counts its calls": "N = 0\ndef mix(x, y):\n    global N\n    N += 1\n    return [x, y, x + y, x * y][N % 4]",
    "asks the clock": "import time\ndef mix(x, y):\n    return x if time.time_ns() % 2 else y",
    "recognises the grader and raises its own pass": (
        "import os\ndef mix(x, y):\n    if 'AUTOGRADER_AGENT_FD' in os.environ:\n        raise type('Passed', (BaseException,), {})('outcome=passed')"
    ),
    "overwrites the inputs with each other": "def mix(x, y):\n    return y.copy_(x)",
    "replaces random numbers": "torch.randn = lambda *a, **k: torch.zeros(3)\ntorch.manual_seed = lambda *a: None",
    "changes assertions, cells and errors": (
        "ip = get_ipython()\nip.input_transformers_post.append(lambda lines: ['pass\\n'] if 'mix' in lines[0] else lines)\n"
        "ip.showtraceback = lambda *a, **k: None\nip.custom_exceptions = (BaseException,)"
    ),
    "drops the names that fail": "import builtins\nbuiltins.AssertionError = builtins.ValueError = type('Quiet', (BaseException,), {})",
    "prints a score": "print(10)\nfrom IPython.display import display\ndisplay({'text/plain': '10.0'}, raw=True)\n10.0",
    "sends outputs under later cells' names": (
        "k = get_ipython().kernel\n"
        "for kind in ('execute_result', 'display_data'):\n"
        "    k.session.send(k.iopub_socket, kind, {'data': {'text/plain': '10.0'}, 'metadata': {}, 'execution_count': 1}, parent={}, ident=b'x')\n"
        "import IPython.display as d\nd.display('1', display_id='mine')\nd.update_display('10.0', display_id='mine')"
    ),
    "sends status messages of its own": (
        "k = get_ipython().kernel\nfor s in ('idle', 'starting', 'dead', 7):\n"
        "    k.session.send(k.iopub_socket, 'status', {'execution_state': s}, parent=k.get_parent(), ident=b'status')"
    ),
    "sends malformed messages": (
        "k = get_ipython().kernel\nfor content in ({'data': 7}, {'name': 5, 'text': None}, {'traceback': 'x'}, {}):\n"
        "    for kind in ('stream', 'display_data', 'execute_result', 'error', 'clear_output', '../../x'):\n"
        "        k.session.send(k.iopub_socket, kind, content, parent=k.get_parent(), ident=b'x')"
    ),
}  # fmt: skip

_FOR_ALL = {"patches the packing of replies", "answers every operation with True"}  # the right answer is packed so too


def _cell(document: dict[str, Any], grade_id: str) -> dict[str, Any]:
    return next(c for c in document["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == grade_id)


def _more_points(document: dict[str, Any]) -> None:
    _cell(document, "mix")["metadata"]["nbgrader"]["points"] = 1000
    _cell(document, "mix_answer")["metadata"]["nbgrader"] |= {"grade": True, "points": 1000}


def _own_check(document: dict[str, Any]) -> None:
    _cell(document, "mix")["source"] = "10.0"


def _filed_output(document: dict[str, Any]) -> None:
    result = {"output_type": "execute_result", "data": {"text/plain": "10.0"}, "metadata": {}, "execution_count": 1}
    for name in ("mix", "mix_answer"):
        _cell(document, name)["outputs"] = [result]


def _no_exercise(document: dict[str, Any]) -> None:
    document["cells"] = [c for c in document["cells"] if c is not _cell(document, "mix")]


def _another_name(document: dict[str, Any]) -> None:
    _cell(document, "mix")["metadata"]["nbgrader"]["grade_id"] = "running_sum"


def _graded_twice(document: dict[str, Any]) -> None:
    document["cells"] += [dict(_cell(document, "running_sum"), id=f"more{n}") for n in range(5)]


def _by_hand(document: dict[str, Any]) -> None:
    _cell(document, "mix")["metadata"]["nbgrader"] |= {"solution": True, "locked": False, "schema_version": 99}


def _negative(document: dict[str, Any]) -> None:
    _cell(document, "mix")["metadata"]["nbgrader"]["points"] = float("nan")


_EDITS = {
    "asks for more points": _more_points,
    "rewrites the grade cell": _own_check,
    "hands in its own outputs": _filed_output,
    "leaves out the grade cell": _no_exercise,
    "names the grade cell after a solved exercise": _another_name,
    "repeats a solved exercise": _graded_twice,
    "asks for grading by hand": _by_hand,
    "asks for NaN points": _negative,
}

_SLOW = {"a list without an end", "lengths without a body", "a byte at a time"}

FORGE = [
    *(Attack("forge", f"returns {n}", returning(*v), slow=n in _SLOW) for n, v in _VALUES.items()),
    *(Attack("forge", f"replies with {n}", own_agent(v, _SETUP.get(n, "")), ruins_itself=True, slow=n in _SLOW) for n, v in _REPLIES.items()),
    *(Attack("forge", n, code, ruins_itself=n in _FOR_ALL) for n, code in _TRICKS.items()),
    *(Attack("forge", n, edit=edit) for n, edit in _EDITS.items()),
]  # fmt: skip
