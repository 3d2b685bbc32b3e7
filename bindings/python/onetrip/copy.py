"""COPY, by psycopg's name of the module."""

from onetrip.aio.copying import AsyncCopy
from onetrip.copying import Copy

__all__ = ["AsyncCopy", "Copy"]
