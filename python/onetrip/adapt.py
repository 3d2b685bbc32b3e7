"""Which Python values stand for which of PostgreSQL's, beyond the plain ones that the native part converts.

`register_loader(oid, function)` makes values of a type by a function of their text; `register_dumper(class,
function)` writes the values of a class: the function returns the type's id (0 leaves it to the server) and text, or
bytes in the type's binary form.
"""

from __future__ import annotations

import datetime as dt
import decimal
import ipaddress
import json
import re
import uuid
from collections.abc import Callable
from typing import Any

from onetrip import _native
from onetrip.errors import DataError, ProgrammingError

Loader = Callable[[str], Any]
Dumped = tuple[int, "str | bytes"]
Dumper = Callable[[Any], Dumped]

ARRAY_OF = {
    0: 1009, 16: 1000, 17: 1001, 20: 1016, 21: 1005, 23: 1007, 25: 1009, 114: 199, 650: 651, 700: 1021, 701: 1022,
    869: 1041, 1082: 1182, 1083: 1183, 1114: 1115, 1184: 1185, 1186: 1187, 1266: 1270, 1700: 1231, 2950: 2951,
    3802: 3807,
}  # fmt: skip


class Json:
    """An object to be written as `json`."""

    oid = 114

    def __init__(self, obj: Any, dumps: Callable[[Any], str] | None = None) -> None:
        self.obj = obj
        self.dumps = dumps or json.dumps

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.obj!r})"


class Jsonb(Json):
    """An object to be written as `jsonb`."""

    oid = 3802


def dump(value: Any) -> Dumped:
    """The type id of a value and how it is written."""
    for kind in type(value).__mro__:
        dumper = _DUMPERS.get(kind)
        if dumper is not None:
            return dumper(value)
    raise ProgrammingError(f"cannot adapt type {type(value).__name__!r}: register a dumper for it")


def register_dumper(kind: type, dumper: Dumper) -> None:
    """Writes values of a class, and of those under it, by a function."""
    _DUMPERS[kind] = dumper


def register_loader(oid: int, loader: Loader) -> None:
    """Makes values of a type by a function of their text."""
    LOADERS[oid] = loader


def _interval(value: dt.timedelta) -> Dumped:
    return 1186, f"{value.days} days {value.seconds}.{value.microseconds:06} seconds"


def _time(value: dt.time) -> Dumped:
    return (1083 if value.tzinfo is None else 1266), value.isoformat()


def _timestamp(value: dt.datetime) -> Dumped:
    return (1114 if value.tzinfo is None else 1184), value.isoformat(" ")


def _array(value: list[Any]) -> Dumped:
    oids: list[int] = []
    text = _array_text(value, oids)
    known = {oid for oid in oids if oid}
    for widest in (1700, 20, 23):  # numbers of several sizes go into the widest
        if widest in known and known <= {23, 20, 1700}:
            known = {widest}
    if len(known) > 1:
        raise DataError("cannot adapt a list whose elements are of several types")
    oid = known.pop() if known else 0
    # Without an element that is not NULL, the server has to say what it is.
    return (ARRAY_OF.get(oid, 0) if oids else 0), text


def _array_text(values: list[Any], oids: list[int]) -> str:
    parts = []
    for value in values:
        if isinstance(value, list):
            parts.append(_array_text(value, oids))
        elif value is None:
            parts.append("NULL")
        else:
            oid, text = _element(value)
            oids.append(oid)
            parts.append(text)
    return "{" + ",".join(parts) + "}"


def _element(value: Any) -> tuple[int, str]:
    if isinstance(value, bool):
        return 16, "t" if value else "f"
    if isinstance(value, int):
        return _int_oid(value), str(int(value))
    if isinstance(value, float):
        return 701, repr(float(value))
    if isinstance(value, str):
        return 25, _quoted(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return 17, f'"\\\\x{bytes(value).hex()}"'
    oid, text = dump(value)
    if isinstance(text, bytes):
        raise DataError(f"cannot adapt {type(value).__name__!r} in a list: its dumper writes binary")
    return oid, _quoted(text)


def _int_oid(value: int) -> int:
    if -(2**31) <= value < 2**31:
        return 23
    return 20 if -(2**63) <= value < 2**63 else 1700


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _load_date(text: str) -> dt.date:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise _out_of_range("date", text) from None


def _load_time(text: str) -> dt.time:
    return dt.time.fromisoformat(_six_digits(text))


def _load_timestamp(text: str) -> dt.datetime:
    try:
        return dt.datetime.fromisoformat(_six_digits(text))
    except ValueError:
        raise _out_of_range("timestamp", text) from None


_FRACTION = re.compile(r"\.(\d+)")
_SHORT_OFFSET = re.compile(r"([+-]\d\d)$")


def _six_digits(text: str) -> str:
    """With the six digits of a fraction and the minutes of an offset that Python 3.10 insists on."""
    if "." in text:
        text = _FRACTION.sub(lambda found: "." + found[1].ljust(6, "0"), text)
    return _SHORT_OFFSET.sub(r"\1:00", text) if ":" in text else text


_INTERVAL = re.compile(
    r"(?:(-?\+?\d+) years? ?)?(?:(-?\+?\d+) mons? ?)?(?:(-?\+?\d+) days? ?)?"
    r"(?:([+-])?(\d+):(\d\d):(\d\d)(?:\.(\d+))?)?"
)


def _load_interval(text: str) -> dt.timedelta:
    """A month counts 30 days and a year 365, as they do for psycopg."""
    found = _INTERVAL.fullmatch(text)
    if found is None:
        raise DataError(f"cannot read interval {text!r}: set IntervalStyle to postgres")
    years, months, days, sign, hours, minutes, seconds, fraction = found.groups()
    clock = dt.timedelta(
        hours=int(hours or 0),
        minutes=int(minutes or 0),
        seconds=int(seconds or 0),
        microseconds=int((fraction or "0").ljust(6, "0")),
    )
    whole = dt.timedelta(days=365 * int(years or 0) + 30 * int(months or 0) + int(days or 0))
    return whole - clock if sign == "-" else whole + clock


def _load_inet(text: str) -> Any:
    return ipaddress.ip_interface(text) if "/" in text else ipaddress.ip_address(text)


def _out_of_range(what: str, text: str) -> DataError:
    return DataError(f"{what} {text!r} is beyond what Python's type can hold, or is written in an unusual style")


_DUMPERS: dict[type, Dumper] = {
    bytearray: lambda value: (17, bytes(value)),
    memoryview: lambda value: (17, bytes(value)),
    decimal.Decimal: lambda value: (1700, str(value)),
    dt.date: lambda value: (1082, value.isoformat()),
    dt.datetime: _timestamp,
    dt.time: _time,
    dt.timedelta: _interval,
    uuid.UUID: lambda value: (2950, str(value)),
    list: _array,
    Json: lambda value: (value.oid, value.dumps(value.obj)),
    ipaddress.IPv4Address: lambda value: (869, str(value)),
    ipaddress.IPv6Address: lambda value: (869, str(value)),
    ipaddress.IPv4Interface: lambda value: (869, str(value)),
    ipaddress.IPv6Interface: lambda value: (869, str(value)),
    ipaddress.IPv4Network: lambda value: (650, str(value)),
    ipaddress.IPv6Network: lambda value: (650, str(value)),
}

LOADERS: dict[int, Loader] = {
    114: json.loads,
    3802: json.loads,
    650: ipaddress.ip_network,
    869: _load_inet,
    1082: _load_date,
    1083: _load_time,
    1266: _load_time,
    1114: _load_timestamp,
    1184: _load_timestamp,
    1186: _load_interval,
    1700: decimal.Decimal,
    2950: uuid.UUID,
}

_native.set_adapters(dump, LOADERS)
