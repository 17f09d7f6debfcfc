"""Durations, sizes and dates as people write them: ``10min``, ``2GiB``, ``2026-03-09 23:59``."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from autograder.course.problems import Wrong

_SECONDS = {"s": 1, "min": 60, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_BYTES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")
DATE = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d(?::\d\d)?)\s*(Z|[+-]\d\d:?\d\d)?")


def seconds(text: object) -> float:
    """``90``, ``90s``, ``10min``, ``1h 30min``, ``2d``, ``1w`` in seconds. Raises Wrong."""
    return _sum(text, _SECONDS, "s", "时长，例如 60s、10min、1h、2d", "a duration such as 60s, 10min, 1h or 2d")


def duration(text: object) -> timedelta:
    """As ``seconds``, as a timedelta."""
    return text if isinstance(text, timedelta) else timedelta(seconds=seconds(text))


def size(text: object) -> int:
    """``512MiB``, ``2GiB``, ``100kB`` or a number of bytes, in bytes. Raises Wrong."""
    return int(_sum(text, _BYTES, "B", "大小，例如 512MiB、2GiB", "a size such as 512MiB or 2GiB"))


def _sum(text: object, units: dict[str, int], bare: str, zh: str, en: str) -> float:
    if isinstance(text, int | float) and not isinstance(text, bool):
        return text
    wrong = Wrong(f"应为{zh}，得到的是 {text!r}", f"expected {en}, got {text!r}")
    given = str(text).strip()
    parts = _AMOUNT.findall(given)
    if not parts or _AMOUNT.sub("", given):
        raise wrong
    if any(unit not in units for _, unit in parts if unit) or (len(parts) > 1 and not all(unit for _, unit in parts)):
        raise wrong
    return sum(float(number) * units[unit or bare] for number, unit in parts)


def date(text: object, zone: ZoneInfo) -> datetime:
    """``2026-03-09 23:59`` in the course's zone, or with an offset (``+08:00``, ``Z``), as UTC.

    Raises Wrong for anything else, and for a local time that a change of the clock skips or repeats.
    """
    found = DATE.fullmatch(str(text).strip())
    if not found:
        raise Wrong(
            f"应为日期和时间，例如 2026-03-09 23:59（课程时区）或 2026-03-09 23:59+08:00，得到的是 {text!r}",
            "expected a date and a time such as 2026-03-09 23:59 (in the course's zone) or 2026-03-09 23:59+08:00, "
            f"got {text!r}",
        )
    day, clock, given = found.groups()
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}{given or ''}")
    except ValueError as error:
        raise Wrong(
            f"没有这样的日期或时间：{text}（{error}）", f"there is no such date or time: {text} ({error})"
        ) from None
    if moment.tzinfo is not None:
        return moment.astimezone(UTC)
    first, second = (moment.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if first.utcoffset() == second.utcoffset():
        return first.astimezone(UTC)
    # The two readings differ: the clock is set forward (no such time) or back (twice this time).
    if first.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != moment:
        raise Wrong(
            f"{zone.key} 没有 {text} 这个时刻：那天时钟向前拨，跳过了它；请写别的时刻",
            f"{text} does not exist in {zone.key}: the clock is set forward over it; write another time",
        )
    raise Wrong(
        f"{text} 在 {zone.key} 出现两次（时钟向后拨）；请写明是 {offset(first)} 还是 {offset(second)}，"
        f"例如 {text}{offset(first)}",
        f"{text} comes twice in {zone.key}, where the clock is set back; say which by an offset: "
        f"{text}{offset(first)} or {text}{offset(second)}",
    )


def offset(moment: datetime) -> str:
    """The offset of an aware time as it is written: ``+08:00``."""
    ahead = moment.utcoffset()
    assert ahead is not None
    return timezone(ahead).tzname(None).removeprefix("UTC") or "+00:00"


def long(span: timedelta) -> str:
    """A duration in the same words: ``1d 2h``."""
    rest, parts = int(span.total_seconds()), []
    for unit in ("d", "h", "min", "s"):
        count, rest = divmod(rest, _SECONDS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts) or "0s"
