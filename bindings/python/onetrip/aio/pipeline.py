"""Blocks of operations that travel together, for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from onetrip import _native
from onetrip.aio.turns import entered, left, to_its_end
from onetrip.cursor import Params, Row, Statement
from onetrip.errors import Error
from onetrip.pipeline import _GOES_ON, OnError, is_outcome, raise_first, unheard
from onetrip.sql import text_of

if TYPE_CHECKING:
    from onetrip.aio.connection import AsyncConnection

# Operations that are written before the socket is given the time to take them.
_BATCH = 256


class AsyncOperation:
    """One operation of a pipeline. Its result can be had once it is answered."""

    __slots__ = ("_answer", "_error", "_goes_on", "_pipeline", "id")

    def __init__(self, pipeline: AsyncPipeline, number: int, goes_on: bool) -> None:
        self.id = number
        self._goes_on = goes_on
        self._error: Error | None = None
        self._pipeline = pipeline
        self._answer: _native.Answer | None = None

    def result(self) -> AsyncOperation:
        """Raises the operation's error; returns the operation if it ran."""
        if self._error is not None:
            raise self._error
        if self._answer is None:
            try:
                self._answer = self._pipeline.connection._transport.wire.take(self.id)
            except Error as error:
                self._error = error if is_outcome(error) else None
                raise
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

    async def _came(self) -> None:
        if not self._is_answered():
            await self._pipeline.process(self)

    def _is_answered(self) -> bool:
        known = self._answer is not None or self._error is not None
        return known or self._pipeline.connection._transport.wire.is_answered(self.id)

    def _done(self) -> _native.Answer:
        if self._answer is None:
            self.result()
        assert self._answer is not None
        return self._answer


class AsyncPipeline:
    """A block: `async with connection.pipeline() as p`. It has the connection for itself until it ends: other tasks
    wait, and what runs within the block is a part of it, by the connection's own calls too. A block within it ends when
    all of it is answered."""

    def __init__(self, connection: AsyncConnection, on_error: OnError) -> None:
        self.connection = connection
        self.on_error = on_error
        self.operations: list[AsyncOperation] = []
        self._outer: AsyncPipeline | None = None
        self._inner: AsyncPipeline | None = None
        self._unheard: Error | None = None
        # Tasks that were started within the block wait one after the other.
        self._turn = asyncio.Lock()
        self._begins = False

    async def execute(
        self, statement: Statement, params: Params = None, *, on_error: OnError | None = None
    ) -> AsyncOperation:
        """Adds a statement, perhaps with another `on_error` than the block's. It waits only where the other side does
        not take any more, or where answers decide whether the statement may run."""
        if not isinstance(statement, str):
            statement = text_of(statement, self.connection)
        adapters = self.connection._adapters
        return await self._add(statement, params if adapters is None else adapters._params(params), 0, on_error)

    async def _add(self, statement: str, params: Params, how: int, on_error: OnError | None = None) -> AsyncOperation:
        whole = self._whole()
        wire, goes_on = self.connection._wire(), None if on_error is None else _GOES_ON[on_error]
        if self._outer is not None:
            goes_on = _GOES_ON[on_error or self.on_error]
        needs_answers = False
        if whole._turn.locked() or (needs_answers := wire.needs_answers(goes_on)):
            async with whole._turn:
                if needs_answers or wire.needs_answers(goes_on):
                    await self.connection._transport.answered()
        number = wire.push(statement, params, goes_on, whole._begins, how)
        operation = AsyncOperation(self, number, _GOES_ON[on_error or self.on_error])
        whole._begins = False
        self.operations.append(operation)
        if len(self.operations) % _BATCH == 0:
            await self.connection._transport.flushed()
        return operation

    async def call(self, function: str, args: Sequence[Any] = ()) -> AsyncOperation:
        """Adds a call of a function of the server."""
        marks = ", ".join(["%s"] * len(args))
        return await self.execute(f"SELECT {function}({marks})", tuple(args))

    async def commit(self) -> AsyncOperation:
        """Adds COMMIT; its result raises where the transaction was rolled back instead."""
        return await self._end_transaction("COMMIT")

    async def rollback(self) -> AsyncOperation:
        """Adds ROLLBACK."""
        return await self._end_transaction("ROLLBACK")

    async def process(self, up_to: AsyncOperation | None = None) -> None:
        """Waits until an operation and those before it are answered; all, if none is named."""
        last = up_to or (self.operations[-1] if self.operations else None)
        if last is None:
            return
        async with self._whole()._turn:
            if not last._is_answered():
                self.connection._wire().request_replies()
                await self.connection._transport.answered(last.id)

    async def sync(self) -> None:
        """Waits until all is answered, as `onetrip.Pipeline.sync`."""
        await self._interrupted(None)
        whole = self._whole()
        if whole._unheard is not None:
            error, whole._unheard = whole._unheard, None
            raise error

    async def __aenter__(self) -> AsyncPipeline:
        connection = self.connection
        self._outer = connection._own_block()
        if self._outer is not None:
            self._outer._inner = self
            return self
        await connection._lock.acquire()
        try:
            wire = connection._wire()
            wire.begin_block(_GOES_ON[self.on_error])
        except BaseException:
            connection._lock.release()
            raise
        self._begins = connection._begins and wire.status == 0
        connection._block = self
        entered(self)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # The connection may have been closed within the block.
        wire = self.connection._transport.wire
        if self._outer is not None:
            self._outer._inner = None
            if kind is None or not issubclass(kind, asyncio.CancelledError):
                await self.process()
        else:
            left(self)
            try:
                await self._end(wire, kind)
            finally:
                self.connection._block = None
                self.connection._lock.release()
        raise_first(self.operations, wire.first_failed if kind is None else None, self._outer is None)
        if kind is None and self._unheard is not None:
            raise self._unheard

    async def _end(self, wire: _native.Wire, kind: type[BaseException] | None) -> None:
        """Ends the block and waits for its answers. What a task was cancelled in is interrupted."""
        wire.end_block()
        try:
            if kind is not None and issubclass(kind, asyncio.CancelledError):
                raise asyncio.CancelledError
            if not wire.received(b""):
                await self.connection._transport.answered()
        except asyncio.CancelledError:
            await to_its_end(self.connection._abandon())
            if kind is None:
                raise

    def _whole(self) -> AsyncPipeline:
        """The block that this one is a part of, or itself."""
        return self if self._outer is None else self._outer._whole()

    def _innermost(self) -> AsyncPipeline:
        return self if self._inner is None else self._inner._innermost()

    def _parts(self) -> Iterable[AsyncPipeline]:
        part: AsyncPipeline | None = self
        while part is not None:
            yield part
            part = part._outer

    async def _interrupted(self, statement: str | None) -> None:
        """Runs a statement between two halves of the block: it ends, and begins anew."""
        connection, whole = self.connection, self._whole()
        wire = connection._wire()
        async with whole._turn:
            wire.end_block()
            await connection._settled()
            for part in self._parts():
                whole._unheard = whole._unheard or unheard(part.operations, wire)
            try:
                if statement is not None:
                    wire.ask(statement, None, False)
                    await connection._answers()
            finally:
                if not connection.closed:
                    wire.begin_block(_GOES_ON[whole.on_error])
                    whole._begins = connection._begins and wire.status == 0

    async def _run(self, statement: str) -> None:
        """Adds a statement of our own and waits for it. What made it fail may be an operation before it."""
        operation = await self.execute(statement)
        await self.process(operation)
        raise_first(self.operations, self.connection._wire().first_failed, self._outer is None)
        operation.result()

    async def _end_transaction(self, statement: str) -> AsyncOperation:
        whole = self._whole()
        whole._begins = False
        operation = await self.execute(statement)
        whole._begins = self.connection._begins
        return operation
