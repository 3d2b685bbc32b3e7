"""SQLAlchemy's ranges: written as the server's text, and made of the client's."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy.dialects.postgresql import Range
from sqlalchemy.dialects.postgresql.ranges import AbstractMultiRangeImpl, AbstractSingleRangeImpl, MultiRange

from onetrip.types.multirange import Multirange as OwnMultirange
from onetrip.types.range import Range as OwnRange

_BOUND = r'("(?:[^"\\]|\\.|"")*"|[^,"()\[\]]*)'
_RANGE = re.compile(rf"([\[(]){_BOUND},{_BOUND}([\])])|(empty)")
_ESCAPE = re.compile(r'\\(.)|"(")')


def written(value: Any) -> Any:
    """The text of a range; other values as they are."""
    if not isinstance(value, Range):
        return value
    if value.empty:
        return "empty"
    lower, upper = ("" if bound is None else f'"{bound}"' for bound in (value.lower, value.upper))
    return f"{value.bounds[0]}{lower},{upper}{value.bounds[1]}"


def read(value: Any) -> list[Range[Any]]:
    """SQLAlchemy's ranges, of one of the client's or of several; of text where the client does not know the type."""
    if isinstance(value, str):
        return [_of_text(*parts) for parts in _RANGE.findall(value)]
    ranges = [value] if isinstance(value, OwnRange) else value
    return [Range(one.lower, one.upper, bounds=one.bounds or "[)", empty=one.isempty) for one in ranges]


def _of_text(opening: str, lower: str, upper: str, closing: str, empty: str) -> Range[Any]:
    if empty:
        return Range(empty=True)
    return Range(_bound(lower), _bound(upper), bounds=opening + closing)


def _bound(text: str) -> Any:
    if not text:
        return None
    return _ESCAPE.sub(r"\1\2", text[1:-1]) if text[0] == '"' else text


class OneRange(AbstractSingleRangeImpl):
    """A range."""

    def bind_processor(self, dialect: Any) -> Any:
        """To text."""
        return written

    def result_processor(self, dialect: Any, coltype: Any) -> Any:
        """From the client's."""
        return lambda value: None if value is None else read(value)[0]


class ManyRanges(AbstractMultiRangeImpl):
    """A multirange."""

    def bind_processor(self, dialect: Any) -> Any:
        """To text."""

        def process(value: Any) -> Any:
            if value is None or isinstance(value, str | OwnMultirange):
                return value
            return "{" + ",".join(written(one) for one in value) + "}"

        return process

    def result_processor(self, dialect: Any, coltype: Any) -> Any:
        """From the client's."""
        return lambda value: None if value is None else MultiRange(read(value))
