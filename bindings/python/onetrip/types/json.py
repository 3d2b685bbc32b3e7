"""Objects that are written as `json` and `jsonb`."""

from onetrip.adapt import Json, Jsonb, set_json_dumps, set_json_loads

__all__ = ["Json", "Jsonb", "set_json_dumps", "set_json_loads"]
