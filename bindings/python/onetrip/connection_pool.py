"""A pool in the form of `psycopg_pool`: connections are made ahead, checked, replaced and counted. `onetrip.Pool` is the
plain one, whose check-in takes no trip."""

from __future__ import annotations

import contextlib
import logging
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from onetrip.connection import Connection
from onetrip.errors import Error, OperationalError
from onetrip.session import TransactionStatus

if TYPE_CHECKING:
    from typing_extensions import Self

logger = logging.getLogger("onetrip.pool")

# Between two tries to connect, in seconds.
_PAUSE_MIN, _PAUSE_MAX = 0.1, 5.0
# Connections made at the same time live up to so much shorter, so that they do not end at the same time.
_LIFETIME_SPREAD = 0.05

_COUNTED = (
    "requests_num", "requests_queued", "requests_wait_ms", "requests_errors", "usage_ms", "returns_bad",
    "connections_num", "connections_ms", "connections_errors", "connections_lost",
)  # fmt: skip


class PoolClosed(OperationalError):
    """The pool is not open."""


class PoolTimeout(OperationalError):
    """No connection was free or could be made in time."""


class TooManyRequests(OperationalError):
    """As many callers wait as may wait."""


class _Waiter:
    """Somebody who waits for a connection."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.connection: Any = None
        self.error: Error | None = None


class ConnectionPool:
    """Between `min_size` and `max_size` connections, made by `connection_class.connect(conninfo, **kwargs)`. Callers who
    find none free wait in the order in which they came. The callbacks are those of `psycopg_pool`: `configure` for a new
    connection, `check` before it is given out, `reset` after it came back."""

    def __init__(
        self,
        conninfo: str = "",
        *,
        connection_class: type[Any] = Connection,
        kwargs: dict[str, Any] | None = None,
        min_size: int = 4,
        max_size: int | None = None,
        open: bool | None = None,
        configure: Callable[[Any], None] | None = None,
        check: Callable[[Any], None] | None = None,
        reset: Callable[[Any], None] | None = None,
        name: str | None = None,
        timeout: float = 30.0,
        max_waiting: int = 0,
        max_lifetime: float = 3600.0,
        max_idle: float = 600.0,
        reconnect_timeout: float = 300.0,
        reconnect_failed: Callable[[Any], None] | None = None,
        num_workers: int = 3,
    ) -> None:
        """`num_workers` is taken for psycopg's sake: connections that nobody waits for are made by threads of their
        own, which end."""
        self.conninfo, self.kwargs, self.connection_class = conninfo, dict(kwargs or {}), connection_class
        self.min_size, self.max_size = _sizes(min_size, max_size)
        if num_workers < 1:
            raise ValueError("num_workers must be at least 1")
        self.name = name or f"pool-{next(_NUMBERS)}"
        self.timeout, self.max_waiting = timeout, max_waiting
        self.max_lifetime, self.max_idle = max_lifetime, max_idle
        self.reconnect_timeout, self.num_workers = reconnect_timeout, num_workers
        self._configure, self._check, self._reset = configure, check, reset
        self._reconnect_failed = reconnect_failed
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        # The one that came back last is given out first.
        self._idle: list[tuple[Any, float]] = []
        self._waiters: deque[_Waiter] = deque()
        # Connections that are open or on their way.
        self._size = 0
        self._counts: Counter[str] = Counter()
        self._is_open = False
        self._was_closed = False
        # Connections that were made before are not kept.
        self._drained_at = 0.0
        if open is None or open:
            self.open()

    @property
    def closed(self) -> bool:
        """Whether it gives out no connections."""
        return not self._is_open

    def open(self, wait: bool = False, timeout: float = 30.0) -> None:
        """Opens the pool, and lets it make `min_size` connections; with `wait`, until they are there."""
        with self._lock:
            if self._is_open:
                return
            if self._was_closed:
                raise OperationalError("the pool was closed, and cannot be opened again: make another one")
            self._is_open = True
            self._fill()
        if wait:
            self.wait(timeout)

    def wait(self, timeout: float = 30.0) -> None:
        """Waits until `min_size` connections are there."""
        deadline = time.monotonic() + timeout
        with self._changed:
            self._check_open()
            while self._counts["opened"] < self.min_size:
                left = deadline - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    break
            else:
                return
        self.close()
        raise PoolTimeout(f"the pool {self.name!r} had not made {self.min_size} connections after {timeout} s")

    @contextlib.contextmanager
    def connection(self, timeout: float | None = None) -> Iterator[Any]:
        """A connection for a block, whose end commits, or rolls back after an exception, and gives it back."""
        connection = self.getconn(timeout)
        try:
            yield connection
        except BaseException:
            if not connection.closed:
                with contextlib.suppress(Error):  # the exception on its way tells more
                    connection.rollback()
            raise
        else:
            if not connection.closed:
                connection.commit()
        finally:
            self.putconn(connection)

    def getconn(self, timeout: float | None = None) -> Any:
        """A connection, which `putconn` gives back."""
        begun = time.monotonic()
        deadline = begun + (self.timeout if timeout is None else timeout)
        self._counts["requests_num"] += 1
        try:
            while True:
                connection = self._free(deadline)
                if self._passes(connection):
                    break
        except Error:
            self._counts["requests_errors"] += 1
            raise
        connection._pool, connection._taken_at = self, time.monotonic()
        return connection

    def putconn(self, conn: Any) -> None:
        """Takes a connection back. An open transaction is rolled back."""
        if getattr(conn, "_pool", None) is not self:
            raise ValueError(f"the connection {conn!r} is not one of the pool {self.name!r}")
        conn._pool, conn._is_new = None, False
        self._counts["usage_ms"] += _ms_since(conn._taken_at)
        self._cleaned(conn)
        with self._lock:
            is_kept = time.monotonic() < conn._ends_at and conn._made_at >= self._drained_at
            if self._is_open and not conn.closed and is_kept:
                self._give(conn)
                self._shrink()
                return
            self._lose(conn)
        conn.close()

    def check(self) -> None:
        """Looks at each connection that is free, and replaces those that are lost."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection, _ in idle:
            if self._passes(connection, self._check or self.check_connection):
                with self._lock:
                    self._give(connection)

    @staticmethod
    def check_connection(conn: Any) -> None:
        """Raises where a connection is lost. It takes a trip."""
        begins = conn.transaction_status == TransactionStatus.IDLE and not conn.autocommit
        conn.execute("SELECT 1")
        if begins:
            conn.rollback()

    def resize(self, min_size: int, max_size: int | None = None) -> None:
        """Changes how many there are."""
        sizes = _sizes(min_size, max_size)
        with self._lock:
            self.min_size, self.max_size = sizes
            if self._is_open:
                self._fill()
                self._shrink()

    def drain(self) -> None:
        """Replaces all connections: those that are free at once, the others when they come back."""
        with self._lock:
            idle, self._idle = self._idle, []
            self._drained_at = time.monotonic()
            for connection, _ in idle:
                self._lose(connection, is_lost=False)
        for connection, _ in idle:
            connection.close()

    def close(self, timeout: float = 5.0) -> None:
        """Closes the free connections; those in use are closed when they come back. Who waits is told so."""
        with self._lock:
            self._was_closed = self._was_closed or self._is_open
            self._is_open = False
            idle, self._idle = self._idle, []
            self._size -= len(idle)
            waiters = list(self._waiters)
            self._waiters.clear()
            self._changed.notify_all()
        for waiter in waiters:
            waiter.error = PoolClosed(f"the pool {self.name!r} was closed")
            waiter.event.set()
        for connection, _ in idle:
            connection.close()

    def get_stats(self) -> dict[str, int]:
        """Numbers of now, and sums since the beginning or since `pop_stats`."""
        with self._lock:
            now = {
                "pool_min": self.min_size, "pool_max": self.max_size, "pool_size": self._size,
                "pool_available": len(self._idle), "requests_waiting": len(self._waiters),
            }  # fmt: skip
            return now | {name: self._counts[name] for name in _COUNTED if self._counts[name]}

    def pop_stats(self) -> dict[str, int]:
        """As `get_stats`; the sums begin anew."""
        stats = self.get_stats()
        with self._lock:
            for name in _COUNTED:
                del self._counts[name]
        return stats

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    def _check_open(self) -> None:
        if not self._is_open:
            state = "is already closed" if self._was_closed else "is not open yet"
            raise PoolClosed(f"the pool {self.name!r} {state}")

    def _free(self, deadline: float) -> Any:
        """A connection that is free, a new one, or the next that comes back."""
        with self._lock:
            self._check_open()
            if self._idle and not self._waiters:
                return self._idle.pop()[0]
            is_new = self._size < self.max_size and not self._waiters
            if is_new:
                self._size += 1
            elif self.max_waiting and len(self._waiters) >= self.max_waiting:
                raise TooManyRequests(f"the pool {self.name!r} has already {len(self._waiters)} requests waiting")
            else:
                waiter = _Waiter()
                self._waiters.append(waiter)
                self._counts["requests_queued"] += 1
        if not is_new:
            return self._awaited(waiter, deadline)
        try:
            return self._made(deadline)
        except BaseException:
            # Its place is for who waits.
            with self._lock:
                if self._is_open:
                    self._fill()
            raise

    def _awaited(self, waiter: _Waiter, deadline: float) -> Any:
        begun = time.monotonic()
        if not waiter.event.wait(max(deadline - begun, 0)):
            with self._lock:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
                    waiter.error = PoolTimeout(f"no connection was free after {time.monotonic() - begun:.2f} s")
        self._counts["requests_wait_ms"] += _ms_since(begun)
        if waiter.error is not None:
            raise waiter.error
        return waiter.connection

    def _made(self, deadline: float) -> Any:
        """A new connection, which has its place already. Gives up at the deadline."""
        pause = _PAUSE_MIN
        while True:
            begun = time.monotonic()
            self._counts["connections_num"] += 1
            try:
                connection = self.connection_class.connect(self.conninfo, **self.kwargs)
                if self._configure is not None:
                    self._configure(connection)
                    self._check_idle(connection, "configure")
            except Exception as error:
                self._counts["connections_errors"] += 1
                left = deadline - time.monotonic()
                if left > pause and self._is_open and isinstance(error, OperationalError):
                    logger.warning("error connecting in %r: %s", self.name, error)
                    time.sleep(pause * random.uniform(0.9, 1.1))
                    pause = min(2 * pause, _PAUSE_MAX)
                    continue
                with self._lock:
                    self._size -= 1
                if isinstance(error, OperationalError):
                    raise PoolTimeout(f"no connection could be made in time: {error}") from error
                raise
            self._counts["connections_ms"] += _ms_since(begun)
            connection._pool, connection._made_at, connection._is_new = None, begun, True
            connection._ends_at = time.monotonic() + self.max_lifetime * (1 - random.uniform(0, _LIFETIME_SPREAD))
            with self._changed:
                self._counts["opened"] += 1
                self._changed.notify_all()
            return connection

    def _passes(self, connection: Any, check: Callable[[Any], None] | None = None) -> bool:
        """Whether a connection may be given out; else it is closed."""
        check = check or self._check
        is_young = connection._is_new or time.monotonic() < connection._ends_at
        is_good = is_young and not connection.closed
        if is_good and check is not None:
            try:
                check(connection)
                is_good = not connection.closed
            except Exception as error:
                logger.warning("a check of %r failed: %s", self.name, error)
                is_good = False
        if not is_good:
            with self._lock:
                self._lose(connection, is_lost=is_young)
            connection.close()
        return is_good

    def _cleaned(self, connection: Any) -> None:
        """Leaves a connection without a transaction, or closed."""
        if connection.closed:
            self._counts["returns_bad"] += 1
            return
        try:
            if connection.transaction_status != TransactionStatus.IDLE:
                connection.rollback()
            if self._reset is not None:
                self._reset(connection)
                self._check_idle(connection, "reset")
        except Exception as error:
            logger.warning("a connection that came back to %r is closed: %s", self.name, error)
            self._counts["returns_bad"] += 1
            connection.close()

    def _check_idle(self, connection: Any, what: str) -> None:
        if connection.transaction_status != TransactionStatus.IDLE:
            connection.close()
            raise OperationalError(f"{what} has left a transaction open: it has to commit or roll back")

    # With the lock.

    def _give(self, connection: Any) -> None:
        """Gives a connection to who has waited longest, or keeps it."""
        if self._waiters:
            waiter = self._waiters.popleft()
            waiter.connection = connection
            waiter.event.set()
        else:
            self._idle.append((connection, time.monotonic()))

    def _lose(self, connection: Any, is_lost: bool = True) -> None:
        """Gives up the place of a connection, and fills it where that is wanted."""
        self._size -= 1
        if connection.closed and is_lost:
            self._counts["connections_lost"] += 1
        if self._is_open:
            self._fill()

    def _fill(self) -> None:
        """Makes as many connections as there have to be, and one for each who waits."""
        wanted = max(self.min_size - self._size, min(len(self._waiters), self.max_size - self._size))
        for _ in range(wanted):
            self._size += 1
            threading.Thread(target=self._add, name=f"{self.name}-adds", daemon=True).start()

    def _shrink(self) -> None:
        """Closes what was idle for long, down to `min_size`."""
        now = time.monotonic()
        while self._idle and (
            self._size > self.max_size or (self._size > self.min_size and now - self._idle[0][1] > self.max_idle)
        ):
            connection, _ = self._idle.pop(0)
            self._size -= 1
            connection.close()

    def _add(self) -> None:
        """Makes a connection for whoever wants it; in a thread."""
        try:
            connection = self._made(time.monotonic() + self.reconnect_timeout)
        except Exception as error:
            logger.warning("%r makes no more connections for now: %s", self.name, error)
            if self._reconnect_failed is not None and self._is_open:
                self._reconnect_failed(self)
            return
        with self._lock:
            if self._is_open:
                self._give(connection)
                return
            self._size -= 1
        connection.close()


def _sizes(min_size: int, max_size: int | None) -> tuple[int, int]:
    most = min_size if max_size is None else max_size
    if min_size < 0:
        raise ValueError("min_size cannot be negative")
    if most < min_size or most < 1:
        raise ValueError("max_size must be at least 1, and at least min_size")
    return min_size, most


def _ms_since(begun: float) -> int:
    return int(1000 * (time.monotonic() - begun))


_NUMBERS = iter(range(1, 1 << 62))

__all__ = ["ConnectionPool", "PoolClosed", "PoolTimeout", "TooManyRequests"]
