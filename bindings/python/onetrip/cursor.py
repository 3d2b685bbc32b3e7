"""The cursor of DB-API 2.0."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from onetrip import arrow
from onetrip import numpy as arrays
from onetrip.adapt import AdaptersMap, Format, adapters
from onetrip.copying import Copy, composed
from onetrip.dbapi import Column
from onetrip.errors import Error, InterfaceError, NotSupportedError, OperationalError, ProgrammingError
from onetrip.lob import Found, LobReader, _word
from onetrip.rows import MakesRows
from onetrip.sql import Composable, text_of

if TYPE_CHECKING:
    import numpy
    import pyarrow
    from typing_extensions import Self

    from onetrip._native import Answer
    from onetrip.connection import Connection
    from onetrip.lob import LobColumn, Prefetch
    from onetrip.pipeline import Operation
    from onetrip.rows import RowFactory

Row = Any  # a tuple, unless the cursor has a row factory
Params = Sequence[Any] | Mapping[str, Any] | None
Statement = str | bytes | Composable
By = Literal["auto", "pipeline", "unnest", "copy"]


# How a statement is to be run: bits of a number.
BINARY, RAW, ONCE, KEPT = 1, 2, 4, 8


def wanted(how: int, prepare: bool | None, binary: bool | None) -> int:
    """How a statement is to be run, where somebody says more than the cursor does."""
    if binary is not None:
        how = how | BINARY if binary else how & ~BINARY
    if prepare is not None:
        how = how & ~(ONCE | KEPT) | (KEPT if prepare else ONCE)
    return how


def no_rows(answer: Answer | None) -> ProgrammingError:
    """The error of fetching where there is nothing to fetch."""
    if answer is None:
        return ProgrammingError("no result available: no statement was run, or executemany() without returning=True")
    status = f"command status: {answer.tag}" if answer.tag else "result status: EMPTY_QUERY"
    return ProgrammingError(f"the last operation returned no rows ({status})")


def check_size(size: int) -> None:
    """Refuses a number of rows that makes no sense."""
    if size < 1:
        raise ValueError(f"size must be >= 1, not {size}")


def scroll(rows: Answer, value: int, mode: str) -> None:
    """Moves to another row of a result."""
    if mode not in ("relative", "absolute"):
        raise ValueError(f"mode has to be 'relative' or 'absolute', not {mode!r}")
    target = value if mode == "absolute" else rows.at + value
    if not 0 <= target < max(len(rows), 1):
        raise IndexError("position out of bound")
    rows.seek(target)


class Cursor(MakesRows):
    """Runs statements and gives out their rows. The rows of a statement are fetched in its one trip."""

    _HOW = 0
    _MERGES = False

    def __init__(self, connection: Connection, *, row_factory: RowFactory | None = None) -> None:
        super().__init__(row_factory or connection.row_factory)
        self.connection = connection
        self.arraysize = 1
        self._adapters: AdaptersMap | None = None
        self._how = self._HOW
        self._answers: list[Answer] = []
        self._at = 0
        self._answer: Answer | None = None
        # What has joined the block of a pipeline, until somebody asks for its results.
        self._operations: list[Operation] = []
        self._sums = False
        self._count = -1
        self._closed = False

    def execute(
        self,
        statement: Statement,
        params: Params = None,
        *,
        prepare: bool | None = None,
        binary: bool | None = None,
    ) -> Self:
        """Runs a statement. Without parameters it may be several, whose results `nextset` steps through.

        `prepare` says whether the statement stays prepared, where the connection's `prepare_threshold` is not to;
        `binary` whether values come in their types' binary form, where `format` is not to."""
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
        if connection._pipeline is not None:
            self._operations = [connection._pipeline._add(statement, params, how)]
        elif connection._is_heard:
            self._take(connection._run_heard(statement, params, how))
        else:
            self._take(connection._session().run(statement, params, connection._begins, how))
        return self

    def stream(
        self, statement: Statement, params: Params = None, *, binary: bool | None = None, size: int = 1
    ) -> Iterator[Row]:
        """Runs a statement and gives out its rows as they arrive, so that a long result does not fill the memory: less
        than a megabyte of it waits. Leaving the loop early interrupts the statement. `size` has to be 1 or more: rows
        come as many at once as there are, whatever it is."""
        check_size(size)
        self._check()
        self._take([])
        connection = self.connection
        session = connection._alone()
        how = self._how if binary is None else wanted(self._how, None, binary)
        statement, own = text_of(statement, self), self._adapters or connection._adapters
        if own is not None:
            params = own._params(params)
        if self._MERGES:
            statement, params = self._merged(statement, params, how), None
        session.begin_rows(statement, params, connection._begins, how)
        connection._stream = self
        is_over = False
        try:
            while not is_over:
                if connection.closed:
                    raise OperationalError("the connection is closed")
                try:
                    answer, is_over = session.next_rows()
                except Error:
                    is_over = True
                    raise
                self._take([answer])
                if answer.columns is None and is_over and not answer.tag.startswith("SELECT"):
                    raise ProgrammingError("the statement returned no rows: execute() is for such")
                while (row := answer.one()) is not None:
                    yield row if self._factory is None else self._make(row)
        finally:
            connection._stream = None
            if not is_over and not connection.closed:
                with contextlib.suppress(Error):
                    session.cancel()
                with contextlib.suppress(Error):
                    session.leave_rows()
            if connection._is_heard and not connection.closed:
                connection._tell()

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
        statement, how = text_of(statement, self), self._how
        session = connection._session()
        own = self._adapters or connection._adapters
        if own is not None:
            rows = map(own._params, rows)
        if self._MERGES:
            self._run_each([self._merged(statement, row, how) for row in rows], returning)
            return
        if connection._pipeline is not None:
            if by in ("unnest", "copy"):
                raise ProgrammingError(f"in the block of a pipeline, rows go by 'pipeline', not by {by!r}")
            self._operations = [connection._pipeline._add(statement, row, how) for row in rows]
            self._sums = not returning
            return
        self._count, answers = session.run_many(statement, rows, connection._begins, returning, by, how)
        if returning and answers:
            self._take(answers)
        if connection._is_heard:
            connection._tell()

    def copy(self, statement: Statement, params: Params = None) -> Copy:
        """A COPY whose data goes in or comes out by the piece, for a block:

            with cursor.copy("COPY item FROM STDIN") as copy:
                for item in items:
                    copy.write_row(item)

        `rowcount` has the rows then. Parameters become literals of the statement's text: the server takes none here."""
        self._check()
        self.connection._alone()
        statement = text_of(statement, self)
        own = self._adapters or self.connection._adapters
        if own is not None:
            params = own._params(params)
        return Copy(self, composed(statement, params, self.connection.parameter_status("client_encoding")))

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
        scroll(self._rows(), value, mode)

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
        return (self._answer.tag or None) if self._answer is not None else None

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _merged(self, statement: str, params: Params, how: int) -> str:
        """The statement with its parameters written into it."""
        if how & BINARY:
            raise NotSupportedError("a client cursor has values as text only: leave out binary=True")
        return composed(statement, params, self.connection.parameter_status("client_encoding"))

    def _run_each(self, statements: list[str], returning: bool) -> None:
        """Runs statements in one trip, as those of `executemany`."""
        with self.connection.pipeline() as pipeline:
            self._operations = [pipeline._add(statement, None, ONCE) for statement in statements]
        self._sums = not returning
        if statements:
            self._settle()
        else:
            self._count = 0

    def _take(self, answers: list[Answer]) -> None:
        own = self._adapters
        if own is not None and answers:
            session = self.connection._any_session()
            for answer in answers:
                session.load_by(answer, *own._functions)
        self._answers = answers
        self._at = 0
        self._answer = answers[0] if answers else None
        self._maker = None
        self._operations = []
        if not answers:
            self._count = -1
        elif self._factory is not None:
            self._make_maker()

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
        self._make_maker()

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
        return no_rows(self._answer)


class RawCursor(Cursor):
    """A cursor whose statements have `$1`, `$2`, … for placeholders, as the server knows them."""

    _HOW = RAW


class ClientCursor(Cursor):
    """A cursor that writes parameters into the statement's text, for statements that take none from the wire, such as
    DDL. With parameters too, it may be several statements."""

    _HOW = ONCE
    _MERGES = True

    def mogrify(self, statement: Statement, params: Params = None) -> str:
        """The statement with its parameters written into it."""
        own = self._adapters or self.connection._adapters
        given = params if own is None else own._params(params)
        return self._merged(text_of(statement, self), given, 0)
