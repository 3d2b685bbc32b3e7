"""The connection of DB-API 2.0."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from onetrip import _native, errors, tpc
from onetrip.adapt import Format
from onetrip.copying import Copy
from onetrip.cursor import By, Cursor, Params, Statement
from onetrip.errors import CancellationTimeout, ConnectionClosed, Error, NotSupportedError, ProgrammingError
from onetrip.info import ConnectionInfo
from onetrip.lob import _PIECE_BYTES as _FIRST_BYTES
from onetrip.lob import OBJECTS, LobColumn, LobReader, LobWriter, Prefetch, Writing, _word
from onetrip.pipeline import OnError, Pipeline
from onetrip.server_cursor import ServerCursor
from onetrip.session import IsolationLevel, Notify, SessionState, TransactionStatus
from onetrip.tpc import Xid
from onetrip.transaction import Transaction

if TYPE_CHECKING:
    from typing_extensions import Self

    from onetrip.rows import RowFactory


OutputSource = Literal["dbms_output", "functions"]


class Connection(SessionState):
    """A session with a server. Unless `autocommit` is on, the first statement begins a transaction: BEGIN travels
    with it and costs no trip."""

    # DB-API's optional extension: the exceptions, for code that has only the connection.
    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(
        self, session: _native.Session, *, autocommit: bool = False, row_factory: RowFactory | None = None
    ) -> None:
        super().__init__(autocommit)
        self.cursor_factory: type[Cursor] = Cursor
        self.server_cursor_factory: type[ServerCursor] = ServerCursor
        self._native: _native.Session | None = session
        self._target = dict(session.target())
        self._pipeline: Pipeline | None = None
        self._copy: Copy | None = None
        self._stream: Cursor | None = None
        self._declared = 0
        # How much of others' DDL it has heard of: for whoever counts that.
        self.schema_version = 0
        self.row_factory = row_factory

    @classmethod
    def connect(
        cls,
        conninfo: str = "",
        *,
        autocommit: bool = False,
        prepare_threshold: int | None = 0,
        context: Any = None,
        row_factory: RowFactory | None = None,
        cursor_factory: type[Cursor] | None = None,
        **keywords: Any,
    ) -> Self:
        """Connects, as `onetrip.connect`. `context` has the adapters that the connection begins with."""
        session = _native.Session.connect(conninfo, _pairs(keywords))
        connection = cls(session, autocommit=autocommit, row_factory=row_factory)
        connection._set_up(prepare_threshold, context, cursor_factory)
        return connection

    def cursor(
        self,
        name: str = "",
        *,
        binary: bool = False,
        row_factory: RowFactory | None = None,
        scrollable: bool | None = None,
        withhold: bool = False,
    ) -> Cursor:
        """A new cursor, of `cursor_factory`; with a name, one that the server keeps, of `server_cursor_factory`. Its
        rows are what `row_factory` makes, or that of the connection. With `binary`, values come in their types' binary
        form; those of types for which that is not known here are bytes."""
        self._session()
        factory = row_factory or self.row_factory
        made: Cursor
        if name:
            make = self.server_cursor_factory
            made = make(self, name, row_factory=factory, scrollable=scrollable, withhold=withhold)
        else:
            made = self.cursor_factory(self, row_factory=factory)
        if binary:
            made.format = Format.BINARY
        return made

    def execute(
        self, statement: Statement, params: Params = None, *, prepare: bool | None = None, binary: bool = False
    ) -> Cursor:
        """Runs a statement by a new cursor, and returns that. `prepare` and `binary` are as for `Cursor.execute`."""
        cursor = self.cursor_factory(self, row_factory=self.row_factory)
        if prepare is None and not binary:
            return cursor.execute(statement, params)
        return cursor.execute(statement, params, prepare=prepare, binary=binary or None)

    def executemany(self, statement: Statement, rows: Iterable[Any], *, by: By = "auto") -> Cursor:
        """Runs a statement once for each of `rows` by a new cursor, and returns that."""
        cursor = self.cursor_factory(self, row_factory=self.row_factory)
        cursor.executemany(statement, rows, by=by)
        return cursor

    def pipeline(self, on_error: OnError = "abort") -> Pipeline:
        """A block of operations that travel together. After an error, with "abort" those behind it do not run; with
        "continue" they do, and those before it hold."""
        self._session()
        return Pipeline(self, on_error)

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
        self._session()
        self._run_outside(self._tpc_begins(xid))

    def tpc_prepare(self) -> None:
        """Ends its first phase: from here on, the server can commit it whatever happens."""
        self._session()
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
        (answer,) = self._alone().run(tpc.RECOVER, None, False)
        return [Xid.of_row(row) for row in answer.many(len(answer))]

    def _end_tpc(self, word: str, xid: Xid | str | None) -> None:
        self._session()
        statement = self._tpc_ends(word, xid)
        self._tpc = None
        if statement is None:
            self._end_transaction(word)
        else:
            self._run_outside(statement)

    def _run_outside(self, statement: str) -> None:
        """Runs what begins or ends a transaction by itself."""
        self._alone().run(statement, None, False)

    def transaction(self, savepoint_name: str | None = None, force_rollback: bool = False) -> Transaction:
        """A block that is a transaction, or a savepoint within one: kept at its end, undone if it raises or with
        `force_rollback`. BEGIN travels with its first statement. `raise Rollback` undoes it without an error."""
        self._session()
        return Transaction(self, savepoint_name, force_rollback)

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
        (answer,) = self._alone().run("SELECT lo_from_bytea(0, %s)", (data[:_FIRST_BYTES],), self._begins)
        oid: int = (answer.one() or ())[0]
        self.write_large_object(oid, data[_FIRST_BYTES:], _FIRST_BYTES)
        return oid

    def write_large_object(self, oid: int, data: bytes, position: int = 0) -> None:
        """Writes into a large object, from a position on."""
        if data:
            with self.large_object_writer(oid, position) as writer:
                writer.write(data)

    def large_object_writer(self, oid: int, position: int = 0) -> LobWriter:
        """Writes a large object in parts, from a position on."""
        self._session()
        return LobWriter(self, Writing(oid, None, None, position))

    def large_value_writer(self, column: LobColumn, key: Any) -> LobWriter:
        """Writes a value of bytea or text in parts: it takes the place of what the row with this key had."""
        self._session()
        return LobWriter(self, Writing(None, column, key, 0))

    def _readers(self, natives: list[_native.Lob], prefetch: Prefetch | None) -> list[LobReader[Any]]:
        self._alone().prefetch(natives, _word(prefetch), self._begins)
        return [LobReader(self, native) for native in natives]

    def forget_statements(self) -> None:
        """Prepares all statements anew when they are next used: for programs that know that another connection has
        changed tables. It takes no trip. What this connection changes itself, it knows."""
        self._session().forget_statements()

    def cancel(self) -> None:
        """Interrupts what another thread runs on this connection."""
        self._check_not_prepared("cancel()")
        if self._native is not None:
            self._native.cancel()

    def cancel_safe(self, *, timeout: float = 30.0) -> None:
        """As `cancel`. The request is given up when it has taken so long."""
        self._check_not_prepared("cancel_safe()")
        if self._native is not None and not self._native.cancel(timeout):
            raise CancellationTimeout("the server did not take the request to cancel in time")

    def collect_output(self, source: OutputSource = "dbms_output") -> bool:
        """From now on, what statements print into the session's buffer comes along with the answer of the call that
        printed it: orafce's "dbms_output", or the "functions" of `onetrip serve`. False where there is no buffer."""
        return self._alone().collect_output(source)

    def lines(self) -> list[str]:
        """What statements have printed since the last call: the texts of notices and what `collect_output` collects. It
        takes no trip."""
        return self._session().lines()

    def notifies(self, timeout: float | None = None, *, stop_after: int | None = None) -> Iterator[Notify]:
        """The notifications that have come, and those that come until `timeout` seconds have passed: for ever without
        it, and 0 does not wait. After `stop_after` of them, those are the last that have come by then."""
        deadline = None if timeout is None else time.monotonic() + timeout
        count = 0
        while True:
            session = self._session()
            left = _WAIT if deadline is None else max(deadline - time.monotonic(), 0.0)
            is_enough = stop_after is not None and count >= stop_after
            heard = session.notification(0.0 if is_enough else min(left, _WAIT))
            if heard is not None:
                count += 1
                yield Notify(*heard)
            elif is_enough or (deadline is not None and time.monotonic() >= deadline):
                return

    def set_timeout(self, seconds: float | None) -> None:
        """Longest wait of a call: then the server is asked to cancel, which raises `errors.QueryCanceled`."""
        self._session().set_timeout(seconds)

    @property
    def backend_pid(self) -> int | None:
        """Process id of the server's side."""
        return self._any_session().backend

    @property
    def trips(self) -> int:
        """Round trips since the session was open."""
        return self._any_session().trips

    @property
    def info(self) -> ConnectionInfo:
        """Where the connection leads and how it stands."""
        return ConnectionInfo(self, self._target)

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

    @property
    def broken(self) -> bool:
        """Whether the connection was lost, rather than closed by the program."""
        return self._native is not None and self._native.closed

    @property
    def closed(self) -> bool:
        """Whether the connection has ended."""
        return self._native is None or self._native.closed

    def close(self) -> None:
        """Ends the session; an open transaction is rolled back by the server."""
        if self._native is not None:
            self._native.close()
            self._native = None

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Commits, or rolls back after an exception; and closes."""
        try:
            if kind is None:
                if self._native is not None:
                    self.commit()
            elif not self.closed:
                with contextlib.suppress(errors.Error):  # the exception on its way tells more
                    self.rollback()
        finally:
            self.close()

    def _session(self) -> _native.Session:
        if self._copy is not None:
            raise ProgrammingError("a COPY is under way: end its block first")
        if self._stream is not None:
            raise ProgrammingError("the rows of stream() are under way: take all of them, or close it first")
        return self._any_session()

    def _any_session(self) -> _native.Session:
        """The session, for what sends nothing or belongs to a COPY."""
        if self._native is None:
            raise ConnectionClosed("the connection is closed")
        return self._native

    def _alone(self) -> _native.Session:
        """The session, for what cannot be part of a pipeline's block."""
        session = self._session()
        if self._pipeline is not None:
            raise ProgrammingError("a pipeline is open, and this cannot be part of it: end its block first")
        return session

    def _native_part(self) -> _native.Session:
        return self._any_session()

    def _status(self) -> int:
        return self._native.status if self._native else TransactionStatus.UNKNOWN

    def _heard(self) -> Notify | None:
        heard = self._any_session().notification(0.0)
        return None if heard is None else Notify(*heard)

    def _in_pipeline(self) -> bool:
        return self._pipeline is not None

    def _run_heard(self, statement: str, params: Params, how: int) -> list[_native.Answer]:
        """Runs a statement, and tells the handlers what came with its answer."""
        try:
            return self._session().run(statement, params, self._begins, how)
        finally:
            if not self.closed:
                self._tell()

    def _is_outside(self) -> bool:
        """Whether the next statement will be outside of a transaction."""
        session = self._session()
        if self._pipeline is not None:
            return not session.block_in_transaction
        return session.status == TransactionStatus.IDLE

    def _command(self, statement: str) -> None:
        """Runs a statement of our own, in a pipeline's block too."""
        if self._pipeline is not None:
            self._pipeline._run(statement)
        else:
            self._session().run(statement, None, self._begins)

    def _end_transaction(self, statement: str) -> None:
        session = self._session()
        if self._transactions:
            word = statement.lower()
            raise ProgrammingError(f"{word}() is not for a block of transaction(), which ends by itself or by Rollback")
        if self._pipeline is not None:
            pipeline = self._pipeline
            (pipeline.commit() if statement == "COMMIT" else pipeline.rollback()).result()
        elif session.status != TransactionStatus.IDLE:
            session.run(statement, None, False)

    def _undo(self, statements: list[str]) -> None:
        """Runs what undoes a transaction or a part of it. After an error the server skips the rest of a pipeline's
        block, which is therefore ended first, and begun anew."""
        pipeline, session = self._pipeline, self._session()
        if pipeline is None:
            session.run("; ".join(statements), None, False)
        else:
            pipeline._interrupted(lambda: session.run("; ".join(statements), None, False))


# Longer waits are cut, so that signals and other threads have their turn; in seconds.
_WAIT = 0.5


def _pairs(keywords: dict[str, Any]) -> list[tuple[str, str]]:
    return [(name, str(value)) for name, value in keywords.items() if value is not None]


def connect(
    conninfo: str = "",
    *,
    autocommit: bool = False,
    prepare_threshold: int | None = 0,
    context: Any = None,
    row_factory: RowFactory | None = None,
    cursor_factory: type[Cursor] | None = None,
    **keywords: Any,
) -> Connection:
    """Connects by a URL or libpq's keywords, as text or as arguments; PG* variables say what these leave open.

    Three keywords are onetrip's own: `pipelining` ("on", "off"), `statement_cache` (how many stay prepared) and
    `lob_prefetch` (what comes along of large values: -1 nothing, 0 the length, n bytes or characters, or "auto")."""
    return Connection.connect(
        conninfo,
        autocommit=autocommit,
        prepare_threshold=prepare_threshold,
        context=context,
        row_factory=row_factory,
        cursor_factory=cursor_factory,
        **keywords,
    )
