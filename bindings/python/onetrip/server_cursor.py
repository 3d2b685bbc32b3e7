# Made from aio/server_cursor.py by tests/test_twins.py: change that one.
"""Cursors that the server keeps, for results that are not to be fetched whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from onetrip import arrow
from onetrip import numpy as arrays
from onetrip._base.cursor import RAW, By, Params, ParamsSeq, Row, Statement, check_size, wanted
from onetrip._base.server_cursor import ROWS_AHEAD, Declaration, Moves
from onetrip.cursor import Cursor
from onetrip.errors import InterfaceError, NotSupportedError, ProgrammingError

if TYPE_CHECKING:
    import numpy
    import pyarrow
    from typing_extensions import Self

    from onetrip._native import Answer, ArrowBatch
    from onetrip.connection import Connection
    from onetrip.rows import RowFactory

__all__ = ["ROWS_AHEAD", "Declaration", "Moves", "RawServerCursor", "ServerCursor"]


class ServerCursor(Moves, Cursor[Row]):
    """A named cursor. DECLARE and the first FETCH are one trip; iteration fetches `itersize` rows at a time."""

    def __init__(
        self,
        connection: Connection[Any],
        name: str,
        *,
        row_factory: RowFactory[Row] | None = None,
        scrollable: bool | None = None,
        withhold: bool = False,
    ) -> None:
        super().__init__(connection, row_factory=row_factory)
        self.name = name
        self.scrollable = scrollable
        self.withhold = withhold
        self.itersize = ROWS_AHEAD
        self._declaration = Declaration(name, scrollable, withhold)
        self._number = 0
        # How rows come, which `execute` may have said for one query.
        self._how_fetched: int | None = None
        self._is_declared = False
        self._is_at_end = False
        self._position: int | None = None

    def execute(self, query: Statement, params: Params = None, *, binary: bool | None = None, **keywords: Any) -> Self:
        """Declares the cursor for a query, and fetches its first `itersize` rows: set it to 1 for UPDATE ... WHERE
        CURRENT OF, which needs the server to stand where the program does."""
        if keywords:
            raise TypeError(f"a named cursor has no argument {', '.join(keywords)}")
        if self._closed:
            raise InterfaceError("the cursor is closed")
        self._give_back()
        how = self._how if binary is None else wanted(self._how, None, binary)
        text, params = self._asked(query, params, how)
        connection, declaration = self.connection, self._declaration
        self._number = connection._declared
        connection._declared += 1
        with connection._pipeline_alone() as pipeline:
            # The statement's parameters are written as those of any other.
            pipeline._add(declaration.declare(text), params, how)
            fetched = pipeline._add(declaration.fetch(self.itersize, self._number), None, how)
        self._how_fetched = how
        self._is_declared = True
        self._transaction = connection._transactions_ended
        self._position = 0
        self._came(fetched._done(), self.itersize)
        return self

    def executemany(self, query: Statement, params_seq: ParamsSeq, *, by: By = "auto", returning: bool = False) -> None:
        """Not for named cursors."""
        raise NotSupportedError("a named cursor runs one query: use a cursor without a name")

    def stream(
        self, query: Statement, params: Params = None, *, binary: bool | None = None, size: int = 1
    ) -> Iterator[Row]:
        """As `execute` and iteration, which fetch by the piece anyway."""
        check_size(size)
        self.execute(query, params, binary=binary)
        while rows := self._some(1):
            yield rows[0]

    def fetchone(self) -> Row | None:
        """The next row; None at the end."""
        rows = self._some(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next rows, fewer at the end."""
        return self._some(size or self.arraysize)

    def fetchall(self) -> list[Row]:
        """All rows that are left."""
        return self._made(self._raw(None))

    def fetch_arrow(self) -> pyarrow.Table:
        """All rows that are left, as a table of Arrow. What was not fetched yet comes by one trip."""
        parts = [arrow.table(self._rows())]
        if not self._is_at_end:
            self._fetch(None)
            parts.append(arrow.table(self._rows()))
        return arrow.joined(parts)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """A capsule of Arrow's stream of the rows that are left, which fetches `itersize` rows at a time."""
        batching = arrow.Batching(arrow.STREAM_ROWS)
        stream = arrow.ArrowStream(batching, self._arrow_batches(batching, None))
        return stream.__arrow_c_stream__(requested_schema)

    def _arrow_batches(
        self, batching: arrow.Batching, query: Statement | None, params: Params = None, binary: bool | None = None
    ) -> Iterator[ArrowBatch | None]:
        """The rows of a query, or those that are left where there is none, by the piece."""
        if query is not None:
            self.execute(query, params, binary=binary)
        self._raw(0)  # the cursor may be somebody else's
        builder = batching.builder_of(self._rows())
        yield None
        while True:
            if self._position is not None:
                self._position += self._unread()
            builder.begin(self._rows())
            while builder.add():
                yield batching.full(builder)
            if self._is_at_end:
                break
            self._fetch(self.itersize)
        yield batching.last(builder)

    def fetch_numpy(self) -> dict[str, numpy.ndarray[Any, Any]]:
        """All rows that are left, as an array of numpy for each column. What was not fetched yet comes by one trip."""
        parts = [arrays.columns(self._rows())]
        if not self._is_at_end:
            self._fetch(None)
            parts.append(arrays.columns(self._rows()))
        return arrays.joined(parts)

    def __next__(self) -> Row:
        rows = self._some(1)
        if not rows:
            raise StopIteration
        return rows[0]

    def scroll(self, value: int, mode: str = "relative") -> None:
        """Moves the server's cursor; backwards only if it is scrollable."""
        if self._seeks(value, mode):
            return
        self._run(self._declaration.move(value, mode, self._unread(), self._is_at_end))
        self._is_at_end = False
        self._rows().seek(len(self._rows()))
        if self._position is not None:
            self._position = value if mode == "absolute" else self._position + value

    def close(self) -> None:
        """Closes it, along with the next statement; one of this name that somebody else has declared, too."""
        if not self._closed:
            self._is_declared = True
            self._give_back()
            super().close()

    @property
    def rowcount(self) -> int:
        """-1: the server does not say how many rows there are."""
        return -1

    @property
    def rownumber(self) -> int | None:
        """Position of the next row, from zero, as far as this cursor has moved."""
        return self._position

    def _some(self, count: int) -> list[Row]:
        return self._made(self._raw(count))

    def _raw(self, size: int | None) -> list[tuple[Any, ...]]:
        if not self._is_declared and not self._closed:
            # Somebody else may have declared it.
            self._is_declared = True
            try:
                self._fetch(None if size is None else max(self.itersize, size))
            except BaseException:
                self._is_declared = False
                raise
            self._position = 0
        if self._has_ended():
            # What was read ahead is not given out: the server says that there is no such cursor.
            self._fetch(1)
        rows = self._rows().many(self._unread() if size is None else size)
        while not self._is_at_end and (size is None or len(rows) < size):
            self._fetch(None if size is None else max(self.itersize, size - len(rows)))
            rows += self._rows().many(self._unread() if size is None else size - len(rows))
        if self._position is not None:
            self._position += len(rows)
        return rows

    def _fetch(self, rows: int | None) -> None:
        self._came(self._run(self._declaration.fetch(rows, self._number)), rows)

    def _run(self, statement: str) -> Answer:
        if not self._is_declared:
            raise ProgrammingError("there are no rows: no query was run")
        (answer,) = self.connection._run(
            statement, None, False, self._how if self._how_fetched is None else self._how_fetched
        )
        return answer

    def _came(self, answer: Answer, asked: int | None) -> None:
        self._take([answer])
        self._is_at_end = asked is None or len(answer) < asked

    def _unread(self) -> int:
        rows = self._rows()
        return len(rows) - rows.at

    def _give_back(self) -> None:
        if self._is_declared and not self.connection.closed:
            self.connection._close_portal(self.name)
        self._is_declared = False
        self._transaction = None
        self._take([])


class RawServerCursor(ServerCursor[Row]):
    """A named cursor whose statement has `$1`, `$2`, … for placeholders."""

    _HOW = RAW
