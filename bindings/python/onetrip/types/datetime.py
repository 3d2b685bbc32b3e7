"""Loaders of dates and times, to build others on. They read DateStyle ISO, in which a connection begins."""

from __future__ import annotations

import datetime as dt
import re
import sys
from typing import Any

from onetrip.adapt import Loader
from onetrip.errors import DataError

_FRACTION = re.compile(r"\.(\d{1,6})(?=\D|$)")
_HOURS_ONLY = re.compile(r"[+-]\d\d$")


class DateLoader(Loader):
    """Makes a `date` of text."""

    def load(self, data: Any) -> dt.date:
        """The value of some text."""
        text = bytes(data).decode()
        try:
            return dt.date.fromisoformat(text)
        except ValueError:
            raise _beyond("date", text) from None


class TimestampLoader(Loader):
    """Makes a `datetime` without a zone of text."""

    def load(self, data: Any) -> dt.datetime:
        """The value of some text."""
        return _datetime("timestamp", bytes(data).decode())


class TimestamptzLoader(Loader):
    """Makes a `datetime` with the offset that the server sends, which is that of the session's zone."""

    def load(self, data: Any) -> dt.datetime:
        """The value of some text."""
        return _datetime("timestamptz", bytes(data).decode())


def _datetime(name: str, text: str) -> dt.datetime:
    try:
        if sys.version_info >= (3, 11):
            return dt.datetime.fromisoformat(text)
        # Which wants all digits of a fraction, and the minutes of an offset.
        text = _FRACTION.sub(lambda found: f".{found[1]:0<6}", text)
        return dt.datetime.fromisoformat(f"{text}:00" if _HOURS_ONLY.search(text, 19) else text)
    except ValueError:
        raise _beyond(name, text) from None


def _beyond(name: str, text: str) -> DataError:
    return DataError(f"Python has no value for this {name}: {text!r}")


__all__ = ["DateLoader", "TimestampLoader", "TimestamptzLoader"]
