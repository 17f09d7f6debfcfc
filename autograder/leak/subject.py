"""The probed function: called on copies, with a seeded generator, without a trace in the caller's world."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import io
import random
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from autograder.leak.inputs import Values
from autograder.leak.setting import Mode, Setting
from autograder.leak.twin import twin

REFUSALS = (ValueError, AssertionError, NotImplementedError)
"""What code raises on purpose when it does not take an input; anything else is taken for an accident."""


class Failed(Exception):
    """The probed function raised, or did not return a tensor. ``cause`` is its exception."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(f"{type(cause).__name__}: {cause}")
        self.cause = cause

    @property
    def refused(self) -> bool:
        """Whether the function seems to have declined this input on purpose."""
        return isinstance(self.cause, REFUSALS)


class Subject:
    """Runs ``fn`` without changing the caller's module, tensors, mode, generators or grad mode.

    Modules are copied, also those that a function reaches (see `twin`). Any other callable (a remote function, say) is opaque: it is called as it is.
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        if not callable(fn):
            raise TypeError(f"expected a function or an nn.Module, got {type(fn).__name__}")
        self.fn = fn
        self.calls = 0
        self.records_grad = True  # until an output shows that autograd does not reach through
        self.fresh_each_call: set[Mode] = set()  # modes in which a call leaves something behind
        self.mutations: dict[str, tuple[Setting, Values, Values]] = {}
        self._copies: dict[tuple[Mode, torch.dtype | None, bool], Callable[..., Any]] = {}
        _, modules = twin(fn)
        self.copyable = bool(modules)
        self.asleep = any(map(_asleep, modules))
        self.modes: tuple[Mode, ...] = ("eval", "train") if modules else ("function",)

    def instance(self, setting: Setting) -> Callable[..., Any]:
        """A new copy of the function in the setting's mode and precision."""
        if not self.copyable:
            return self.fn
        fn, modules = twin(self.fn)
        for module in modules:
            if setting.awake:
                _wake(module)
            module.train(setting.mode == "train")
            if setting.dtype is not None:
                module.to(setting.dtype)
        return fn

    def run(self, values: Values, setting: Setting, instance: Callable[..., Any] | None = None) -> Tensor:
        """Call the function on copies of the inputs and return its (first) output tensor, detached.

        Raises Failed when the function does.
        """
        if instance is None:
            key = (setting.mode, setting.dtype, setting.awake)
            if key not in self._copies or setting.mode in self.fresh_each_call:
                self._copies[key] = self.instance(setting)
            instance = self._copies[key]
        copies = {name: _clone(value, setting.grad) for name, value in values.items()}
        versions = {name: value._version for name, value in copies.items() if isinstance(value, Tensor)}
        _seed(setting.seed)
        self.calls += 1
        try:
            with torch.set_grad_enabled(setting.grad), _default(setting.dtype):
                output = first_tensor(instance(**copies))
        except (Failed, TimeoutError):
            raise
        except Exception as error:
            raise Failed(error) from error
        if setting.grad and not output.requires_grad:
            self.records_grad = False
        for name, version in versions.items():
            touched = copies[name]._version != version or self.calls <= 8  # .data and numpy leave no version behind
            if touched and name not in self.mutations and not _same(copies[name].detach(), values[name]):
                after = {**values, name: copies[name].detach().clone()}
                self.mutations[name] = (setting, values, after)
        return output.detach().clone()  # the code may write into the same tensor next time

    def gradient(self, values: Values, setting: Setting, name: str, pick: Callable[[Tensor], Tensor]) -> Tensor | None:
        """The gradient of the scalar ``pick(output)`` with respect to one input, or None where there is none."""
        leaf = values[name].detach().clone()
        if not self.records_grad or not leaf.is_floating_point():
            return None
        leaf.requires_grad_()
        _seed(setting.seed)
        self.calls += 1
        try:
            with torch.enable_grad():
                scalar = pick(first_tensor(self.instance(setting)(**{**values, name: leaf})))
                if not scalar.requires_grad:
                    return None
                gradient: Tensor | None = torch.autograd.grad(scalar, leaf, allow_unused=True)[0]
                return gradient
        except Exception:  # the locating gradient is a convenience: without it the search takes more calls
            return None


def first_tensor(output: Any) -> Tensor:
    """The first tensor with axes in an output, however nested in tuples, lists, dicts and dataclasses.

    A single number (the loss that a model returns ahead of its logits) is passed over.
    """
    tensor = next(_tensors(output), None)
    if tensor is None:
        raise Failed(TypeError(f"expected a tensor or a tuple that starts with one, got {type(output).__name__}"))
    return tensor.to_dense() if tensor.layout is not torch.strided else tensor


def _tensors(output: Any) -> Iterator[Tensor]:
    if isinstance(output, Tensor):
        if output.dim():
            yield output
    elif isinstance(output, Mapping):
        yield from _tensors(list(output.values()))
    elif isinstance(output, (tuple, list)):
        for item in output:
            yield from _tensors(item)
    elif dataclasses.is_dataclass(output):
        yield from _tensors(vars(output))


def _asleep(module: nn.Module) -> bool:
    return any(parameter.requires_grad and not parameter.any() for parameter in module.parameters())


def _wake(module: nn.Module) -> None:
    """Give trainable parameters that are all zero small random values, as one step of training would."""
    rng = torch.Generator().manual_seed(0)
    for parameter in module.parameters():
        if parameter.requires_grad and not parameter.any():
            parameter.data = torch.randn(parameter.shape, generator=rng).to(parameter).div(4)


@contextlib.contextmanager
def _default(dtype: torch.dtype | None) -> Iterator[None]:
    """Constants that the function makes take part in another precision too."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype or before)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Keep generators, grad mode, warnings and the screen as they are, whatever the probed function does."""
    numpy = sys.modules.get("numpy")
    python_state = random.getstate()
    numpy_state = numpy.random.get_state() if numpy else None
    devices = list(range(torch.cuda.device_count()))
    try:
        with (
            torch.random.fork_rng(devices=devices),
            torch.no_grad(),
            warnings.catch_warnings(),
            contextlib.redirect_stdout(_Silence()),
            contextlib.redirect_stderr(_Silence()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        random.setstate(python_state)
        if numpy:
            numpy.random.set_state(numpy_state)


class _Silence(io.TextIOBase):
    """A stream that forgets: a print in the probed function would come out hundreds of times."""

    def write(self, text: str) -> int:
        return len(text)


def _seed(seed: int) -> None:
    torch.default_generator.manual_seed(seed)
    if torch.cuda.device_count():
        torch.cuda.manual_seed_all(seed)
    random.seed(seed)
    if numpy := sys.modules.get("numpy"):
        numpy.random.seed(seed)


def _clone(value: Any, grad: bool) -> Any:
    if not isinstance(value, Tensor):
        return copy.copy(value) if isinstance(value, (list, dict, set)) else value
    twin = value.detach().clone()
    if grad and twin.is_floating_point():
        return twin.requires_grad_().clone()  # not a leaf: in-place code must still run
    return twin


def _same(a: Tensor, b: Tensor) -> bool:
    """Bitwise equal, where a NaN equals a NaN."""
    return a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())
