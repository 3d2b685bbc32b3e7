"""A pool in the form of `psycopg_pool`: connections are made ahead, checked, replaced and counted. `onetrip.aio.AsyncPool` is
the plain one, whose check-in takes no trip."""

from __future__ import annotations

import contextlib
import logging
import math
import random
import time
import weakref
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from onetrip._base import forking
from onetrip._base.pooling import COUNTED, PoolClosed, PoolTimeout, TooManyRequests, milliseconds_since, next_name
from onetrip.aio.connection import AsyncConnection
from onetrip.aio.waits import AsyncTasks, AsyncWaiter, lock, may_begin, pause_for, settled
from onetrip.errors import Error, OperationalError
from onetrip.session import TransactionStatus

if TYPE_CHECKING:
    from typing_extensions import Self

logger = logging.getLogger("onetrip.pool")

# Between two tries to connect, in seconds.
_PAUSE_MIN, _PAUSE_MAX = 0.1, 5.0
# Connections made at the same time live up to so much shorter, so that they do not end at the same time.
_LIFETIME_SPREAD = 0.05

Conn = TypeVar("Conn", bound=AsyncConnection)


class AsyncConnectionPool(Generic[Conn]):
    """Between `min_size` and `max_size` connections, made by `connection_class.connect(conninfo, **kwargs)`. Callers who
    find none free wait in the order in which they came. The callbacks are those of `psycopg_pool`: `configure` for a new
    connection, `check` before it is given out, `reset` after it came back. `conninfo` and `kwargs` may be functions,
    which are called for each new connection. With `close_returns`, `close` of a connection gives it back."""

    def __init__(
        self,
        conninfo: str | Callable[[], Any] = "",
        *,
        connection_class: type[Conn] = cast(type[Conn], AsyncConnection),  # noqa: B008
        kwargs: dict[str, Any] | Callable[[], Any] | None = None,
        min_size: int = 4,
        max_size: int | None = None,
        open: bool | None = None,
        configure: Callable[[Conn], Awaitable[None]] | None = None,
        check: Callable[[Conn], Awaitable[None]] | None = None,
        reset: Callable[[Conn], Awaitable[None]] | None = None,
        name: str | None = None,
        close_returns: bool = False,
        timeout: float = 30.0,
        max_waiting: int = 0,
        max_lifetime: float = 3600.0,
        max_idle: float = 600.0,
        reconnect_timeout: float = 300.0,
        reconnect_failed: Callable[[Any], Any] | None = None,
        num_workers: int = 3,
    ) -> None:
        """At most `num_workers` connections are made at the same time. Unless `open` is false, the pool is open at
        once; one for asyncio only where an event loop runs."""
        self.conninfo, self.kwargs, self.connection_class = conninfo, kwargs, connection_class
        self.min_size, self.max_size = self._sizes(min_size, max_size)
        if num_workers < 1:
            raise ValueError("num_workers must be at least 1")
        self.name = name or next_name()
        self.timeout, self.max_waiting, self.close_returns = timeout, max_waiting, close_returns
        self.max_lifetime, self.max_idle = max_lifetime, max_idle
        self.reconnect_timeout, self.num_workers = reconnect_timeout, num_workers
        self._configure, self._check, self._reset = configure, check, reset
        self._reconnect_failed = reconnect_failed
        self._lock = lock()
        # The one that has been free for longest is given out first.
        self._pool: deque[Conn] = deque()
        self._waiting: deque[AsyncWaiter] = deque()
        # Who waits until there are as many free connections as there have to be.
        self._filled: list[AsyncWaiter] = []
        # Connections that are open or on their way.
        self._size = 0
        # Whether one is on its way beyond `min_size`; they come one after the other, as long as anybody waits.
        self._is_growing = False
        # The least number of free ones since somebody looked, and whether somebody will.
        self._spare, self._looks = 0, False
        # What is to be done by at most `num_workers`, and the connection that it is about, if it has come back.
        self._jobs: deque[tuple[Callable[[], Any], Conn | None]] = deque()
        self._working = 0
        self._tasks = AsyncTasks()
        self._counts: Counter[str] = Counter()
        self._is_open = False
        self._was_closed = False
        # Connections that were made before are not kept.
        self._drained_at = 0.0
        # Why the last try to connect failed, where none has succeeded since.
        self._failed: Exception | None = None
        forking.watch(self)
        if open is None and may_begin():
            open = True
        if open:
            self._begin()

    @property
    def closed(self) -> bool:
        """Whether it gives out no connections."""
        return not self._is_open

    async def open(self, wait: bool = False, timeout: float = 30.0) -> None:
        """Opens the pool, and lets it make `min_size` connections; with `wait`, until they are there."""
        self._begin()
        if wait:
            await self.wait(timeout)

    async def wait(self, timeout: float = 30.0) -> None:
        """Waits until `min_size` connections are free."""
        with self._lock:
            self._check_open()
            if len(self._pool) >= self.min_size:
                return
            waiter = AsyncWaiter()
            self._filled.append(waiter)
        if await waiter.wait(timeout):
            waiter.take()
            return
        await self.close()
        raise PoolTimeout(f"the pool {self.name!r} had not made {self.min_size} connections after {timeout} s")

    @contextlib.asynccontextmanager
    async def connection(self, timeout: float | None = None) -> AsyncIterator[Conn]:
        """A connection for a block, whose end commits, or rolls back after an exception, and gives it back."""
        connection = await self.getconn(timeout)
        try:
            try:
                yield connection
            except BaseException:
                if not connection.closed:
                    with contextlib.suppress(Error):  # the exception on its way tells more
                        await connection.rollback()
                raise
            else:
                if not connection.closed:
                    await connection.commit()
        finally:
            if connection._pool is self:  # a program may have given it back
                await self.putconn(connection)

    async def getconn(self, timeout: float | None = None) -> Conn:
        """A connection, which `putconn` gives back."""
        begun = time.monotonic()
        deadline = begun + (self.timeout if timeout is None else timeout)
        pause = 0.0
        self._count("requests_num")
        try:
            while True:
                connection = await self._next(deadline)
                if await self._passes(connection):
                    break
                left = deadline - time.monotonic()
                if left <= 0:
                    raise PoolTimeout(f"no connection of the pool {self.name!r} has passed the check in time")
                # One that was lost has a successor; where none of them passes, the check itself is to blame.
                await pause_for(min(pause, left))
                pause = min(max(2 * pause, _PAUSE_MIN), _PAUSE_MAX)
        except BaseException:
            self._count("requests_errors")
            raise
        connection._pool, connection._taken_at = self, time.monotonic()
        return connection

    async def putconn(self, conn: Conn) -> None:
        """Takes a connection back. An open transaction is rolled back."""
        if conn._pool is not self:
            raise ValueError(f"the connection {conn!r} is not one of the pool {self.name!r}")
        conn._pool = None
        self._count("usage_ms", milliseconds_since(conn._taken_at))
        if not self._is_open:
            await conn.close()
        elif self._reset is not None:
            # The program's own function may take its time.
            self._do(lambda: self._take_back(conn), conn)
        else:
            await self._take_back(conn)

    async def check(self) -> None:
        """Looks at each connection that is free, and replaces those that are lost."""
        with self._lock:
            free = list(self._pool)
            self._pool.clear()
            # After failed tries there may be fewer than there have to be.
            self._fill()
        for connection in free:
            if connection._ends_at <= time.monotonic():
                await connection.close()
                self._replace()
                continue
            try:
                await self.check_connection(connection)
            except Exception:
                self._count("connections_lost")
                logger.warning("discarding a lost connection of %r: %r", self.name, connection)
                await connection.close()
                self._replace()
            else:
                await self._give(connection)

    @staticmethod
    async def check_connection(conn: Conn) -> None:
        """Raises where a connection is lost. It takes a trip."""
        begins = conn.transaction_status == TransactionStatus.IDLE and not conn.autocommit
        await conn.execute("SELECT 1")
        if begins:
            await conn.rollback()

    async def resize(self, min_size: int, max_size: int | None = None) -> None:
        """Changes how many there are."""
        sizes = self._sizes(min_size, max_size)
        with self._lock:
            self.min_size, self.max_size = sizes
            if self._is_open:
                self._fill()
                self._watch()

    async def drain(self) -> None:
        """Replaces all connections: those that are free at once, the others when they come back."""
        with self._lock:
            free = list(self._pool)
            self._pool.clear()
            self._drained_at = time.monotonic()
        for connection in free:
            await connection.close()
            self._replace()

    async def close(self, timeout: float = 5.0) -> None:
        """Closes the free connections; those in use are closed when they come back. Who waits is told so. What is under
        way is waited for, at most so long."""
        with self._lock:
            self._was_closed = self._was_closed or self._is_open
            self._is_open = False
            free = [*self._pool, *(conn for _, conn in self._jobs if conn is not None)]
            waiting = [*self._waiting, *self._filled]
            for each in (self._pool, self._waiting, self._filled, self._jobs):
                each.clear()
        for waiter in waiting:
            waiter.fail(PoolClosed(f"the pool {self.name!r} was closed"))
        for connection in free:
            await connection.close()
        await self._tasks.stop(timeout)

    def get_stats(self) -> dict[str, int]:
        """Numbers of now, and sums since the beginning or since `pop_stats`."""
        with self._lock:
            now = {
                "pool_min": self.min_size, "pool_max": self.max_size, "pool_size": self._size,
                "pool_available": len(self._pool), "requests_waiting": len(self._waiting),
            }  # fmt: skip
            return now | {name: self._counts[name] for name in COUNTED if self._counts[name]}

    def pop_stats(self) -> dict[str, int]:
        """As `get_stats`; the sums begin anew."""
        with self._lock:
            stats = self.get_stats()
            self._counts.clear()
        return stats

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    @classmethod
    def _sizes(cls, min_size: int, max_size: int | None) -> tuple[int, int]:
        most = min_size if max_size is None else max_size
        if min_size < 0:
            raise ValueError("min_size cannot be negative")
        if most < min_size or most < 1:
            raise ValueError("max_size must be at least 1, and at least min_size")
        return min_size, most

    def _leave_to_parent(self) -> None:
        """This is a child process: the connections are its parent's, and so is whatever makes them."""
        forking.LEFT.append((self._tasks, list(self._pool), list(self._jobs)))
        self._lock, self._tasks = lock(), AsyncTasks()
        for each in (self._pool, self._waiting, self._filled, self._jobs):
            each.clear()
        self._size = self._working = 0
        self._is_growing = self._looks = False

    def _begin(self) -> None:
        with self._lock:
            if self._is_open:
                return
            if self._was_closed:
                raise PoolClosed(f"the pool {self.name!r} was closed and cannot be reused: make another one")
            self._is_open = True
            self._fill()

    def _check_open(self) -> None:
        if not self._is_open:
            state = "is already closed" if self._was_closed else "is not open yet"
            raise PoolClosed(f"the pool {self.name!r} {state}")

    async def _next(self, deadline: float) -> Conn:
        """A connection that is free, or the next that is."""
        with self._lock:
            self._check_open()
            if self._pool:
                connection = self._pool.popleft()
                self._spare = min(self._spare, len(self._pool))
                return connection
            if self.max_waiting and len(self._waiting) >= self.max_waiting:
                raise TooManyRequests(
                    f"the pool {self.name!r} has already {len(self._waiting)} requests waiting, of at most {self.max_waiting}"
                )
            waiter = AsyncWaiter()
            self._waiting.append(waiter)
            self._count("requests_queued")
            self._grow()
        return await self._awaited(waiter, deadline)

    async def _awaited(self, waiter: AsyncWaiter, deadline: float) -> Any:
        begun = time.monotonic()
        try:
            await waiter.wait(deadline - begun)
        except BaseException:
            self._leave(waiter)
            connection = waiter.take()
            if connection is not None:
                await self._give(connection)
            raise
        self._count("requests_wait_ms", milliseconds_since(begun))
        self._leave(waiter)
        connection = waiter.take()
        if connection is None:
            seconds = f"{time.monotonic() - begun:.2f} s"
            if self._failed is not None:
                problem = f"no connection of the pool {self.name!r} could be made in {seconds}: {self._failed}"
                raise PoolTimeout(problem) from self._failed
            raise PoolTimeout(f"no connection of the pool {self.name!r} was free after {seconds}")
        return connection

    def _leave(self, waiter: AsyncWaiter) -> None:
        with self._lock, contextlib.suppress(ValueError):
            self._waiting.remove(waiter)

    async def _passes(self, connection: Conn) -> bool:
        """Whether a connection may be given out; else it is put back or replaced."""
        if connection.closed or not (connection._is_new or time.monotonic() < connection._ends_at):
            if connection.closed:
                self._count("connections_lost")
            await connection.close()
            self._replace()
            return False
        if self._check is None:
            return True
        try:
            await self._check(connection)
        except BaseException as error:
            logger.info("a connection of %r failed check: %r", self.name, error)
            if connection.closed:
                self._count("connections_lost")
            await self._take_back(connection, is_from_check=True)
            if not isinstance(error, Exception):
                raise
            return False
        return True

    async def _take_back(self, connection: Conn, is_from_check: bool = False) -> None:
        """Gives a connection to who waits, or keeps it; or replaces it."""
        connection._is_new = False
        if not connection.closed:
            try:
                await self._clean(connection, is_from_check)
            except BaseException as error:
                logger.warning("a connection that came back to %r is closed: %r: %r", self.name, error, connection)
                await connection.close()
                if not isinstance(error, Exception):
                    self._replace()
                    raise
        if connection.closed:
            if not is_from_check:
                self._count("returns_bad")
                logger.warning("discarding a closed connection of %r: %r", self.name, connection)
            self._replace()
            return
        is_kept = time.monotonic() < connection._ends_at and connection._made_at >= self._drained_at
        if is_kept and self._is_open:
            await self._give(connection)
            return
        await connection.close()
        self._replace()

    async def _clean(self, connection: Conn, is_from_check: bool) -> None:
        """Leaves a connection without a transaction."""
        status = connection.transaction_status
        if status != TransactionStatus.IDLE:
            if not is_from_check:
                logger.warning("rolling back a connection that came back to %r: %r", self.name, connection)
            await connection.rollback()
        if self._reset is not None and not is_from_check:
            await self._reset(connection)
            self._check_idle(connection, "reset")

    def _check_idle(self, connection: Conn, what: str) -> None:
        status = TransactionStatus(connection.transaction_status)
        if status != TransactionStatus.IDLE:
            raise OperationalError(f"{what} has left a transaction open ({status.name}): it has to commit or roll back")

    async def _made(self, seconds: float | None = None) -> Conn:
        """A new connection."""
        begun = time.monotonic()
        self._count("connections_num")
        try:
            conninfo = self.conninfo if isinstance(self.conninfo, str) else await settled(self.conninfo())
            kwargs = await settled(self.kwargs()) if callable(self.kwargs) else self.kwargs or {}
            if seconds is not None:
                kwargs = {"connect_timeout": max(math.ceil(seconds), 1)} | kwargs
            connection: Conn = await self.connection_class.connect(conninfo, **kwargs)
            try:
                if self._configure is not None:
                    await self._configure(connection)
                    self._check_idle(connection, "configure")
            except BaseException:
                await connection.close()
                raise
        except BaseException:
            self._count("connections_errors")
            raise
        self._count("connections_ms", milliseconds_since(begun))
        now = time.monotonic()
        connection._made_at, connection._is_new = now, True
        self._failed = None
        connection._ends_at = now + self.max_lifetime * (1 - random.uniform(0, _LIFETIME_SPREAD))
        return connection

    async def _give(self, connection: Conn) -> None:
        """Gives a connection to who has waited longest, or keeps it."""
        with self._lock:
            is_spare = not self._is_open or (self._size > self.max_size and not self._waiting)
            if is_spare:
                self._size -= 1
            else:
                while self._waiting:
                    if self._waiting.popleft().give(connection):
                        return
                self._pool.append(connection)
                if len(self._pool) >= self.min_size:
                    for waiter in self._filled:
                        waiter.give(True)
                    self._filled.clear()
        if is_spare:
            await connection.close()

    async def _add(self, is_growth: bool, begun: float, pause: float) -> None:
        """Makes a connection for whoever wants it; where that fails, again after a pause."""
        try:
            connection = await self._made()
        except Exception as error:
            logger.warning("error connecting in %r: %s", self.name, error)
            self._failed = error
            with self._lock:
                if not self._is_open:
                    return
                left = begun + self.reconnect_timeout - time.monotonic()
                if left > 0:
                    wait = min(pause * random.uniform(0.9, 1.1), left)
                    logger.warning("reconnection attempt in %r follows in %.2f s", self.name, wait)
                    again = _later(self, lambda pool: pool._add(is_growth, begun, min(2 * pause, _PAUSE_MAX)))
                    self._tasks.later(wait, again)
                    return
                self._size -= 1
                self._is_growing = self._is_growing and not is_growth
            logger.warning("%r makes no more connections for now: reconnection attempts have failed", self.name)
            if self._reconnect_failed is not None:
                await settled(self._reconnect_failed(self))
            return
        await self._give(connection)
        with self._lock:
            if is_growth:
                self._is_growing = False
            if self._is_open:
                self._grow()
                self._watch()

    # Nothing is awaited from here on.

    def _count(self, name: str, number: int = 1) -> None:
        with self._lock:
            self._counts[name] += number

    def _fill(self) -> None:
        """Makes as many connections as there have to be."""
        for _ in range(self.min_size - self._size):
            self._size += 1
            self._make()

    def _grow(self) -> None:
        """Makes one more for those who wait, if there may be one."""
        if self._size == 0 and self.min_size:
            # All tries had failed for long: begin anew.
            self._is_growing = False
            self._fill()
        elif self._waiting and self._size < self.max_size and not self._is_growing:
            self._is_growing = True
            self._size += 1
            self._make(is_growth=True)

    def _replace(self) -> None:
        """Makes another connection in place of one that has ended, if it is wanted."""
        with self._lock:
            is_wanted = self._is_open and (self._size <= self.min_size or self._waiting)
            if is_wanted and self._size <= self.max_size:
                self._make()
            else:
                self._size -= 1

    def _make(self, is_growth: bool = False) -> None:
        begun = time.monotonic()
        self._do(lambda: self._add(is_growth, begun, _PAUSE_MIN))

    def _watch(self) -> None:
        """Sees to it that connections beyond `min_size` end, as long as some are free all the time."""
        if not self._looks and self._size > self.min_size:
            self._looks, self._spare = True, len(self._pool)
            self._tasks.later(self.max_idle, _later(self, lambda pool: pool._shrink()))

    async def _shrink(self) -> None:
        with self._lock:
            self._looks = False
            ended = None
            if self._is_open and self._spare > 0 and self._pool and self._size > self.min_size:
                ended = self._pool.popleft()
                self._size -= 1
            if self._is_open:
                self._watch()
        if ended is not None:
            await ended.close()

    def _do(self, job: Callable[[], Any], conn: Conn | None = None) -> None:
        """Has something done, by at most `num_workers` at a time."""
        with self._lock:
            if not self._is_open:
                return
            self._jobs.append((job, conn))
            if self._working < self.num_workers:
                self._working += 1
                self._tasks.start(self._work, f"{self.name}-works")

    async def _work(self) -> None:
        while True:
            with self._lock:
                if not self._jobs:
                    self._working -= 1
                    return
                job, _ = self._jobs.popleft()
            try:
                await job()
            except Exception:
                logger.exception("%r could not do its work", self.name)
            except BaseException:
                self._working -= 1
                raise


class AsyncNullConnectionPool(AsyncConnectionPool[Conn]):
    """A pool that keeps no connections: it limits how many there are, if `max_size` is not 0, and callers wait in order. A
    connection that comes back goes to who waits, or ends."""

    def __init__(self, conninfo: Any = "", *, min_size: int = 0, max_size: int | None = None, **keywords: Any) -> None:
        super().__init__(conninfo, min_size=min_size, max_size=max_size, **keywords)

    @classmethod
    def _sizes(cls, min_size: int, max_size: int | None) -> tuple[int, int]:
        if min_size:
            raise ValueError("min_size must be 0: this pool keeps no connections")
        if max_size is not None and max_size < 0:
            raise ValueError("max_size cannot be negative")
        return 0, max_size or 0

    async def wait(self, timeout: float = 30.0) -> None:
        """Makes a connection, to see whether that works."""
        with self._lock:
            self._check_open()
        try:
            connection = await self._made(timeout)
        except OperationalError as error:
            await self.close()
            raise PoolTimeout(f"the pool {self.name!r} could not connect: {error}") from error
        await connection.close()

    async def _next(self, deadline: float) -> Conn:
        with self._lock:
            self._check_open()
            if is_new := not self.max_size or self._size < self.max_size:
                self._size += 1
        if not is_new:
            return await super()._next(deadline)
        try:
            return await self._made(deadline - time.monotonic())
        except BaseException as error:
            self._replace()
            if isinstance(error, OperationalError) and time.monotonic() >= deadline:
                raise PoolTimeout(f"the pool {self.name!r} could not connect in time: {error}") from error
            raise

    def _grow(self) -> None:
        """Who finds a place makes a connection itself."""

    def _replace(self) -> None:
        with self._lock:
            if self._is_open and self._waiting:
                self._make()
            else:
                self._size -= 1

    async def _give(self, connection: Conn) -> None:
        with self._lock:
            while self._is_open and self._waiting:
                if self._waiting.popleft().give(connection):
                    return
            self._size -= 1
        await connection.close()

    async def _take_back(self, connection: Conn, is_from_check: bool = False) -> None:
        if self._waiting or is_from_check:
            await super()._take_back(connection, is_from_check)
            return
        # It ends, so that nothing has to be put right.
        if connection.closed:
            self._count("returns_bad")
        await connection.close()
        self._replace()


def _later(pool: AsyncConnectionPool[Any], job: Callable[[AsyncConnectionPool[Any]], Any]) -> Callable[[], None]:
    """Has something done by a pool, if it is still there by then."""
    there = weakref.ref(pool)

    def call() -> None:
        if (pool := there()) is not None:
            strong = pool
            pool._do(lambda: job(strong))

    return call


__all__ = ["AsyncConnectionPool", "AsyncNullConnectionPool", "PoolClosed", "PoolTimeout", "TooManyRequests"]
