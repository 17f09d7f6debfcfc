"""The probed function: called on copies, with a seeded generator, without a trace in the caller's world."""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import random
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from autograder.leak.inputs import Values
from autograder.leak.setting import Mode, Setting

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

    Modules are copied, also those a function reaches through its closure, its globals, a bound method or
    `functools.partial`. Any other callable (a remote function, say) is opaque: it is called as it is.
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        if not callable(fn):
            raise TypeError(f"expected a function or an nn.Module, got {type(fn).__name__}")
        self.fn = fn
        self.calls = 0
        self.records_grad = True  # until an output shows that autograd does not reach through
        self.fresh_each_call: set[Mode] = set()  # modes in which a call leaves something behind
        self.mutations: dict[str, tuple[Setting, Values, Values]] = {}
        self._copies: dict[tuple[Mode, torch.dtype | None], Callable[..., Any]] = {}
        _, modules = _copy(fn)
        self.copyable = bool(modules)
        self.modes: tuple[Mode, ...] = ("eval", "train") if modules else ("function",)

    def instance(self, setting: Setting) -> Callable[..., Any]:
        """A new copy of the function in the setting's mode and precision."""
        if not self.copyable:
            return self.fn
        fn, modules = _copy(self.fn)
        for module in modules:
            module.train(setting.mode == "train")
            if setting.dtype is not None:
                module.to(setting.dtype)
        return fn

    def run(self, values: Values, setting: Setting, instance: Callable[..., Any] | None = None) -> Tensor:
        """Call the function on copies of the inputs and return its (first) output tensor, detached.

        Raises Failed when the function does.
        """
        if instance is None:
            key = (setting.mode, setting.dtype)
            if key not in self._copies or setting.mode in self.fresh_each_call:
                self._copies[key] = self.instance(setting)
            instance = self._copies[key]
        copies = {name: _clone(value, setting.grad) for name, value in values.items()}
        versions = {name: value._version for name, value in copies.items() if isinstance(value, Tensor)}
        _seed(setting.seed)
        self.calls += 1
        try:
            with torch.set_grad_enabled(setting.grad):
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
        return output.detach()

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
    """The first tensor of an output: itself, or the first of a tuple, list, dict or Hugging Face model output."""
    if isinstance(output, Tensor):
        return output.to_dense() if output.layout is not torch.strided else output
    items = output.values() if isinstance(output, Mapping) else output if isinstance(output, (tuple, list)) else ()
    for item in items:
        if isinstance(item, Tensor):
            return item
    raise Failed(TypeError(f"expected a tensor or a tuple that starts with one, got {type(output).__name__}"))


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


def _copy(fn: Callable[..., Any]) -> tuple[Callable[..., Any], list[nn.Module]]:
    """``fn`` with every module it reaches replaced by a copy, and those copies (none: ``fn`` is opaque).

    Raises TypeError for a module that cannot be copied.
    """
    memo: dict[int, Any] = {}
    found: list[nn.Module] = []

    def swap(value: Any) -> Any:
        if isinstance(value, nn.Module):
            if id(value) not in memo:
                _let_go_of_graphs(value, memo)
                try:
                    found.append(copy.deepcopy(value, memo))
                except Exception as error:
                    raise TypeError(
                        f"expected a module that copy.deepcopy can copy, but {type(value).__name__} raised {error!r}; "
                        "give it a __deepcopy__, or probe a function that builds the module itself"
                    ) from error
            return memo[id(value)]
        if isinstance(value, functools.partial):
            keywords = {name: swap(item) for name, item in value.keywords.items()}
            return functools.partial(swap(value.func), *map(swap, value.args), **keywords)
        if isinstance(value, types.MethodType) and isinstance(value.__self__, nn.Module):
            return types.MethodType(value.__func__, swap(value.__self__))
        if isinstance(value, types.FunctionType) and id(value) not in memo:
            memo[id(value)] = value  # a function may reach itself
            memo[id(value)] = _rebuild(value, swap)
        return memo.get(id(value), value) if isinstance(value, types.FunctionType) else value

    return swap(fn), found


def _rebuild(fn: types.FunctionType, swap: Callable[[Any], Any]) -> types.FunctionType:
    """The same function over swapped closure cells, defaults and globals; itself when nothing was swapped."""
    old = [_contents(cell) for cell in fn.__closure__ or ()] + list(fn.__defaults__ or ())
    new = [swap(value) for value in old]
    names = [name for name in fn.__code__.co_names if isinstance(fn.__globals__.get(name), nn.Module)]
    if not names and all(a is b for a, b in zip(old, new, strict=True)):
        return fn
    space = {**fn.__globals__, **{name: swap(fn.__globals__[name]) for name in names}} if names else fn.__globals__
    cells = len(fn.__closure__ or ())
    twin = types.FunctionType(
        fn.__code__, space, fn.__name__, tuple(new[cells:]), tuple(map(types.CellType, new[:cells]))
    )
    twin.__kwdefaults__ = {name: swap(value) for name, value in (fn.__kwdefaults__ or {}).items()}
    return twin


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the variable is not bound yet
        return None


def _let_go_of_graphs(module: nn.Module, memo: dict[int, Any]) -> None:
    """Let deepcopy pass tensors that hang in an autograd graph (a kept hidden state): it refuses them otherwise."""
    for part in module.modules():
        for value in vars(part).values():
            for tensor in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(tensor, Tensor) and not tensor.is_leaf:
                    memo[id(tensor)] = tensor.detach().clone()
