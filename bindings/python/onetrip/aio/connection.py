"""The connection for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from onetrip import _native, errors, tpc
from onetrip.adapt import Format
from onetrip.aio.cursor import AsyncCursor
from onetrip.aio.lob import AsyncLobReader, AsyncLobWriter
from onetrip.aio.pipeline import AsyncPipeline
from onetrip.aio.server_cursor import AsyncServerCursor
from onetrip.aio.transport import Transport
from onetrip.aio.turns import WITHIN, Block, to_its_end
from onetrip.connection import OutputSource, _pairs
from onetrip.cursor import By, Params, Statement
from onetrip.errors import (
    CancellationTimeout,
    ConnectionClosed,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
)
from onetrip.info import ConnectionInfo
from onetrip.lob import _PIECE_BYTES as _FIRST_BYTES
from onetrip.lob import OBJECTS, LobColumn, Prefetch, Writing, _word
from onetrip.pipeline import _GOES_ON, OnError
from onetrip.session import IsolationLevel, Notify, SessionState, TransactionStatus
from onetrip.tpc import Xid
from onetrip.transaction import AsyncTransaction

if TYPE_CHECKING:
    from typing_extensions import Self

    from onetrip.rows import RowFactory

# What a statement whose task was cancelled may take to end. Beyond it the connection is closed.
_ABANDON_SECONDS = 10.0


class AsyncConnection(SessionState):
    """A session with a server. Tasks may share it: each call waits for those before it, and for the end of a block that
    has the connection for itself. What runs within such a block, in tasks that it has started too, is a part of it."""

    def __init__(
        self,
        transport: Transport,
        address: tuple[str, int | None],
        autocommit: bool,
        row_factory: RowFactory | None = None,
    ) -> None:
        super().__init__(autocommit)
        self.cursor_factory: type[AsyncCursor] = AsyncCursor
        self.server_cursor_factory: type[AsyncServerCursor] = AsyncServerCursor
        # The task that takes the rows of a stream.
        self._stream: asyncio.Task[Any] | None = None
        self._transport = transport
        self._address = address
        self._target: dict[str, str] = {}
        # The block that has the connection for itself.
        self._block: Block | None = None
        self._lock = asyncio.Lock()
        self._is_closed = False
        self._declared = 0
        self.row_factory = row_factory

    @classmethod
    async def connect(
        cls,
        conninfo: str = "",
        *,
        autocommit: bool = False,
        prepare_threshold: int | None = 0,
        context: Any = None,
        row_factory: RowFactory | None = None,
        cursor_factory: type[AsyncCursor] | None = None,
        **keywords: Any,
    ) -> Self:
        """Connects, as `onetrip.aio.connect`. `context` has the adapters that the connection begins with."""
        connection = await _connected(cls, conninfo, autocommit, row_factory, keywords)
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
    ) -> AsyncCursor:
        """A new cursor, as `onetrip.Connection.cursor`."""
        self._wire()
        factory = row_factory or self.row_factory
        made: AsyncCursor
        if name:
            make = self.server_cursor_factory
            made = make(self, name, row_factory=factory, scrollable=scrollable, withhold=withhold)
        else:
            made = self.cursor_factory(self, row_factory=factory)
        if binary:
            made.format = Format.BINARY
        return made

    async def execute(
        self, statement: Statement, params: Params = None, *, prepare: bool | None = None, binary: bool = False
    ) -> AsyncCursor:
        """Runs a statement by a new cursor, and returns that. `prepare` and `binary` are as for `Cursor.execute`."""
        cursor = self.cursor_factory(self, row_factory=self.row_factory)
        return await cursor.execute(statement, params, prepare=prepare, binary=binary or None)

    def pipeline(self, on_error: OnError = "abort") -> AsyncPipeline:
        """A block of operations that travel together, as `onetrip.Connection.pipeline`."""
        if on_error not in _GOES_ON:
            raise ValueError(f"on_error has to be 'abort' or 'continue', not {on_error!r}")
        return AsyncPipeline(self, on_error)

    async def commit(self) -> None:
        """Commits the transaction, if there is one. In a pipeline's block it waits for what was added before."""
        self._check_no_tpc("commit()")
        await self._end_transaction("COMMIT")

    async def rollback(self) -> None:
        """Rolls the transaction back, if there is one."""
        self._check_no_tpc("rollback()")
        await self._end_transaction("ROLLBACK")

    async def tpc_begin(self, xid: Xid | str) -> None:
        """Begins a transaction in two phases, as `onetrip.Connection.tpc_begin`."""
        self._wire()
        await self._run(self._tpc_begins(xid), None, False)

    async def tpc_prepare(self) -> None:
        """Ends its first phase."""
        self._wire()
        try:
            await self._run(self._tpc_prepares(), None, False)
        except errors.Error as error:
            self._tpc = None
            if error.sqlstate == "55000":
                raise NotSupportedError(str(error)) from error
            raise

    async def tpc_commit(self, xid: Xid | str | None = None) -> None:
        """Commits it, or another one that was prepared, by its name."""
        await self._end_tpc("COMMIT", xid)

    async def tpc_rollback(self, xid: Xid | str | None = None) -> None:
        """Rolls it back, or another one that was prepared, by its name."""
        await self._end_tpc("ROLLBACK", xid)

    async def tpc_recover(self) -> list[Xid]:
        """The transactions that are prepared and have not ended, of all databases."""
        (answer,) = await self._run(tpc.RECOVER, None, False)
        return [Xid.of_row(row) for row in answer.many(len(answer))]

    async def _end_tpc(self, word: str, xid: Xid | str | None) -> None:
        self._wire()
        statement = self._tpc_ends(word, xid)
        self._tpc = None
        if statement is None:
            await self._end_transaction(word)
        else:
            await self._run(statement, None, False)

    def transaction(self, savepoint_name: str | None = None, force_rollback: bool = False) -> AsyncTransaction:
        """A block that is a transaction, or a savepoint within one, as `onetrip.Connection.transaction`. Tasks that
        share the connection share the transaction."""
        self._wire()
        return AsyncTransaction(self, savepoint_name, force_rollback)

    async def large_objects(self, oids: Iterable[int], prefetch: Prefetch | None = None) -> list[AsyncLobReader[bytes]]:
        """Large objects to read, all by one trip, as `onetrip.Connection.large_objects`."""
        return await self._readers([OBJECTS._native(oid) for oid in oids], prefetch)

    async def large_values(
        self, column: LobColumn, keys: Iterable[Any], prefetch: Prefetch | None = None
    ) -> list[AsyncLobReader[Any]]:
        """Values of a column, to read in parts, as `onetrip.Connection.large_values`."""
        return await self._readers([column._native(key) for key in keys], prefetch)

    async def create_large_object(self, data: bytes = b"") -> int:
        """Makes a large object of bytes; its id."""
        (answer,) = await self._run("SELECT lo_from_bytea(0, %s)", (data[:_FIRST_BYTES],), self._begins)
        oid: int = (answer.one() or ())[0]
        await self.write_large_object(oid, data[_FIRST_BYTES:], _FIRST_BYTES)
        return oid

    async def write_large_object(self, oid: int, data: bytes, position: int = 0) -> None:
        """Writes into a large object, from a position on."""
        if data:
            async with self.large_object_writer(oid, position) as writer:
                await writer.write(data)

    def large_object_writer(self, oid: int, position: int = 0) -> AsyncLobWriter:
        """Writes a large object in parts, from a position on."""
        return AsyncLobWriter(self, Writing(oid, None, None, position))

    def large_value_writer(self, column: LobColumn, key: Any) -> AsyncLobWriter:
        """Writes a value in parts, as `onetrip.Connection.large_value_writer`."""
        return AsyncLobWriter(self, Writing(None, column, key, 0))

    async def _readers(self, natives: list[_native.Lob], prefetch: Prefetch | None) -> list[AsyncLobReader[Any]]:
        await self._prefetch(natives, prefetch)
        return [AsyncLobReader(self, native) for native in natives]

    async def _prefetch(self, natives: list[_native.Lob], prefetch: Prefetch | None) -> None:
        self._check_alone()
        async with self._lock:
            await self._fetched(self._wire().ask_lobs(natives, _word(prefetch), self._begins))

    async def _fetch_lob(self, native: _native.Lob, most: int) -> None:
        """Fetches parts until so many bytes or characters are here, or all."""
        self._check_alone()
        async with self._lock:
            while await self._fetched(self._wire().ask_lob(native, most, self._begins)):
                pass

    async def _fetched(self, fetch: _native.LobFetch | None) -> bool:
        if fetch is not None:
            await self._settled()
            self._wire().take_lobs(fetch)
        return fetch is not None

    def forget_statements(self) -> None:
        """Prepares all statements anew when they are next used: for programs that know that another connection has
        changed tables. It takes no trip. What this connection changes itself, it knows."""
        self._wire().forget_statements()

    async def cancel(self) -> None:
        """Asks the server to interrupt what another task runs on this connection."""
        self._check_not_prepared("cancel()")
        if self.closed:
            return
        packet = self._wire().cancel_packet()
        if packet is None:
            return
        host, port = self._address
        opened = asyncio.open_unix_connection(host) if port is None else asyncio.open_connection(host, port)
        reader, writer = await opened
        writer.write(bytes(packet))
        await reader.read()
        writer.close()

    async def cancel_safe(self, *, timeout: float = 30.0) -> None:
        """As `cancel`. The request is given up when it has taken so long."""
        self._check_not_prepared("cancel_safe()")
        try:
            await asyncio.wait_for(self.cancel(), timeout)
        except (asyncio.TimeoutError, TimeoutError):
            raise CancellationTimeout("the server did not take the request to cancel in time") from None

    async def collect_output(self, source: OutputSource = "dbms_output") -> bool:
        """What statements print comes along with their answers, as with `onetrip.Connection.collect_output`."""
        self._check_alone()
        async with self.pipeline("continue") as pipeline:
            pipeline._begins = False
            opening = await pipeline.execute(_native.Wire.opening(source))
        try:
            opening.result()
        except (errors.UndefinedFunction, errors.InvalidSchemaName):
            return False
        self._wire().collect_output(source)
        return True

    def lines(self) -> list[str]:
        """What statements have printed since the last call, as `onetrip.Connection.lines`."""
        return self._wire().lines()

    async def notifies(self, timeout: float | None = None, *, stop_after: int | None = None) -> AsyncIterator[Notify]:
        """The notifications that have come, and those that come until `timeout` seconds have passed, as
        `onetrip.Connection.notifies`. Statements may run meanwhile."""
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        count = 0
        while True:
            heard = self._heard()
            if heard is None:
                if stop_after is not None and count >= stop_after:
                    return
                left = None if deadline is None else deadline - loop.time()
                if left is not None and left <= 0:
                    return
                heard = await self.notification(left)
            if heard is not None:
                count += 1
                yield heard

    async def notification(self, timeout: float | None = None) -> Notify | None:
        """The next notification; waits for it, at most `timeout` seconds. Statements may run meanwhile."""
        try:
            return await asyncio.wait_for(self._notification(), timeout)
        except (asyncio.TimeoutError, TimeoutError):
            return None

    async def _notification(self) -> Notify:
        transport = self._transport
        while (heard := self._wire().notification()) is None:
            if transport.is_lost:
                raise OperationalError("the connection has ended")
            transport.heard.clear()
            await transport.heard.wait()
        return Notify(*heard)

    @property
    def backend_pid(self) -> int | None:
        """Process id of the server's side."""
        return self._wire().backend

    @property
    def info(self) -> ConnectionInfo:
        """Where the connection leads and how it stands."""
        return ConnectionInfo(self, self._target)

    @property
    def trips(self) -> int:
        """Round trips since the session was open."""
        return self._wire().trips

    async def set_autocommit(self, value: bool) -> None:
        """As `autocommit`."""
        self.autocommit = value

    async def set_isolation_level(self, value: int | IsolationLevel | None) -> None:
        """As `isolation_level`."""
        self.isolation_level = value

    async def set_read_only(self, value: bool | None) -> None:
        """As `read_only`."""
        self.read_only = value

    async def set_deferrable(self, value: bool | None) -> None:
        """As `deferrable`."""
        self.deferrable = value

    @property
    def broken(self) -> bool:
        """Whether the connection was lost, rather than closed by the program."""
        return not self._is_closed and self._transport.is_lost

    @property
    def closed(self) -> bool:
        """Whether the connection has ended."""
        return self._is_closed or self._transport.is_lost

    async def close(self) -> None:
        """Ends the session; an open transaction is rolled back by the server."""
        if self._is_closed:
            return
        self._is_closed = True
        if not self._transport.is_lost and self._transport.transport is not None:
            self._transport.wire.terminate()
            self._transport.flush()
            self._transport.transport.close()

    def terminate(self) -> None:
        """Ends the session at once, for those who cannot await."""
        self._is_closed = True
        if self._transport.transport is not None:
            self._transport.transport.abort()

    async def __aenter__(self) -> AsyncConnection:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Commits, or rolls back after an exception; and closes."""
        try:
            if kind is None:
                if not self.closed:
                    await self.commit()
            elif not self.closed:
                with contextlib.suppress(errors.Error):  # the exception on its way tells more
                    await self.rollback()
        finally:
            await self.close()

    def _wire(self) -> _native.Wire:
        if self._is_closed:
            raise ConnectionClosed("the connection is closed")
        return self._transport.wire

    def _own_block(self) -> AsyncPipeline | None:
        """The pipeline's block that the caller is a part of."""
        block = self._block
        if block is None or all(one is not block for one in WITHIN.get()):
            return None
        if not isinstance(block, AsyncPipeline):
            raise ProgrammingError("a COPY is under way: end its block first")
        return block._innermost()

    def _check_alone(self) -> None:
        """Raises where the caller would wait for the end of a block that it is itself a part of."""
        if self._block is not None and self._own_block() is not None:
            raise ProgrammingError("a pipeline is open, and this cannot be part of it: end its block first")

    def _native_part(self) -> _native.Wire:
        return self._wire()

    def _status(self) -> int:
        return self._transport.wire.status

    def _heard(self) -> Notify | None:
        heard = self._wire().notification()
        return None if heard is None else Notify(*heard)

    def _in_pipeline(self) -> bool:
        return isinstance(self._block, AsyncPipeline)

    def _is_outside(self) -> bool:
        """Whether the next statement will be outside of a transaction."""
        if self._own_block() is not None:
            return not self._wire().block_in_transaction
        return self._wire().status == TransactionStatus.IDLE

    async def _command(self, statement: str) -> None:
        """Runs a statement of our own, in a pipeline's block too."""
        block = self._own_block()
        if block is not None:
            await block._run(statement)
        else:
            await self._run(statement, None, self._begins)

    async def _undo(self, statements: list[str]) -> None:
        """Runs what undoes a transaction or a part of it, as the blocking connection does."""
        block = self._own_block()
        if block is None:
            await self._run("; ".join(statements), None, False)
        else:
            await block._interrupted("; ".join(statements))

    async def _end_transaction(self, statement: str) -> None:
        wire = self._wire()
        if self._transactions:
            word = statement.lower()
            raise ProgrammingError(f"{word}() is not for a block of transaction(), which ends by itself or by Rollback")
        block = self._own_block()
        if block is not None:
            operation = await (block.commit() if statement == "COMMIT" else block.rollback())
            await block.process(operation)
            operation.result()
        elif wire.status != TransactionStatus.IDLE:
            await self._run(statement, None, False)

    async def _run(self, statement: str, params: Params, begins: bool, how: int = 0) -> list[_native.Answer]:
        if self._block is not None:
            self._check_alone()
        if self._stream is not None and self._stream is asyncio.current_task():
            raise ProgrammingError("the rows of stream() are under way: take all of them, or close it first")
        async with self._lock:
            self._wire().ask(statement, params, begins, how)
            return await self._answers()

    async def _answers(self) -> list[_native.Answer]:
        await self._settled()
        if self._is_heard:
            self._tell()
        return self._wire().answers()

    async def _settled(self) -> None:
        try:
            await self._transport.answered()
        except asyncio.CancelledError:
            # The answer is on its way and belongs to nobody: the connection cannot be used before it has come.
            await to_its_end(self._abandon())
            raise

    async def _run_many(self, statement: str, rows: Iterable[Any], by: By, how: int) -> int:
        self._check_alone()
        async with self._lock:
            wire, transport = self._wire(), self._transport
            many = wire.many(statement, rows, self._begins, by, how)
            try:
                while True:
                    wait, number = wire.step(many)
                    if wait == "done":
                        return number
                    if wait == "room":
                        await transport.flushed()
                    else:
                        await transport.answered(number if wait == "answer" else None)
            except asyncio.CancelledError:
                wire.give_up(many)
                await to_its_end(self._abandon())
                raise

    async def _abandon(self) -> None:
        """Interrupts what runs, whose answers nobody wants, and waits for them. Where they do not come, the connection
        ends."""
        try:
            await asyncio.wait_for(self._interrupted(), _ABANDON_SECONDS)
        except errors.Error:
            pass  # it has ended by itself
        except (asyncio.TimeoutError, TimeoutError):
            self.terminate()

    async def _interrupted(self) -> None:
        with contextlib.suppress(OSError, errors.Error):
            await self.cancel()
        await self._transport.answered()


async def connect(
    conninfo: str = "",
    *,
    autocommit: bool = False,
    prepare_threshold: int | None = 0,
    context: Any = None,
    row_factory: RowFactory | None = None,
    cursor_factory: type[AsyncCursor] | None = None,
    **keywords: Any,
) -> AsyncConnection:
    """Connects as `onetrip.connect` does, without blocking the event loop."""
    return await AsyncConnection.connect(
        conninfo,
        autocommit=autocommit,
        prepare_threshold=prepare_threshold,
        context=context,
        row_factory=row_factory,
        cursor_factory=cursor_factory,
        **keywords,
    )


Made = TypeVar("Made", bound=AsyncConnection)


async def _connected(
    cls: type[Made], conninfo: str, autocommit: bool, row_factory: RowFactory | None, keywords: dict[str, Any]
) -> Made:
    pairs = _pairs(keywords)
    loop = asyncio.get_running_loop()
    candidates = await loop.run_in_executor(None, _native.addresses, conninfo, pairs)
    failed: Exception | None = None
    for any_will_do in (False, True):
        for candidate in candidates:
            try:
                transport = await _reach(candidate)
                connection = cls(transport, candidate.address, autocommit, row_factory)
                connection._target = dict(candidate.target())
                if any_will_do or await _suits(candidate, connection):
                    return connection
                await connection.close()
                # That a server was the wrong one tells more than that another was down.
                failed = _WrongKind(f"the server at {candidate.address} is not {candidate.wanted}")
            except (OSError, asyncio.TimeoutError, errors.Error) as error:
                if isinstance(error, errors.Error) and (error.sqlstate or "").startswith("28"):
                    raise  # another server would refuse the password as well
                failed = failed or error
        if not (isinstance(failed, _WrongKind) and candidates[0].wanted == "prefer-standby"):
            break
    if isinstance(failed, errors.Error):
        raise failed
    raise OperationalError(f"cannot connect: {failed or 'no server is named'}") from failed


class _WrongKind(OperationalError):
    """A server is not what target_session_attrs asks for."""


async def _suits(candidate: _native.Candidate, connection: AsyncConnection) -> bool:
    """Whether a server is of the kind that is wanted."""
    if candidate.wanted == "any":
        return True
    is_standby = connection.parameter_status("in_hot_standby")
    if is_standby is not None:  # servers from 14 on tell without being asked
        is_read_only = is_standby == "on" or connection.parameter_status("default_transaction_read_only") == "on"
        return candidate.accepts(is_standby == "on", is_read_only)
    asked = "SELECT pg_is_in_recovery(), current_setting('transaction_read_only')::bool"
    (answer,) = await connection._run(asked, None, False)
    return candidate.accepts(*(answer.one() or ()))


async def _reach(candidate: _native.Candidate) -> Transport:
    """Opens a session with one server, with TLS or without it as sslmode says."""
    failed: Exception | None = None
    for tls in candidate.ways():
        try:
            return await asyncio.wait_for(_open(candidate, tls), candidate.timeout)
        except (OSError, asyncio.TimeoutError, errors.Error) as error:
            failed = failed or error
            # The other way helps where this one failed, or where the server lets nobody in by it.
            if isinstance(error, errors.Error) and error.sqlstate not in (None, "28000"):
                break
    assert failed is not None
    raise failed


async def _open(candidate: _native.Candidate, tls: bool) -> Transport:
    wire = _native.Wire(candidate, tls)
    host, port = candidate.address
    loop = asyncio.get_running_loop()
    if port is None:
        _, transport = await loop.create_unix_connection(lambda: Transport(wire), host)
    else:
        _, transport = await loop.create_connection(lambda: Transport(wire), host, port)
    try:
        if wire.status == TransactionStatus.UNKNOWN:
            await transport.answered()
        if wire.status == TransactionStatus.UNKNOWN:
            raise OperationalError("the server closed the connection before it was open")
    except BaseException:
        if transport.transport is not None:
            transport.transport.close()
        raise
    return transport
