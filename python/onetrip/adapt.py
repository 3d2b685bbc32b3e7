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
import uuid
from collections.abc import Callable
from typing import Any

from onetrip import _native
from onetrip.errors import DataError, ProgrammingError

loaded = _native.loaded

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
    _REGISTERED.add(kind)
    _OWN.clear()
    _OWN[kind] = True


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
    if not (_REGISTERED and _has_own(type(value))):
        plain = _plain_element(value)
        if plain is not None:
            return plain
    oid, text = dump(value)
    if isinstance(text, bytes):
        raise DataError(f"cannot adapt {type(value).__name__!r} in a list: its dumper writes binary")
    return oid, _quoted(text)


def _plain_element(value: Any) -> tuple[int, str] | None:
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
    return None


def _int_oid(value: int) -> int:
    if -(2**31) <= value < 2**31:
        return 23
    return 20 if -(2**63) <= value < 2**63 else 1700


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _load_inet(text: str) -> Any:
    return ipaddress.ip_interface(text) if "/" in text else ipaddress.ip_address(text)


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

# Numbers, text, bytes, dates and times, uuid and arrays have loaders in the native part.
LOADERS: dict[int, Loader] = {
    114: json.loads,
    3802: json.loads,
    650: ipaddress.ip_network,
    869: _load_inet,
}

# Classes that the native part writes by itself, unless the program has registered a dumper.
_PLAIN = {str, int, float, bool, bytes}
_REGISTERED: set[type] = set()
# Whether the program's own dumpers are for a class, as far as it was asked; empty as long as it has registered none.
_OWN: dict[type, bool] = {}
_OWN_MAX = 1000


def _has_own(kind: type) -> bool:
    """Whether the nearest dumper of a class is one of the program's."""
    if len(_OWN) >= _OWN_MAX:
        _OWN.clear()
    nearest = next((base for base in kind.__mro__ if base in _REGISTERED or base in _PLAIN or base in _DUMPERS), None)
    _OWN[kind] = nearest in _REGISTERED
    return _OWN[kind]


_native.set_adapters(dump, LOADERS, _OWN, _has_own)
