"""Types of PostgreSQL that have no class of their own in Python."""

from onetrip.typeinfo import TypeInfo

__all__ = ["TypeInfo"]
