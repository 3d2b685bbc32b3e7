# Made from aio/calls.py by tests/test_twins.py: change that one.
"""What a connection does, but for connecting and the waiting itself."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, overload

from onetrip import errors, tpc
from onetrip._base.connection import BaseConnection
from onetrip._base.lob import OBJECTS, PIECE_BYTES, LobColumn, Prefetch, Writing
from onetrip.adapt import Format
from onetrip.cursor import By, Cursor, Params, Statement
from onetrip.errors import Error, NotSupportedError, PipelineAborted, ProgrammingError
from onetrip.lob import LobReader, LobWriter
from onetrip.rows import CursorRow, Row
from onetrip.server_cursor import ServerCursor
from onetrip.session import IsolationLevel, TransactionStatus
from onetrip.tpc import Xid
from onetrip.transaction import Transaction

if TYPE_CHECKING:
    from typing_extensions import Self

    from onetrip import _native
    from onetrip.rows import RowFactory


class Calls(BaseConnection[Row]):
    """The calls of a connection. Those that wait need what the connection itself brings."""

    cursor_factory: type[Cursor[Row]]
    server_cursor_factory: type[ServerCursor[Row]]

    def __init__(self, autocommit: bool, target: Iterable[tuple[str, str]], row_factory: Any) -> None:
        super().__init__(autocommit, target, row_factory)
        self.cursor_factory = Cursor
        self.server_cursor_factory = ServerCursor

    @overload
    def cursor(self, *, binary: bool = False) -> Cursor[Row]: ...

    @overload
    def cursor(self, *, binary: bool = False, row_factory: RowFactory[CursorRow]) -> Cursor[CursorRow]: ...

    @overload
    def cursor(
        self, name: str, *, binary: bool = False, scrollable: bool | None = None, withhold: bool = False
    ) -> ServerCursor[Row]: ...

    @overload
    def cursor(
        self,
        name: str,
        *,
        binary: bool = False,
        row_factory: RowFactory[CursorRow],
        scrollable: bool | None = None,
        withhold: bool = False,
    ) -> ServerCursor[CursorRow]: ...

    def cursor(
        self,
        name: str = "",
        *,
        binary: bool = False,
        row_factory: RowFactory[Any] | None = None,
        scrollable: bool | None = None,
        withhold: bool = False,
    ) -> Cursor[Any]:
        """A new cursor, of `cursor_factory`; with a name, one that the server keeps, of `server_cursor_factory`. Its
        rows are what `row_factory` makes, or that of the connection. With `binary`, values come in their types' binary
        form; those of types for which that is not known here are bytes."""
        self._check_usable()
        factory = row_factory or self.row_factory
        made: Cursor[Any]
        if name:
            make = self.server_cursor_factory
            made = make(self.connection, name, row_factory=factory, scrollable=scrollable, withhold=withhold)
        else:
            made = self.cursor_factory(self.connection, row_factory=factory)
        if binary:
            made.format = Format.BINARY
        return made

    def execute(
        self, query: Statement, params: Params = None, *, prepare: bool | None = None, binary: bool = False
    ) -> Cursor[Row]:
        """Runs a statement by a new cursor, and returns that. `prepare` and `binary` are as for `Cursor.execute`."""
        cursor = self.cursor_factory(self.connection, row_factory=self.row_factory)
        if binary:
            cursor.format = Format.BINARY
        if prepare is None:
            return cursor.execute(query, params)
        return cursor.execute(query, params, prepare=prepare)

    def executemany(self, query: Statement, params_seq: Iterable[Any], *, by: By = "auto") -> Cursor[Row]:
        """Runs a statement once for each of `params_seq` by a new cursor, and returns that."""
        cursor = self.cursor_factory(self.connection, row_factory=self.row_factory)
        cursor.executemany(query, params_seq, by=by)
        return cursor

    def commit(self) -> None:
        """Commits the transaction, if there is one. In a pipeline's block it waits for what was added before."""
        self._check_no_tpc("commit()")
        self._end_transaction("COMMIT")

    def rollback(self) -> None:
        """Rolls the transaction back, if there is one."""
        self._check_no_tpc("rollback()")
        self._end_transaction("ROLLBACK")

    def tpc_begin(self, xid: Xid | str) -> None:
        """Begins a transaction in two phases, by its name: one of `xid()`, or text. It takes a trip."""
        self._check_no_block("tpc_begin()")
        self._check_usable()
        self._run_outside(self._tpc_begins(xid))

    def tpc_prepare(self) -> None:
        """Ends its first phase: from here on, the server can commit it whatever happens."""
        self._check_usable()
        try:
            self._run_outside(self._tpc_prepares())
        except Error as error:
            self._tpc = None
            if error.sqlstate == "55000":
                raise NotSupportedError(str(error)) from error
            raise

    def tpc_commit(self, xid: Xid | str | None = None) -> None:
        """Commits it, prepared or not; or another one that was prepared, by its name."""
        self._end_tpc("COMMIT", xid)

    def tpc_rollback(self, xid: Xid | str | None = None) -> None:
        """Rolls it back, prepared or not; or another one that was prepared, by its name."""
        self._end_tpc("ROLLBACK", xid)

    def tpc_recover(self) -> list[Xid]:
        """The transactions that are prepared and have not ended, of all databases."""
        answer = self._run_outside(tpc.RECOVER)
        return [Xid.of_row(row) for row in answer.many(len(answer))]

    def _end_tpc(self, word: str, xid: Xid | str | None) -> None:
        self._check_usable()
        statement = self._tpc_ends(word, xid)
        self._tpc = None
        if statement is None:
            self._end_transaction(word)
        else:
            self._run_outside(statement)

    def _run_outside(self, statement: str, params: Params = None) -> _native.Answer:
        """Runs a statement that cannot be part of a pipeline's block, and begins no transaction."""
        self._check_alone()
        (answer,) = self._run(statement, params, False)
        return answer

    def transaction(self, savepoint_name: str | None = None, force_rollback: bool = False) -> Transaction:
        """A block that is a transaction, or a savepoint within one: kept at its end, undone if it raises or with
        `force_rollback`. BEGIN travels with its first statement. `raise Rollback` undoes it without an error."""
        self._check_usable()
        return Transaction(self.connection, savepoint_name, force_rollback)

    def large_objects(self, oids: Iterable[int], prefetch: Prefetch | None = None) -> list[LobReader[bytes]]:
        """Large objects to read, all by one trip. `prefetch` says what comes along: -1 nothing, 0 the length, n so
        many bytes of each; with "auto" they share the memory for reading ahead. None leaves it to the connection's
        `lob_prefetch`."""
        return self._readers([OBJECTS._native(oid) for oid in oids], prefetch)

    def large_values(
        self, column: LobColumn, keys: Iterable[Any], prefetch: Prefetch | None = None
    ) -> list[LobReader[Any]]:
        """Values of a column, by their keys, to read in parts as `large_objects` are: bytes, or text by characters.
        What the column itself says about `prefetch` goes before what this call says."""
        return self._readers([column._native(key) for key in keys], prefetch)

    def create_large_object(self, data: bytes = b"") -> int:
        """Makes a large object of bytes; its id."""
        self._check_alone()
        (answer,) = self._run("SELECT lo_from_bytea(0, %s)", (data[:PIECE_BYTES],), self._begins)
        oid: int
        (oid,) = answer.one()
        self.write_large_object(oid, data[PIECE_BYTES:], PIECE_BYTES)
        return oid

    def write_large_object(self, oid: int, data: bytes, position: int = 0) -> None:
        """Writes into a large object, from a position on."""
        if data:
            with self.large_object_writer(oid, position) as writer:
                writer.write(data)

    def large_object_writer(self, oid: int, position: int = 0) -> LobWriter:
        """Writes a large object in parts, from a position on."""
        self._check_usable()
        return LobWriter(self.connection, Writing(oid, None, None, position))

    def large_value_writer(self, column: LobColumn, key: Any) -> LobWriter:
        """Writes a value of bytea or text in parts: it takes the place of what the row with this key had."""
        self._check_usable()
        return LobWriter(self.connection, Writing(None, column, key, 0))

    def _readers(self, natives: list[_native.Lob], prefetch: Prefetch | None) -> list[LobReader[Any]]:
        self._prefetch(natives, prefetch)
        return [LobReader(self.connection, native) for native in natives]

    def set_autocommit(self, value: bool) -> None:
        """As `autocommit`."""
        self.autocommit = value

    def set_isolation_level(self, value: int | IsolationLevel | None) -> None:
        """As `isolation_level`."""
        self.isolation_level = value

    def set_read_only(self, value: bool | None) -> None:
        """As `read_only`."""
        self.read_only = value

    def set_deferrable(self, value: bool | None) -> None:
        """As `deferrable`."""
        self.deferrable = value

    def close(self) -> None:
        """Ends the session; an open transaction is rolled back by the server."""
        raise NotImplementedError

    def _run(self, statement: str, params: Params, begins: bool, how: int = 0) -> list[_native.Answer]:
        """Runs a statement, or several without parameters, outside of a pipeline's block."""
        raise NotImplementedError

    def _prefetch(self, natives: list[_native.Lob], prefetch: Prefetch | None) -> None:
        """Fetches what is wanted of large values, by one trip."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Commits, or rolls back after an exception; and closes, unless it is one of a pool in psycopg's form."""
        try:
            if kind is None:
                if not self._is_closed:
                    self.commit()
            elif not self.closed:
                with contextlib.suppress(errors.Error):  # the exception on its way tells more
                    self.rollback()
        finally:
            if self._pool is None:  # else the pool has it back in the end
                self.close()

    def _is_outside(self) -> bool:
        """Whether the next statement will be outside of a transaction."""
        native = self._usable()
        if self._own_block() is not None:
            return not native.block_in_transaction
        return bool(native.status == TransactionStatus.IDLE)

    def _command(self, statement: str, is_end: bool = False) -> None:
        """Runs a statement of our own, in a pipeline's block too. At the end of a transaction a block goes on as after
        `sync`."""
        block = self._own_block()
        if block is None:
            self._run(statement, None, self._begins)
        elif is_end:
            operation = block.execute(statement)
            block.sync()
            operation.result()
        else:
            block._run(statement)

    def _ask(self, statement: str, params: Params, begins: bool) -> _native.Answer:
        """The answer to a statement of our own, in a pipeline's block too."""
        block = self._own_block()
        if block is not None:
            operation = block._add(statement, params, 0)
            operation._came()
            done: _native.Answer = operation._done()
            return done
        (answer,) = self._run(statement, params, begins)
        return answer

    def _undo(self, statements: list[str]) -> None:
        """Runs what undoes a transaction or a part of it. After an error the server skips the rest of a pipeline's
        block, which is therefore ended first, and begun anew."""
        block = self._own_block()
        if block is None:
            self._run("; ".join(statements), None, False)
        else:
            block._interrupted("; ".join(statements))

    def _end_transaction(self, statement: str) -> None:
        native = self._usable()
        if self._transactions:
            word = statement.lower()
            raise ProgrammingError(f"{word}() is not for a block of transaction(), which ends by itself or by Rollback")
        block = self._own_block()
        if block is None:
            if native.status != TransactionStatus.IDLE:
                self._run(statement, None, False)
                self._transactions_ended += 1
            return
        self._transactions_ended += 1
        if statement == "COMMIT":
            operation = block.commit()
            # What failed before is raised here, and what follows runs again.
            block.sync()
            operation.result()
            return
        operation = block.rollback()
        operation._came()
        try:
            operation.result()
        except PipelineAborted:
            # An operation before it has failed.
            block._interrupted(None)
            if native.status != TransactionStatus.IDLE:
                block._interrupted("ROLLBACK")
