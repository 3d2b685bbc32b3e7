"""How the tests of values compare one of this package's with one of psycopg's."""

from __future__ import annotations

import datetime as dt
from typing import Any


def shown(value: Any) -> Any:
    """All that a value says, its class and its zone included; ranges have classes of their own here."""
    if isinstance(value, list):
        return [shown(one) for one in value]
    if type(value).__name__ == "Range":
        return "range", shown(value.lower), shown(value.upper), value.bounds
    if type(value).__name__ == "Multirange":
        return "multirange", [shown(one) for one in value]
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.replace(tzinfo=None), value.fold, value.utcoffset(), str(value.tzinfo), value.tzname()
    return type(value), repr(value)
