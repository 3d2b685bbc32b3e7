"""The dumpers and loaders that this package has, by what they are for."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from typing import Any

from onetrip import adapt
from onetrip.adapt import Dumper, Format, PlainDumper, PlainLoader, PyFormat
from onetrip.types import _numbers as numbers
from onetrip.types import bool as booleans
from onetrip.types import datetime as times
from onetrip.types import string
from onetrip.types import uuid as uuids


class KnownDumper(Dumper):
    """Writes values of any class that can be written."""

    def __init__(self, cls: type, context: Any = None) -> None:
        super().__init__(cls, context)
        self._adapters: adapt.AdaptersMap = (context or adapt.adapters).adapters

    def dump(self, obj: Any) -> Any:
        """The value as bytes."""
        written = self._adapters._dump(obj, "t")
        if written is None:
            return None
        return written[1] if isinstance(written[1], bytes) else written[1].encode()

    def get_key(self, obj: Any, format: PyFormat) -> Any:
        """What tells values that need another dumper: their type."""
        return self.cls, self._oid(obj)

    def upgrade(self, obj: Any, format: PyFormat) -> Dumper:
        """A dumper that says of which type the value is."""
        made = type(self)(self.cls, self._adapters)
        made.oid = self._oid(obj)
        return made

    def _oid(self, obj: Any) -> int:
        written = self._adapters._dump(obj, "t")
        return 0 if written is None else written[0]


# Those of a class; most of the others follow from the value.
_DUMPERS: dict[type, tuple[type[PlainDumper], type[PlainDumper]]] = {
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


def dumper(cls: type, is_binary: bool) -> type[Dumper] | None:
    """What writes values of a class; None where they cannot be written."""
    for kind in cls.__mro__:
        if kind in _DUMPERS:
            return _DUMPERS[kind][is_binary]
        if kind in adapt._DUMPERS or kind in adapt._PLAIN:
            return KnownDumper
    return None
