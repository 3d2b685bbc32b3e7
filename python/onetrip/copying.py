"""COPY, whose data goes in and comes out by the piece."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from onetrip import _native, errors
from onetrip.errors import ProgrammingError

if TYPE_CHECKING:
    from onetrip.cursor import Cursor

# Data of the program that is taken at once.
_PART = 256 * 1024

_DIRECTION = re.compile(r"\b(FROM\s+STDIN|TO\s+STDOUT)\b", re.IGNORECASE)


class CopyState:
    """Where a COPY stands: the same for both kinds of connections."""

    def __init__(self, statement: str) -> None:
        self.statement = statement
        self.buffer = _native.CopyBuffer()
        self.pieces: list[bytes] = []
        self.is_over = False
        self._gives: bool | None = None
        self._types: list[str | int] = []
        self._rows: _native.CopyRows | None = None
        named = {word.upper().split()[0] for word in _DIRECTION.findall(statement)}
        self._named = {"FROM": True, "TO": False}[named.pop()] if len(named) == 1 else None

    @property
    def gives(self) -> bool | None:
        """Whether it is the program that gives the data; None as long as nobody knows."""
        return self._gives

    def begins(self, gives: bool) -> bool:
        """Says which way the data goes; whether the statement has still to be sent."""
        if self.is_over:
            raise ProgrammingError("the COPY has ended")
        if self._gives not in (None, gives) or self._named not in (None, gives):
            raise ProgrammingError(f"this COPY has data to {'read' if gives else 'be written'}")
        begins, self._gives = self._gives is None, gives
        return begins

    @property
    def direction(self) -> bool:
        """Which way it goes where nobody has read or written."""
        return self._named is not False

    def set_types(self, types: Sequence[str | int]) -> None:
        """Takes the types of rows that are read."""
        self._types, self._rows = list(types), None

    def row(self, line: bytes, loaders: dict[int, Any]) -> tuple[Any, ...]:
        """The values of a row in text format."""
        if self._rows is None:
            self._rows = _native.CopyRows(self._types, loaders)
        return self._rows.row(line)


def parts(data: Any) -> Iterable[Any]:
    """Data of a program in parts that are not too long."""
    if isinstance(data, str):
        view: Any = data
    elif isinstance(data, bytes | bytearray | memoryview):
        if len(data) <= _PART and not isinstance(data, memoryview):
            return (data,)
        view = memoryview(data).cast("B")
    else:
        raise TypeError(f"data of COPY is bytes or str, not {type(data).__name__}")
    return (view[at : at + _PART] for at in range(0, len(view), _PART))


def reason(error: BaseException | None) -> str:
    """Why a program gave a COPY up, for the server's log."""
    return f"error from Python: {type(error).__name__}: {error}"[:1000] if error else "the client gave up"


class Copy:
    """A COPY under way: `with cursor.copy("COPY ... FROM STDIN") as copy`. The statement is sent with its first data;
    the end of the block waits for the server. An exception in the block gives it up, and nothing of it is kept.

    What waits in memory is bounded, in either direction."""

    def __init__(self, cursor: Cursor, statement: str) -> None:
        self.cursor = cursor
        self._state = CopyState(statement)
        self._is_open = False

    def write(self, data: str | bytes | bytearray | memoryview) -> None:
        """Adds data, in the format that the statement asks for; cut anywhere."""
        self._start(True)
        buffer = self._state.buffer
        for part in parts(data):
            if buffer.write(part):
                self._session().send_copy(buffer)

    def write_row(self, row: Sequence[Any]) -> None:
        """Adds a row in the text format. The server reads each value as text of the column's type."""
        self._start(True)
        if self._state.buffer.write_row(row):
            self._session().send_copy(self._state.buffer)

    def read(self) -> bytes:
        """The next piece of data, in the text formats a row; empty at the end."""
        if not self._state.pieces and not self._receive():
            return b""
        return self._state.pieces.pop()

    def __iter__(self) -> Iterator[bytes]:
        while piece := self.read():
            yield piece

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """The rows of a COPY in the text format: of `str` and None, unless `set_types` has said what they are."""
        while (row := self.read_row()) is not None:
            yield row

    def read_row(self) -> tuple[Any, ...] | None:
        """The next row, as `rows` gives it; None at the end."""
        line = self.read()
        return self._state.row(line, self._session().loaders) if line else None

    def set_types(self, types: Sequence[str | int]) -> None:
        """The types of the columns that are read, by name ("int4", "date", "text[]") or id."""
        self._state.set_types(types)

    def __enter__(self) -> Copy:
        connection = self.cursor.connection
        connection._session()
        self._is_open = True
        connection._copy = self
        self.cursor._take([])
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        try:
            if error is None:
                self._finish()
            elif not self._state.is_over and self._state.gives is not None and not self.cursor.connection.closed:
                self._give_up(error)
        finally:
            self._state.is_over = True
            self._is_open = False
            self.cursor.connection._copy = None

    def _session(self) -> _native.Session:
        return self.cursor.connection._any_session()

    def _check(self) -> None:
        if not self._is_open:
            raise ProgrammingError("a COPY is used within its block: with cursor.copy(...) as copy")

    def _start(self, gives: bool) -> None:
        self._check()
        if self._state.begins(gives):
            self._session().begin_copy(self._state.statement, gives, self.cursor.connection._begins)

    def _receive(self) -> bool:
        """Takes the next pieces; whether there are any."""
        self._check()
        if self._state.is_over and self._state.gives is False:
            return False
        self._start(False)
        try:
            pieces, rows = self._session().receive_copy()
        except BaseException:
            self._state.is_over = True
            raise
        if not pieces:
            self._end(rows)
        # Taken from the end on.
        self._state.pieces = pieces[::-1]
        return bool(pieces)

    def _finish(self) -> None:
        state = self._state
        if state.is_over:
            return
        if state.gives is None:
            self._start(state.direction)
        self._end(self._session().end_copy(state.buffer, None) if state.gives else self._session().drain_copy())

    def _give_up(self, error: BaseException) -> None:
        session = self._session()
        try:
            if self._state.gives:
                session.end_copy(self._state.buffer, reason(error))
            else:
                session.cancel()
                session.drain_copy()
        except errors.Error:
            pass  # the exception on its way tells more

    def _end(self, rows: int | None) -> None:
        self._state.is_over = True
        self.cursor._count = -1 if rows is None else rows
