"""What a connection is, whichever way it waits."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, Literal

from onetrip import errors
from onetrip.info import ConnectionInfo
from onetrip.rows import Row, tuple_row
from onetrip.session import IsolationLevel, SessionState

OutputSource = Literal["dbms_output", "functions"]


def pairs(keywords: dict[str, Any]) -> list[tuple[str, str]]:
    """Keywords of `connect` as text; without those that say nothing."""
    return [(name, str(value)) for name, value in keywords.items() if value is not None]


class BaseConnection(SessionState[Row]):
    """What is known of a session, and asks nobody."""

    # DB-API's optional extension: the exceptions, for code that has only the connection.
    Warning = errors.Warning
    Error = errors.Error
    InterfaceError = errors.InterfaceError
    DatabaseError = errors.DatabaseError
    DataError = errors.DataError
    OperationalError = errors.OperationalError
    IntegrityError = errors.IntegrityError
    InternalError = errors.InternalError
    ProgrammingError = errors.ProgrammingError
    NotSupportedError = errors.NotSupportedError

    def __init__(self, autocommit: bool, target: Iterable[tuple[str, str]], row_factory: Any) -> None:
        super().__init__(autocommit)
        self.cursor_factory: Any = None
        self.server_cursor_factory: Any = None
        self.row_factory: Any = row_factory or tuple_row
        self._target = dict(target)
        # What has the connection for itself: the block of a pipeline; with asyncio a COPY, too.
        self._block: Any = None
        # Cursors that were declared: prepared FETCHes of one name are kept apart by it.
        self._declared = 0
        # Whether the program has closed it, which it may do with one that was lost, too.
        self._is_closed = False

    def __repr__(self) -> str:
        name = f"{type(self).__module__}.{type(self).__qualname__}"
        return f"<{name} {self._shown()} ({self.info.dsn}) at 0x{id(self):x}>"

    def __del__(self, _warn: Any = warnings.warn) -> None:
        # One that a pool has made ends with the program, and one that could not be made was never open.
        if self.__dict__.get("_is_closed", True) or self._made_at or self.closed:
            return
        _warn(f"{object.__repr__(self)} was left open: use 'with', or .close()", ResourceWarning, source=self)

    def _usable(self) -> Any:
        """The native part, where nothing has the connection for itself."""
        raise NotImplementedError

    def _own_block(self) -> Any:
        """The pipeline's block that the caller is a part of."""
        raise NotImplementedError

    def _check_alone(self) -> None:
        """Raises where the caller is a part of a block, and what it wants cannot be."""
        raise NotImplementedError

    def _check_usable(self) -> None:
        self._usable()

    def _check_no_block(self, name: str) -> None:
        """Refuses what psycopg has not in the block of a pipeline either."""
        if self._in_pipeline() and self._own_block() is not None:
            raise errors.NotSupportedError(f"{name} cannot be part of a pipeline: end its block first")

    def forget_statements(self) -> None:
        """Prepares all statements anew when they are next used: for programs that know that another connection has
        changed tables. It takes no trip. What this connection changes itself, it knows."""
        self._usable().forget_statements()

    def lines(self) -> list[str]:
        """What statements have printed since the last call: the texts of notices and what `collect_output` collects. It
        takes no trip."""
        lines: list[str] = self._usable().lines()
        return lines

    @property
    def backend_pid(self) -> int | None:
        """Process id of the server's side."""
        pid: int | None = self._native_part().backend
        return pid

    @property
    def trips(self) -> int:
        """Round trips since the session was open."""
        trips: int = self._native_part().trips
        return trips

    @property
    def info(self) -> ConnectionInfo:
        """Where the connection leads and how it stands."""
        return ConnectionInfo(self, self._target)

    def _parameter(self, keyword: str) -> str | None:
        return self._target.get(keyword)

    def _close_portal(self, name: str) -> None:
        """Closes a cursor of the server along with the next statement."""
        self._usable().close_portal(name)


__all__ = ["BaseConnection", "IsolationLevel", "OutputSource", "pairs"]
