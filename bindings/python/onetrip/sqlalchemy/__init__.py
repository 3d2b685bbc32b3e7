"""SQLAlchemy over onetrip: `create_engine("postgresql+onetrip://...")`, and the same URL for `create_async_engine`."""

from __future__ import annotations

from onetrip.sqlalchemy.aio import OnetripAsyncDialect
from onetrip.sqlalchemy.dialect import OnetripDialect

__all__ = ["OnetripAsyncDialect", "OnetripDialect"]
