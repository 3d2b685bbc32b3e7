"""Who may use a connection that tasks share."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from contextvars import ContextVar
from typing import Any

Block = Any  # an AsyncPipeline or an AsyncCopy, which has the connection for itself

# The blocks that the running code is a part of. A task has those of the code that has started it.
WITHIN: ContextVar[tuple[Block, ...]] = ContextVar("onetrip_within", default=())


def entered(block: Block) -> None:
    """From here on, this code is a part of a block."""
    WITHIN.set((*WITHIN.get(), block))


def left(block: Block) -> None:
    """It is not any more."""
    WITHIN.set(tuple(one for one in WITHIN.get() if one is not block))


class Turns:
    """Whose turn it is to use a connection: one after the other. Who waits may be let in by a block that others can join."""

    def __init__(self) -> None:
        self._is_taken = False
        # Those who wait, in their order, and whether they would join a block.
        self._waiting: dict[asyncio.Future[bool], bool] = {}

    async def acquire(self, joins: bool = False) -> bool:
        """Waits for the turn; false where it is not the caller's, who may join a block that has just been opened."""
        if not self._is_taken:
            self._is_taken = True
            return True
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[waiter] = joins
        try:
            return await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled() and waiter.result():
                self.release()
            raise
        finally:
            del self._waiting[waiter]

    def release(self) -> None:
        """Gives the turn to the next."""
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(True)
                return
        self._is_taken = False

    def let_in(self) -> None:
        """Wakes those who would join a block."""
        for waiter, joins in self._waiting.items():
            if joins and not waiter.done():
                waiter.set_result(False)

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(self, *_: object) -> None:
        self.release()


async def to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Waits for something that must not be left half done, however often the waiting task is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    while not task.done():
        # The caller raises the cancellation that has brought it here.
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(task)
    if not task.cancelled():
        task.result()
