"""The dumpers and loaders that this package has, by what they are for."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from typing import Any

from onetrip._base.adapting import Format, PlainDumper, PlainLoader
from onetrip.types import _numbers as numbers
from onetrip.types import bool as booleans
from onetrip.types import datetime as times
from onetrip.types import string
from onetrip.types import uuid as uuids

# Those of a class, for text and for the binary form; most of the others follow from the value.
DUMPERS: dict[type, tuple[type[PlainDumper], type[PlainDumper]]] = {
    str: (string.StrDumperUnknown, string.StrBinaryDumper),
    bytes: (string.BytesDumper, string.BytesBinaryDumper),
    bool: (booleans.BoolDumper, booleans.BoolBinaryDumper),
    float: (numbers.FloatDumper, numbers.FloatBinaryDumper),
    decimal.Decimal: (numbers.DecimalDumper, numbers.DecimalBinaryDumper),
    dt.date: (times.DateDumper, times.DateBinaryDumper),
    dt.timedelta: (times.TimedeltaDumper, times.TimedeltaBinaryDumper),
    uuid.UUID: (uuids.UUIDDumper, uuids.UUIDBinaryDumper),
}
_MODULES: tuple[Any, ...] = (string, numbers, booleans, times, uuids)


def _classes(base: type) -> list[Any]:
    """The classes that are built on another."""
    found = [vars(module)[name] for module in _MODULES for name in module.__all__]
    return [one for one in found if issubclass(one, base)]


DUMPERS_BY_OID: dict[tuple[int, bool], type[PlainDumper]] = {}
for _one in _classes(PlainDumper):
    DUMPERS_BY_OID[_one.oid, _one.format == Format.BINARY] = _one

LOADERS_BY_OID: dict[tuple[int, bool], type[PlainLoader]] = {}
for _one in _classes(PlainLoader):
    LOADERS_BY_OID[_one._oid, _one.format == Format.BINARY] = _one
for _oid in (0, 18, 19, 1042, 1043):
    LOADERS_BY_OID[_oid, False] = string.TextLoader
    LOADERS_BY_OID[_oid, True] = string.TextBinaryLoader
# What has no type has no binary form that anybody knows.
LOADERS_BY_OID[0, True] = string.ByteaBinaryLoader
