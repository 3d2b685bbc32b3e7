"""COPY for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from onetrip import errors
from onetrip._base.copying import BaseCopy, parts, reason
from onetrip._native import ArrowRows
from onetrip.aio.turns import entered, left, to_its_end

if TYPE_CHECKING:
    from onetrip._base.cursor import ArrowData
    from onetrip.aio.connection import AsyncConnection
    from onetrip.aio.cursor import AsyncCursor


class AsyncCopy(BaseCopy):
    """A COPY under way, as `onetrip.Copy`: `async with cursor.copy("COPY ... FROM STDIN") as copy`. The connection is
    this block's alone: other tasks wait for the end of the block."""

    cursor: AsyncCursor[Any]
    _BLOCK = "async with"

    def __init__(self, cursor: AsyncCursor[Any], statement: str) -> None:
        super().__init__(cursor, statement)
        self._connection: AsyncConnection[Any] = cursor.connection

    async def write(self, data: str | bytes | bytearray | memoryview) -> None:
        """Adds data, in the format that the statement asks for; cut anywhere."""
        self._start(True)
        for part in parts(data):
            if self._state.buffer.write(part):
                await self._send()

    async def write_row(self, row: Sequence[Any]) -> None:
        """Adds a row, in the text or the binary format. In text, the server reads each value as text of the column's
        type. In binary it converts nothing: a value has the type that `set_types` has said, or else the one that it has
        as a parameter."""
        if (self._add or self._adder())(row):
            await self._send()

    async def write_rows(self, rows: Iterable[Sequence[Any]]) -> None:
        """Adds rows, each as `write_row` does, by one call: for many rows that takes a fraction of the time."""
        self._start(True)
        prepared = self._state.prepared(rows)
        while self._state.buffer.write_rows(prepared):
            await self._send()

    async def write_arrow(self, data: ArrowData) -> None:
        """Adds the rows of a table, a batch or a stream of Arrow, a column for each of the COPY's, in the text or the
        binary format. In binary a value has the type that `set_types` has said, or else the one that Arrow's type is."""
        rows = ArrowRows(data)
        self._start(True)
        while self._state.buffer.write_arrow(rows):
            await self._send()

    async def read(self) -> bytes:
        """The next piece of data, in the text formats a row; empty at the end."""
        if not self._state.pieces and not await self._receive():
            return b""
        return self._state.pieces.pop()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while piece := await self.read():
            yield piece

    async def rows(self) -> AsyncIterator[tuple[Any, ...]]:
        """The rows of a COPY in the text or the binary format: of `str` (in binary of `bytes`) and None, unless
        `set_types` has said what they are."""
        while (row := await self.read_row()) is not None:
            yield row

    async def read_row(self) -> tuple[Any, ...] | None:
        """The next row, as `rows` gives it; None at the end."""
        while piece := await self.read():
            if (row := self._row_maker()(piece)) is not None:
                return row
        return None

    async def __aenter__(self) -> AsyncCopy:
        self._connection._check_alone()
        await self._connection._lock.acquire()
        try:
            self._enter()
        except BaseException:
            self._connection._lock.release()
            raise
        self._connection._block = self
        entered(self)
        self.cursor._take([])
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        try:
            if error is None:
                await self._finish()
            elif not self._state.is_over and self._state.gives is not None:
                await to_its_end(self._give_up(reason(error)))
        except asyncio.CancelledError:
            await to_its_end(self._give_up("the task was cancelled"))
            raise
        finally:
            left(self)
            self._connection._block = None
            self._connection._transport.go_on_reading()
            self._state.is_over = True
            self._forget_adder()
            self._is_open = False
            self._connection._lock.release()
            self._connection._tell_what_came()

    def _start(self, gives: bool) -> None:
        self._check()
        if self._state.begins(gives):
            self._connection._wire().ask_copy(self._state.statement, gives, self._connection._begins)
            self._connection._transport.flush()

    async def _send(self) -> None:
        if self._connection._wire().send_copy(self._state.buffer):
            await self._connection._transport.flushed()
        else:
            self._forget_adder()
            await self._finish()  # raises what the server has said

    async def _receive(self) -> bool:
        """Takes the next pieces; whether there are any."""
        if self._state.is_over and self._state.gives is False:
            return False
        self._check()
        self._start(False)
        pieces = await self._connection._transport.copied()
        if not pieces:
            self._end()
        # Taken from the end on.
        self._state.pieces = pieces[::-1]
        return bool(pieces)

    async def _finish(self) -> None:
        state = self._state
        if state.is_over:
            return
        if state.gives is None:
            self._start(state.direction)
        if state.gives:
            state.is_over = True
            self._connection._wire().end_copy(state.buffer, None)
            await self._connection._transport.answered()
        else:
            self._drop_rest()
            await self._connection._transport.answered()
        self._end()

    async def _give_up(self, why: str) -> None:
        if self._connection.closed:
            return
        if self._state.gives and not self._state.is_over:
            self._state.is_over = True
            with contextlib.suppress(errors.Error):  # the exception on its way tells more
                self._connection._wire().end_copy(self._state.buffer, why)
                await self._connection._transport.answered()
        else:
            self._drop_rest()
            await self._connection._abandon()

    def _drop_rest(self) -> None:
        self._connection._wire().drop_copied()
        self._connection._transport.go_on_reading()

    def _end(self) -> None:
        self._state.is_over = True
        (answer,) = self._connection._wire().answers()
        self.cursor._count = answer.count
