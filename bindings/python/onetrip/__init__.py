"""A PostgreSQL client that spends as few round trips as the work allows: DB-API 2.0, and pipelines.

with onetrip.connect("postgres://ann@db.example/shop") as connection:
    connection.execute("UPDATE item SET price = %s WHERE id = %s", (7, 1))
"""

from __future__ import annotations

import importlib

from onetrip import _native, errors, rows, sql

_native.set_errors(errors.from_native)

from onetrip._base.connection import BaseConnection  # noqa: E402
from onetrip._capabilities import Capabilities, capabilities  # noqa: E402
from onetrip.adapt import Json, Jsonb, adapters, register_dumper, register_loader  # noqa: E402
from onetrip.connection import Connection, connect  # noqa: E402
from onetrip.connection_pool import (  # noqa: E402
    ConnectionPool,
    NullConnectionPool,
    PoolClosed,
    PoolTimeout,
    TooManyRequests,
)
from onetrip.copying import Copy  # noqa: E402
from onetrip.cursor import ClientCursor, Cursor, RawCursor  # noqa: E402
from onetrip.dbapi import (  # noqa: E402
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    Column,
    Date,
    DateFromTicks,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
    apilevel,
    paramstyle,
    threadsafety,
)
from onetrip.errors import (  # noqa: E402
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    PipelineAborted,
    PipelineUndone,
    ProgrammingError,
    Warning,
)
from onetrip.info import ConnectionInfo  # noqa: E402
from onetrip.lob import LobColumn, LobReader, LobWriter, Prefetch  # noqa: E402
from onetrip.pipeline import Operation, Pipeline  # noqa: E402
from onetrip.pool import Pool  # noqa: E402
from onetrip.server_cursor import RawServerCursor, ServerCursor  # noqa: E402
from onetrip.session import IsolationLevel, Notify, TransactionStatus  # noqa: E402
from onetrip.tpc import Xid  # noqa: E402
from onetrip.transaction import Rollback, Transaction  # noqa: E402

from onetrip.aio import (  # noqa: E402 # isort: skip (it needs all of the above)
    AsyncClientCursor,
    AsyncConnection,
    AsyncConnectionPool,
    AsyncCopy,
    AsyncCursor,
    AsyncNullConnectionPool,
    AsyncPipeline,
    AsyncRawCursor,
    AsyncRawServerCursor,
    AsyncServerCursor,
    AsyncTransaction,
)

for _name in ("composite", "enum", "hstore", "multirange", "range"):
    importlib.import_module(f"onetrip.types.{_name}")  # each registers what it reads and writes

__version__ = _native.VERSION

__all__ = [
    "adapters", "apilevel", "AsyncClientCursor", "AsyncConnection", "AsyncConnectionPool", "AsyncCopy", "AsyncCursor",
    "AsyncNullConnectionPool", "AsyncPipeline", "AsyncRawCursor",
    "AsyncRawServerCursor", "AsyncServerCursor", "AsyncTransaction", "BaseConnection", "BINARY", "Binary", "Capabilities",
    "capabilities", "ClientCursor", "Column",
    "connect", "Connection", "ConnectionInfo", "ConnectionPool", "Copy", "Cursor",
    "DatabaseError", "DataError", "Date", "DateFromTicks",
    "DATETIME", "Error", "errors", "IntegrityError", "InterfaceError", "InternalError", "IsolationLevel", "Json",
    "Jsonb", "LobColumn", "LobReader", "LobWriter", "Notify", "NotSupportedError", "NullConnectionPool", "NUMBER", "Operation",
    "OperationalError", "paramstyle", "Pipeline", "PipelineAborted", "PipelineUndone", "Pool", "PoolClosed",
    "PoolTimeout", "Prefetch", "ProgrammingError", "RawCursor", "RawServerCursor", "register_dumper", "register_loader",
    "Rollback", "ROWID", "rows", "ServerCursor", "sql", "STRING", "threadsafety", "Time", "TimeFromTicks", "Timestamp",
    "TimestampFromTicks", "TooManyRequests", "Transaction", "TransactionStatus", "Warning", "Xid",
]  # fmt: skip
