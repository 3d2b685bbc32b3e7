"""The cursor for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from onetrip import _native, arrow
from onetrip import numpy as arrays
from onetrip.adapt import AdaptersMap, Format, adapters
from onetrip.aio.copying import AsyncCopy
from onetrip.aio.lob import AsyncLobReader
from onetrip.aio.turns import to_its_end
from onetrip.copying import composed
from onetrip.cursor import BINARY, ONCE, RAW, By, Params, Row, Statement, check_size, no_rows, scroll, wanted
from onetrip.dbapi import Column
from onetrip.errors import Error, InterfaceError, NotSupportedError, OperationalError, ProgrammingError
from onetrip.lob import Found
from onetrip.rows import MakesRows
from onetrip.sql import text_of

if TYPE_CHECKING:
    import numpy
    import pyarrow
    from typing_extensions import Self

    from onetrip.aio.connection import AsyncConnection
    from onetrip.aio.pipeline import AsyncOperation, AsyncPipeline
    from onetrip.lob import LobColumn, Prefetch
    from onetrip.rows import RowFactory


class AsyncCursor(MakesRows):
    """Runs statements and gives out their rows, as `onetrip.Cursor`."""

    _HOW = 0
    _MERGES = False

    def __init__(self, connection: AsyncConnection, *, row_factory: RowFactory | None = None) -> None:
        super().__init__(row_factory or connection.row_factory)
        self.connection = connection
        self.arraysize = 1
        self._adapters: AdaptersMap | None = None
        self._how = self._HOW
        self._closed = False
        self._answers: list[_native.Answer] = []
        # What has joined the block of a pipeline, until somebody asks for its results.
        self._operations: list[AsyncOperation] = []
        self._sums = False
        self._count = -1
        self._at = 0

    async def execute(
        self,
        statement: Statement,
        params: Params = None,
        *,
        prepare: bool | None = None,
        binary: bool | None = None,
    ) -> Self:
        """Runs a statement; without parameters it may be several. `prepare` and `binary` are `onetrip.Cursor`'s."""
        if self._closed:
            raise InterfaceError("the cursor is closed")
        self._take([])
        connection = self.connection
        if not isinstance(statement, str):
            statement = text_of(statement, self)
        how = self._how
        if prepare is not None or binary is not None:
            how = wanted(how, prepare, binary)
        own = self._adapters or connection._adapters
        if own is not None:
            params = own._params(params)
        if self._MERGES:
            statement, params = self._merged(statement, params, how), None
        block = connection._own_block() if connection._block is not None else None
        if block is not None:
            self._operations = [await block._add(statement, params, how)]
        else:
            self._take(await connection._run(statement, params, connection._begins, how))
        return self

    async def stream(
        self, statement: Statement, params: Params = None, *, binary: bool | None = None, size: int = 1
    ) -> AsyncIterator[Row]:
        """Runs a statement and gives out its rows as they arrive, as `onetrip.Cursor.stream`. The connection is the
        loop's alone: other tasks wait for its end. A loop that is left early is ended by `aclose()`, or by
        `contextlib.aclosing`."""
        check_size(size)
        self._check()
        self._take([])
        connection = self.connection
        connection._check_alone()
        how = self._how if binary is None else wanted(self._how, None, binary)
        statement, own = text_of(statement, self), self._adapters or connection._adapters
        if own is not None:
            params = own._params(params)
        if self._MERGES:
            statement, params = self._merged(statement, params, how), None
        await connection._lock.acquire()
        is_over = False
        try:
            connection._wire().ask(statement, params, connection._begins, how, True)
            connection._stream = asyncio.current_task()
            while not is_over:
                try:
                    answer = await connection._transport.rows()
                    is_over = answer is None
                    if answer is None:
                        (answer,) = connection._wire().answers()
                except Error:
                    is_over = True
                    raise
                self._take([answer])
                if answer.columns is None and is_over and not answer.tag.startswith("SELECT"):
                    raise ProgrammingError("the statement returned no rows: execute() is for such")
                while (row := answer.one()) is not None:
                    yield row if self._factory is None else self._make(row)
                    if connection.closed:
                        raise OperationalError("the connection is closed")
        finally:
            connection._stream = None
            try:
                if not is_over and not connection.closed:
                    connection._wire().drop_copied()
                    connection._transport.go_on_reading()
                    await to_its_end(connection._abandon())
                if connection._is_heard and not connection.closed:
                    connection._tell()
            finally:
                connection._lock.release()

    async def executemany(
        self, statement: Statement, rows: Iterable[Any], *, by: By = "auto", returning: bool = False
    ) -> None:
        """Runs a statement once for each of `rows`, as `onetrip.Cursor.executemany`. Their parameters are written
        before the first leaves."""
        self._check()
        self._take([])
        connection, how = self.connection, self._how
        statement, own = text_of(statement, self), self._adapters or connection._adapters
        if own is not None:
            rows = map(own._params, rows)
        if self._MERGES:
            rows, how = [self._merged(statement, row, how) for row in rows], ONCE
        block = connection._own_block()
        if block is None and not returning and not self._MERGES:
            self._count = await connection._run_many(statement, rows, by, how)
            if connection._is_heard:
                connection._tell()
            return
        if by in ("unnest", "copy"):
            raise ProgrammingError(
                f"rows whose results are wanted, or in a pipeline's block, go by 'pipeline', not by {by!r}"
            )
        if block is not None:
            await self._add_each(block, statement, rows, how)
        else:
            async with connection.pipeline() as pipeline:
                await self._add_each(pipeline, statement, rows, how)
        self._sums = not returning
        if not self._operations:
            self._count = 0
        self._look()

    async def _add_each(self, block: AsyncPipeline, statement: str, rows: Iterable[Any], how: int) -> None:
        if self._MERGES:
            self._operations = [await block._add(row, None, how) for row in rows]
        else:
            self._operations = [await block._add(statement, row, how) for row in rows]

    def copy(self, statement: Statement, params: Params = None) -> AsyncCopy:
        """A COPY whose data goes in or comes out by the piece, as `onetrip.Cursor.copy`; to be used by `async with`."""
        self._check()
        statement, own = text_of(statement, self), self._adapters or self.connection._adapters
        if own is not None:
            params = own._params(params)
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
        if self._at + 1 >= len(self._answers):
            return None
        self._at += 1
        self._make_maker()
        return True

    async def results(self) -> AsyncIterator[AsyncCursor]:
        """The cursor, once for each result that is left: at that result."""
        if self._operations:
            await self._settled_all()
        if self._answers:
            yield self
            while self.nextset():
                yield self

    async def set_result(self, index: int) -> Self:
        """Goes to one of the results, from the end for a negative number."""
        await self._settled_all()
        if not -len(self._answers) <= index < len(self._answers):
            raise IndexError(f"there are {len(self._answers)} results, and none with index {index}")
        self._at = index % len(self._answers)
        self._make_maker()
        return self

    async def scroll(self, value: int, mode: str = "relative") -> None:
        """Moves to another row of the result."""
        scroll(await self._settled(), value, mode)

    def setinputsizes(self, sizes: Any) -> None:
        """Does nothing, as DB-API allows."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Does nothing, as DB-API allows."""

    async def close(self) -> None:
        """Gives the rows back."""
        self._take([])
        self._closed = True

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    @property
    def adapters(self) -> AdaptersMap:
        """What of values is written and made by the program's own functions, by this cursor."""
        if self._adapters is None:
            self._adapters = AdaptersMap(self.connection._adapters or adapters)
        return self._adapters

    @property
    def format(self) -> Format:
        """How values come: as text, or in their types' binary form."""
        return Format(self._how & BINARY)

    @format.setter
    def format(self, format: int) -> None:
        self._how = wanted(self._how, None, bool(format))

    @property
    def description(self) -> list[Column] | None:
        """The columns of the result; None where there is none."""
        self._look()
        columns = self._answers[self._at].columns if self._answers else None
        return None if columns is None else [Column.of(*column) for column in columns]

    @property
    def rowcount(self) -> int:
        """Rows that were returned or changed; -1 where the statement counts none."""
        self._look()
        return self._answers[self._at].count if self._answers else self._count

    @property
    def rownumber(self) -> int | None:
        """Position of the next row, from zero."""
        self._look()
        answer = self._answers[self._at] if self._answers else None
        return None if answer is None or answer.columns is None else answer.at

    @property
    def statusmessage(self) -> str | None:
        """What the server says that it did."""
        self._look()
        return (self._answers[self._at].tag or None) if self._answers else None

    async def __aenter__(self) -> AsyncCursor:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _check(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed")
        self.connection._wire()

    def _merged(self, statement: str, params: Params, how: int) -> str:
        """The statement with its parameters written into it."""
        if how & BINARY:
            raise NotSupportedError("a client cursor has values as text only: leave out binary=True")
        return composed(statement, params, self.connection.parameter_status("client_encoding"))

    def _take(self, answers: list[_native.Answer]) -> None:
        own = self._adapters
        if own is not None and answers:
            wire = self.connection._wire()
            for answer in answers:
                wire.load_by(answer, *own._functions)
        self._answers = answers
        self._at = 0
        self._maker = None
        self._operations = []
        if not answers:
            self._count = -1
        elif self._factory is not None:
            self._make_maker()

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
        if self._closed:
            raise InterfaceError("the cursor is closed")
        if not self._answers or self._answers[self._at].columns is None:
            raise no_rows(self._answers[self._at] if self._answers else None)
        return self._answers[self._at]


class AsyncRawCursor(AsyncCursor):
    """A cursor whose statements have `$1`, `$2`, … for placeholders, as `onetrip.RawCursor`."""

    _HOW = RAW


class AsyncClientCursor(AsyncCursor):
    """A cursor that writes parameters into the statement's text, as `onetrip.ClientCursor`."""

    _HOW = ONCE
    _MERGES = True

    def mogrify(self, statement: Statement, params: Params = None) -> str:
        """The statement with its parameters written into it."""
        own = self._adapters or self.connection._adapters
        given = params if own is None else own._params(params)
        return self._merged(text_of(statement, self), given, 0)
