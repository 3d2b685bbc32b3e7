"""What DB-API 2.0 asks of a module: its attributes, type objects and constructors."""

from __future__ import annotations

import datetime as dt
import time
from typing import NamedTuple

from onetrip import _native

apilevel = "2.0"
threadsafety = 2
paramstyle = "pyformat"

# Type objects compare equal to the type codes of a description.


class TypeObject:
    """A kind of types; equal to the code of each of them."""

    def __init__(self, name: str, *oids: int) -> None:
        self.name = name
        self.oids = frozenset(oids)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TypeObject):
            return self.oids == other.oids
        return other in self.oids

    def __hash__(self) -> int:
        return hash(self.oids)

    def __repr__(self) -> str:
        return f"onetrip.{self.name}"


STRING = TypeObject("STRING", 18, 19, 25, 1042, 1043)
BINARY = TypeObject("BINARY", 17)
NUMBER = TypeObject("NUMBER", 20, 21, 23, 700, 701, 790, 1700)
DATETIME = TypeObject("DATETIME", 1082, 1083, 1114, 1184, 1186, 1266)
ROWID = TypeObject("ROWID", 26)

Date = dt.date
Time = dt.time
Timestamp = dt.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> dt.date:  # noqa: N802 (DB-API's name)
    """The local date of seconds since 1970."""
    return Date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> dt.time:  # noqa: N802
    """The local time of day of seconds since 1970."""
    return Time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> dt.datetime:  # noqa: N802
    """The local date and time of seconds since 1970."""
    return Timestamp(*time.localtime(ticks)[:6])


class Column(NamedTuple):
    """A column of a description: DB-API's seven items."""

    name: str
    type_code: int
    display_size: int | None
    internal_size: int | None
    precision: int | None
    scale: int | None
    null_ok: bool | None

    @classmethod
    def of(cls, name: str, oid: int, _type_name: str, modifier: int, size: int) -> Column:
        """Of what the server says of it."""
        shape = _shape(ELEMENTS.get(oid, oid), modifier)
        internal = size if size > 0 else None
        return cls(name, oid, shape.display, internal, shape.precision, shape.scale, None)

    @property
    def type_display(self) -> str:
        """The type's name with its modifiers, such as `numeric(10,2)`; the id of a type that not every server has."""
        element = ELEMENTS.get(self.type_code, self.type_code)
        name = NAMES.get(element, str(self.type_code))
        shown = [part for part in (self.precision, self.scale) if part is not None] or (
            [] if self.display_size is None else [self.display_size]
        )
        inside = f"({','.join(map(str, shown))})" if shown else ""
        return f"{name}{inside}{'[]' if element != self.type_code else ''}"

    def __repr__(self) -> str:
        return f"<Column {self.name!r}, type: {self.type_display} (oid: {self.type_code})>"


class _Shape(NamedTuple):
    display: int | None = None
    precision: int | None = None
    scale: int | None = None


def _shape(oid: int, modifier: int) -> _Shape:
    if modifier < 0:
        return _Shape()
    if oid in (1042, 1043):
        return _Shape(display=modifier - 4)
    if oid in (1560, 1562):
        return _Shape(display=modifier)
    if oid == 1700:
        scale = (modifier - 4) & 0x7FF
        # Eleven bits with a sign; `numeric_typmod_scale` in PostgreSQL's numeric.c.
        return _Shape(precision=((modifier - 4) >> 16) & 0xFFFF, scale=(scale ^ 1024) - 1024)
    if oid in (1083, 1114, 1184, 1266):
        return _Shape(precision=modifier)
    if oid == 1186 and modifier & 0xFFFF != 0xFFFF:
        return _Shape(precision=modifier & 0xFFFF)
    return _Shape()


NAMES: dict[int, str] = {}
# The type of the elements, by that of the arrays.
ELEMENTS: dict[int, int] = {}


def _know() -> None:
    arrays, names = _native.known_types()
    NAMES.update({oid: name for name, oid in names.items()})
    ELEMENTS.update({array: element for element, array in arrays.items()})


_know()
