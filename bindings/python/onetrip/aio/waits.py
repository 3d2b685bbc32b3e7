"""What a pool waits by, for asyncio: the twin of `onetrip.waits`, which does the same with threads."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Callable, Coroutine
from typing import Any

from onetrip.errors import Error


class AsyncWaiter:
    """Somebody who waits for a connection, or for a word."""

    def __init__(self) -> None:
        self._future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    @property
    def is_over(self) -> bool:
        """Whether there is nothing to wait for any more."""
        return self._future.done()

    def give(self, connection: Any) -> bool:
        """Ends the wait; false for one that has given up."""
        if self._future.done():
            return False
        self._future.set_result(connection)
        return True

    def fail(self, error: Error) -> None:
        """Ends the wait by an error."""
        if not self._future.done():
            self._future.set_exception(error)

    async def wait(self, seconds: float) -> bool:
        """Waits for the end, at most so long; whether it came."""
        await asyncio.wait([self._future], timeout=max(seconds, 0))
        return self._future.done()

    def take(self) -> Any:
        """What it was given, or None; raises the error. Nothing can be given after it."""
        if self._future.cancel():
            return None
        return self._future.result()


class AsyncTasks:
    """Work that goes on beside the program's own."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._timers: set[asyncio.TimerHandle] = set()

    def start(self, work: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        """Begins some work."""
        task = asyncio.get_running_loop().create_task(work(), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Calls after a while, unless everything is stopped before."""

        def due() -> None:
            self._timers.discard(timer)
            call()

        timer = asyncio.get_running_loop().call_later(seconds, due)
        self._timers.add(timer)

    async def stop(self, seconds: float) -> None:
        """Ends all of it, and waits for that at most so long."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)


async def settled(value: Any) -> Any:
    """What a function has returned, which may have to be awaited."""
    return await value if inspect.isawaitable(value) else value


async def pause_for(seconds: float) -> None:
    """Waits for a while."""
    await asyncio.sleep(max(seconds, 0))


def lock() -> Any:
    """Nobody comes in between where nothing is awaited."""
    return contextlib.nullcontext()


def may_begin() -> bool:
    """Whether work can be started here."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
