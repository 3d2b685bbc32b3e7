"""The cursor for asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from onetrip import _native, arrow
from onetrip import numpy as arrays
from onetrip.aio.copying import AsyncCopy
from onetrip.aio.lob import AsyncLobReader
from onetrip.copying import composed
from onetrip.cursor import By, Params, Row, Statement
from onetrip.dbapi import Column
from onetrip.errors import ProgrammingError
from onetrip.lob import Found
from onetrip.rows import MakesRows
from onetrip.sql import text_of

if TYPE_CHECKING:
    import numpy
    import pyarrow

    from onetrip.aio.connection import AsyncConnection
    from onetrip.aio.pipeline import AsyncOperation
    from onetrip.lob import LobColumn, Prefetch
    from onetrip.rows import RowFactory


class AsyncCursor(MakesRows):
    """Runs statements and gives out their rows, as `onetrip.Cursor`."""

    def __init__(self, connection: AsyncConnection, *, row_factory: RowFactory | None = None) -> None:
        super().__init__(row_factory)
        self.connection = connection
        self.arraysize = 1
        self._answers: list[_native.Answer] = []
        # What has joined the block of a pipeline, until somebody asks for its results.
        self._operations: list[AsyncOperation] = []
        self._sums = False
        self._count = -1

    async def execute(self, statement: Statement, params: Params = None) -> AsyncCursor:
        """Runs a statement; without parameters it may be several."""
        self._take([])
        connection = self.connection
        if not isinstance(statement, str):
            statement = text_of(statement, connection)
        block = connection._own_block() if connection._block is not None else None
        if block is not None:
            self._operations = [await block.execute(statement, params)]
        else:
            self._take(await connection._run(statement, params, connection._begins))
        return self

    async def executemany(self, statement: Statement, rows: Iterable[Any], *, by: By = "auto") -> None:
        """Runs a statement once for each of `rows`, as `onetrip.Cursor.executemany`. Their parameters are written
        before the first leaves."""
        self._take([])
        statement = text_of(statement, self.connection)
        block = self.connection._own_block()
        if block is None:
            self._count = await self.connection._run_many(statement, rows, by)
            return
        if by in ("unnest", "copy"):
            raise ProgrammingError(f"in the block of a pipeline, rows go by 'pipeline', not by {by!r}")
        self._operations = [await block.execute(statement, row) for row in rows]
        self._sums = True

    def copy(self, statement: Statement, params: Params = None) -> AsyncCopy:
        """A COPY whose data goes in or comes out by the piece, as `onetrip.Cursor.copy`; to be used by `async with`."""
        statement = text_of(statement, self.connection)
        return AsyncCopy(self, composed(statement, params, self.connection.parameter_status("client_encoding")))

    async def fetchone(self) -> Row | None:
        """The next row; None at the end."""
        row = (await self._settled()).one()
        return row if row is None or self._factory is None else self._make(row)

    async def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next rows."""
        return self._made((await self._settled()).many(self.arraysize if size is None else size))

    async def fetchall(self) -> list[Row]:
        """All rows that are left."""
        rows = await self._settled()
        return self._made(rows.many(len(rows)))

    async def fetch_lobs(
        self, columns: Mapping[str, LobColumn | None], *, size: int | None = None, prefetch: Prefetch | None = None
    ) -> list[Row]:
        """Rows with readers in place of the keys of large values, as `onetrip.Cursor.fetch_lobs`."""
        connection = self.connection
        found = Found(await self._raw(size), self.description or (), columns)
        await connection._prefetch(found.natives, prefetch)
        return self._made(found.rows(lambda native: AsyncLobReader(connection, native)))

    async def fetch_arrow(self) -> pyarrow.Table:
        """All rows that are left, as a table of Arrow. It needs the package pyarrow."""
        return arrow.table(await self._settled())

    async def fetch_numpy(self) -> dict[str, numpy.ndarray[Any, Any]]:
        """All rows that are left, as an array of numpy for each column. It needs the package numpy."""
        return arrays.columns(await self._settled())

    async def __aiter__(self) -> AsyncIterator[Row]:
        rows = await self._settled()
        while (row := rows.one()) is not None:
            yield row if self._factory is None else self._make(row)

    def nextset(self) -> bool | None:
        """Steps to the result of the next statement; None where there is none."""
        self._look()
        if len(self._answers) < 2:
            return None
        self._take(self._answers[1:])
        return True

    async def results(self) -> AsyncIterator[AsyncCursor]:
        """The cursor, once for each result that is left: at that result."""
        if self._operations:
            await self._settled_all()
        if self._answers:
            yield self
            while self.nextset():
                yield self

    async def close(self) -> None:
        """Gives the rows back."""
        self._take([])

    @property
    def description(self) -> list[Column] | None:
        """The columns of the result; None where there is none."""
        self._look()
        columns = self._answers[0].columns if self._answers else None
        return None if columns is None else [Column.of(*column) for column in columns]

    @property
    def rowcount(self) -> int:
        """Rows that were returned or changed; -1 where the statement counts none."""
        self._look()
        return self._answers[0].count if self._answers else self._count

    @property
    def statusmessage(self) -> str | None:
        """What the server says that it did."""
        self._look()
        return self._answers[0].tag if self._answers else None

    async def __aenter__(self) -> AsyncCursor:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _take(self, answers: list[_native.Answer]) -> None:
        self._answers = answers
        self._maker = None
        self._operations = []

    async def _settled_all(self) -> None:
        """Waits for the answers of what has joined the block of a pipeline."""
        if self._operations:
            await self._operations[-1]._came()
            self._look()

    async def _settled(self) -> _native.Answer:
        await self._settled_all()
        return self._rows()

    def _look(self) -> None:
        """Takes the answers of what has joined the block of a pipeline, if they are here."""
        operations = self._operations
        if operations and operations[-1]._is_answered():
            answers = [operation._done() for operation in operations]
            self._take([] if self._sums else answers)
            if self._sums:
                self._count, self._sums = sum(answer.count for answer in answers), False

    async def _raw(self, size: int | None) -> list[tuple[Any, ...]]:
        rows = await self._settled()
        return rows.many(len(rows) if size is None else size)

    def _rows(self) -> _native.Answer:
        if not self._answers or self._answers[0].columns is None:
            raise ProgrammingError("there are no rows: the last statement returned none, or none was run")
        return self._answers[0]
