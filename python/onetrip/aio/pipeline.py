"""Blocks of operations that travel together, for asyncio."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from onetrip import _native
from onetrip.cursor import Params, Row
from onetrip.errors import Error
from onetrip.pipeline import _GOES_ON, OnError, is_outcome, raise_first

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
                self._answer = self._pipeline.connection._wire().take(self.id)
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

    async def execute(
        self, statement: str, params: Params = None, *, on_error: OnError | None = None
    ) -> AsyncOperation:
        """Adds a statement, perhaps with another `on_error` than the block's. It waits only where the other side does
        not take any more, or where answers decide whether the statement may run."""
        wire, goes_on = self.connection._wire(), None if on_error is None else _GOES_ON[on_error]
        if wire.needs_answers(goes_on):
            await self.connection._transport.answered()
        number = wire.push(statement, params, goes_on, self._begins)
        operation = AsyncOperation(self, number, _GOES_ON[on_error or self.on_error])
        self._begins = False
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
        raise_first(self.operations, wire.first_failed if kind is None else None)

    async def _end_transaction(self, statement: str) -> AsyncOperation:
        self._begins = False
        operation = await self.execute(statement)
        self._begins = self.connection._begins
        return operation
