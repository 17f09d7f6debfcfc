"""The kinds of value in course.yaml: read from text, checked, and described for editors."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    WithJsonSchema,
    create_model,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from autograder.course import units
from autograder.course.problems import Wrong
from autograder.sandbox.limits import Limits


def _moment(value: object, info: ValidationInfo) -> datetime:
    zone = (info.context or {}).get("zone")
    return units.date(value, zone if isinstance(zone, ZoneInfo) else ZoneInfo("UTC"))


def _zone(value: str) -> str:
    try:
        return ZoneInfo(value).key
    except (ValueError, OSError, KeyError):
        raise Wrong(
            f"没有时区 {value!r}；请写 IANA 名称，例如 Asia/Shanghai、Europe/Berlin",
            f"there is no time zone {value!r}; write an IANA name such as Asia/Shanghai or Europe/Berlin",
        ) from None


def _folder(value: str) -> str:
    """An id that becomes a folder's name and a part of nbgrader's ``student+assignment+time`` names."""
    if (
        not value.replace("_", "").replace("-", "").replace(".", "").isalnum()
        or not value.isascii()
        or value[0] in ".-"
    ):
        raise Wrong(
            f"{value!r} 会成为文件夹名；只用英文字母、数字、_、- 和 .",
            f"{value!r} becomes a folder's name; use only letters a-z, digits, _, - and .",
        )
    return value


def _database(value: str) -> str:
    try:
        url = make_url(value)
    except ArgumentError:  # the value may hold a password: never shown
        raise Wrong(
            "应为数据库地址，例如 sqlite:///gradebook.db 或 postgresql://user@host/course",
            "expected a database URL such as sqlite:///gradebook.db or postgresql://user@host/course",
        ) from None
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise Wrong(
            f"支持 sqlite 和 postgresql，得到的是 {url.get_backend_name()}",
            f"sqlite and postgresql are supported, got {url.get_backend_name()}",
        )
    return value


Duration = Annotated[
    timedelta,
    BeforeValidator(units.duration),
    WithJsonSchema(
        {"type": ["string", "number"], "examples": ["10min", "1d"], "description": "30s, 10min, 2h, 1d, 1w"}
    ),
]
Moment = Annotated[
    datetime,
    BeforeValidator(_moment),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": units.DATE.pattern,
            "description": "In the course's time zone, or with an offset: 2026-03-09 23:59, 2026-03-09 23:59+08:00",
        }
    ),
]
Factor = Annotated[float, Field(ge=0, le=1, description="Part of the points that is kept: 1 all, 0 none")]
FolderName = Annotated[str, Field(min_length=1, max_length=64), AfterValidator(_folder)]
Zone = Annotated[str, AfterValidator(_zone)]
Database = Annotated[str, AfterValidator(_database)]
Count = Annotated[int, Field(gt=0)]
StudentId = Annotated[str, Field(min_length=1, max_length=128)]
When = Literal["now", "after_due", "never"]


class Model(BaseModel):
    """A part of the course: fixed, and with no keys but its own."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


if TYPE_CHECKING:
    LimitsField = Limits
else:
    # The sandbox's own dataclass names the limits; here they only learn to read "60s" and "2GiB".
    def _limit(name: str) -> Any:
        if name.endswith("_seconds"):
            schema, read = {"type": ["string", "number"], "description": "60s, 10min, or seconds"}, units.seconds
        elif name.endswith("_bytes"):
            schema, read = {"type": ["string", "number"], "description": "512MiB, 2GiB, or bytes"}, units.size
        else:
            return Annotated[int, Field(gt=0)]
        number = float if read is units.seconds else int
        return Annotated[number, Field(gt=0), BeforeValidator(read), WithJsonSchema(schema)]

    _Limits = create_model(
        "Limits", __base__=Model, **{f.name: (_limit(f.name), f.default) for f in dataclasses.fields(Limits)}
    )
    LimitsField = Annotated[_Limits, AfterValidator(lambda read: Limits(**read.model_dump()))]
