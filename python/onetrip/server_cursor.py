"""Cursors that the server keeps, for results that are not to be fetched whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onetrip import arrow
from onetrip import numpy as arrays
from onetrip.cursor import By, Cursor, Params, Row, Statement
from onetrip.errors import InterfaceError, ProgrammingError
from onetrip.sql import text_of

if TYPE_CHECKING:
    import numpy
    import pyarrow

    from onetrip.connection import Connection
    from onetrip.rows import RowFactory

ROWS_AHEAD = 1000


class Declaration:
    """The statements of a named cursor: the same for both kinds of connections."""

    def __init__(self, name: str, scrollable: bool | None, withhold: bool) -> None:
        self.name = name
        self.quoted = '"' + name.replace('"', '""') + '"'
        scroll = {None: "", True: " SCROLL", False: " NO SCROLL"}[scrollable]
        self.options = f"{scroll} CURSOR{' WITH HOLD' if withhold else ''}"

    def declare(self, statement: str) -> str:
        """Makes the cursor."""
        return f"DECLARE {self.quoted}{self.options} FOR {statement}"

    def fetch(self, rows: int | None, number: int) -> str:
        """Fetches rows; None for all. The number keeps cursors apart that have had the same name: a prepared FETCH
        knows the columns of one."""
        count = "ALL" if rows is None else str(max(rows, 0))
        return f"FETCH FORWARD {count} FROM {self.quoted}" + (f" -- {number}" if number else "")

    def move(self, value: int, mode: str, unread: int) -> str:
        """Moves the cursor, from where the program believes that it stands."""
        if mode == "relative":
            return f"MOVE RELATIVE {value - unread} FROM {self.quoted}"
        if mode == "absolute":
            return f"MOVE ABSOLUTE {value} FROM {self.quoted}"
        raise ValueError(f"mode has to be 'relative' or 'absolute', not {mode!r}")


class ServerCursor(Cursor):
    """A named cursor. DECLARE and the first FETCH are one trip; iteration fetches `itersize` rows at a time."""

    def __init__(
        self,
        connection: Connection,
        name: str,
        *,
        row_factory: RowFactory | None = None,
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
        self._is_declared = False
        self._is_at_end = False

    def execute(self, statement: Statement, params: Params = None) -> ServerCursor:
        """Declares the cursor for a query, and fetches its first `itersize` rows: set it to 1 for UPDATE ... WHERE
        CURRENT OF, which needs the server to stand where the program does."""
        if self._closed:
            raise InterfaceError("the cursor is closed")
        self._give_back()
        connection, declaration = self.connection, self._declaration
        self._number = connection._declared
        connection._declared += 1
        fetch = declaration.fetch(self.itersize, self._number)
        with connection.pipeline() as pipeline:
            # The statement's parameters are written as those of any other.
            pipeline.execute(declaration.declare(text_of(statement, connection)), params)
            fetched = pipeline.execute(fetch)
        self._is_declared = True
        self._came(fetched._done(), self.itersize)
        return self

    def executemany(self, statement: Statement, rows: Any, *, by: By = "auto", returning: bool = False) -> None:
        """Not for named cursors."""
        raise ProgrammingError("a named cursor runs one query: use a cursor without a name")

    def fetchone(self) -> Row | None:
        """The next row; None at the end."""
        rows = self._some(1)
        return rows[0] if rows else None

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next rows, fewer at the end."""
        return self._some(self.arraysize if size is None else size)

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

    def fetch_numpy(self) -> dict[str, numpy.ndarray[Any, Any]]:
        """All rows that are left, as an array of numpy for each column. What was not fetched yet comes by one trip."""
        parts = [arrays.columns(self._rows())]
        if not self._is_at_end:
            self._fetch(None)
            parts.append(arrays.columns(self._rows()))
        return arrays.joined(parts)

    def __next__(self) -> Row:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def scroll(self, value: int, mode: str = "relative") -> None:
        """Moves the server's cursor; backwards only if it is scrollable."""
        move = self._declaration.move(value, mode, self._unread())
        self._session().run(move, None, False)
        self._is_at_end = False
        self._rows().seek(len(self._rows()))

    def close(self) -> None:
        """Closes it, along with the next statement."""
        if not self._closed:
            self._give_back()
            super().close()

    @property
    def rownumber(self) -> int | None:
        """Nobody counts."""
        return None

    def _some(self, count: int) -> list[Row]:
        return self._made(self._raw(count))

    def _raw(self, size: int | None) -> list[tuple[Any, ...]]:
        rows = self._rows().many(self._unread() if size is None else size)
        while not self._is_at_end and (size is None or len(rows) < size):
            self._fetch(None if size is None else max(self.itersize, size - len(rows)))
            rows += self._rows().many(self._unread() if size is None else size - len(rows))
        return rows

    def _fetch(self, rows: int | None) -> None:
        session = self._session()
        (answer,) = session.run(self._declaration.fetch(rows, self._number), None, False)
        self._came(answer, rows)

    def _came(self, answer: Any, asked: int | None) -> None:
        self._take([answer])
        self._is_at_end = asked is None or len(answer) < asked

    def _unread(self) -> int:
        rows = self._rows()
        return len(rows) - rows.at

    def _session(self) -> Any:
        if not self._is_declared:
            raise ProgrammingError("there are no rows: no query was run")
        return self.connection._session()

    def _give_back(self) -> None:
        if self._is_declared and not self.connection.closed:
            self.connection._session().close_portal(self.name)
        self._is_declared = False
        self._take([])
