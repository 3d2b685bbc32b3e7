"""The connection for asyncio, over the same core: an `asyncio.Protocol`, so that every event loop will do.

async with await onetrip.aio.connect("postgres://ann@db.example/shop") as connection:
    rows = await (await connection.execute("SELECT %s", (1,))).fetchall()
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

from onetrip import _native, errors
from onetrip.connection import Notify, TransactionStatus
from onetrip.cursor import Params, Row
from onetrip.dbapi import Column
from onetrip.errors import InterfaceError, OperationalError, ProgrammingError
from onetrip.pipeline import _GOES_ON, OnError

# Executions that are written before the socket is given the time to take them.
_BATCH = 256


class _Transport(asyncio.Protocol):
    """Moves the bytes of a `Wire`."""

    def __init__(self, wire: _native.Wire) -> None:
        self.wire = wire
        self.transport: asyncio.Transport | None = None
        self.waiter: asyncio.Future[None] | None = None
        self.operation: int | None = None
        self.is_lost = False
        self._may_write = asyncio.Event()
        self._may_write.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]
        self.flush()

    def data_received(self, data: bytes) -> None:
        try:
            is_settled = self.wire.received(data)
            self.flush()
            if is_settled or self._is_answered():
                self._wake(None)
        except errors.Error as error:
            self._wake(error)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        self._may_write.set()
        with contextlib.suppress(errors.Error):
            self.wire.lost()
        self._wake(None)

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    def flush(self) -> None:
        """Sends what is to be sent."""
        output = self.wire.output()
        if output and self.transport is not None:
            self.transport.write(output)

    async def flushed(self) -> None:
        """Sends, and waits while the other side does not take it."""
        self.flush()
        await self._may_write.wait()

    async def answered(self, operation: int | None = None) -> None:
        """Waits until all is answered, or an operation."""
        self.operation = operation
        self.waiter = asyncio.get_running_loop().create_future()
        self.flush()
        # All may have come while nobody waited.
        is_answered = self.wire.received(b"") if operation is None else self._is_answered()
        if self.is_lost or is_answered:
            self._wake(None)
        try:
            await self.waiter
        finally:
            self.waiter = None

    def _is_answered(self) -> bool:
        return self.operation is not None and self.wire.is_answered(self.operation)

    def _wake(self, error: Exception | None) -> None:
        waiter = self.waiter
        if waiter is not None and not waiter.done():
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)


class AsyncCursor:
    """Runs statements and gives out their rows, as `onetrip.Cursor`."""

    def __init__(self, connection: AsyncConnection) -> None:
        self.connection = connection
        self.arraysize = 1
        self._answers: list[_native.Answer] = []
        self._count = -1

    async def execute(self, statement: str, params: Params = None) -> AsyncCursor:
        """Runs a statement; without parameters it may be several."""
        self._answers = []
        self._answers = await self.connection._run(statement, params, self.connection._begins)
        return self

    async def executemany(self, statement: str, rows: Iterable[Any]) -> None:
        """Runs a statement once for each of `rows`, in one block."""
        self._answers = []
        async with self.connection.pipeline() as pipeline:
            operations = await pipeline._execute_many(statement, list(rows))
        self._count = sum(max(operation.rowcount, 0) for operation in operations)

    async def fetchone(self) -> Row | None:
        """The next row; None at the end."""
        return self._rows().one()

    async def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next rows."""
        return self._rows().many(self.arraysize if size is None else size)

    async def fetchall(self) -> list[Row]:
        """All rows that are left."""
        return self._rows().many(len(self._rows()))

    async def __aiter__(self) -> AsyncIterator[Row]:
        while (row := self._rows().one()) is not None:
            yield row

    def nextset(self) -> bool | None:
        """Steps to the result of the next statement; None where there is none."""
        if len(self._answers) < 2:
            return None
        self._answers.pop(0)
        return True

    async def close(self) -> None:
        """Gives the rows back."""
        self._answers = []

    @property
    def description(self) -> list[Column] | None:
        """The columns of the result; None where there is none."""
        columns = self._answers[0].columns if self._answers else None
        return None if columns is None else [Column.of(*column) for column in columns]

    @property
    def rowcount(self) -> int:
        """Rows that were returned or changed; -1 where the statement counts none."""
        return self._answers[0].count if self._answers else self._count

    @property
    def statusmessage(self) -> str | None:
        """What the server says that it did."""
        return self._answers[0].tag if self._answers else None

    async def __aenter__(self) -> AsyncCursor:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _rows(self) -> _native.Answer:
        if not self._answers or self._answers[0].columns is None:
            raise ProgrammingError("there are no rows: the last statement returned none, or none was run")
        return self._answers[0]


class AsyncOperation:
    """One operation of a pipeline. Its result can be had once it is answered."""

    __slots__ = ("_answer", "_pipeline", "id")

    def __init__(self, pipeline: AsyncPipeline, number: int) -> None:
        self.id = number
        self._pipeline = pipeline
        self._answer: _native.Answer | None = None

    def result(self) -> AsyncOperation:
        """Raises the operation's error; returns the operation if it ran."""
        if self._answer is None:
            self._answer = self._pipeline.connection._wire().take(self.id)
        return self

    @property
    def rowcount(self) -> int:
        """Rows that were returned or changed."""
        return self._done().count

    def fetchone(self) -> Row | None:
        """The next row of the result; None at the end."""
        return self._done().one()

    def fetchall(self) -> list[Row]:
        """All rows of the result that are left."""
        answer = self._done()
        return answer.many(len(answer))

    def _done(self) -> _native.Answer:
        if self._answer is None:
            self.result()
        assert self._answer is not None
        return self._answer


class AsyncPipeline:
    """A block: `async with connection.pipeline() as p`. It has the connection for itself until it ends."""

    def __init__(self, connection: AsyncConnection, on_error: OnError) -> None:
        self.connection = connection
        self.on_error = on_error
        self.operations: list[AsyncOperation] = []
        self._begins = False

    async def execute(self, statement: str, params: Params = None) -> AsyncOperation:
        """Adds a statement. It waits only where the other side does not take any more."""
        operation = AsyncOperation(self, self.connection._wire().push(statement, params, self._begins))
        self._begins = False
        self.operations.append(operation)
        if len(self.operations) % _BATCH == 0:
            await self.connection._transport.flushed()
        return operation

    async def commit(self) -> AsyncOperation:
        """Adds COMMIT; its result raises where the transaction was rolled back instead."""
        return await self._end_transaction("COMMIT")

    async def rollback(self) -> AsyncOperation:
        """Adds ROLLBACK."""
        return await self._end_transaction("ROLLBACK")

    async def process(self, up_to: AsyncOperation | None = None) -> None:
        """Waits until an operation and those before it are answered; all, if none is named."""
        last = up_to or (self.operations[-1] if self.operations else None)
        if last is not None:
            self.connection._wire().request_replies()
            await self.connection._transport.answered(last.id)

    async def __aenter__(self) -> AsyncPipeline:
        await self.connection._lock.acquire()
        try:
            wire = self.connection._wire()
            wire.begin_block(_GOES_ON[self.on_error])
        except BaseException:
            self.connection._lock.release()
            raise
        self._begins = self.connection._begins and wire.status == 0
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        wire, transport = self.connection._wire(), self.connection._transport
        try:
            wire.end_block()
            if self.operations:
                await transport.answered()
        finally:
            self.connection._lock.release()
        failed = wire.first_failed() if kind is None and self.on_error == "abort" else None
        for operation in self.operations:
            if operation.id == failed and operation._answer is None:
                operation.result()

    async def _execute_many(self, statement: str, rows: Sequence[Any]) -> list[AsyncOperation]:
        for at in range(0, len(rows)):
            await self.execute(statement, rows[at])
        return self.operations

    async def _end_transaction(self, statement: str) -> AsyncOperation:
        self._begins = False
        operation = await self.execute(statement)
        self._begins = self.connection._begins
        return operation


class AsyncConnection:
    """A session with a server. Tasks may share it: each call waits for those before it."""

    def __init__(self, transport: _Transport, address: tuple[str, int | None], autocommit: bool) -> None:
        self._transport = transport
        self._address = address
        self._begins = not autocommit
        self._lock = asyncio.Lock()
        self._is_closed = False

    def cursor(self) -> AsyncCursor:
        """A new cursor."""
        return AsyncCursor(self)

    async def execute(self, statement: str, params: Params = None) -> AsyncCursor:
        """Runs a statement by a new cursor, and returns that."""
        return await AsyncCursor(self).execute(statement, params)

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

    def notifies(self) -> list[Notify]:
        """The notifications that have come with other answers, or by themselves."""
        heard = []
        while (one := self._wire().notification()) is not None:
            heard.append(Notify(*one))
        return heard

    def parameter_status(self, name: str) -> str | None:
        """A setting that the server reports."""
        return self._wire().setting(name)

    @property
    def transaction_status(self) -> TransactionStatus:
        """Where the session stood when the server was last ready."""
        return TransactionStatus(self._transport.wire.status)

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
            wire = self._wire()
            wire.ask(statement, params, begins)
            try:
                await self._transport.answered()
            except asyncio.CancelledError:
                # The answer is on its way and belongs to nobody: the connection cannot be used before it has come.
                await asyncio.shield(self._abandon())
                raise
            return wire.answers()

    async def _abandon(self) -> None:
        with contextlib.suppress(OSError, errors.Error):
            await self.cancel()
            await self._transport.answered()


async def connect(conninfo: str = "", *, autocommit: bool = False, **keywords: Any) -> AsyncConnection:
    """Connects as `onetrip.connect` does, without blocking the event loop."""
    pairs = [(name, str(value)) for name, value in keywords.items() if value is not None]
    loop = asyncio.get_running_loop()
    failed: Exception | None = None
    for candidate in await loop.run_in_executor(None, _native.addresses, conninfo, pairs):
        for tls in candidate.ways():
            try:
                transport = await asyncio.wait_for(_open(candidate, tls), candidate.timeout)
                return AsyncConnection(transport, candidate.address, autocommit)
            except (OSError, asyncio.TimeoutError, errors.Error) as error:
                failed = failed or error
    if isinstance(failed, errors.Error):
        raise failed
    raise OperationalError(f"cannot connect: {failed or 'no server is named'}") from failed


async def _open(candidate: _native.Candidate, tls: bool) -> _Transport:
    wire = _native.Wire(candidate, tls)
    host, port = candidate.address
    loop = asyncio.get_running_loop()
    if port is None:
        _, transport = await loop.create_unix_connection(lambda: _Transport(wire), host)
    else:
        _, transport = await loop.create_connection(lambda: _Transport(wire), host, port)
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
