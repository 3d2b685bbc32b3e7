"""The connection for asyncio, over the same core: an `asyncio.Protocol`, so that every event loop will do.

async with await onetrip.aio.connect("postgres://ann@db.example/shop") as connection:
    rows = await (await connection.execute("SELECT %s", (1,))).fetchall()
"""

from __future__ import annotations

from onetrip.aio.connection import AsyncConnection, connect
from onetrip.aio.connection_pool import AsyncConnectionPool, AsyncNullConnectionPool
from onetrip.aio.copying import AsyncCopy
from onetrip.aio.cursor import AsyncClientCursor, AsyncCursor, AsyncRawCursor
from onetrip.aio.lob import AsyncLobReader, AsyncLobWriter
from onetrip.aio.pipeline import AsyncOperation, AsyncPipeline
from onetrip.aio.pool import AsyncPool
from onetrip.aio.server_cursor import AsyncRawServerCursor, AsyncServerCursor
from onetrip.aio.transaction import AsyncTransaction

__all__ = [
    "AsyncClientCursor", "AsyncConnection", "AsyncConnectionPool", "AsyncCopy", "AsyncCursor", "AsyncLobReader",
    "AsyncLobWriter", "AsyncNullConnectionPool", "AsyncOperation", "AsyncPipeline", "AsyncPool", "AsyncRawCursor",
    "AsyncRawServerCursor", "AsyncServerCursor",
    "AsyncTransaction", "connect",
]  # fmt: skip
