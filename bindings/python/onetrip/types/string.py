"""Dumpers and loaders of text and bytes, to build others on."""

from __future__ import annotations

from onetrip._base.adapting import Format, PlainDumper, PlainLoader


class StrDumper(PlainDumper):
    """Writes `str` as text."""

    oid = 25


class StrDumperVarchar(PlainDumper):
    """Writes `str` as varchar."""

    oid = 1043


class StrDumperName(PlainDumper):
    """Writes `str` as name."""

    oid = 19


class StrDumperUnknown(PlainDumper):
    """Writes `str` as what the server needs."""

    oid = 0


class StrBinaryDumper(StrDumper):
    """The same in the type's binary form."""

    format = Format.BINARY


class StrBinaryDumperVarchar(StrDumperVarchar):
    """The same in the type's binary form."""

    format = Format.BINARY


class StrBinaryDumperName(StrDumperName):
    """The same in the type's binary form."""

    format = Format.BINARY


class TextLoader(PlainLoader):
    """Leaves a value as its text."""

    _oid = 25


class TextBinaryLoader(TextLoader):
    """Leaves the binary form of a type of text as text."""

    format = Format.BINARY


class BytesDumper(PlainDumper):
    """Writes `bytes` as bytea."""

    oid = 17


class BytesBinaryDumper(BytesDumper):
    """The same in the type's binary form."""

    format = Format.BINARY


class ByteaLoader(PlainLoader):
    """Makes `bytes` of bytea."""

    _oid = 17


class ByteaBinaryLoader(ByteaLoader):
    """The same of the type's binary form."""

    format = Format.BINARY


__all__ = [
    "ByteaBinaryLoader",
    "ByteaLoader",
    "BytesBinaryDumper",
    "BytesDumper",
    "StrBinaryDumper",
    "StrBinaryDumperName",
    "StrBinaryDumperVarchar",
    "StrDumper",
    "StrDumperName",
    "StrDumperUnknown",
    "StrDumperVarchar",
    "TextBinaryLoader",
    "TextLoader",
]
