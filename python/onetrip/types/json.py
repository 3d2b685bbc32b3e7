"""Objects that are written as `json` and `jsonb`."""

from onetrip.adapt import Json, Jsonb

__all__ = ["Json", "Jsonb"]
