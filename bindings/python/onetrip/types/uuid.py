"""Dumpers and loaders of `UUID`, to build others on."""

from __future__ import annotations

from onetrip._base.adapting import Format, PlainDumper, PlainLoader


class UUIDDumper(PlainDumper):
    """Writes `UUID` as uuid."""

    oid = 2950


class UUIDBinaryDumper(UUIDDumper):
    """The same in the type's binary form."""

    format = Format.BINARY


class UUIDLoader(PlainLoader):
    """Makes `UUID` of uuid."""

    _oid = 2950


class UUIDBinaryLoader(UUIDLoader):
    """The same of the type's binary form."""

    format = Format.BINARY


__all__ = [
    "UUIDBinaryDumper",
    "UUIDBinaryLoader",
    "UUIDDumper",
    "UUIDLoader",
]
