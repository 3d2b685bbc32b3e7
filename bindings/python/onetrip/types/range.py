"""Ranges, as psycopg has them."""

from __future__ import annotations

import datetime as dt
import re
import struct
from decimal import Decimal
from functools import partial
from typing import Any, Generic, TypeVar

from onetrip import _native, adapt
from onetrip._base.adapting import Dumper, PyFormat, adapters_of
from onetrip.errors import DataError
from onetrip.types.info import TypeInfo, checked, register_binary, register_loader

T = TypeVar("T")

_BOUNDS = ("[)", "(]", "()", "[]")


class Range(Generic[T]):
    """The values between two bounds, of which None is infinite. `bounds` says which of them belong to it: `[` and `]`
    do, `(` and `)` do not. `Range(empty=True)` has no values."""

    __slots__ = ("_bounds", "_lower", "_upper")

    def __init__(self, lower: T | None = None, upper: T | None = None, bounds: str = "[)", empty: bool = False) -> None:
        if bounds not in _BOUNDS:
            raise ValueError(f"bounds have to be one of {', '.join(_BOUNDS)}, not {bounds!r}")
        self._lower = None if empty else lower
        self._upper = None if empty else upper
        if not empty and lower is None:
            bounds = "(" + bounds[1]
        if not empty and upper is None:
            bounds = bounds[0] + ")"
        self._bounds = "" if empty else bounds

    @property
    def lower(self) -> T | None:
        """The lower bound; None where it is infinite, or the range is empty."""
        return self._lower

    @property
    def upper(self) -> T | None:
        """The upper bound."""
        return self._upper

    @property
    def bounds(self) -> str:
        """Whether the bounds belong to the range; empty for an empty one."""
        return self._bounds

    @property
    def isempty(self) -> bool:
        """Whether it has no values."""
        return not self._bounds

    @property
    def lower_inf(self) -> bool:
        """Whether it has no lower bound."""
        return bool(self._bounds) and self._lower is None

    @property
    def upper_inf(self) -> bool:
        """Whether it has no upper bound."""
        return bool(self._bounds) and self._upper is None

    @property
    def lower_inc(self) -> bool:
        """Whether the lower bound belongs to it."""
        return self._bounds[:1] == "["

    @property
    def upper_inc(self) -> bool:
        """Whether the upper bound belongs to it."""
        return self._bounds[1:] == "]"

    def __contains__(self, value: T) -> bool:
        if self.isempty:
            return False
        if self._lower is not None:
            bound: Any = self._lower
            if value < bound or (value == bound and not self.lower_inc):
                return False
        if self._upper is not None:
            bound = self._upper
            if value > bound or (value == bound and not self.upper_inc):
                return False
        return True

    def __bool__(self) -> bool:
        return bool(self._bounds)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Range):
            return NotImplemented
        return (self._lower, self._upper, self._bounds) == (other._lower, other._upper, other._bounds)

    def __hash__(self) -> int:
        return hash((self._lower, self._upper, self._bounds))

    def __lt__(self, other: Any) -> bool:
        if not isinstance(other, Range):
            return NotImplemented
        return self._rank() < other._rank()

    def __le__(self, other: Any) -> bool:
        return NotImplemented if not isinstance(other, Range) else self == other or self < other

    def __gt__(self, other: Any) -> bool:
        return NotImplemented if not isinstance(other, Range) else other < self

    def __ge__(self, other: Any) -> bool:
        return NotImplemented if not isinstance(other, Range) else other <= self

    def _rank(self) -> tuple[Any, ...]:
        """The server's order: the empty range first, then by the lower and the upper bound."""
        if self.isempty:
            return (False,)
        lower = (False,) if self._lower is None else (True, self._lower, not self.lower_inc)
        upper = (True,) if self._upper is None else (False, self._upper, self.upper_inc)
        return (True, lower, upper)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._lower, self._upper, self._bounds or "[)", self.isempty)

    def __repr__(self) -> str:
        name = type(self).__name__
        if self.isempty:
            return f"{name}(empty=True)"
        return f"{name}({self._lower!r}, {self._upper!r}, {self._bounds!r})"

    def __str__(self) -> str:
        if self.isempty:
            return "empty"
        return f"{self._bounds[0]}{self._lower}, {self._upper}{self._bounds[1]}"


class _OfType(Range[T]):
    """A range whose type does not follow from its bounds."""

    __slots__ = ()
    oid = 0


class Int4Range(_OfType[int]):
    """`int4range`."""

    __slots__ = ()
    oid = 3904


class Int8Range(_OfType[int]):
    """`int8range`."""

    __slots__ = ()
    oid = 3926


class NumericRange(_OfType[Decimal]):
    """`numrange`."""

    __slots__ = ()
    oid = 3906


class DateRange(_OfType[dt.date]):
    """`daterange`."""

    __slots__ = ()
    oid = 3912


class TimestampRange(_OfType[dt.datetime]):
    """`tsrange`."""

    __slots__ = ()
    oid = 3908


class TimestamptzRange(_OfType[dt.datetime]):
    """`tstzrange`."""

    __slots__ = ()
    oid = 3910


# The types of the bounds, by the ids of ranges.
SUBTYPES = {3904: 23, 3926: 20, 3906: 1700, 3908: 1114, 3910: 1184, 3912: 1082}
_OF_SUBTYPE = {subtype: oid for oid, subtype in SUBTYPES.items()}

_BOUND = r'("(?:[^"\\]|\\.|"")*"|[^,"()\[\]\\]*)'
_RANGE = re.compile(rf"([\[(]){_BOUND},{_BOUND}([\])])", re.DOTALL)
_ESCAPED = re.compile(r'\\(.)|"(")', re.DOTALL)


def read(text: str, subtype: int, own: dict[int, Any] | None = None) -> Range[Any]:
    """The range of some text, whose bounds are of a type; by a connection's own loaders, if they are given."""
    if text.lower() == "empty":
        return Range(empty=True)
    found = _RANGE.fullmatch(text)
    if found is None:
        raise DataError(f"not a range: {text!r}")
    opening, lower, upper, closing = found.groups()
    return Range(_bound(lower, subtype, own), _bound(upper, subtype, own), opening + closing)


def _bound(text: str, subtype: int, own: dict[int, Any] | None) -> Any:
    if not text:
        return None
    if text[0] == '"':
        text = _ESCAPED.sub(r"\1\2", text[1:-1])
    return adapt.loaded(subtype, text, own)


def written(value: Range[Any]) -> tuple[int, str]:
    """The type of a range, 0 where its bounds do not say it, and its text."""
    if value.isempty:
        return (value.oid if isinstance(value, _OfType) else 0), "empty"
    subtypes = set()
    parts = []
    for bound in (value.lower, value.upper):
        if bound is None:
            parts.append("")
            continue
        element = adapt._element(bound)
        if element is None:
            parts.append("")
            continue
        subtypes.add(element[0])
        parts.append(element[1])
    text = f"{value.bounds[0]}{parts[0]},{parts[1]}{value.bounds[1]}"
    if isinstance(value, _OfType):
        return value.oid, text
    if type(value.lower) is int or type(value.upper) is int:
        # The server casts no int4range to a range of other numbers: it has to say which one it takes.
        return 0, text
    for widest in (1700, 20, 23):  # numbers of several sizes
        if widest in subtypes:
            subtypes = {widest} if subtypes <= {21, 23, 20, 1700} else subtypes
    subtype = subtypes.pop() if len(subtypes) == 1 else 0
    return adapt._WITHIN.get()._ranges.get(subtype) or _OF_SUBTYPE.get(subtype, 0), text


class RangeDumper(Dumper):
    """Writes ranges, to build others on. `upgrade` gives the dumper of a range's own type, by its bounds."""

    def __init__(self, cls: type, context: Any = None) -> None:
        super().__init__(cls, context)
        self._context = context

    def get_key(self, obj: Range[Any], format: PyFormat) -> Any:
        """What tells ranges of one type from those of another."""
        return self.cls, self._found(obj)

    def upgrade(self, obj: Range[Any], format: PyFormat) -> Dumper:
        """A dumper that says of which type the range is."""
        made = type(self)(self.cls, self._context)
        made.oid = self._found(obj)
        return made

    def dump(self, obj: Range[Any]) -> bytes:
        """The range as text."""
        return written(obj)[1].encode()

    @staticmethod
    def _found(obj: Range[Any]) -> int:
        return written(obj)[0]


class RangeInfo(TypeInfo):
    """A type of ranges with that of its bounds."""

    _more = "SELECT rngsubtype::bigint FROM pg_catalog.pg_range WHERE rngtypid = %s"

    def __init__(
        self,
        name: str,
        oid: int,
        array_oid: int,
        *,
        regtype: str = "",
        delimiter: str = ",",
        subtype_oid: int = 0,
    ) -> None:
        super().__init__(name, oid, array_oid, regtype=regtype, delimiter=delimiter)
        self.subtype_oid = subtype_oid

    @classmethod
    def _details(cls, more: list[Any]) -> dict[str, Any]:
        return {"subtype_oid": more[0][0] if more else 0}

    def register(self, context: Any = None) -> None:
        """As `register_range`."""
        register_range(self, context)


def register_range(info: RangeInfo, context: Any = None) -> None:
    """Makes values of a type of ranges `Range`, and writes those whose bounds are of its type as such; on a connection
    or on all."""
    checked(info, "range")
    TypeInfo.register(info, context)
    load = partial(read, subtype=info.subtype_oid)
    register_loader(context, info.oid, load)
    register_loader(context, info.array_oid, info._array(load))
    register_binary(context, info, partial(read_binary, subtype=info.subtype_oid))
    adapters_of(context)._ranges[info.subtype_oid] = info.oid


def read_binary(data: bytes, subtype: int) -> Range[Any]:
    """The range of a binary form: what its bounds are, then the length and bytes of each."""
    flags, at = data[0], 1
    if flags & 1:
        return Range(empty=True)
    found: list[Any] = []
    for is_infinite in (8, 16):
        if flags & is_infinite:
            found.append(None)
            continue
        (length,) = struct.unpack_from("!i", data, at)
        start, at = at + 4, at + 4 + length
        found.append(_native.loaded_binary(subtype, data[start:at]))
    return Range(found[0], found[1], ("[" if flags & 2 else "(") + ("]" if flags & 4 else ")"))


def _unbounded(value: Range[Any]) -> bytes | None:
    """The binary form of a range without bounds, which is the same for all types."""
    if value.isempty:
        return b"\x01"
    return b"\x18" if value.lower is None and value.upper is None else None


def _register() -> None:
    for oid, subtype in SUBTYPES.items():
        adapt.LOADERS[oid] = partial(read, subtype=subtype)
        adapt._WHOLES.setdefault(subtype, []).append((oid, read))
    adapt._DUMPERS[Range] = written
    adapt._BINARY_DUMPERS[Range] = _unbounded
    adapt._CONTAINERS = (*adapt._CONTAINERS, Range)


_register()
