"""The dialect for `create_async_engine`: onetrip's connection for event loops, as SQLAlchemy's adapters want it."""

from __future__ import annotations

from typing import Any

from sqlalchemy.connectors.asyncio import (
    AsyncAdapt_dbapi_connection,
    AsyncAdapt_dbapi_cursor,
    AsyncAdapt_dbapi_module,
    AsyncAdapt_dbapi_ss_cursor,
    AsyncAdapt_terminate,
)
from sqlalchemy.util.concurrency import await_only

import onetrip
from onetrip import aio
from onetrip.sqlalchemy.dialect import OnetripDialect


class _Cursor(AsyncAdapt_dbapi_cursor):
    __slots__ = ()

    def nextset(self) -> bool | None:
        stepped: bool | None = self._cursor.nextset()
        if stepped and self._cursor.description:
            self._rows.extend(await_only(self._cursor.fetchall()))
        return stepped


class _ServerCursor(AsyncAdapt_dbapi_ss_cursor):
    __slots__ = ("_name",)

    def __init__(self, connection: Any, name: str) -> None:
        self._name = name
        super().__init__(connection)

    def _make_new_cursor(self, connection: Any) -> Any:
        return connection.cursor(self._name)


class _Connection(AsyncAdapt_terminate, AsyncAdapt_dbapi_connection):
    __slots__ = ("schema_version",)

    _cursor_cls = _Cursor
    _ss_cursor_cls = _ServerCursor

    def __init__(self, dbapi: Any, connection: Any) -> None:
        super().__init__(dbapi, connection)
        self.schema_version = 0

    def cursor(self, name: str = "") -> Any:
        return _ServerCursor(self, name) if name else _Cursor(self)

    def forget_statements(self) -> None:
        self._connection.forget_statements()

    def register_loader(self, oid: int, loader: Any) -> None:
        self._connection.register_loader(oid, loader)

    @property
    def autocommit(self) -> bool:
        return bool(self._connection.autocommit)

    @autocommit.setter
    def autocommit(self, on: bool) -> None:
        self._connection.autocommit = on

    @property
    def read_only(self) -> bool | None:
        return self._connection.read_only  # type: ignore[no-any-return]

    @read_only.setter
    def read_only(self, on: bool | None) -> None:
        self._connection.read_only = on

    @property
    def deferrable(self) -> bool | None:
        return self._connection.deferrable  # type: ignore[no-any-return]

    @deferrable.setter
    def deferrable(self, on: bool | None) -> None:
        self._connection.deferrable = on

    @property
    def transaction_status(self) -> Any:
        return self._connection.transaction_status

    @property
    def info(self) -> Any:
        return self._connection.info

    @property
    def closed(self) -> bool:
        return bool(self._connection.closed)

    async def _terminate_graceful_close(self) -> None:
        await self._connection.close()

    def _terminate_force_close(self) -> None:
        self._connection.terminate()


class _Module(AsyncAdapt_dbapi_module):
    """The package, whose `connect` gives adapted connections."""

    def __init__(self) -> None:
        super().__init__(onetrip)
        for name in set(onetrip.__all__) - {"connect"}:
            setattr(self, name, getattr(onetrip, name))
        self.__version__ = onetrip.__version__

    def connect(self, *arguments: Any, **keywords: Any) -> _Connection:
        creator = keywords.pop("async_creator_fn", aio.connect)
        return _Connection(self, await_only(creator(*arguments, **keywords)))


class OnetripAsyncDialect(OnetripDialect):
    """SQLAlchemy's dialect for `onetrip.aio.connect`."""

    is_async = True
    has_terminate = True
    supports_statement_cache = True

    @classmethod
    def import_dbapi(cls) -> Any:
        """The package, adapted."""
        return _Module()

    def do_terminate(self, dbapi_connection: Any) -> None:
        """Ends a connection that cannot be awaited any more."""
        dbapi_connection.terminate()

    def get_driver_connection(self, connection: Any) -> Any:
        """The connection that is adapted."""
        return connection._connection
