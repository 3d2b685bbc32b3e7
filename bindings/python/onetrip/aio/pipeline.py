"""Blocks of operations that travel together, for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from onetrip import _native
from onetrip._base.pipeline import GOES_ON, BaseOperation, BasePipeline, OnError
from onetrip.aio.adding import AsyncAdding
from onetrip.aio.turns import WITHIN, entered, left, to_its_end
from onetrip.errors import Error

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
    """A block: `async with connection.pipeline() as p`. What tasks run on the connection until it ends is a part of it, by the
    connection's own calls too, whoever has started them. A block within it ends when all of it is answered. Where tasks
    have blocks of their own within it, the last of them to end is the end of the whole."""

    connection: AsyncConnection[Any]
    operations: list[AsyncOperation]
    _outer: AsyncPipeline | None

    def __init__(self, connection: AsyncConnection[Any], on_error: OnError) -> None:
        super().__init__(connection, on_error)
        # Whether tasks that it has not started wait for its end. What they run is a part of the block otherwise.
        self._is_alone = False
        self._is_open = False
        # Of the whole: what has to be answered before anything else is added.
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
        if last is None or last._comes():
            return
        wire = self.connection._wire()
        if not self._whole()._turn.locked():  # else they come without being asked for
            wire.request_replies()
        try:
            await self.connection._transport.answered(last.id)
        except asyncio.CancelledError:
            # What the server runs for another task goes on.
            if wire.is_answered(last.id - 1) and not last._comes():
                await to_its_end(self.connection._abandon(last.id))
                with contextlib.suppress(Error):
                    last.result()
            raise
        finally:
            self.connection._tell_what_came()

    async def __aenter__(self) -> Self:
        connection = self.connection
        if self._is_open:
            self._again.append(await type(self)(connection, self.on_error).__aenter__())
            return self
        outer = connection._own_block()
        while outer is None and not await connection._lock.acquire(True):
            outer = connection._own_block()
        if outer is not self:  # else tasks within it have gone on without it
            self._outer = outer
        if outer is None:
            try:
                wire = connection._wire()
                wire.begin_block(GOES_ON[self.on_error])
            except BaseException:
                connection._lock.release()
                raise
            self._begins = connection._begins and wire.status == 0
            connection._block = self
            if not self._is_alone:
                connection._lock.let_in()
        self._whole()._members.append(self)
        self._is_open = True
        entered(self)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._again:
            again = self._entered_again()
            if again is not None:
                self._again.remove(again)
                await again.__aexit__(kind)
                return
        whole = self._whole()
        # The connection may have been closed within the block.
        wire, error = self.connection._transport.wire, None
        if kind is not None and self.connection.closed:
            self._warn_lost()
        self._is_open = False
        whole._members.remove(self)
        is_last = not whole._members
        left(self)
        try:
            if is_last:
                await whole._end(wire, kind)
            elif kind is None or not issubclass(kind, asyncio.CancelledError):
                await self.process()
        finally:
            error = self._ended(wire, kind is None)
            if is_last:
                error_of_whole = None if self is whole else whole._ended(wire, kind is None)
                error = error or error_of_whole
                self.connection._block = None
                self.connection._lock.release()
                self.connection._tell_what_came()
            elif self is whole:
                # Tasks that are still within it go on.
                self._left = [one for one in (*self._left, *self.operations) if not one._is_known]
                self.operations = []
        if error is not None:
            raise error

    def _entered_again(self) -> Self | None:
        """The block that the caller has entered by entering this one again; None where it leaves this one."""
        within = WITHIN.get()
        for block in reversed(within):
            if block is self or any(block is again for again in self._again):
                return None if block is self else block
        # It was entered by another task.
        again: Self = self._again[-1]
        return again

    async def _end(self, wire: _native.Wire, kind: type[BaseException] | None) -> None:
        """Ends the block and waits for its answers. What a task was cancelled in is interrupted."""
        is_ended = False
        try:
            if kind is not None and issubclass(kind, asyncio.CancelledError):
                raise asyncio.CancelledError
            # What tasks were about to add comes before it.
            async with self._turn:
                is_ended = True
                wire.end_block()
                if not wire.received(b""):
                    await self.connection._transport.answered()
        except asyncio.CancelledError:
            if not is_ended:
                wire.end_block()
            await to_its_end(self.connection._abandon())
            if kind is None:
                raise

    async def _interrupted(self, statement: str | None) -> None:
        """Runs a statement between two halves of the block: it ends, and begins anew."""
        connection, whole = self.connection, self._whole()
        wire = connection._wire()
        async with whole._turn:
            wire.end_block()
            try:
                try:
                    await connection._settled()
                finally:
                    self._halved(wire)
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
