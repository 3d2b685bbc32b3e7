# Made from aio/cursor.py by tests/test_twins.py: change that one.
"""The cursor of DB-API 2.0."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from onetrip import arrow
from onetrip import numpy as arrays
from onetrip._base.cursor import (
    ONCE,
    RAW,
    BaseCursor,
    By,
    Merging,
    Params,
    ParamsSeq,
    Row,
    Statement,
    check_size,
    no_rows,
    scroll,
    wanted,
)
from onetrip._base.lob import Found
from onetrip.arrow import ArrowStream
from onetrip.copying import Copy
from onetrip.errors import Error, InterfaceError, NotSupportedError, OperationalError, ProgrammingError
from onetrip.lob import LobReader
from onetrip.sql import text_of

if TYPE_CHECKING:
    import numpy
    import pyarrow
    from typing_extensions import Self

    from onetrip._base.lob import LobColumn, Prefetch
    from onetrip._native import Answer, ArrowBatch
    from onetrip.connection import Connection
    from onetrip.pipeline import Operation

__all__ = ["ClientCursor", "Cursor", "RawCursor", "By", "Params", "Row", "Statement"]


class Cursor(BaseCursor[Row]):
    """Runs statements and gives out their rows. The rows of a statement are fetched in its one trip."""

    connection: Connection[Any]
    _operations: list[Operation]

    def execute(
        self,
        query: Statement,
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
        connection, how = self.connection, self._how
        if prepare is not None or binary is not None:
            how = wanted(how, prepare, binary)
        text, params = self._asked(query, params, how)
        block = connection._own_block() if connection._block is not None else None
        if block is not None:
            self._operations = [block._add(text, params, how)]
        else:
            self._take(connection._run(text, params, connection._begins, how))
        return self

    def stream(
        self, query: Statement, params: Params = None, *, binary: bool | None = None, size: int = 1
    ) -> Iterator[Row]:
        """Runs a statement and gives out its rows as they arrive, so that a long result does not fill the memory: less
        than a megabyte of it waits. Leaving the loop early interrupts the statement. `size` has to be 1 or more: rows
        come as many at once as there are, whatever it is."""
        check_size(size)
        self._begin(query, params, binary)
        connection = self.connection
        is_over = False
        try:
            while not is_over:
                try:
                    answer, is_over = connection._next_rows()
                except Error:
                    is_over = True
                    raise
                self._take([answer])
                if answer.columns is None and is_over and not answer.tag.startswith("SELECT"):
                    raise ProgrammingError("the statement returned no rows: execute() is for such")
                while (row := answer.one()) is not None:
                    yield row if self._factory is None else self._make(row)
                    if connection._is_closed:
                        raise OperationalError("the connection is closed")
        finally:
            connection._end_rows(is_over)

    def _begin(self, query: Statement, params: Params, binary: bool | None) -> None:
        """Runs a statement whose rows are taken as they arrive."""
        self._check()
        self._take([])
        how = self._how if binary is None else wanted(self._how, None, binary)
        text, params = self._asked(query, params, how)
        self.connection._begin_rows(text, params, how)

    def executemany(
        self,
        query: Statement,
        params_seq: ParamsSeq,
        *,
        by: By = "auto",
        returning: bool = False,
    ) -> None:
        """Runs a statement once for each of `params_seq`, which may also be a table or a stream of Arrow, for placeholders
        by position or by the names of its columns: all of them or, after an error, none outside of a transaction. The
        error says by `row` which of them failed. With `returning`, `nextset` steps through their results.

        `by` is the way that they go: "pipeline" runs the statement once for each, in one block; "unnest" and "copy"
        make one statement of a plain `INSERT INTO table (columns) VALUES (%s, ...)`; "auto" takes a faster one for
        1,000 rows or more that can be counted, where it means the same."""
        self._check()
        self._take([])
        connection, how = self.connection, self._how
        text, own = text_of(query, self), self._adapters or self._inherited
        rows: Any = arrow.parameters(params_seq)
        if rows is None:
            rows = params_seq
            if own is not None:
                rows = map(own._params, rows)
        elif self._MERGES:
            raise NotSupportedError("a client cursor writes Python's values, not Arrow's: use another one")
        block = connection._own_block()
        if block is None and not self._MERGES:
            self._count, answers, self._tag = connection._run_many(text, rows, by, how, returning)
            if answers:
                self._take(answers)
            connection._tell_what_came()
            return
        if self._MERGES:
            each: list[tuple[str, Any]] = [(self._merged(text, row, how), None) for row in rows]
            how = ONCE
        elif by in ("unnest", "copy"):
            raise ProgrammingError(f"in the block of a pipeline, rows go by 'pipeline', not by {by!r}")
        else:
            each = [(text, row) for row in rows]
        if block is not None:
            self._operations = [block._add(one, row, how) for one, row in each]
        else:
            with connection._pipeline_alone() as pipeline:
                self._operations = [pipeline._add(one, row, how) for one, row in each]
        self._sums = not returning
        if not self._operations:
            self._count = 0
        elif block is None:
            self._look()

    def copy(self, statement: Statement, params: Params = None) -> Copy:
        """A COPY whose data goes in or comes out by the piece, for a block:

            with cursor.copy("COPY item FROM STDIN") as copy:
                for item in items:
                    copy.write_row(item)

        `rowcount` has the rows then. Parameters become literals of the statement's text: the server takes none here."""
        return Copy(self, self._copied(statement, params))

    def fetchone(self) -> Row | None:
        """The next row; None at the end."""
        answer = self._answer
        if answer is None or self._closed:
            answer = self._settled()
        row = answer.one()
        if row is None:
            if answer.columns is None:
                raise no_rows(answer)
            return None
        return row if self._factory is None else self._make(row)

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """The next `size` rows (`arraysize` unless given, or 0), fewer at the end."""
        return self._made(self._settled().many(size or self.arraysize))

    def fetchall(self) -> list[Row]:
        """All rows that are left."""
        rows = self._settled()
        return self._made(rows.many(len(rows)))

    def fetch_lobs(
        self, columns: Mapping[str, LobColumn | None], *, size: int | None = None, prefetch: Prefetch | None = None
    ) -> list[Row]:
        """The rows that are left, or `size` of them, with readers in place of the keys of large values: `columns` says
        by name where these are, None for large objects. All values are looked for by one trip, which fetches of each
        what its column says, or `prefetch`, or the connection's `lob_prefetch`."""
        connection = self.connection
        found = Found(self._raw(size), self.description or (), columns)
        connection._prefetch(found.natives, prefetch)
        return self._made(found.rows(lambda native: LobReader(connection, native)))

    def fetch_arrow(self) -> pyarrow.Table:
        """All rows that are left, as a table of Arrow. It needs the package pyarrow."""
        return arrow.table(self._settled())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """A capsule of Arrow's stream of the rows that are left, for packages that take it, such as pyarrow, polars and
        DuckDB. The rows count as read."""
        self._look()
        return arrow.capsule(self._rows(), requested_schema)

    def stream_arrow(
        self,
        query: Statement,
        params: Params = None,
        *,
        binary: bool | None = None,
        size: int = arrow.STREAM_ROWS,
    ) -> ArrowStream:
        """Runs a statement and gives out its rows as batches of Arrow as they arrive, each of `size` rows, so that a long
        result does not fill the memory. Leaving it early interrupts the statement: close it then."""
        check_size(size)
        batching = arrow.Batching(size)
        return ArrowStream(batching, self._arrow_batches(batching, query, params, binary))

    def _arrow_batches(
        self, batching: arrow.Batching, query: Statement, params: Params, binary: bool | None
    ) -> Iterator[ArrowBatch | None]:
        self._begin(query, params, binary)
        connection = self.connection
        builder, is_over = None, False
        try:
            while not is_over:
                try:
                    answer, is_over = connection._next_rows()
                except Error:
                    is_over = True
                    raise
                self._take([answer])
                if answer.columns is not None:
                    builder = batching.builder_of(answer)
                    yield None
                    builder.begin(answer)
                    while builder.add():
                        yield batching.full(builder)
                        if connection._is_closed:
                            raise OperationalError("the connection is closed")
        finally:
            connection._end_rows(is_over)
        if builder is None:
            raise ProgrammingError("the statement returned no rows: execute() is for such")
        yield batching.last(builder)

    def fetch_numpy(self) -> dict[str, numpy.ndarray[Any, Any]]:
        """All rows that are left, as an array of numpy for each column. It needs the package numpy."""
        return arrays.columns(self._settled())

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Row:
        row = self._settled().one()
        if row is None:
            raise StopIteration
        return row if self._factory is None else self._make(row)

    def scroll(self, value: int, mode: str = "relative") -> None:
        """Moves to another row of the result."""
        scroll(self._settled(), value, mode)

    def results(self) -> Iterator[Self]:
        """The cursor, once for each result that is left: at that result."""
        self._settled_all()
        if self._answer is not None:
            yield self
            while self.nextset():
                yield self

    def set_result(self, index: int) -> Self:
        """Goes to one of the results, from the end for a negative number."""
        self._check()
        self._settled_all()
        if not -len(self._answers) <= index < len(self._answers):
            raise IndexError(f"there are {len(self._answers)} results, and none with index {index}")
        self._show(index % len(self._answers))
        return self

    def callproc(self, name: str, args: Sequence[Any] = ()) -> Sequence[Any]:
        """Calls a function; its result can be fetched. Returns `args`: PostgreSQL's functions do not change them."""
        marks = ", ".join(["%s"] * len(args))
        self.execute(f"SELECT * FROM {name}({marks})", tuple(args))
        return args

    def close(self) -> None:
        """Gives the rows back."""
        self._take([])
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _settled_all(self) -> None:
        """Waits for the answers of what has joined the block of a pipeline."""
        if self._operations:
            self._operations[-1]._came()
            self._take_joined()

    def _settled(self) -> Answer:
        """The result to read rows from."""
        if self._operations:
            self._settled_all()
        return self._rows()

    def _raw(self, size: int | None) -> list[tuple[Any, ...]]:
        """The next rows, all for None, as they came."""
        rows = self._settled()
        return rows.many(len(rows) if size is None else size)


class RawCursor(Cursor[Row]):
    """A cursor whose statements have `$1`, `$2`, … for placeholders, as the server knows them."""

    _HOW = RAW


class ClientCursor(Merging, Cursor[Row]):
    """A cursor that writes parameters into the statement's text, for statements that take none from the wire, such as
    DDL. With parameters too, it may be several statements."""
