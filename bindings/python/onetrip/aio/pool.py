"""Connections for asyncio that are used in turn."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

from onetrip import errors
from onetrip._base import forking
from onetrip.aio.connection import AsyncConnection, connect
from onetrip.errors import InterfaceError, OperationalError
from onetrip.session import TransactionStatus


class AsyncPool:
    """At most `max_size` connections, made by the keywords of `connect`; it begins empty. One that was idle for
    more than `max_idle` seconds is closed rather than given out. Neither check-out nor check-in of a clean connection
    makes a trip."""

    def __init__(self, conninfo: str = "", *, max_size: int = 10, max_idle: float = 600.0, **keywords: Any) -> None:
        self._conninfo = conninfo
        self._keywords = keywords
        self._max_idle = max_idle
        # The last returned is the first given out, so that the rest can grow old.
        self._idle: list[tuple[AsyncConnection, float]] = []
        self._max_size = max(max_size, 1)
        self._free = asyncio.Semaphore(self._max_size)
        self._in_use = 0
        self._is_closed = False
        forking.watch(self)

    @contextlib.asynccontextmanager
    async def connection(self, timeout: float | None = 30.0) -> AsyncIterator[AsyncConnection]:
        """A connection for a block, whose end commits, or rolls back after an exception. Where all are in use it waits
        for one, at most `timeout` seconds."""
        connection = await self.take(timeout)
        try:
            yield connection
        except BaseException:
            with contextlib.suppress(errors.Error):  # the exception on its way tells more
                await connection.rollback()
            raise
        else:
            if not connection._is_closed:
                await connection.commit()
        finally:
            await self.give_back(connection)

    async def take(self, timeout: float | None = 30.0) -> AsyncConnection:
        """A connection; `give_back` has to follow."""
        if self._is_closed:
            raise InterfaceError("the pool is closed")
        try:
            await asyncio.wait_for(self._free.acquire(), timeout)
        except (asyncio.TimeoutError, TimeoutError):
            raise OperationalError(f"no connection of the pool became free in {timeout} s") from None
        self._in_use += 1
        try:
            while self._idle:
                connection, since = self._idle.pop()
                if not connection.closed and time.monotonic() - since < self._max_idle:
                    return connection
                await connection.close()
            return await connect(self._conninfo, **self._keywords)
        except BaseException:
            self._in_use -= 1
            self._free.release()
            raise

    async def give_back(self, connection: AsyncConnection[Any]) -> None:
        """Takes a connection back; a transaction that is left open is rolled back."""
        try:
            if connection.transaction_status not in (TransactionStatus.IDLE, TransactionStatus.UNKNOWN):
                with contextlib.suppress(errors.Error):
                    await connection.rollback()
            if self._is_closed or connection.transaction_status != TransactionStatus.IDLE:
                await connection.close()
            if not connection.closed:
                self._idle.append((connection, time.monotonic()))
        finally:
            self._in_use -= 1
            self._free.release()

    def _leave_to_parent(self) -> None:
        """This is a child process: the connections are its parent's, and it begins without any."""
        self._idle.clear()
        self._free, self._in_use = asyncio.Semaphore(self._max_size), 0

    @property
    def size(self) -> tuple[int, int]:
        """Connections that are idle, and in use."""
        return len(self._idle), self._in_use

    async def close(self) -> None:
        """Closes the idle ones now, the others when they come back."""
        self._is_closed = True
        while self._idle:
            connection, _ = self._idle.pop()
            await connection.close()

    async def __aenter__(self) -> AsyncPool:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
