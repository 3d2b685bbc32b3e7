"""Loaders of dates and times, to build others on. They read DateStyle ISO, in which a connection begins."""

from __future__ import annotations

import datetime as dt
from typing import Any

from onetrip.adapt import Loader, loaded


class DateLoader(Loader):
    """Makes a `date` of text."""

    def load(self, data: Any) -> dt.date:
        """The value of some text."""
        value: dt.date = loaded(1082, bytes(data).decode())
        return value


class TimestampLoader(Loader):
    """Makes a `datetime` without a zone of text."""

    def load(self, data: Any) -> dt.datetime:
        """The value of some text."""
        value: dt.datetime = loaded(1114, bytes(data).decode())
        return value


class TimestamptzLoader(Loader):
    """Makes a `datetime` with the offset that the server sends, which is that of the session's zone."""

    def load(self, data: Any) -> dt.datetime:
        """The value of some text."""
        value: dt.datetime = loaded(1184, bytes(data).decode())
        return value


__all__ = ["DateLoader", "TimestampLoader", "TimestamptzLoader"]
