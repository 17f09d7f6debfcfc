"""The student as hidden tests see it: names that can be called, whose results are plain data of the reference's structure.

Every call goes to the solution through a channel (a socket to the sandbox, or straight to an agent in this process) and to the reference
on the same arguments; what comes back is recorded, so that the same test can be replayed with every named mistake and compared.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from autograder.exercises.registry import CourseFault
from autograder.judge.agent import Agent
from autograder.judge.conform import conform, to_dtypes_of
from autograder.judge.draw import derive
from autograder.judge.faults import Fault, StudentFault
from autograder.judge.wire import Kept, Malformed, Packer, Unpacker
from autograder.text import Text

Tensors = dict[str, torch.Tensor]
Reply = tuple[dict[str, Any], Tensors]


class Channel(Protocol):
    """A way to an agent."""

    def request(self, header: dict[str, Any], tensors: Tensors) -> Reply:
        """Send one request and return the reply. Raises StudentFault for a timeout, a dead kernel or a malformed reply."""
        ...


class Direct:
    """A channel to a solution of the course in this process: references, named mistakes, alternatives. Arguments are copied as on the wire."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._agent = Agent(namespace)

    def request(self, header: dict[str, Any], tensors: Tensors) -> Reply:
        state = torch.random.get_rng_state()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a known mistake may well warn
                return self._agent.handle(header, tensors)
        finally:
            torch.random.set_rng_state(state)


@dataclass
class Call:
    """One recorded call: what was asked, what came (a value or a fault), and what the reference gives."""

    op: str
    name: str
    args: tuple[Any, ...]
    got: Any = None
    fault: StudentFault | None = None
    want: Any = None

    @property
    def what(self) -> str:
        """The operation and what it was done to."""
        return f"{self.op} {self.name}"

    @property
    def compared(self) -> bool:
        """Whether the reference was asked the same."""
        return self.op in _CONFORMING


class Differs(BaseException):
    """A replay gave something else than the answer that it is held against. No hidden test may catch it."""


@dataclass(frozen=True)
class Earlier:
    """The calls of an earlier run that a replay is held against, from the one numbered ``start``; ``same`` compares two."""

    calls: Sequence[Call]
    same: Callable[[Call, Call], bool]
    start: int = 0

    def want(self, number: int) -> Any:
        """What the reference gave at a call of the replay: as long as nothing differs, it was asked the same. Raises Differs."""
        if self.start + number >= len(self.calls):
            raise Differs
        return self.calls[self.start + number].want

    def compare(self, number: int, call: Call) -> None:
        """Raises Differs when the earlier run's call had another outcome."""
        if not self.same(self.calls[self.start + number], call):
            raise Differs


@dataclass
class Student:
    """A solution behind a channel, with the reference as its twin. ``student.f`` is the callable named f."""

    _channel: Channel
    _twin: Channel | None
    _seed: int
    _earlier: Earlier | None = None
    _calls: list[Call] = field(default_factory=list)
    _count: int = 0

    def __getattr__(self, name: str) -> Callable_:
        if name.startswith("_"):
            raise AttributeError(name)
        return Callable_(self, name, name, name)

    def probe(self, source: str, name: str = "fn", **constants: Any) -> Instance:
        """An object made by running ``source`` on the other side; to be handed to exercises that take a function or a model."""
        made = self._ask("probe", name, 0, 0, (source, name), constants)
        if not isinstance(made, Instance):
            raise CourseFault(Text(zh=f"探针 {name!r} 不能调用", en=f"the probe {name!r} is not callable"))
        return made

    def _ask(
        self, op: str, name: str, target: int | str, twin: int | str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """One operation on both sides. Returns the student's result in the reference's structure, or raises StudentFault."""
        self._count += 1
        header: dict[str, Any] = {
            "op": "call" if op in ("error", "loosely") else op,
            "seed": derive(self._seed, str(self._count)),
        }
        header["first"] = self._count == 1
        call = Call(op, name, args)
        self._calls.append(call)
        want = call.want = self._want(call, header | {"target": twin}, kwargs)
        try:
            got = self._one(self._channel, header | {"target": target}, args, kwargs, lambda i: i._number)
            call.got = got
            if op == "call" and isinstance(target, str) and not _any_floating((*args, *kwargs.values())):
                got = to_dtypes_of(want, got)
            if self._twin is not None and op in _CONFORMING:
                got = call.got = conform(got, want, _RESULT.format(name=name))
        except StudentFault as fault:
            call.fault = fault
            raise
        finally:
            if self._earlier is not None:
                self._earlier.compare(self._count - 1, call)
        return _join(got, want, self)

    def _want(self, call: Call, header: dict[str, Any], kwargs: dict[str, Any]) -> Any:
        """What the reference gives for a call; None where it is not asked."""
        if self._earlier is not None:
            return self._earlier.want(self._count - 1)
        if self._twin is None:
            return None
        try:
            return self._one(self._twin, header, call.args, kwargs, lambda i: i._twin_number)
        except StudentFault as fault:
            if call.op == "error":
                return None
            raise CourseFault(
                Text(
                    zh=f"参考解答在 {call.what} 失败：{fault.text.zh}",
                    en=f"the reference fails at {call.what}: {fault.text.en}",
                )
            ) from fault

    def _one(self, channel: Channel, header: dict[str, Any], args: Any, kwargs: Any, number: Any) -> Any:
        packer = Packer(handle=lambda v: (number(v), v.type) if isinstance(v, Instance) else None)
        header = header | {"args": packer.pack(args), "kwargs": packer.pack(kwargs)}
        reply, tensors = channel.request(header, packer.tensors)
        if "error" in reply:
            raise _fault_of(reply["error"])
        try:
            return Unpacker(tensors).unpack(reply.get("value"))
        except Malformed as error:
            raise malformed(error) from None


_RESULT = Text(zh="{name} 的结果", en="the result of {name}")
_CONFORMING = frozenset({"call", "inputs_after", "probe", "training"})


def _any_floating(arguments: tuple[Any, ...]) -> bool:
    return any(isinstance(a, torch.Tensor) and a.is_floating_point() for a in arguments)


def _join(got: Any, want: Any, student: Student) -> Any:
    """Pair the instances in a student's result with their twins in the reference's."""
    if isinstance(got, Kept):
        return Instance(student, got.number, want.number if isinstance(want, Kept) else -1, got.type)
    if isinstance(got, (tuple, list)):
        wants = want if isinstance(want, (tuple, list)) and len(want) == len(got) else [None] * len(got)
        return type(got)(_join(g, w, student) for g, w in zip(got, wants, strict=True))
    return got


class Callable_:
    """A callable on the other side."""

    def __init__(self, student: Student, name: str, number: int | str, twin_number: int | str) -> None:
        self._student, self._name, self._number, self._twin_number = student, name, number, twin_number

    def _ask(self, op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._student._ask(op, self._name, self._number, self._twin_number, args, kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the call."""
        return self._ask("call", args, kwargs)

    def loosely(self, *args: Any, **kwargs: Any) -> Any:
        """The result of the call in whatever structure it came, for the rare exercise that leaves a choice."""
        return self._ask("loosely", args, kwargs)

    def inputs_after(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The positional arguments as they are after the call."""
        return tuple(self._ask("inputs_after", args, kwargs))

    def gradients(self, *args: Any, cotangent: torch.Tensor, output: int | None = None, **kwargs: Any) -> Any:
        """Gradients of ``(result * cotangent).sum()``: a list, one per argument; for an instance see :meth:`Instance.gradients`."""
        return self._gradients(args, kwargs | {"cotangent": cotangent, "output": output}).inputs

    def _gradients(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Gradients:
        found = self._ask("gradients", args, kwargs)
        if not isinstance(found, dict) or set(found) != {"inputs", "parameters"}:
            raise malformed(Malformed("gradients are not written as gradients"))
        inputs, parameters = found["inputs"], found["parameters"]
        floats = [a if isinstance(a, torch.Tensor) and a.is_floating_point() else None for a in args]
        if not isinstance(inputs, list) or len(inputs) != len(args) or not isinstance(parameters, dict):
            raise malformed(Malformed("gradients are not written as gradients"))
        checked = [None if g is None else conform(g, a, _GRADIENT) for g, a in zip(inputs, floats, strict=True)]
        if not all(p is None or isinstance(p, torch.Tensor) for p in parameters.values()):
            raise malformed(Malformed("a gradient is no tensor"))
        return Gradients(checked, parameters)

    def error(self, *args: Any, **kwargs: Any) -> str | None:
        """The name of the exception type that the call raises, or None when it returns."""
        try:
            self._ask("error", args, kwargs)
        except StudentFault as fault:
            if fault.kind in (Fault.RAISED, Fault.UNFINISHED):
                return fault.detail
            raise
        return None


_GRADIENT = Text(zh="梯度", en="the gradient")


@dataclass(frozen=True)
class Gradients:
    """``inputs``: one per argument, None where nothing is reached; ``parameters``: by name."""

    inputs: list[torch.Tensor | None]
    parameters: dict[str, torch.Tensor | None]


class Instance(Callable_):
    """A module, or another callable object, that lives on the other side."""

    def __init__(self, student: Student, number: int, twin_number: int, type_name: str) -> None:
        super().__init__(student, type_name, number, twin_number)
        self.type = type_name

    def gradients(self, *args: Any, cotangent: torch.Tensor, output: int | None = None, **kwargs: Any) -> Gradients:
        """Gradients of ``(result * cotangent).sum()`` for the arguments and for the parameters."""
        return self._gradients(args, kwargs | {"cotangent": cotangent, "output": output})

    def state_dict(self) -> Tensors:
        """Name → tensor, as in torch."""
        return self._named("state_dict")

    def parameters(self) -> Tensors:
        """Name → parameter."""
        return self._named("parameters")

    def buffers(self) -> Tensors:
        """Name → buffer."""
        return self._named("buffers")

    def load_state_dict(self, state: Tensors) -> None:
        """Load a state dict, strictly. The reference keeps its own: names may differ between solutions."""
        self._only_here("load_state_dict", (state,))

    def train(self, mode: bool = True) -> None:
        """Put the module and its twin into training mode, or out of it."""
        self._ask("train", (mode,), {})

    def eval(self) -> None:
        """Put the module and its twin into evaluation mode."""
        self.train(False)

    def to(self, dtype: torch.dtype) -> None:
        """Convert parameters and buffers of the module and its twin."""
        self._ask("to", (dtype,), {})

    @property
    def training(self) -> bool:
        """Whether the module is in training mode."""
        return bool(self._ask("training", (), {}))

    def _only_here(self, op: str, args: tuple[Any, ...]) -> Any:
        student, twin = self._student, self._student._twin
        student._twin = None
        try:
            return self._ask(op, args, {})
        finally:
            student._twin = twin

    def _named(self, op: str) -> Tensors:
        found = self._only_here(op, ())
        if not isinstance(found, dict) or not all(isinstance(t, torch.Tensor) for t in found.values()):
            raise malformed(Malformed(f"{op} is no table of tensors"))
        return found


def malformed(error: Malformed) -> StudentFault:
    """The fault of a reply that our own serving code would not have written."""
    if error.oversized:
        return StudentFault(
            Fault.OVERSIZED,
            Text(zh="结果太大，评分程序不接收。", en="The result is too large; the grader does not take it."),
        )
    return StudentFault(
        Fault.MALFORMED,
        Text(
            zh="返回的内容无法读取：评分用的通信被改动了。",
            en="What came back cannot be read: the communication with the grader was tampered with.",
        ),
    )


def _fault_of(error: Any) -> StudentFault:
    """The fault that an agent's error reply stands for. The reply is hostile: only texts of limited length are taken from it."""
    if not isinstance(error, dict):
        return malformed(Malformed("an error is no object"))
    kind = str(error.get("type"))[:100]
    message = str(error.get("message"))[:500]
    line = error.get("line")
    if error.get("oversized") is True:
        return malformed(Malformed("", oversized=True))
    if error.get("missing") is True:
        return StudentFault(
            Fault.MISSING,
            Text(
                zh=f"没有找到 {message}：请在答题单元里定义它。",
                en=f"{message} is not defined: define it in the answer cell.",
            ),
        )
    if kind == "NotImplementedError":
        return StudentFault(
            Fault.UNFINISHED, Text(zh="还没有作答。", en="This has not been answered yet."), "NotImplementedError"
        )
    at = (
        Text(zh=f"（单元第 {line} 行）", en=f" (line {line} of the cell)")
        if type(line) is int and line
        else Text("", "")
    )
    said = f": {message}" if message else ""
    return StudentFault(
        Fault.RAISED,
        Text(zh=f"调用时出错{at.zh}：{kind}{said}", en=f"The call raised an error{at.en}: {kind}{said}"),
        kind,
    )
