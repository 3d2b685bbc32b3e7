"""Blocks of operations that travel together, for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from onetrip import _native
from onetrip._base.pipeline import GOES_ON, BaseOperation, BasePipeline, OnError
from onetrip.aio.adding import AsyncAdding
from onetrip.aio.turns import entered, left, to_its_end

if TYPE_CHECKING:
    from typing_extensions import Self

    from onetrip._base.cursor import Params
    from onetrip.aio.connection import AsyncConnection

__all__ = ["AsyncOperation", "AsyncPipeline", "OnError"]

# Operations that are written before the socket is given the time to take them.
_BATCH = 256


class AsyncOperation(BaseOperation):
    """One operation of a pipeline. Its result can be had once it is answered: after `AsyncPipeline.process` up to it,
    or after the block."""

    __slots__ = ()

    _pipeline: AsyncPipeline

    def _comes(self) -> bool:
        return self._is_known or self._pipeline.connection._transport.wire.is_answered(self.id)

    async def _came(self) -> None:
        if not self._comes():
            await self._pipeline.process(self)

    def _taken(self) -> _native.Answer:
        return self._pipeline.connection._transport.wire.take(self.id)


class AsyncPipeline(AsyncAdding, BasePipeline):
    """A block: `async with connection.pipeline() as p`. It has the connection for itself until it ends: other tasks
    wait, and what runs within the block is a part of it, by the connection's own calls too. A block within it ends when
    all of it is answered."""

    connection: AsyncConnection[Any]
    operations: list[AsyncOperation]
    _outer: AsyncPipeline | None

    def __init__(self, connection: AsyncConnection[Any], on_error: OnError) -> None:
        super().__init__(connection, on_error)
        self._inner: Self | None = None
        # Tasks that were started within the block wait one after the other.
        self._turn = asyncio.Lock()

    async def _add(self, statement: str, params: Params, how: int, on_error: OnError | None = None) -> AsyncOperation:
        whole = self._whole()
        wire, goes_on = self.connection._wire(), self._goes_on(on_error)
        needs_answers = False
        if whole._turn.locked() or (needs_answers := wire.needs_answers(goes_on)):
            async with whole._turn:
                if needs_answers or wire.needs_answers(goes_on):
                    await self.connection._transport.answered()
        number = wire.push(statement, params, goes_on, whole._begins, how)
        operation = AsyncOperation(self, number, GOES_ON[on_error or self.on_error])
        whole._begins = False
        self.operations.append(operation)
        if len(self.operations) % _BATCH == 0:
            await self.connection._transport.flushed()
        return operation

    async def process(self, up_to: AsyncOperation | None = None) -> None:
        """Waits until an operation and those before it are answered; all, if none is named."""
        last = up_to or (self.operations[-1] if self.operations else None)
        if last is None:
            return
        async with self._whole()._turn:
            if not last._comes():
                self.connection._wire().request_replies()
                try:
                    await self.connection._transport.answered(last.id)
                finally:
                    self.connection._tell_what_came()

    async def __aenter__(self) -> Self:
        connection = self.connection
        outer = connection._own_block()
        if outer is not None and any(part is self for part in outer._parts()):
            self._again.append(await type(self)(connection, self.on_error).__aenter__())
            return self
        self._outer = outer
        if outer is not None:
            outer._inner = self
            return self
        await connection._lock.acquire()
        try:
            wire = connection._wire()
            wire.begin_block(GOES_ON[self.on_error])
        except BaseException:
            connection._lock.release()
            raise
        self._begins = connection._begins and wire.status == 0
        connection._block = self
        entered(self)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._again:
            await self._again.pop().__aexit__(kind)
            return
        # The connection may have been closed within the block.
        wire, error = self.connection._transport.wire, None
        if kind is not None and self.connection.closed:
            self._warn_lost()
        try:
            if self._outer is None:
                left(self)
                await self._end(wire, kind)
            else:
                self._outer._inner = None
                if kind is None or not issubclass(kind, asyncio.CancelledError):
                    await self.process()
        finally:
            error = self._ended(wire, kind is None)
            if self._outer is None:
                self.connection._block = None
                self.connection._lock.release()
                self.connection._tell_what_came()
        if error is not None:
            raise error

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

    def _innermost(self) -> Self:
        return self if self._inner is None else self._inner._innermost()

    async def _interrupted(self, statement: str | None) -> None:
        """Runs a statement between two halves of the block: it ends, and begins anew."""
        connection, whole = self.connection, self._whole()
        wire = connection._wire()
        async with whole._turn:
            wire.end_block()
            await connection._settled()
            self._halved(wire)
            try:
                if statement is not None:
                    wire.ask(statement, None, False)
                    await connection._answers()
            finally:
                if not connection.closed:
                    wire.begin_block(GOES_ON[whole.on_error])
                    whole._begins = connection._begins and wire.status == 0
                connection._tell_what_came()

    @property
    def _first_failed(self) -> Callable[[list[int]], int | None]:
        return self.connection._wire().first_failed
