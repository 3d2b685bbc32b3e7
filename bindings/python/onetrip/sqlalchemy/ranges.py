"""SQLAlchemy's ranges, written and read as the server's text."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from sqlalchemy.dialects.postgresql import Range
from sqlalchemy.dialects.postgresql.ranges import AbstractMultiRangeImpl, AbstractSingleRangeImpl, MultiRange

from onetrip import _native

_BOUND = r'("(?:[^"\\]|\\.|"")*"|[^,"()\[\]]*)'
_RANGE = re.compile(rf"([\[(]){_BOUND},{_BOUND}([\])])|(empty)")
_ESCAPE = re.compile(r'\\(.)|"(")')

# Types of the bounds, by the ids of ranges and of their multiranges.
_BOUNDS = {
    3904: 23, 4451: 23, 3926: 20, 4536: 20, 3906: 1700, 4532: 1700, 3908: 1114, 4533: 1114, 3910: 1184, 4534: 1184,
    3912: 1082, 4535: 1082,
}  # fmt: skip

RANGE_OIDS = tuple(_BOUNDS)


def written(value: Any) -> Any:
    """The text of a range; other values as they are."""
    if not isinstance(value, Range):
        return value
    if value.empty:
        return "empty"
    lower, upper = ("" if bound is None else f'"{bound}"' for bound in (value.lower, value.upper))
    return f"{value.bounds[0]}{lower},{upper}{value.bounds[1]}"


def read(text: str, oid: int) -> list[Range[Any]]:
    """The ranges in some text."""
    element = _BOUNDS.get(oid, 25)
    load: Callable[[str], Any] = partial(_native.loaded, element)

    def bound(text: str) -> Any:
        if not text:
            return None
        return load(_ESCAPE.sub(r"\1\2", text[1:-1]) if text[0] == '"' else text)

    found = []
    for opening, lower, upper, closing, empty in _RANGE.findall(text):
        if empty:
            found.append(Range(empty=True))
        else:
            found.append(Range(bound(lower), bound(upper), bounds=opening + closing))
    return found


class OneRange(AbstractSingleRangeImpl):
    """A range."""

    def bind_processor(self, dialect: Any) -> Any:
        """To text."""
        return written

    def result_processor(self, dialect: Any, coltype: Any) -> Any:
        """From text."""
        return lambda value: None if value is None else read(value, coltype)[0]


class ManyRanges(AbstractMultiRangeImpl):
    """A multirange."""

    def bind_processor(self, dialect: Any) -> Any:
        """To text."""

        def process(value: Any) -> Any:
            if value is None or isinstance(value, str):
                return value
            return "{" + ",".join(written(one) for one in value) + "}"

        return process

    def result_processor(self, dialect: Any, coltype: Any) -> Any:
        """From text."""
        return lambda value: None if value is None else MultiRange(read(value, coltype))
