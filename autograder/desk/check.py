"""``check(fn, case(...), ...)``: the checks that students run themselves, in words.

The examples stand in the notebook for everyone to see. What is asked at grading time is not here.
"""

from __future__ import annotations

import inspect
import linecache
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html import escape
from typing import Any

import torch

from autograder.desk.compare import describe, difference
from autograder.desk.speak import Shown, say, say_html
from autograder.heatmap import COLUMN, ROW, heat_map
from autograder.text import Text

_NOTHING = object()


class CheckFailed(AssertionError):
    """A check did not pass. Says so in a few words; the long traceback would show only this package's own code."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


@dataclass(frozen=True)
class Case:
    """One example: arguments, and what is expected of the result."""

    args: tuple[Any, ...]
    gives: Any = _NOTHING
    raises: type[BaseException] | None = None
    satisfies: Callable[[Any], Any] | None = None
    says: str = ""


@dataclass
class Outcome:
    """What became of one case. ``lines`` are what went wrong; ``pair`` is a matrix that came and the one expected."""

    title: str
    passed: bool = True
    unanswered: bool = False
    lines: list[Text] = field(default_factory=list)
    rows: list[tuple[Text, str]] = field(default_factory=list)
    pair: tuple[torch.Tensor, torch.Tensor] | None = None
    notes: list[str] = field(default_factory=list)


def case(
    *args: Any,
    gives: Any = _NOTHING,
    raises: type[BaseException] | None = None,
    satisfies: Callable[[Any], Any] | None = None,
    says: str = "",
) -> Case:
    """An example for :func:`check`: call with ``args`` and expect one of three things.

    ``gives``: this result (nested lists stand for tensors, a tuple for several results). ``raises``: this exception.
    ``satisfies``: a function of the result that returns True, described by ``says``.

    Raises TypeError unless exactly one of the three is given.
    """
    given = [gives is not _NOTHING, raises is not None, satisfies is not None]
    if sum(given) != 1:
        raise TypeError(f"case() takes exactly one of gives=, raises= and satisfies=, got {sum(given)} of them")
    return Case(args, gives, raises, satisfies, says)


def check(fn: Callable[..., Any], *cases: Case) -> None:
    """Try ``fn`` on every case and show how each came out.

    Every call gets copies of the arguments; one that changes what it was given fails. Raises CheckFailed when a case fails.
    """
    if not callable(fn):
        raise CheckFailed(say(NOT_CALLABLE.format(came=describe(fn))))
    wrong = [c for c in cases if not isinstance(c, Case)]
    if wrong:
        raise TypeError(f"check() takes a function and cases: write case(...) around {describe(wrong[0])}")
    name = getattr(fn, "__name__", type(fn).__name__)
    outcomes = [_try(fn, name, number, c) for number, c in enumerate(cases, 1)]
    report = _Report(name, outcomes)
    report.show()
    if report.failed:
        raise CheckFailed(report.summary)


def _try(fn: Callable[..., Any], name: str, number: int, example: Case) -> Outcome:
    outcome = Outcome(example.says or f"{name}({', '.join(describe(arg) for arg in example.args)})")
    given = tuple(_copy(arg) for arg in example.args)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            _judge(outcome, fn, example, given)
        except NotImplementedError:
            outcome.passed, outcome.unanswered = False, True
            outcome.lines = [UNANSWERED]
        except Exception as error:
            outcome.passed = False
            outcome.lines = list(_raised(error, fn))
    outcome.notes = list(dict.fromkeys(" ".join(str(w.message).split())[:200] for w in caught))[:3]
    return outcome


def _judge(outcome: Outcome, fn: Callable[..., Any], example: Case, given: tuple[Any, ...]) -> None:
    if example.raises is not None:
        outcome.lines = _wrong_exception(fn, example.raises, given)
    else:
        result = fn(*given)
        if example.satisfies is not None:
            outcome.lines = _unsatisfied(example.satisfies, result, fn)
            outcome.rows = [(GOT, describe(result))] if outcome.lines else []
        else:
            found = difference(result, example.gives)
            if found:
                outcome.lines = [found.text]
                outcome.rows = [(EXPECTED, found.want), (GOT, found.got)] if found.want else []
                outcome.pair = _pair(result, example.gives)
    outcome.lines += _changed(fn, example.args, given)
    outcome.passed = not outcome.lines


def _unsatisfied(satisfies: Callable[[Any], Any], result: Any, fn: Callable[..., Any]) -> list[Text]:
    try:
        return [] if bool(satisfies(result)) else [DOES_NOT_HOLD]
    except NotImplementedError:
        raise
    except Exception as error:
        return [UNUSABLE, *_raised(error, fn)]


def _wrong_exception(fn: Callable[..., Any], wanted: type[BaseException], given: tuple[Any, ...]) -> list[Text]:
    try:
        result = fn(*given)
    except wanted as error:
        if isinstance(error, NotImplementedError) and wanted is not NotImplementedError:
            raise
        return []
    return [NO_EXCEPTION.format(wanted=wanted.__name__, came=describe(result).replace("{", "{{").replace("}", "}}"))]


def _raised(error: Exception, fn: Callable[..., Any]) -> Iterator[Text]:
    """The exception in a line, and the student's own line that raised it."""
    message = " ".join(str(error).split())[:300]
    what = f"{type(error).__name__}: {message}" if message else type(error).__name__
    yield Text(zh=f"运行时出错：{what}", en=f"It raised {what}")
    home = getattr(inspect.unwrap(fn), "__code__", None) or getattr(getattr(fn, "forward", None), "__code__", None)
    place = None
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if home is not None and code.co_filename == home.co_filename:
            place = (code.co_filename, trace.tb_lineno)
        trace = trace.tb_next
    line = linecache.getline(*place).strip() if place else ""
    if place and line:
        yield Text(zh=f"在第 {place[1]} 行：{line}", en=f"at line {place[1]}: {line}")


def _changed(fn: Callable[..., Any], before: tuple[Any, ...], after: tuple[Any, ...]) -> list[Text]:
    try:
        names = list(inspect.signature(fn).parameters)
    except (TypeError, ValueError):
        names = []
    changed = []
    for i, (old, new) in enumerate(zip(before, after, strict=True)):
        if isinstance(old, torch.Tensor) and not _same(old, new):
            changed.append(CHANGED.format(name=names[i] if i < len(names) else f"#{i + 1}"))
    return changed


def _same(old: torch.Tensor, new: torch.Tensor) -> bool:
    old, new = old.detach(), new.detach()
    if old.shape != new.shape or old.dtype != new.dtype:
        return False
    return bool(torch.equal(old, new) or torch.equal(torch.nan_to_num(old, 7.0), torch.nan_to_num(new, 7.0)))


def _copy(arg: Any) -> Any:
    if isinstance(arg, torch.Tensor):
        return arg.detach().clone().requires_grad_(arg.requires_grad)
    if isinstance(arg, list):
        return [_copy(part) for part in arg]
    if isinstance(arg, tuple) and type(arg) is tuple:
        return tuple(_copy(part) for part in arg)
    return {key: _copy(value) for key, value in arg.items()} if type(arg) is dict else arg


def _pair(got: Any, want: Any) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The first matrix among the results that came out wrong, small enough to draw with its numbers."""
    if isinstance(want, tuple):
        parts = zip(got, want, strict=False) if isinstance(got, tuple | list) else ()
        return next((pair for g, w in parts if difference(g, w) and (pair := _pair(g, w))), None)
    if not isinstance(got, torch.Tensor) or not isinstance(want, list | torch.Tensor):
        return None
    wanted = torch.as_tensor(want, dtype=torch.float64)
    if wanted.shape != got.shape or got.is_complex():
        return None
    got, wanted = got.detach().double(), wanted.double()
    while got.ndim > 2 and got.shape[0] == 1:
        got, wanted = got[0], wanted[0]
    return (got, wanted) if got.ndim == 2 and min(got.shape) >= 2 and max(got.shape) <= 8 else None


class _Report(Shown):
    """How every case came out."""

    def __init__(self, name: str, outcomes: list[Outcome]) -> None:
        self.name = name
        self.outcomes = outcomes
        self.failed = [o for o in outcomes if not o.passed]
        self.unanswered = bool(outcomes) and all(o.unanswered for o in outcomes)
        super().__init__(self._text(), self._html())

    @property
    def headline(self) -> Text:
        """The result in one sentence."""
        if self.unanswered:
            return UNANSWERED
        if self.failed:
            return SOME_FAILED.format(failed=len(self.failed), all=len(self.outcomes))
        return ALL_PASSED.format(all=len(self.outcomes))

    @property
    def summary(self) -> str:
        """Name, result and the first thing that went wrong: what remains when the report is not seen (in Validate)."""
        words = [f"{self.name}: {say(self.headline)}"]
        if self.failed and not self.unanswered:
            words += [say(line) for line in self.failed[0].lines]
        return "\n".join(words)

    def _text(self) -> str:
        lines = [f"{self.name}: {say(self.headline)}"]
        for outcome in [] if self.unanswered else self.outcomes:
            lines.append(f"  {'✓' if outcome.passed else '✗'} {outcome.title}")
            lines += [f"      {say(text)}" for text in outcome.lines]
            lines += [f"      {say(label)}: {value}" for label, value in outcome.rows]
            lines += [f"      {say(WARNED)}: {note}" for note in outcome.notes]
        return "\n".join(lines)

    def _html(self) -> str:
        colour = "#8a8f98" if self.unanswered else "#c2472b" if self.failed else "#2a8a61"
        body = "" if self.unanswered else "".join(_case_html(outcome) for outcome in self.outcomes)
        return (
            f"<div style='border-left:4px solid {colour};padding:.2em 0 .2em 1em;line-height:1.5;max-width:52em'>"
            f"<div><strong><code>{escape(self.name)}</code></strong> &nbsp;{say_html(self.headline).replace('<br>', ' · ')}</div>"
            f"{body}</div>"
        )


def _case_html(outcome: Outcome) -> str:
    mark = "<span style='color:#2a8a61'>✓</span>" if outcome.passed else "<span style='color:#c2472b'>✗</span>"
    parts = [f"<div style='margin-top:.3em'>{mark} {escape(outcome.title)}</div>"]
    parts += [f"<div style='margin-left:1.4em'>{say_html(text)}</div>" for text in outcome.lines]
    if outcome.pair is None and outcome.rows:
        cells = "".join(
            f"<tr><td style='text-align:left'>{say_html(label)}</td><td style='text-align:left'><code>{escape(value)}</code></td></tr>"
            for label, value in outcome.rows
        )
        parts.append(f"<table style='margin:.3em 0 .3em 1.4em'>{cells}</table>")
    if outcome.pair is not None:
        parts.append(_pair_html(*outcome.pair))
    parts += [
        f"<div style='margin-left:1.4em;opacity:.75'>{say_html(WARNED)}: {escape(note)}</div>" for note in outcome.notes
    ]
    return "".join(parts)


def _pair_html(got: torch.Tensor, want: torch.Tensor) -> str:
    off = [(t, j) for t, j in (~torch.isclose(got, want, rtol=1e-5, atol=1e-9, equal_nan=True)).nonzero().tolist()]
    finite = torch.cat([got.flatten(), want.flatten()])
    finite = finite[finite.isfinite()]
    span = (min(0.0, float(finite.min())), float(finite.max())) if finite.numel() else (0.0, 1.0)
    drawings = [
        f"<div><div>{say_html(label)}</div>"
        + heat_map(
            m.tolist(),
            title=say(label),
            row_name=ROW,
            column_name=COLUMN,
            span=span,
            marked=marked,
            both_languages=True,
        )
        + "</div>"
        for label, m, marked in ((GOT, got, off), (EXPECTED, want, ()))
    ]
    return f"<div style='display:flex;flex-wrap:wrap;gap:1.5em;margin:.3em 0 .3em 1.4em'>{''.join(drawings)}</div>"


NOT_CALLABLE = Text(
    zh="check 的第一个参数应是你写的函数或类，得到 {came}。", en="check takes your function or class first, got {came}."
)
UNANSWERED = Text(zh="还没有作答", en="not answered yet")
ALL_PASSED = Text(zh="{all} 个例子全部通过", en="all {all} examples pass")
SOME_FAILED = Text(zh="{all} 个例子中有 {failed} 个没有通过", en="{failed} of {all} examples fail")
DOES_NOT_HOLD = Text(zh="这一条不成立。", en="This does not hold.")
UNUSABLE = Text(zh="检查时用不了这个结果。", en="The check could not use this result.")
EXPECTED = Text(zh="应有的", en="expected")
GOT = Text(zh="你的", en="yours")
WARNED = Text(zh="警告", en="warning")
CHANGED = Text(
    zh="函数改动了传进来的 {name}：请先复制，或用不带下划线的运算。",
    en="It changed the {name} that was passed in: copy it first, or use operations without a trailing underscore.",
)
NO_EXCEPTION = Text(zh="应抛出 {wanted}，却返回了 {came}。", en="It should raise {wanted}, but returned {came}.")
