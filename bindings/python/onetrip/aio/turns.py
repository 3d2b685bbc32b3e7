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


async def to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """Waits for something that must not be left half done, however often the waiting task is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    while not task.done():
        # The caller raises the cancellation that has brought it here.
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(task)
    if not task.cancelled():
        task.result()
