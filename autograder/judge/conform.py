"""Hold a student's result against the reference's on the same arguments: type, shape, dtype, finiteness. Values are the tests' business."""

from __future__ import annotations

from typing import Any

import torch

from autograder.judge.faults import Fault, StudentFault
from autograder.judge.wire import Kept, Other, is_finite
from autograder.text import Text, run_on


def conform(got: Any, want: Any, where: Text) -> Any:
    """``got`` in the structure of ``want``.

    Numbers of another kind and tensors of one element become the number that is expected, a number the expected tensor of shape (); a list
    becomes the expected tuple, and so does a tensor that holds the expected tensors one after the other.
    Raises StudentFault (type, shape, dtype or nonfinite) with words that say what was expected and what came.
    """
    if isinstance(want, torch.Tensor):
        return _tensor(got, want, where)
    if isinstance(want, bool):
        if isinstance(got, torch.Tensor) and got.numel() == 1 and got.dtype == torch.bool:
            got = bool(got)
        return got if isinstance(got, bool) else _refuse_type(got, want, where)
    if isinstance(want, (int, float)):
        return _number(got, want, where)
    if isinstance(want, (tuple, list)):
        if isinstance(got, torch.Tensor) and got.dim() > 0 and len(got) == len(want):
            got = got.unbind()  # ``Q, K, V = stacked`` works as well
        if not isinstance(got, (tuple, list)) or len(got) != len(want):
            return _refuse_type(got, want, where)
        parts = [conform(g, w, _part(where, i)) for i, (g, w) in enumerate(zip(got, want, strict=True))]
        return tuple(parts) if isinstance(want, tuple) else parts
    if isinstance(want, dict):
        if not isinstance(got, dict) or set(got) != set(want):
            return _refuse_type(got, want, where)
        return {key: conform(got[key], want[key], _part(where, key)) for key in want}
    if want is None or isinstance(want, (str, torch.dtype)):
        return got if type(got) is type(want) else _refuse_type(got, want, where)
    return got if type(got) is type(want) else _refuse_type(got, want, where)


def to_dtypes_of(want: Any, got: Any) -> Any:
    """``got`` with its floating-point tensors in the dtypes of ``want``, for results that have no argument's dtype to follow."""
    if isinstance(want, torch.Tensor) and isinstance(got, torch.Tensor):
        return got.to(want.dtype) if want.is_floating_point() and got.is_floating_point() else got
    if isinstance(want, (tuple, list)) and isinstance(got, (tuple, list)) and len(got) == len(want):
        return type(got)(to_dtypes_of(w, g) for w, g in zip(want, got, strict=True))
    return got


def _tensor(got: Any, want: torch.Tensor, where: Text) -> torch.Tensor:
    if want.dim() == 0 and want.is_floating_point() and isinstance(got, (int, float)) and not isinstance(got, bool):
        got = torch.tensor(got, dtype=want.dtype)
    if not isinstance(got, torch.Tensor):
        raise _wrong_type(got, want, where)
    if got.shape != want.shape:
        raise StudentFault(
            Fault.SHAPE,
            Text(
                zh=run_on(where.zh, f"的形状应为 {shape(want)}，得到 {shape(got)}。"),
                en=f"{where.en} should have shape {shape(want)}, it has {shape(got)}.",
            ),
            shape(got),
        )
    if got.dtype != want.dtype:
        raise StudentFault(
            Fault.DTYPE,
            Text(
                zh=run_on(where.zh, f"的 dtype 应为 {_dtype(want)}，得到 {_dtype(got)}。"),
                en=f"{where.en} should have dtype {_dtype(want)}, it has {_dtype(got)}.",
            ),
            _dtype(got),
        )
    if is_finite(want) and not is_finite(got):
        kind = "NaN" if bool(got.isnan().any()) else "inf"
        raise StudentFault(
            Fault.NONFINITE,
            Text(
                zh=run_on(where.zh, f"里出现了 {kind}，这里的每个数都应是有限的。"),
                en=f"{where.en} contains {kind}; every number in it should be finite.",
            ),
            kind,
        )
    return got


def _number(got: Any, want: int | float, where: Text) -> int | float:
    if isinstance(got, torch.Tensor) and got.numel() == 1 and got.dtype != torch.bool and not got.is_complex():
        got = got.item()
    if isinstance(got, bool) or not isinstance(got, (int, float)):
        raise _wrong_type(got, want, where)
    if isinstance(want, int):
        return int(got) if float(got).is_integer() else float(got)
    got = float(got)
    if is_finite(want) and not is_finite(got):
        raise StudentFault(
            Fault.NONFINITE,
            Text(
                zh=run_on(where.zh, f"应是有限的数，得到 {got}。"),
                en=f"{where.en} should be a finite number, it is {got}.",
            ),
            str(got),
        )
    return got


def _refuse_type(got: Any, want: Any, where: Text) -> Any:
    raise _wrong_type(got, want, where)


def _wrong_type(got: Any, want: Any, where: Text) -> StudentFault:
    expected, came = kind_of(want), kind_of(got)
    return StudentFault(
        Fault.TYPE,
        Text(
            zh=run_on(where.zh, f"应是{expected.zh}，得到{came.zh}。"),
            en=f"{where.en} should be {expected.en}, got {came.en}.",
        ),
        came.en,
    )


def _part(where: Text, key: int | str) -> Text:
    if isinstance(key, str):
        return Text(zh=run_on(where.zh, f"的“{key}”"), en=f"entry {key!r} of {where.en}")
    return Text(zh=run_on(where.zh, f"的第 {key + 1} 项"), en=f"part {key + 1} of {where.en}")


def shape(tensor: torch.Tensor) -> str:
    """A tensor's shape as ``(2, 3)``."""
    return str(tuple(tensor.shape))


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def kind_of(value: Any) -> Text:
    """What a value is, in words for the student."""
    if isinstance(value, torch.Tensor):
        return Text(
            zh=f"形状为 {shape(value)} 的 {_dtype(value)} 张量", en=f"a {_dtype(value)} tensor of shape {shape(value)}"
        )
    if value is None:
        return Text(zh=" None（函数忘了 return？）", en="None (is a return missing?)")
    if isinstance(value, (tuple, list)):
        return Text(zh=f"含 {len(value)} 项的元组", en=f"a tuple of {len(value)}")
    if isinstance(value, dict):
        return Text(zh=f"含 {len(value)} 项的字典", en=f"a dict of {len(value)}")
    if isinstance(value, (Other, Kept)):
        return Text(zh=f"一个 {value.type} 对象", en=f"an object of type {value.type}")
    name = {
        bool: ("布尔值", "a bool"),
        int: ("整数", "an int"),
        float: ("浮点数", "a float"),
        str: ("字符串", "a string"),
    }
    zh, en = name.get(type(value), (f"一个 {type(value).__name__} 对象", f"an object of type {type(value).__name__}"))
    return Text(zh=zh, en=en)
