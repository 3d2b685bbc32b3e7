"""Connections that are used in turn."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from onetrip import _native, errors
from onetrip._base import forking
from onetrip._base.connection import pairs
from onetrip.connection import Connection
from onetrip.errors import InterfaceError

if TYPE_CHECKING:
    from onetrip.rows import RowFactory


class Pool:
    """At most `max_size` connections, made by the keywords of `connect`; it begins empty. One that was idle for
    more than `max_idle` seconds is closed rather than given out. Neither check-out nor check-in makes a trip: a
    transaction that is left open is rolled back along with the next user's first statement."""

    def __init__(
        self,
        conninfo: str = "",
        *,
        max_size: int = 10,
        max_idle: float = 600.0,
        autocommit: bool = False,
        row_factory: RowFactory | None = None,
        **keywords: Any,
    ) -> None:
        self._made_of = (conninfo, pairs(keywords), max_size, max_idle)
        self._native: _native.ConnectionPool | None = _native.ConnectionPool(*self._made_of)
        forking.watch(self)
        self._autocommit = autocommit
        self._row_factory = row_factory

    @contextlib.contextmanager
    def connection(self, timeout: float = 30.0) -> Iterator[Connection]:
        """A connection for a block, whose end commits, or rolls back after an exception. Where all are in use it waits
        for one, at most `timeout` seconds."""
        connection = self.take(timeout)
        try:
            yield connection
        except BaseException:
            if not connection.closed:
                with contextlib.suppress(errors.Error):  # the exception on its way tells more
                    connection.rollback()
            raise
        else:
            if not connection._is_closed:
                connection.commit()
        finally:
            connection.close()

    def take(self, timeout: float = 30.0) -> Connection:
        """A connection whose `close` gives it back."""
        if self._native is None:
            raise InterfaceError("the pool is closed")
        session = self._native.take(timeout)
        return Connection(session, autocommit=self._autocommit, row_factory=self._row_factory)

    @property
    def size(self) -> tuple[int, int]:
        """Connections that are idle, and in use."""
        return (0, 0) if self._native is None else self._native.size

    def close(self) -> None:
        """Closes the idle ones; those in use are closed when they come back."""
        self._native = None

    def _leave_to_parent(self) -> None:
        """This is a child process: the connections are its parent's, and it begins without any."""
        if self._native is not None:
            forking.LEFT.append(self._native)
            self._native = _native.ConnectionPool(*self._made_of)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
