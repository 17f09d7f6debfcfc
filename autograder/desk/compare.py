"""How a result differs from the expected one, in words and with the first row that differs."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from autograder.text import Text, run_on

RESULT = Text(zh="结果", en="the result")
# Rounding at the sizes of a notebook's examples; the hidden tests are stricter
_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 4e-2}
_SHOWN = 8  # numbers of a row


@dataclass(frozen=True)
class Difference:
    """What is different, and where it helps the row expected beside the row that came."""

    text: Text
    want: str = ""
    got: str = ""


def difference(got: Any, want: Any) -> Difference | None:
    """None when ``got`` is what was expected.

    Nested lists stand for tensors of any floating (or integer, or boolean) dtype, tuples are compared part by part, numbers accept tensors
    of one element. Rounding is forgiven, wrong shapes and kinds are not.
    """
    found = _difference(got, want, RESULT)
    if found is None:
        return None
    return replace(found, text=Text(zh=found.text.zh, en=found.text.en[0].upper() + found.text.en[1:]))


def _difference(got: Any, want: Any, what: Text) -> Difference | None:
    if got is None and want is not None:
        return Difference(
            Text(
                zh=run_on(what.zh, "是 None：函数最后有没有写 return？"),
                en=f"{what.en} is None: does the function end with a return?",
            )
        )
    if isinstance(want, tuple):
        return _tuple(got, want, what)
    if isinstance(want, list):
        return _tensor(got, torch.tensor(want, dtype=_kind(want)), what, exact_dtype=False)
    if isinstance(want, torch.Tensor):
        return _tensor(got, want, what, exact_dtype=True)
    if isinstance(want, numbers.Real):
        return _number(got, want, what)
    if type(got) is type(want) and got == want:
        return None
    return Difference(_should_be(what, describe(want), describe(got)))


def describe(value: Any) -> str:
    """A value in a few words: small tensors by their numbers, larger ones by shape and dtype."""
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        if value.numel() <= 6:
            return f"{_row(value.detach())} ({dtype})"
        return f"tensor {tuple(value.shape)} {dtype}"
    if isinstance(value, tuple | list) and len(value) <= 4:
        inner = ", ".join(describe(part) for part in value)
        return f"({inner})" if isinstance(value, tuple) else f"[{inner}]"
    if isinstance(value, torch.nn.Module):
        return type(value).__name__
    if callable(value):
        return getattr(value, "__name__", type(value).__name__).replace("<lambda>", "lambda")
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:59] + "…"


def _tuple(got: Any, want: tuple[Any, ...], what: Text) -> Difference | None:
    if not isinstance(got, tuple | list) or len(got) != len(want):
        came = f"{len(got)}" if isinstance(got, tuple | list) else describe(got)
        return Difference(
            Text(
                zh=run_on(what.zh, f"应是 {len(want)} 个值，得到 {came}。"),
                en=f"{what.en} should be {len(want)} values, got {came}.",
            )
        )
    for i, (part, wanted) in enumerate(zip(got, want, strict=True)):
        found = _difference(part, wanted, Text(zh=f"第 {i} 个返回值", en=f"return value {i}"))
        if found:
            return found
    return None


def _number(got: Any, want: numbers.Real, what: Text) -> Difference | None:
    if isinstance(got, torch.Tensor) and got.numel() == 1:
        value = got.detach().item()
        tolerance = _TOLERANCE.get(got.dtype, 0.0)
    elif hasattr(got, "item") and not isinstance(got, torch.Tensor):
        value, tolerance = got.item(), 1e-9  # a NumPy scalar
    else:
        value, tolerance = got, 1e-9
    if not isinstance(value, numbers.Real) or isinstance(value, bool) != isinstance(want, bool):
        kind = "bool" if isinstance(want, bool) else Text(zh="一个数", en="a number")
        return Difference(
            Text(
                zh=run_on(what.zh, f"应是{kind if isinstance(kind, str) else kind.zh}，得到 {describe(got)}。"),
                en=f"{what.en} should be {kind if isinstance(kind, str) else kind.en}, got {describe(got)}.",
            )
        )
    close = (
        value == want
        if isinstance(want, bool)
        else abs(float(value) - float(want)) <= tolerance * max(1.0, abs(float(want)))
    )
    if close:
        return None
    wanted, came = _apart(float(want), float(value)) if not isinstance(want, bool) else (str(want), str(value))
    return Difference(_should_be(what, wanted, came))


def _tensor(got: Any, want: torch.Tensor, what: Text, exact_dtype: bool) -> Difference | None:
    if not isinstance(got, torch.Tensor):
        return Difference(
            Text(
                zh=run_on(
                    what.zh, f"应是形状为 {tuple(want.shape)} 的张量，得到 {describe(got)}（{type(got).__name__}）。"
                ),
                en=f"{what.en} should be a tensor of shape {tuple(want.shape)}, got {describe(got)} ({type(got).__name__}).",
            )
        )
    got = got.detach().cpu()
    if got.shape != want.shape:
        return Difference(
            Text(
                zh=run_on(what.zh, f"的形状应是 {tuple(want.shape)}，得到 {tuple(got.shape)}。"),
                en=f"{what.en} should have shape {tuple(want.shape)}, got {tuple(got.shape)}.",
            )
        )
    if (got.dtype != want.dtype) if exact_dtype else (_family(got.dtype) != _family(want.dtype)):
        name, came = (str(t.dtype).removeprefix("torch.") for t in (want, got))
        wanted = Text(zh=name, en=f"dtype {name}") if exact_dtype else _FAMILIES[_family(want.dtype)]
        return Difference(
            Text(
                zh=run_on(what.zh, f"的 dtype 应是{wanted.zh}，得到 {came}。"),
                en=f"{what.en} should have {wanted.en}, got {came}.",
            )
        )
    wrong = ~_close(got, want)
    return _first_row(got, want, wrong, what) if bool(wrong.any()) else None


def _first_row(got: torch.Tensor, want: torch.Tensor, wrong: torch.Tensor, what: Text) -> Difference:
    at = wrong.nonzero()[0].tolist()
    count = Text(
        zh=run_on(what.zh, f"有 {int(wrong.sum())}/{wrong.numel()} 个数不对"),
        en=f"{int(wrong.sum())} of {wrong.numel()} numbers of {what.en} are wrong",
    )
    if bool((got.isnan() & ~want.isnan()).any()):
        count = Text(zh=run_on(what.zh, "里出现了 NaN"), en=f"{what.en} contains NaN")
    row = tuple(at[:-1])
    if not row:
        place = Text(zh="", en="") if not at else Text(zh=f"，从下标 {at[0]} 开始", en=f", the first at index {at[0]}")
    else:
        name = str(row[0]) if len(row) == 1 else str(list(row))
        place = Text(zh=f"，第一处在第 {name} 行", en=f", the first in row {name}")
    first = max(0, min(at[-1] - 2, want.shape[-1] - _SHOWN)) if at else 0
    texts = _rows(want[row], got[row], first)
    return Difference(Text(zh=f"{count.zh}{place.zh}。", en=f"{count.en}{place.en}."), *texts)


def _rows(want: torch.Tensor, got: torch.Tensor, first: int) -> tuple[str, str]:
    """Two rows of numbers, with as many digits as it takes to tell them apart."""
    for digits in (4, 7, 10, 17):
        texts = tuple(_row(row, digits, first) for row in (want, got))
        if texts[0] != texts[1]:
            break
    return texts[0], texts[1]


def _row(row: torch.Tensor, digits: int = 4, first: int = 0) -> str:
    if row.ndim == 0:
        return _digits(row.item(), digits)
    if row.ndim > 1:
        return "[" + ", ".join(_row(part, digits) for part in row) + "]"
    shown = [_digits(x, digits) for x in row[first : first + _SHOWN].tolist()]
    before, after = (["…"] if first else []), (["…"] if first + _SHOWN < len(row) else [])
    return "[" + ", ".join([*before, *shown, *after]) + "]"


def _digits(value: Any, digits: int) -> str:
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def _apart(want: float, got: float) -> tuple[str, str]:
    return _rows(torch.tensor(want, dtype=torch.float64), torch.tensor(got, dtype=torch.float64), 0)


def _close(got: torch.Tensor, want: torch.Tensor) -> torch.Tensor:
    if not (got.is_floating_point() or got.is_complex()):
        return got == want
    tolerance = max(_TOLERANCE.get(got.dtype, 1e-5), _TOLERANCE.get(want.dtype, 0.0))
    wide = torch.complex128 if got.is_complex() or want.is_complex() else torch.float64
    return torch.isclose(got.to(wide), want.to(wide), rtol=tolerance, atol=tolerance, equal_nan=True)


_FAMILIES = {
    "bool": Text(zh="bool", en="dtype bool"),
    "int": Text(zh="整数", en="an integer dtype"),
    "float": Text(zh="浮点数", en="a floating-point dtype"),
    "complex": Text(zh="复数", en="a complex dtype"),
}


def _family(dtype: torch.dtype) -> str:
    if dtype == torch.bool:
        return "bool"
    return "complex" if dtype.is_complex else "float" if dtype.is_floating_point else "int"


def _kind(nested: Sequence[Any]) -> torch.dtype:
    """The dtype a nested list is meant as; double precision for fractions, so that an expected 1/3 is exact enough."""
    found = torch.tensor(nested).dtype if len(nested) else torch.float64
    return torch.float64 if found.is_floating_point else found


def _should_be(what: Text, wanted: str, came: str) -> Text:
    return Text(zh=run_on(what.zh, f"应是 {wanted}，得到 {came}。"), en=f"{what.en} should be {wanted}, got {came}.")
