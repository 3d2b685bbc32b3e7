"""The types that every server has, by name and id."""

from onetrip.adapt import TypesRegistry, adapters

types: TypesRegistry = adapters.types

__all__ = ["adapters", "types"]
