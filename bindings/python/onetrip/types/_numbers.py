"""Dumpers and loaders of numbers, to build others on; `onetrip.types.numeric` has them."""

from __future__ import annotations

from onetrip._base.adapting import Format, PlainDumper, PlainLoader


class Int2Dumper(PlainDumper):
    """Writes `int` as int2."""

    oid = 21


class Int2BinaryDumper(Int2Dumper):
    """The same in the type's binary form."""

    format = Format.BINARY


class Int4Dumper(PlainDumper):
    """Writes `int` as int4."""

    oid = 23


class Int4BinaryDumper(Int4Dumper):
    """The same in the type's binary form."""

    format = Format.BINARY


class Int8Dumper(PlainDumper):
    """Writes `int` as int8."""

    oid = 20


class Int8BinaryDumper(Int8Dumper):
    """The same in the type's binary form."""

    format = Format.BINARY


class IntNumericDumper(PlainDumper):
    """Writes `int` as numeric."""

    oid = 1700


class IntNumericBinaryDumper(IntNumericDumper):
    """The same in the type's binary form."""

    format = Format.BINARY


class OidDumper(PlainDumper):
    """Writes `int` as oid."""

    oid = 26


class OidBinaryDumper(OidDumper):
    """The same in the type's binary form."""

    format = Format.BINARY


class Float4Dumper(PlainDumper):
    """Writes `float` as float4."""

    oid = 700


class Float4BinaryDumper(Float4Dumper):
    """The same in the type's binary form."""

    format = Format.BINARY


class FloatDumper(PlainDumper):
    """Writes `float` as float8."""

    oid = 701


class FloatBinaryDumper(FloatDumper):
    """The same in the type's binary form."""

    format = Format.BINARY


class DecimalDumper(PlainDumper):
    """Writes `Decimal` as numeric."""

    oid = 1700


class DecimalBinaryDumper(DecimalDumper):
    """The same in the type's binary form."""

    format = Format.BINARY


class IntLoader(PlainLoader):
    """Makes `int` of int4."""

    _oid = 23


class Int4BinaryLoader(IntLoader):
    """The same of the type's binary form."""

    format = Format.BINARY


class Int2Loader(PlainLoader):
    """Makes `int` of int2."""

    _oid = 21


class Int2BinaryLoader(Int2Loader):
    """The same of the type's binary form."""

    format = Format.BINARY


class Int8Loader(PlainLoader):
    """Makes `int` of int8."""

    _oid = 20


class Int8BinaryLoader(Int8Loader):
    """The same of the type's binary form."""

    format = Format.BINARY


class OidLoader(PlainLoader):
    """Makes `int` of oid."""

    _oid = 26


class OidBinaryLoader(OidLoader):
    """The same of the type's binary form."""

    format = Format.BINARY


class FloatLoader(PlainLoader):
    """Makes `float` of float4 and float8."""

    _oid = 701


class Float8BinaryLoader(FloatLoader):
    """The same of the binary form of float8."""

    format = Format.BINARY


class Float4Loader(PlainLoader):
    """Makes `float` of float4."""

    _oid = 700


class Float4BinaryLoader(Float4Loader):
    """The same of the type's binary form."""

    format = Format.BINARY


class NumericLoader(PlainLoader):
    """Makes `Decimal` of numeric."""

    _oid = 1700


class NumericBinaryLoader(NumericLoader):
    """The same of the type's binary form."""

    format = Format.BINARY


__all__ = [
    "DecimalBinaryDumper",
    "DecimalDumper",
    "Float4BinaryDumper",
    "Float4BinaryLoader",
    "Float4Dumper",
    "Float4Loader",
    "Float8BinaryLoader",
    "FloatBinaryDumper",
    "FloatDumper",
    "FloatLoader",
    "Int2BinaryDumper",
    "Int2BinaryLoader",
    "Int2Dumper",
    "Int2Loader",
    "Int4BinaryDumper",
    "Int4BinaryLoader",
    "Int4Dumper",
    "Int8BinaryDumper",
    "Int8BinaryLoader",
    "Int8Dumper",
    "Int8Loader",
    "IntLoader",
    "IntNumericBinaryDumper",
    "IntNumericDumper",
    "NumericBinaryLoader",
    "NumericLoader",
    "OidBinaryDumper",
    "OidBinaryLoader",
    "OidDumper",
    "OidLoader",
]
