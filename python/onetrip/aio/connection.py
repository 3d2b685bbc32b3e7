"""The connection for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from onetrip import _native, errors
from onetrip.aio.cursor import AsyncCursor
from onetrip.aio.lob import AsyncLobReader, AsyncLobWriter
from onetrip.aio.pipeline import AsyncPipeline
from onetrip.aio.server_cursor import AsyncServerCursor
from onetrip.aio.transport import Transport
from onetrip.connection import Notify, OutputSource, TransactionStatus
from onetrip.cursor import By, Params
from onetrip.errors import Diagnostic, InterfaceError, OperationalError, ProgrammingError
from onetrip.lob import _PIECE_BYTES as _FIRST_BYTES
from onetrip.lob import OBJECTS, LobColumn, Prefetch, Writing, _word
from onetrip.pipeline import _GOES_ON, OnError

if TYPE_CHECKING:
    from onetrip.adapt import Loader
    from onetrip.rows import RowFactory


class AsyncConnection:
    """A session with a server. Tasks may share it: each call waits for those before it."""

    def __init__(
        self,
        transport: Transport,
        address: tuple[str, int | None],
        autocommit: bool,
        row_factory: RowFactory | None = None,
    ) -> None:
        self._transport = transport
        self._address = address
        self._begins = not autocommit
        self._lock = asyncio.Lock()
        self._is_closed = False
        self._declared = 0
        self.row_factory = row_factory

    def cursor(
        self,
        name: str = "",
        *,
        row_factory: RowFactory | None = None,
        scrollable: bool | None = None,
        withhold: bool = False,
    ) -> AsyncCursor:
        """A new cursor, as `onetrip.Connection.cursor`."""
        factory = row_factory or self.row_factory
        if name:
            return AsyncServerCursor(self, name, row_factory=factory, scrollable=scrollable, withhold=withhold)
        return AsyncCursor(self, row_factory=factory)

    async def execute(self, statement: str, params: Params = None) -> AsyncCursor:
        """Runs a statement by a new cursor, and returns that."""
        return await AsyncCursor(self, row_factory=self.row_factory).execute(statement, params)

    def pipeline(self, on_error: OnError = "abort") -> AsyncPipeline:
        """A block of operations that travel together, as `onetrip.Connection.pipeline`."""
        if on_error not in _GOES_ON:
            raise ValueError(f"on_error has to be 'abort' or 'continue', not {on_error!r}")
        return AsyncPipeline(self, on_error)

    async def commit(self) -> None:
        """Commits the transaction, if there is one."""
        if self._wire().status != TransactionStatus.IDLE:
            await self._run("COMMIT", None, False)

    async def rollback(self) -> None:
        """Rolls the transaction back, if there is one."""
        if self._wire().status != TransactionStatus.IDLE:
            await self._run("ROLLBACK", None, False)

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
        async with self._lock:
            await self._fetched(self._wire().ask_lobs(natives, _word(prefetch), self._begins))

    async def _fetch_lob(self, native: _native.Lob, most: int) -> None:
        """Fetches parts until so many bytes or characters are here, or all."""
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

    def register_loader(self, oid: int, loader: Loader) -> None:
        """Makes values of a type by a function of their text, on this connection."""
        self._wire().loaders[oid] = loader

    async def cancel(self) -> None:
        """Asks the server to interrupt what another task runs on this connection."""
        packet = self._wire().cancel_packet()
        if packet is None:
            return
        host, port = self._address
        opened = asyncio.open_unix_connection(host) if port is None else asyncio.open_connection(host, port)
        reader, writer = await opened
        writer.write(bytes(packet))
        await reader.read()
        writer.close()

    async def collect_output(self, source: OutputSource = "dbms_output") -> bool:
        """What statements print comes along with their answers, as with `onetrip.Connection.collect_output`."""
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

    def notices(self) -> list[Diagnostic]:
        """The notices that came since the last call."""
        return [Diagnostic(fields) for fields in self._wire().notices()]

    def notifies(self) -> list[Notify]:
        """The notifications that have come with other answers, or by themselves."""
        heard = []
        while (one := self._wire().notification()) is not None:
            heard.append(Notify(*one))
        return heard

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

    def parameter_status(self, name: str) -> str | None:
        """A setting that the server reports."""
        return self._wire().setting(name)

    @property
    def trips(self) -> int:
        """Round trips since the session was open."""
        return self._wire().trips

    @property
    def transaction_status(self) -> TransactionStatus:
        """Where the session stood when the server was last ready."""
        return TransactionStatus(self._transport.wire.status)

    @property
    def autocommit(self) -> bool:
        """Whether each statement is a transaction of its own."""
        return not self._begins

    @autocommit.setter
    def autocommit(self, on: bool) -> None:
        if self._wire().status != TransactionStatus.IDLE:
            raise ProgrammingError("autocommit cannot change within a transaction: commit or roll back first")
        self._begins = not on

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
            if not self.closed:
                await (self.commit() if kind is None else self.rollback())
        finally:
            await self.close()

    def _wire(self) -> _native.Wire:
        if self._is_closed:
            raise InterfaceError("the connection is closed")
        return self._transport.wire

    async def _run(self, statement: str, params: Params, begins: bool) -> list[_native.Answer]:
        async with self._lock:
            self._wire().ask(statement, params, begins)
            return await self._answers()

    async def _answers(self) -> list[_native.Answer]:
        await self._settled()
        return self._wire().answers()

    async def _settled(self) -> None:
        try:
            await self._transport.answered()
        except asyncio.CancelledError:
            # The answer is on its way and belongs to nobody: the connection cannot be used before it has come.
            await asyncio.shield(self._abandon())
            raise

    async def _run_many(self, statement: str, rows: Iterable[Any], by: By) -> int:
        async with self._lock:
            wire, transport = self._wire(), self._transport
            many = wire.many(statement, rows, self._begins, by)
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
                await asyncio.shield(self._abandon())
                raise

    async def _abandon(self) -> None:
        with contextlib.suppress(OSError, errors.Error):
            await self.cancel()
            await self._transport.answered()


async def connect(
    conninfo: str = "", *, autocommit: bool = False, row_factory: RowFactory | None = None, **keywords: Any
) -> AsyncConnection:
    """Connects as `onetrip.connect` does, without blocking the event loop."""
    pairs = [(name, str(value)) for name, value in keywords.items() if value is not None]
    loop = asyncio.get_running_loop()
    candidates = await loop.run_in_executor(None, _native.addresses, conninfo, pairs)
    failed: Exception | None = None
    for any_will_do in (False, True):
        for candidate in candidates:
            try:
                transport = await _reach(candidate)
                connection = AsyncConnection(transport, candidate.address, autocommit, row_factory)
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
