"""Multiranges, as psycopg has them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, MutableSequence
from functools import partial
from typing import Any, Generic, TypeVar

from onetrip import adapt
from onetrip._base.adapting import adapters_of
from onetrip.errors import DataError
from onetrip.types import range as ranges
from onetrip.types.info import TypeInfo, checked, register_binary, register_loader
from onetrip.types.range import Range

T = TypeVar("T")


class Multirange(MutableSequence[Range[T]], Generic[T]):
    """Several ranges of one type."""

    def __init__(self, items: Iterable[Range[T]] = ()) -> None:
        self._ranges = [_checked(item) for item in items]

    def __getitem__(self, at: Any) -> Any:
        return self._ranges[at] if isinstance(at, int) else type(self)(self._ranges[at])

    def __setitem__(self, at: Any, value: Any) -> None:
        if isinstance(at, int):
            self._ranges[at] = _checked(value)
        elif isinstance(value, Iterable):
            self._ranges[at] = [_checked(item) for item in value]
        else:
            raise TypeError(f"can only assign an iterable to a slice, not {type(value).__name__}")

    def __delitem__(self, at: Any) -> None:
        del self._ranges[at]

    def __len__(self) -> int:
        return len(self._ranges)

    def insert(self, index: int, value: Range[T]) -> None:
        """Puts a range before another."""
        self._ranges.insert(index, _checked(value))

    def __eq__(self, other: object) -> bool:
        return self._ranges == other._ranges if isinstance(other, Multirange) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: Any) -> bool:
        return self._ranges < other._ranges if isinstance(other, Multirange) else NotImplemented

    def __le__(self, other: Any) -> bool:
        return self._ranges <= other._ranges if isinstance(other, Multirange) else NotImplemented

    def __gt__(self, other: Any) -> bool:
        return self._ranges > other._ranges if isinstance(other, Multirange) else NotImplemented

    def __ge__(self, other: Any) -> bool:
        return self._ranges >= other._ranges if isinstance(other, Multirange) else NotImplemented

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._ranges!r})"

    def __str__(self) -> str:
        return "{" + ", ".join(map(str, self._ranges)) + "}"


class _OfType(Multirange[T]):
    """A multirange whose type does not follow from its ranges."""

    oid = 0


class Int4Multirange(_OfType[int]):
    """`int4multirange`."""

    oid = 4451


class Int8Multirange(_OfType[int]):
    """`int8multirange`."""

    oid = 4536


class NumericMultirange(_OfType[Any]):
    """`nummultirange`."""

    oid = 4532


class DateMultirange(_OfType[Any]):
    """`datemultirange`."""

    oid = 4535


class TimestampMultirange(_OfType[Any]):
    """`tsmultirange`."""

    oid = 4533


class TimestamptzMultirange(_OfType[Any]):
    """`tstzmultirange`."""

    oid = 4534


# The types of the bounds, by the ids of multiranges; and those by the ids of ranges.
SUBTYPES = {4451: 23, 4536: 20, 4532: 1700, 4533: 1114, 4534: 1184, 4535: 1082}
_OF_RANGE = {3904: 4451, 3926: 4536, 3906: 4532, 3908: 4533, 3910: 4534, 3912: 4535}


def read(text: str, subtype: int, own: dict[int, Any] | None = None) -> Multirange[Any]:
    """The multirange of some text, whose bounds are of a type; by a connection's own loaders, if they are given."""
    found: list[Range[Any]] = []
    at = 1
    while at < len(text) - 1:
        match = ranges._RANGE.match(text, at)
        if match is None:
            break
        found.append(ranges.read(match[0], subtype, own))
        at = match.end() + 1  # the comma, or the end
    if text[:1] != "{" or text[-1:] != "}" or at < len(text) - 1:
        raise DataError(f"not a multirange: {text!r}")
    return Multirange(found)


def written(value: Multirange[Any]) -> tuple[int, str]:
    """The type of a multirange, 0 where its ranges do not say it, and its text."""
    oids, parts = set(), []
    for one in value:
        oid, text = ranges.written(one)
        parts.append(text)
        if oid or not one.isempty:
            oids.add(oid)
    if 3926 in oids and oids <= {3904, 3926}:
        oids = {3926}
    if 3906 in oids and oids <= {3904, 3926, 3906}:
        oids = {3906}
    range_oid = oids.pop() if len(oids) == 1 else 0
    known = adapt._WITHIN.get()._multiranges.get(range_oid) or _OF_RANGE.get(range_oid, 0)
    oid = value.oid if isinstance(value, _OfType) else known
    return oid, "{" + ",".join(parts) + "}"


class MultirangeInfo(TypeInfo):
    """A type of multiranges with that of its ranges and their bounds."""

    _more = """SELECT r.rngtypid::bigint, r.rngsubtype::bigint FROM pg_catalog.pg_range r
        WHERE r.rngmultitypid = %s"""

    def __init__(
        self,
        name: str,
        oid: int,
        array_oid: int,
        *,
        regtype: str = "",
        delimiter: str = ",",
        range_oid: int = 0,
        subtype_oid: int = 0,
    ) -> None:
        super().__init__(name, oid, array_oid, regtype=regtype, delimiter=delimiter)
        self.range_oid = range_oid
        self.subtype_oid = subtype_oid

    @classmethod
    def _details(cls, more: list[Any]) -> dict[str, Any]:
        range_oid, subtype_oid = more[0] if more else (0, 0)
        return {"range_oid": range_oid, "subtype_oid": subtype_oid}

    def register(self, context: Any = None) -> None:
        """As `register_multirange`."""
        register_multirange(self, context)


def register_multirange(info: MultirangeInfo, context: Any = None) -> None:
    """Makes values of a type of multiranges `Multirange`, and writes those of its ranges as such; on a connection or on
    all."""
    checked(info, "multirange")
    TypeInfo.register(info, context)
    load = partial(read, subtype=info.subtype_oid)
    register_loader(context, info.oid, load)
    register_loader(context, info.array_oid, info._array(load))
    register_binary(context, info, partial(read_binary, subtype=info.subtype_oid))
    adapters = adapters_of(context)
    adapters._ranges[info.subtype_oid] = info.range_oid
    adapters._multiranges[info.range_oid] = info.oid


def read_binary(data: bytes, subtype: int) -> Multirange[Any]:
    """The multirange of a binary form: how many ranges, then the length and bytes of each."""
    (count,) = struct.unpack_from("!i", data)
    found, at = [], 4
    for _ in range(count):
        (length,) = struct.unpack_from("!i", data, at)
        start, at = at + 4, at + 4 + length
        found.append(ranges.read_binary(data[start:at], subtype))
    return Multirange(found)


def _checked(value: Any) -> Any:
    if not isinstance(value, Range):
        raise TypeError(f"a multirange is made of ranges, not of {type(value).__name__}")
    return value


def _unbounded(value: Multirange[Any]) -> bytes | None:
    """The binary form of a multirange without bounds, which is the same for all types."""
    parts = [ranges._unbounded(one) for one in value]
    if None in parts:
        return None
    return struct.pack("!i", len(parts)) + b"".join(struct.pack("!i", len(part)) + part for part in parts if part)


def _register() -> None:
    for oid, subtype in SUBTYPES.items():
        adapt.LOADERS[oid] = partial(read, subtype=subtype)
        adapt._WHOLES.setdefault(subtype, []).append((oid, read))
    adapt._DUMPERS[Multirange] = written
    adapt._BINARY_DUMPERS[Multirange] = _unbounded
    adapt._CONTAINERS = (*adapt._CONTAINERS, Multirange)


_register()
