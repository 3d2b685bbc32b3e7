"""The connection for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from onetrip import _native, errors
from onetrip._base import forking
from onetrip._base.connection import OutputSource, pairs
from onetrip._base.lob import word
from onetrip.aio.calls import AsyncCalls
from onetrip.aio.copying import AsyncCopy
from onetrip.aio.cursor import AsyncCursor, By, Params
from onetrip.aio.pipeline import AsyncPipeline, OnError
from onetrip.aio.transport import Transport
from onetrip.aio.turns import WITHIN, Turns, to_its_end
from onetrip.errors import (
    CancellationTimeout,
    ConnectionClosed,
    ConnectionTimeout,
    InterfaceError,
    OperationalError,
    ProgrammingError,
)
from onetrip.rows import Row
from onetrip.session import Notify, TransactionStatus

if TYPE_CHECKING:
    from typing_extensions import Self

    from onetrip._base.lob import Prefetch
    from onetrip.rows import RowFactory

# What a statement whose task was cancelled may take to end. Beyond it the connection is closed.
_ABANDON_SECONDS = 10.0


class AsyncConnection(AsyncCalls[Row]):
    """A session with a server. Tasks may share it: each call waits for those before it, and for the end of a COPY or of
    the rows of `stream`. While the block of a pipeline is open, what any task runs is a part of it."""

    def __init__(
        self,
        transport: Transport,
        address: tuple[str, int | None],
        autocommit: bool,
        row_factory: RowFactory[Row] | None = None,
    ) -> None:
        super().__init__(autocommit, (), row_factory)
        # The task that takes the rows of a stream.
        self._stream: asyncio.Task[Any] | None = None
        self._transport = transport
        self._address = address
        self._lock = Turns()
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def connect(
        cls,
        conninfo: str = "",
        *,
        autocommit: bool = False,
        prepare_threshold: int | None = 0,
        context: Any = None,
        row_factory: RowFactory[Row] | None = None,
        cursor_factory: type[AsyncCursor[Row]] | None = None,
        **keywords: Any,
    ) -> Self:
        """Connects, as `onetrip.aio.connect`. `context` has the adapters that the connection begins with."""
        connection = await _connected(cls, conninfo, autocommit, row_factory, keywords)
        connection._set_up(prepare_threshold, context, cursor_factory)
        return connection

    def pipeline(self, on_error: OnError = "abort") -> AsyncPipeline:
        """A block of operations that travel together. After an error, with "abort" those behind it do not run; with
        "continue" they do, and those before it hold."""
        self._usable()
        return AsyncPipeline(self, on_error)

    def _pipeline_alone(self) -> AsyncPipeline:
        """A block of our own, for whose end other tasks wait."""
        block = AsyncPipeline(self, "abort")
        block._is_alone = True
        return block

    async def _prefetch(self, natives: list[_native.Lob], prefetch: Prefetch | None) -> None:
        self._check_alone()
        async with self._lock:
            await self._fetched(self._wire().ask_lobs(natives, word(prefetch), self._begins))

    async def _read_lob(self, native: _native.Lob, most: int) -> Any:
        """So many bytes or characters of a large value, or all that are left."""
        self._check_alone()
        async with self._lock:
            while await self._fetched(self._wire().ask_lob(native, most, self._begins)):
                pass
        return native.take(most)

    async def _fetched(self, fetch: _native.LobFetch | None) -> bool:
        if fetch is not None:
            await self._settled()
            self._wire().take_lobs(fetch)
        return fetch is not None

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
        block = self._pipeline_alone()
        block.on_error = "continue"
        async with block as pipeline:
            pipeline._begins = False
            opening = await pipeline.execute(_native.Wire.opening(source))
        try:
            opening.result()
        except (errors.UndefinedFunction, errors.InvalidSchemaName):
            return False
        self._wire().collect_output(source)
        return True

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

    def fileno(self) -> int:
        """The number of the socket."""
        self._wire()
        transport = self._transport.transport
        if transport is None or self._transport.is_lost:
            raise ConnectionClosed(self._end)
        number: int = transport.get_extra_info("socket").fileno()
        return number

    @property
    def broken(self) -> bool:
        """Whether the connection was lost, rather than closed by the program."""
        return not self._is_closed and self.closed

    @property
    def closed(self) -> bool:
        """Whether the connection has ended."""
        transport = self._transport
        # The server's last word may have come before the end of the stream.
        return self._is_closed or transport.is_lost or transport.wire.status == TransactionStatus.UNKNOWN

    async def close(self) -> None:
        """Ends the session; an open transaction is rolled back by the server. With `close_returns` of a pool, gives the
        connection back."""
        if self._pool is not None and self._pool.close_returns:
            await self._pool.putconn(self)
            return
        if self._is_closed:
            return
        self._is_closed = True
        if not self._transport.is_lost and self._transport.transport is not None:
            self._transport.wire.terminate()
            self._transport.flush()
            self._transport.transport.close()

    def terminate(self) -> None:
        """Ends the session at once, for those who cannot await."""
        if self._end is forking.FORKED:
            return
        self._is_closed = True
        if self._transport.transport is not None:
            self._transport.transport.abort()

    def _leave_to_parent(self) -> None:
        """This is a child process: the session is its parent's."""
        if not self._is_closed:
            forking.LEFT.append(self._transport)
            self._pool, self._is_closed, self._end = None, True, forking.FORKED

    def _wire(self) -> _native.Wire:
        if self._is_closed:
            raise ConnectionClosed(self._end)
        # Replies come in the loop that has opened it: from another one, the caller would wait forever.
        if asyncio._get_running_loop() not in (self._loop, None):
            raise InterfaceError("the connection was opened in another event loop: open one in each")
        return self._transport.wire

    def _usable(self) -> _native.Wire:
        return self._wire()

    def _own_block(self) -> AsyncPipeline | None:
        """The pipeline's block that what the caller runs is a part of: the innermost of its own, or else the whole that another
        task has opened. None while that ends, or is ours."""
        whole = self._block
        if whole is None:
            return None
        if not isinstance(whole, AsyncPipeline):
            if any(one is whole for one in WITHIN.get()):
                raise ProgrammingError("a COPY is under way: end its block first")
            return None
        for block in reversed(WITHIN.get()):
            if isinstance(block, AsyncPipeline) and block._is_open and block._whole() is whole:
                return block
        return whole if whole._members and not whole._is_alone else None

    def _check_alone(self) -> None:
        """Raises where a block is open that what the caller wants would be a part of, and cannot."""
        if self._block is not None and self._own_block() is not None:
            raise ProgrammingError("a pipeline is open, and this cannot be part of it: end its block first")

    def _native_part(self) -> _native.Wire:
        return self._wire()

    def _status(self) -> int:
        return TransactionStatus.UNKNOWN if self._is_closed else self._transport.wire.status

    def _is_busy(self) -> bool:
        block = self._block
        return self._stream is not None or (isinstance(block, AsyncCopy) and not block._state.is_over)

    def _heard(self) -> Notify | None:
        heard = self._wire().notification()
        return None if heard is None else Notify(*heard)

    def _in_pipeline(self) -> bool:
        return isinstance(self._block, AsyncPipeline)

    async def _run(self, statement: str, params: Params, begins: bool, how: int = 0) -> list[_native.Answer]:
        if self._block is not None:
            self._check_alone()
        if self._stream is not None and self._stream is asyncio.current_task():
            raise ProgrammingError("the rows of stream() are under way: take all of them, or close it first")
        while not await self._lock.acquire(True):
            block = self._own_block()
            if block is not None:
                return [await self._joined(block, statement, params, begins, how)]
        try:
            self._wire().ask(statement, params, begins, how)
            return await self._answers()
        finally:
            self._lock.release()

    async def _joined(
        self, block: AsyncPipeline, statement: str, params: Params, begins: bool, how: int
    ) -> _native.Answer:
        """Runs a statement in a block that was opened while it waited for its turn."""
        whole = block._whole()
        whole._begins = whole._begins and begins
        operation = await block._add(statement, params, how)
        if not begins:
            whole._begins = self._begins and not self._wire().block_in_transaction
        await operation._came()
        return operation._done()

    async def _begin_rows(self, statement: str, params: Params, how: int) -> None:
        """Runs a statement whose rows `_next_rows` takes by the piece. The connection is theirs until `_end_rows`."""
        self._check_alone()
        await self._lock.acquire()
        try:
            self._wire().ask(statement, params, self._begins, how, True)
        except BaseException:
            self._lock.release()
            raise
        self._stream = asyncio.current_task()

    async def _next_rows(self) -> tuple[_native.Answer, bool]:
        """The next of them, and whether they are the last."""
        rows = await self._transport.rows()
        if rows is not None:
            return rows, False
        (answer,) = self._wire().answers()
        return answer, True

    async def _end_rows(self, is_over: bool) -> None:
        """No more of them are wanted."""
        self._stream = None
        try:
            if not is_over and not self.closed:
                self._wire().drop_copied()
                self._transport.go_on_reading()
                await to_its_end(self._abandon())
            self._tell_what_came()
        finally:
            self._lock.release()

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

    async def _run_many(
        self, statement: str, rows: Iterable[Any], by: By, how: int, returning: bool
    ) -> tuple[int, list[_native.Answer], str | None]:
        """Runs a statement once for each of the rows: how many they changed, the results where they are wanted, and what the
        server says of the last. Their parameters are written before the first leaves."""
        if not returning:
            count, tag = await self._count_many(statement, rows, by, how)
            return count, [], tag
        if by in ("unnest", "copy"):
            raise ProgrammingError(f"rows whose results are wanted go by 'pipeline', not by {by!r}")
        async with self._pipeline_alone() as pipeline:
            operations = [await pipeline._add(statement, row, how) for row in rows]
        answers = [operation._done() for operation in operations]
        return sum(answer.count for answer in answers), answers, None

    async def _count_many(self, statement: str, rows: Iterable[Any], by: By, how: int) -> tuple[int, str | None]:
        self._check_alone()
        async with self._lock:
            wire, transport = self._wire(), self._transport
            many = wire.many(statement, rows, self._begins, by, how)
            try:
                while True:
                    wait, number, tag = wire.step(many)
                    if wait == "done":
                        return number, tag
                    if wait == "room":
                        await transport.flushed()
                    else:
                        await transport.answered(number if wait == "answer" else None)
            except asyncio.CancelledError:
                wire.give_up(many)
                await to_its_end(self._abandon())
                raise

    async def _abandon(self, operation: int | None = None) -> None:
        """Interrupts what runs, whose answers nobody wants, and waits for them, or for the one of an operation. Where they do
        not come, the connection ends."""
        try:
            await asyncio.wait_for(self._interrupted(operation), _ABANDON_SECONDS)
        except errors.Error:
            pass  # it has ended by itself
        except (asyncio.TimeoutError, TimeoutError):
            self.terminate()

    async def _interrupted(self, operation: int | None) -> None:
        with contextlib.suppress(OSError, errors.Error):
            await self.cancel()
        await self._transport.answered(operation)


async def connect(
    conninfo: str = "",
    *,
    autocommit: bool = False,
    prepare_threshold: int | None = 0,
    context: Any = None,
    row_factory: RowFactory[Row] | None = None,
    cursor_factory: type[AsyncCursor[Row]] | None = None,
    **keywords: Any,
) -> AsyncConnection[Row]:
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


Made = TypeVar("Made", bound="AsyncConnection[Any]")


async def _connected(
    cls: type[Made], conninfo: str, autocommit: bool, row_factory: RowFactory[Any] | None, keywords: dict[str, Any]
) -> Made:
    given = pairs(keywords)
    loop = asyncio.get_running_loop()
    candidates = await loop.run_in_executor(None, _native.addresses, conninfo, given)
    failed: Exception | None = None
    for any_will_do in (False, True):
        for candidate in candidates:
            try:
                transport = await _reach(candidate)
                connection = cls(transport, candidate.address, autocommit, row_factory=row_factory)
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
    if isinstance(failed, (asyncio.TimeoutError, TimeoutError)):
        raise ConnectionTimeout("cannot connect: no answer within connect_timeout") from failed
    raise OperationalError(f"cannot connect: {failed or 'no server is named'}") from failed


class _WrongKind(OperationalError):
    """A server is not what target_session_attrs asks for."""


async def _suits(candidate: _native.Candidate, connection: AsyncConnection[Any]) -> bool:
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
