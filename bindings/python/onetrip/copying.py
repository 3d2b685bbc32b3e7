"""COPY, whose data goes in and comes out by the piece."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from onetrip import _native, errors
from onetrip._base.copying import BaseCopy, parts, reason
from onetrip._native import ArrowRows, RowWriter

if TYPE_CHECKING:
    from onetrip._base.cursor import ArrowData
    from onetrip.cursor import Cursor


class Copy(BaseCopy, RowWriter):
    """A COPY under way: `with cursor.copy("COPY ... FROM STDIN") as copy`. The statement is sent with its first data;
    the end of the block waits for the server. An exception in the block gives it up, and nothing of it is kept.

    What waits in memory is bounded, in either direction."""

    cursor: Cursor[Any]
    _held: _native.Session

    def write(self, data: str | bytes | bytearray | memoryview) -> None:
        """Adds data, in the format that the statement asks for; cut anywhere."""
        self._start(True)
        buffer = self._state.buffer
        for part in parts(data):
            if buffer.write(part):
                self._session().send_copy(buffer)

    def write_rows(self, rows: Iterable[Sequence[Any]]) -> None:
        """Adds rows, each as `write_row` does, by one call: for many rows that takes a fraction of the time."""
        self._start(True)
        prepared = self._state.prepared(rows)
        while self._state.buffer.write_rows(prepared):
            self._send_due()

    def write_arrow(self, data: ArrowData) -> None:
        """Adds the rows of a table, a batch or a stream of Arrow, a column for each of the COPY's, in the text or the
        binary format. In binary a value has the type that `set_types` has said, or else the one that Arrow's type is."""
        rows = ArrowRows(data)
        self._start(True)
        while self._state.buffer.write_arrow(rows):
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
        """The rows of a COPY in the text or the binary format: of `str` (in binary of `bytes`) and None, unless
        `set_types` has said what they are."""
        make = self._row_maker()
        while piece := self.read():
            if (row := make(piece)) is not None:
                yield row

    def read_row(self) -> tuple[Any, ...] | None:
        """The next row, as `rows` gives it; None at the end."""
        make = self._row_maker()
        while piece := self.read():
            if (row := make(piece)) is not None:
                return row
        return None

    def __enter__(self) -> Copy:
        connection = self.cursor.connection
        connection._check_alone()
        self._enter()
        session = connection._native_part()
        try:
            # Other threads wait from here on.
            session.hold()
        except BaseException:
            self._is_open = False
            raise
        self._held, connection._copy, connection._holder = session, self, threading.get_ident()
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
            self._forget_adder()
            self._is_open = False
            connection = self.cursor.connection
            connection._copy, connection._holder = None, 0
            self._held.release()
            connection._tell_what_came()

    def _session(self) -> _native.Session:
        return self.cursor.connection._native_part()

    def _start(self, gives: bool) -> None:
        self._check()
        if self._state.begins(gives):
            self._session().begin_copy(self._state.statement, gives, self.cursor.connection._begins)

    def _add_row(self, row: Sequence[Any]) -> bool:
        """Takes a row that the native part of `write_row` has nowhere to put; whether data is due."""
        return (self._add or self._adder())(row)

    def _adder(self) -> Callable[[Sequence[Any]], bool]:
        add = super()._adder()
        self._write_into(self._state.buffer if self._state.is_direct else None)
        return add

    def _forget_adder(self) -> None:
        super()._forget_adder()
        self._write_into(None)

    def _send_due(self) -> None:
        self._session().send_copy(self._state.buffer)

    def _receive(self) -> bool:
        """Takes the next pieces; whether there are any."""
        if self._state.is_over and self._state.gives is False:
            return False
        self._check()
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
