"""The dialect `postgresql+onetrip`. It is SQLAlchemy's own for PostgreSQL; what is here is what differs by driver."""

from __future__ import annotations

import logging
from typing import Any

from sqlalchemy.dialects.postgresql._psycopg_common import (
    _PGDialect_common_psycopg,
    _PGExecutionContext_common_psycopg,
)
from sqlalchemy.dialects.postgresql.base import PGCompiler, PGDialect, PGIdentifierPreparer
from sqlalchemy.engine import URL

from onetrip import _native
from onetrip.sqlalchemy.types import COLSPECS
from onetrip.types.hstore import register_hstore
from onetrip.types.info import TypeInfo

_JSON_OIDS = (114, 3802)
_HSTORE = "SELECT oid::bigint, typarray::bigint FROM pg_catalog.pg_type WHERE oid = pg_catalog.to_regtype('hstore')"
_INET_OIDS = (650, 869)
# Where SQLAlchemy's own dialects put the server's notices.
_LOGGER = logging.getLogger("sqlalchemy.dialects.postgresql")


def _log_notice(notice: Any) -> None:
    _LOGGER.info("%s: %s", notice.severity, notice.message_primary)


class OnetripExecutionContext(_PGExecutionContext_common_psycopg):
    """Named cursors for `stream_results`; and after DDL, the other connections prepare their statements anew."""

    def pre_exec(self) -> None:
        """Before each statement."""
        dialect: Any = self.dialect
        if self.isddl:
            dialect._schema_version += 1
        connection: Any = self._dbapi_connection.dbapi_connection
        if connection.schema_version != dialect._schema_version:
            connection.forget_statements()
            connection.schema_version = dialect._schema_version


class OnetripDialect(_PGDialect_common_psycopg):
    """SQLAlchemy's dialect for `onetrip.connect`."""

    driver = "onetrip"
    default_paramstyle = "pyformat"

    supports_statement_cache = True
    supports_server_side_cursors = True
    supports_sane_multi_rowcount = True
    supports_native_json_serialization = True
    supports_native_json_deserialization = True
    dialect_injects_custom_json_deserializer = True

    execution_ctx_cls = OnetripExecutionContext
    statement_compiler = PGCompiler
    preparer = PGIdentifierPreparer
    colspecs = COLSPECS

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        self._schema_version = 0
        self._hstore: TypeInfo | None = None

    def initialize(self, connection: Any) -> None:
        """Looks, once for an engine, whether the database has `hstore`. Its values are dicts then, by the client; with
        `use_native_hstore=False`, by SQLAlchemy."""
        super().initialize(connection)
        row = connection.exec_driver_sql(_HSTORE).first()
        self._hstore = TypeInfo("hstore", *row) if row else None
        self._has_native_hstore = self.use_native_hstore and self._hstore is not None
        self._register_hstore(connection.connection.dbapi_connection)

    def _register_hstore(self, connection: Any) -> None:
        if self._hstore is None:
            return
        if self._has_native_hstore:
            register_hstore(self._hstore, self.get_driver_connection(connection))
        else:
            connection.register_loader(self._hstore.array_oid, lambda text: _native.loaded_array(text, ",", str))

    @classmethod
    def import_dbapi(cls) -> Any:
        """The package itself is the DB-API module."""
        import onetrip

        return onetrip

    @classmethod
    def get_async_dialect_cls(cls, url: URL) -> type[OnetripDialect]:
        """`create_async_engine` takes the same URL."""
        from onetrip.sqlalchemy.aio import OnetripAsyncDialect

        return OnetripAsyncDialect

    def create_connect_args(self, url: URL) -> tuple[list[Any], dict[str, Any]]:
        """Keywords of `onetrip.connect`."""
        arguments, keywords = super().create_connect_args(url)
        if self.client_encoding is not None:
            keywords["client_encoding"] = self.client_encoding
        return arguments, keywords

    def on_connect(self) -> Any:
        """What each new connection is told: its own loaders, where notices go, and the engine's isolation level."""

        def prepare(connection: Any) -> None:
            self.get_driver_connection(connection).add_notice_handler(_log_notice)
            if self._json_deserializer is not None:
                for oid in _JSON_OIDS:
                    connection.register_loader(oid, self._json_deserializer)
            if self._native_inet_types is False:
                for oid in _INET_OIDS:
                    connection.register_loader(oid, str)
            self._register_hstore(connection)
            if getattr(self, "isolation_level", None) is not None:
                self.set_isolation_level(connection, self.isolation_level)

        return prepare

    def set_isolation_level(self, dbapi_connection: Any, level: str) -> None:
        """By the session's default, so that BEGIN needs no words of its own."""
        if level == "AUTOCOMMIT":
            self._do_autocommit(dbapi_connection, True)
            return
        _outside(dbapi_connection, f"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level}")
        self._do_autocommit(dbapi_connection, False)

    def get_isolation_level(self, dbapi_connection: Any) -> str:
        """The transaction's, without beginning one."""
        before = dbapi_connection.transaction_status
        level: str = super().get_isolation_level(dbapi_connection)
        if before == 0:
            dbapi_connection.rollback()
        return level

    def set_readonly(self, connection: Any, value: bool) -> None:
        """Whether transactions only read; BEGIN says it."""
        connection.read_only = value

    def get_readonly(self, connection: Any) -> bool:
        """Whether transactions only read."""
        return bool(connection.read_only)

    def set_deferrable(self, connection: Any, value: bool) -> None:
        """Whether transactions wait for a snapshot that cannot fail; BEGIN says it."""
        connection.deferrable = value

    def get_deferrable(self, connection: Any) -> bool:
        """Whether transactions wait for a snapshot that cannot fail."""
        return bool(connection.deferrable)

    def do_ping(self, dbapi_connection: Any) -> bool:
        """One trip."""
        _outside(dbapi_connection, "SELECT 1")
        return True

    def is_disconnect(self, e: BaseException, connection: Any, cursor: Any) -> bool:
        """Whether the error is one of a connection that has ended."""
        return isinstance(e, self.loaded_dbapi.Error) and connection is not None and connection.closed

    def do_begin_twophase(self, connection: Any, xid: Any) -> None:
        """BEGIN travels with the first statement."""

    def do_prepare_twophase(self, connection: Any, xid: Any) -> None:
        """The first phase."""
        PGDialect.do_prepare_twophase(self, connection, str(xid))

    def do_rollback_twophase(self, connection: Any, xid: Any, is_prepared: bool = True, recover: bool = False) -> None:
        """The second phase, undone."""
        self._end_twophase(connection, "ROLLBACK", xid, is_prepared)

    def do_commit_twophase(self, connection: Any, xid: Any, is_prepared: bool = True, recover: bool = False) -> None:
        """The second phase."""
        self._end_twophase(connection, "COMMIT", xid, is_prepared)

    def do_recover_twophase(self, connection: Any) -> list[str]:
        """Transactions that wait for their second phase."""
        return PGDialect.do_recover_twophase(self, connection)  # type: ignore[no-any-return]

    def _end_twophase(self, connection: Any, word: str, xid: Any, is_prepared: bool) -> None:
        dbapi_connection = connection.connection.dbapi_connection
        if not is_prepared:
            (dbapi_connection.commit if word == "COMMIT" else dbapi_connection.rollback)()
            return
        dbapi_connection.rollback()  # of what recovery has begun by reading
        literal = str(xid).replace("'", "''")
        _outside(dbapi_connection, f"{word} PREPARED '{literal}'")


def _outside(connection: Any, statement: str) -> Any:
    """Runs a statement outside of a transaction; the first value of what it returns."""
    before = connection.autocommit
    if not before:
        connection.autocommit = True
    cursor = connection.cursor()
    try:
        cursor.execute(statement)
        return cursor.fetchone()[0] if cursor.description else None
    finally:
        cursor.close()
        if not before and not connection.closed:
            connection.autocommit = before
