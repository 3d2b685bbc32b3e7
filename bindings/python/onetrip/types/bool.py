"""Dumpers and loaders of `bool`, to build others on."""

from __future__ import annotations

from onetrip._base.adapting import Format, PlainDumper, PlainLoader


class BoolDumper(PlainDumper):
    """Writes `bool` as bool."""

    oid = 16


class BoolBinaryDumper(BoolDumper):
    """The same in the type's binary form."""

    format = Format.BINARY


class BoolLoader(PlainLoader):
    """Makes `bool` of bool."""

    _oid = 16


class BoolBinaryLoader(BoolLoader):
    """The same of the type's binary form."""

    format = Format.BINARY


__all__ = [
    "BoolBinaryDumper",
    "BoolBinaryLoader",
    "BoolDumper",
    "BoolLoader",
]
