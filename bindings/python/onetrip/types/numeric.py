"""Numbers that say of which of PostgreSQL's types they are. Only programs that import this module need them: with them
each value of another class is looked up once more."""

from __future__ import annotations

from onetrip import adapt
from onetrip.types._numbers import *  # noqa: F403
from onetrip.types._numbers import __all__ as _adapters_of_numbers


class Int2(int):
    """An `int2`."""

    __slots__ = ()


class Int4(int):
    """An `int4`."""

    __slots__ = ()


class Int8(int):
    """An `int8`."""

    __slots__ = ()


class IntNumeric(int):
    """A `numeric` without a fraction."""

    __slots__ = ()


class Oid(int):
    """An `oid`."""

    __slots__ = ()


class Float4(float):
    """A `float4`."""

    __slots__ = ()


class Float8(float):
    """A `float8`."""

    __slots__ = ()


def _repr(value: float) -> str:
    return f"{type(value).__name__}({_str(value)})"


def _str(value: float) -> str:
    return int.__repr__(value) if isinstance(value, int) else float.__repr__(value)


adapt._NUMBERS.update({Int2: 21, Int4: 23, Int8: 20, IntNumeric: 1700, Oid: 26, Float4: 700, Float8: 701})
for _kind in adapt._NUMBERS:
    # They show their type, and are written as numbers.
    _kind.__repr__, _kind.__str__ = _repr, _str  # type: ignore[assignment, method-assign]
    # As the program's own: the native part writes numbers by itself, whatever their class.
    adapt.adapters.register_dumper(_kind, adapt._number)

__all__ = ["Float4", "Float8", "Int2", "Int4", "Int8", "IntNumeric", "Oid"]
__all__ += _adapters_of_numbers
