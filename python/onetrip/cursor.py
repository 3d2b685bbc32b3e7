"""The cursor of DB-API 2.0."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from onetrip import arrow
from onetrip import numpy as arrays
from onetrip.copying import Copy, composed
from onetrip.dbapi import Column
from onetrip.errors import InterfaceError, ProgrammingError
from onetrip.lob import Found, LobReader, _word
from onetrip.rows import MakesRows
from onetrip.sql import Composable, text_of

if TYPE_CHECKING:
    import numpy
    import pyarrow

    from onetrip._native import Answer
    from onetrip.connection import Connection
    from onetrip.lob import LobColumn, Prefetch
    from onetrip.pipeline import Operation
    from onetrip.rows import RowFactory

Row = Any  # a tuple, unless the cursor has a row factory
Params = Sequence[Any] | Mapping[str, Any] | None
Statement = str | bytes | Composable
By = Literal["auto", "pipeline", "unnest", "copy"]


class Cursor(MakesRows):
    """Runs statements and gives out their rows. The rows of a statement are fetched in its one trip."""

    def __init__(self, connection: Connection, *, row_factory: RowFactory | None = None) -> None:
        super().__init__(row_factory)
        self.connection = connection
        self.arraysize = 1
        self._answers: list[Answer] = []
        self._at = 0
        self._answer: Answer | None = None
        # What has joined the block of a pipeline, until somebody asks for its results.
        self._operations: list[Operation] = []
        self._sums = False
        self._count = -1
        self._closed = False

    def execute(self, statement: Statement, params: Params = None) -> Cursor:
        """Runs a statement. Without parameters it may be several, whose results `nextset` steps through."""
        if self._closed:
            raise InterfaceError("the cursor is closed")
        self._take([])
        connection = self.connection
        if not isinstance(statement, str):
            statement = text_of(statement, connection)
        if connection._pipeline is not None:
            self._operations = [connection._pipeline.execute(statement, params)]
        else:
            self._take(
                connection._run_heard(statement, params)
                if connection._is_heard
                else connection._session().run(statement, params, connection._begins)
            )
        return self

    def executemany(
        self,
        statement: Statement,
        rows: Iterable[Sequence[Any] | Mapping[str, Any]],
        *,
        by: By = "auto",
        returning: bool = False,
    ) -> None:
        """Runs a statement once for each of `rows`: all of them or, after an error, none outside of a transaction. The
        error says by `row` which of them failed. With `returning`, `nextset` steps through their results.

        `by` is the way that they go: "pipeline" runs the statement once for each, in one block; "unnest" and "copy"
        make one statement of a plain `INSERT INTO table (columns) VALUES (%s, ...)`; "auto" takes a faster one for
        1,000 rows or more that can be counted, where it means the same."""
        self._check()
        self._take([])
        connection = self.connection
        statement = text_of(statement, connection)
        session = connection._session()
        if connection._pipeline is not None:
            if by in ("unnest", "copy"):
                raise ProgrammingError(f"in the block of a pipeline, rows go by 'pipeline', not by {by!r}")
            self._operations = [connection._pipeline.execute(statement, row) for row in rows]
            self._sums = not returning
            return
        self._count, answers = session.run_many(statement, rows, connection._begins, returning, by)
        if returning and answers:
            self._take(answers)

    def copy(self, statement: Statement, params: Params = None) -> Copy:
        """A COPY whose data goes in or comes out by the piece, for a block:

            with cursor.copy("COPY item FROM STDIN") as copy:
                for item in items:
                    copy.write_row(item)

        `rowcount` has the rows then. Parameters become literals of the statement's text: the server takes none here."""
        self._check()
        self.connection._alone()
        statement = text_of(statement, self.connection)
        return Copy(self, composed(statement, params, self.connection.parameter_status("client_encoding")))

    def fetchone(self) -> Row | None:
        """The next row; None at the end."""
        answer = self._answer
        if answer is None or self._closed:
            answer = self._rows()
        row = answer.one()
        if row is None:
            if answer.columns is None:
                raise self._no_rows()
            return None
        return row if self._factory is None else self._make(row)

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next `size` rows (`arraysize` unless given), fewer at the end."""
        return self._made(self._rows().many(self.arraysize if size is None else size))

    def fetchall(self) -> list[Row]:
        """All rows that are left."""
        return self._made(self._rows().many(len(self._rows())))

    def fetch_lobs(
        self, columns: Mapping[str, LobColumn | None], *, size: int | None = None, prefetch: Prefetch | None = None
    ) -> list[Row]:
        """The rows that are left, or `size` of them, with readers in place of the keys of large values: `columns` says
        by name where these are, None for large objects. All values are looked for by one trip, which fetches of each
        what its column says, or `prefetch`, or the connection's `lob_prefetch`."""
        connection = self.connection
        found = Found(self._raw(size), self.description or (), columns)
        connection._alone().prefetch(found.natives, _word(prefetch), connection._begins)
        return self._made(found.rows(lambda native: LobReader(connection, native)))

    def fetch_arrow(self) -> pyarrow.Table:
        """All rows that are left, as a table of Arrow. It needs the package pyarrow."""
        return arrow.table(self._rows())

    def fetch_numpy(self) -> dict[str, numpy.ndarray[Any, Any]]:
        """All rows that are left, as an array of numpy for each column. It needs the package numpy."""
        return arrays.columns(self._rows())

    def __iter__(self) -> Cursor:
        return self

    def __next__(self) -> Row:
        row = self._rows().one()
        if row is None:
            raise StopIteration
        return row if self._factory is None else self._make(row)

    def scroll(self, value: int, mode: str = "relative") -> None:
        """Moves to another row of the result."""
        rows = self._rows()
        if mode not in ("relative", "absolute"):
            raise ValueError(f"mode has to be 'relative' or 'absolute', not {mode!r}")
        target = value if mode == "absolute" else rows.at + value
        if not 0 <= target < max(len(rows), 1):
            raise IndexError("position out of bound")
        rows.seek(target)

    def nextset(self) -> bool | None:
        """Steps to the result of the next statement; None where there is none."""
        self._check()
        self._settle()
        if self._at + 1 >= len(self._answers):
            return None
        self._show(self._at + 1)
        return True

    def results(self) -> Iterator[Cursor]:
        """The cursor, once for each result that is left: at that result."""
        self._settle()
        if self._answer is not None:
            yield self
            while self.nextset():
                yield self

    def set_result(self, index: int) -> Cursor:
        """Goes to one of the results, from the end for a negative number."""
        self._check()
        self._settle()
        if not -len(self._answers) <= index < len(self._answers):
            raise IndexError(f"there are {len(self._answers)} results, and none with index {index}")
        self._show(index % len(self._answers))
        return self

    def callproc(self, name: str, args: Sequence[Any] = ()) -> Sequence[Any]:
        """Calls a function; its result can be fetched. Returns `args`: PostgreSQL's functions do not change them."""
        marks = ", ".join(["%s"] * len(args))
        self.execute(f"SELECT * FROM {name}({marks})", tuple(args))
        return args

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Does nothing, as DB-API allows."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Does nothing, as DB-API allows."""

    def close(self) -> None:
        """Gives the rows back."""
        self._take([])
        self._closed = True

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    @property
    def description(self) -> list[Column] | None:
        """The columns of the result; None where there is none."""
        self._settle()
        columns = self._answer.columns if self._answer is not None else None
        return None if columns is None else [Column.of(*column) for column in columns]

    @property
    def rowcount(self) -> int:
        """Rows that were returned or changed; -1 where the statement counts none."""
        self._settle()
        return self._answer.count if self._answer is not None else self._count

    @property
    def rownumber(self) -> int | None:
        """Position of the next row, from zero."""
        self._settle()
        return None if self._answer is None or self._answer.columns is None else self._answer.at

    @property
    def statusmessage(self) -> str | None:
        """What the server says that it did, such as "INSERT 0 1"."""
        self._settle()
        return self._answer.tag if self._answer is not None else None

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self, answers: list[Answer]) -> None:
        self._answers = answers
        self._at = 0
        self._answer = answers[0] if answers else None
        self._maker = None
        self._operations = []
        if not answers:
            self._count = -1

    def _settle(self) -> None:
        """Waits for the answers of what has joined the block of a pipeline."""
        if self._operations:
            answers = [operation._done() for operation in self._operations]
            is_one = not self._sums
            self._take(answers if is_one else [])
            if not is_one:
                self._count = sum(answer.count for answer in answers)
                self._sums = False

    def _show(self, at: int) -> None:
        self._at = at
        self._answer = self._answers[at]
        self._maker = None

    def _check(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed")
        self.connection._session()

    def _rows(self) -> Answer:
        self._settle()
        if self._closed or self._answer is None or self._answer.columns is None:
            raise self._no_rows()
        return self._answer

    def _raw(self, size: int | None) -> list[tuple[Any, ...]]:
        """The next rows, all for None, as they came."""
        rows = self._rows()
        return rows.many(len(rows) if size is None else size)

    def _no_rows(self) -> Exception:
        if self._closed:
            return InterfaceError("the cursor is closed")
        return ProgrammingError("there are no rows: the last statement returned none, or none was run")
