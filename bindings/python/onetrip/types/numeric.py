"""Numbers that say of which of PostgreSQL's types they are. Only programs that import this module need them: with them
each value of another class is looked up once more."""

from __future__ import annotations

from onetrip import adapt


class _Typed:
    """A number that shows its type."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({super().__repr__()})"

    def __str__(self) -> str:
        return super().__repr__()


class Int2(_Typed, int):
    """An `int2`."""

    __slots__ = ()


class Int4(_Typed, int):
    """An `int4`."""

    __slots__ = ()


class Int8(_Typed, int):
    """An `int8`."""

    __slots__ = ()


class IntNumeric(_Typed, int):
    """A `numeric` without a fraction."""

    __slots__ = ()


class Oid(_Typed, int):
    """An `oid`."""

    __slots__ = ()


class Float4(_Typed, float):
    """A `float4`."""

    __slots__ = ()


class Float8(_Typed, float):
    """A `float8`."""

    __slots__ = ()


adapt._NUMBERS.update({Int2: 21, Int4: 23, Int8: 20, IntNumeric: 1700, Oid: 26, Float4: 700, Float8: 701})
for _kind in adapt._NUMBERS:
    # As the program's own: the native part writes numbers by itself, whatever their class.
    adapt.adapters.register_dumper(_kind, adapt._number)

__all__ = ["Float4", "Float8", "Int2", "Int4", "Int8", "IntNumeric", "Oid"]
