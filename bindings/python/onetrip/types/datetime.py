"""Dumpers and loaders of dates and times, to build others on. They read DateStyle ISO, in which a connection begins."""

from __future__ import annotations

from onetrip._base.adapting import Format, PlainDumper, PlainLoader


class DateDumper(PlainDumper):
    """Writes `date` as date."""

    oid = 1082


class DateBinaryDumper(DateDumper):
    """The same in the type's binary form."""

    format = Format.BINARY


class TimeDumper(PlainDumper):
    """Writes `time` as time."""

    oid = 1083


class TimeBinaryDumper(TimeDumper):
    """The same in the type's binary form."""

    format = Format.BINARY


class TimeTzDumper(PlainDumper):
    """Writes `time` as timetz."""

    oid = 1266


class TimeTzBinaryDumper(TimeTzDumper):
    """The same in the type's binary form."""

    format = Format.BINARY


class DatetimeDumper(PlainDumper):
    """Writes `datetime` as timestamptz."""

    oid = 1184


class DatetimeBinaryDumper(DatetimeDumper):
    """The same in the type's binary form."""

    format = Format.BINARY


class DatetimeNoTzDumper(PlainDumper):
    """Writes `datetime` as timestamp."""

    oid = 1114


class DatetimeNoTzBinaryDumper(DatetimeNoTzDumper):
    """The same in the type's binary form."""

    format = Format.BINARY


class TimedeltaDumper(PlainDumper):
    """Writes `timedelta` as interval."""

    oid = 1186


class TimedeltaBinaryDumper(TimedeltaDumper):
    """The same in the type's binary form."""

    format = Format.BINARY


class DateLoader(PlainLoader):
    """Makes `date` of date."""

    _oid = 1082


class DateBinaryLoader(DateLoader):
    """The same of the type's binary form."""

    format = Format.BINARY


class TimeLoader(PlainLoader):
    """Makes `time` of time."""

    _oid = 1083


class TimeBinaryLoader(TimeLoader):
    """The same of the type's binary form."""

    format = Format.BINARY


class TimetzLoader(PlainLoader):
    """Makes `time` of timetz."""

    _oid = 1266


class TimetzBinaryLoader(TimetzLoader):
    """The same of the type's binary form."""

    format = Format.BINARY


class TimestampLoader(PlainLoader):
    """Makes `datetime` of timestamp."""

    _oid = 1114


class TimestampBinaryLoader(TimestampLoader):
    """The same of the type's binary form."""

    format = Format.BINARY


class TimestamptzLoader(PlainLoader):
    """Makes `datetime` of timestamptz, with the offset that the server sends."""

    _oid = 1184


class TimestamptzBinaryLoader(TimestamptzLoader):
    """The same of the type's binary form."""

    format = Format.BINARY


class IntervalLoader(PlainLoader):
    """Makes `timedelta` of interval."""

    _oid = 1186


class IntervalBinaryLoader(IntervalLoader):
    """The same of the type's binary form."""

    format = Format.BINARY


__all__ = [
    "DateBinaryDumper",
    "DateBinaryLoader",
    "DateDumper",
    "DateLoader",
    "DatetimeBinaryDumper",
    "DatetimeDumper",
    "DatetimeNoTzBinaryDumper",
    "DatetimeNoTzDumper",
    "IntervalBinaryLoader",
    "IntervalLoader",
    "TimeBinaryDumper",
    "TimeBinaryLoader",
    "TimeDumper",
    "TimeLoader",
    "TimeTzBinaryDumper",
    "TimeTzDumper",
    "TimedeltaBinaryDumper",
    "TimedeltaDumper",
    "TimestampBinaryLoader",
    "TimestampLoader",
    "TimestamptzBinaryLoader",
    "TimestamptzLoader",
    "TimetzBinaryLoader",
    "TimetzLoader",
]
