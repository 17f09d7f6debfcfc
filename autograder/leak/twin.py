"""Copies of functions: every module a function reaches is copied, so that probing leaves the caller's alone."""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

from torch import Tensor, nn


def twin(fn: Callable[..., Any]) -> tuple[Callable[..., Any], list[nn.Module]]:
    """``fn`` with every module it reaches replaced by a copy, and those copies (none: ``fn`` is opaque).

    Reached are modules in its closure, defaults and globals, alone or in a list, tuple or dict, and those of the
    functions beside it that it calls. Raises TypeError for a module that cannot be copied.
    """
    copier = _Copier()
    return copier.swap(fn), copier.modules


class _Copier:
    def __init__(self) -> None:
        self.memo: dict[int, Any] = {}
        self.modules: list[nn.Module] = []

    def swap(self, value: Any) -> Any:
        """A copy of what holds modules; anything else as it is."""
        if isinstance(value, nn.Module):
            return self._module(value)
        if isinstance(value, functools.partial):
            keywords = {name: self.swap(item) for name, item in value.keywords.items()}
            return functools.partial(self.swap(value.func), *map(self.swap, value.args), **keywords)
        if isinstance(value, types.MethodType) and isinstance(value.__self__, nn.Module):
            return types.MethodType(value.__func__, self.swap(value.__self__))
        if type(value) in (list, tuple) and any(isinstance(item, nn.Module) for item in value):
            return type(value)(map(self.swap, value))
        if type(value) is dict and any(isinstance(item, nn.Module) for item in value.values()):
            return {name: self.swap(item) for name, item in value.items()}
        if isinstance(value, types.FunctionType):
            if id(value) not in self.memo:
                self.memo[id(value)] = value  # a function may reach itself
                self.memo[id(value)] = self._function(value)
            return self.memo[id(value)]
        return value

    def _module(self, module: nn.Module) -> nn.Module:
        if id(module) not in self.memo:
            _let_go_of_graphs(module, self.memo)
            try:
                self.modules.append(copy.deepcopy(module, self.memo))
            except Exception as error:
                raise TypeError(
                    f"expected a module that copy.deepcopy can copy, but {type(module).__name__} raised {error!r}; "
                    "give it a __deepcopy__, or probe a function that builds the module itself"
                ) from error
        return self.memo[id(module)]

    def _function(self, fn: types.FunctionType) -> types.FunctionType:
        """The same function over swapped closure cells, defaults and globals; itself when nothing was swapped."""
        old = [_contents(cell) for cell in fn.__closure__ or ()] + list(fn.__defaults__ or ())
        new = [self.swap(value) for value in old]
        used = {name: fn.__globals__[name] for name in _names(fn.__code__) if name in fn.__globals__}
        swapped = {
            name: other
            for name, value in used.items()
            if not (isinstance(value, types.FunctionType) and value.__globals__ is not fn.__globals__)  # another file's
            and (other := self.swap(value)) is not value
        }
        if not swapped and all(a is b for a, b in zip(old, new, strict=True)):
            return fn
        space = {**fn.__globals__, **swapped} if swapped else fn.__globals__
        cells = len(fn.__closure__ or ())
        other = types.FunctionType(
            fn.__code__, space, fn.__name__, tuple(new[cells:]), tuple(map(types.CellType, new[:cells]))
        )
        other.__kwdefaults__ = {name: self.swap(value) for name, value in (fn.__kwdefaults__ or {}).items()}
        return other


def _names(code: types.CodeType) -> Iterator[str]:
    """The global names that a function and the functions written inside it use."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _names(inner)


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
