"""The cursor of DB-API 2.0, as far as nothing waits: how a statement is run, and where its results are read."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from onetrip._base.copying import composed
from onetrip.adapt import AdaptersMap, Format, adapters
from onetrip.dbapi import Column
from onetrip.errors import InterfaceError, NotSupportedError, PipelineAborted, PipelineUndone, ProgrammingError
from onetrip.rows import MakesRows, Row
from onetrip.sql import Composable, text_of

if TYPE_CHECKING:
    from onetrip._native import Answer
    from onetrip.rows import RowFactory

Params = Sequence[Any] | Mapping[str, Any] | None
Statement = str | bytes | Composable


class HasArrowStream(Protocol):
    """What gives batches of Arrow: tables and frames of pyarrow, polars, pandas, DuckDB and others."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


class HasArrowArray(Protocol):
    """What gives one batch of Arrow."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any: ...


ArrowData = HasArrowStream | HasArrowArray
ParamsSeq = Iterable[Sequence[Any] | Mapping[str, Any]] | ArrowData
By = Literal["auto", "pipeline", "unnest", "copy"]


# Nothing but what holds for the process.
_NOTHING = AdaptersMap()

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
    if not 0 <= target < len(rows):
        raise IndexError("position out of bound")
    rows.seek(target)


class BaseCursor(MakesRows[Row]):
    """What a cursor is, whichever way it waits."""

    _HOW = 0
    _MERGES = False

    def __init__(self, connection: Any, *, row_factory: RowFactory[Row] | None = None) -> None:
        super().__init__(row_factory or connection.row_factory)
        self.connection: Any = connection
        self.arraysize = 1
        self._adapters: AdaptersMap | None = None
        # What the connection had registered when it made the cursor.
        own: AdaptersMap | None = connection._adapters
        self._inherited = None if own is None else own._as_now()
        self._version = 0 if own is None else own._version
        self._how = self._HOW
        self._answers: list[Answer] = []
        self._at = 0
        self._answer: Answer | None = None
        # What has joined the block of a pipeline, until somebody asks for its results.
        self._operations: list[Any] = []
        self._sums = False
        self._count = -1
        # What the server says of the last of many.
        self._tag: str | None = None
        self._closed = False

    def __repr__(self) -> str:
        kind, shown = f"{type(self).__module__}.{type(self).__qualname__}", self._shown()
        return f"<{kind} {shown} {self.connection._shown()} at 0x{id(self):x}>"

    def _shown(self) -> str:
        """What it holds."""
        if self._closed:
            return "[closed]"
        if self._answer is None:
            return "[no result]"
        if self._answer.columns is not None:
            return "[TUPLES_OK]"
        return "[COMMAND_OK]" if self._answer.tag else "[EMPTY_QUERY]"

    def _look(self) -> None:
        """Takes the answers of what has joined the block of a pipeline: those that are here, or waits for them. What did
        not run has none, and who fetches hears why."""
        if not self._operations or any(operation._error is not None for operation in self._operations):
            return
        if self._operations[-1]._comes():
            with contextlib.suppress(PipelineAborted, PipelineUndone):
                self._take_joined()

    @property
    def adapters(self) -> AdaptersMap:
        """What of values is written and made by the program's own functions, by this cursor."""
        if self._adapters is None:
            self._adapters = AdaptersMap(self._inherited or adapters, cursor=self)
        return self._adapters

    @property
    def format(self) -> Format:
        """How values come: as text, or in their types' binary form."""
        return Format(self._how & BINARY)

    @format.setter
    def format(self, format: int) -> None:
        self._how = wanted(self._how, None, bool(format))

    def nextset(self) -> bool | None:
        """Steps to the result of the next statement; None where there is none."""
        self._look()
        if self._at + 1 >= len(self._answers):
            return None
        self._show(self._at + 1)
        return True

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Does nothing, as DB-API allows."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Does nothing, as DB-API allows."""

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed

    @property
    def description(self) -> list[Column] | None:
        """The columns of the result; None where there is none."""
        self._look()
        columns = self._answer.columns if self._answer is not None else None
        return None if columns is None else [Column.of(*column) for column in columns]

    @property
    def rowcount(self) -> int:
        """Rows that were returned or changed; -1 where the statement counts none."""
        self._look()
        return self._answer.count if self._answer is not None else self._count

    @property
    def rownumber(self) -> int | None:
        """Position of the next row, from zero."""
        self._look()
        return None if self._answer is None or self._answer.columns is None else self._answer.at

    @property
    def statusmessage(self) -> str | None:
        """What the server says that it did, such as "INSERT 0 1"."""
        self._look()
        return (self._answer.tag or None) if self._answer is not None else self._tag

    def _check(self) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed")
        self.connection._check_usable()

    def _asked(self, statement: Statement, params: Params, how: int) -> tuple[str, Params]:
        """The statement's text, and its parameters as they are written; none where they go into the text."""
        text = statement if isinstance(statement, str) else text_of(statement, self)
        if self._MERGES:
            return self._merged(text, params, how), None
        own = self._adapters or self._inherited
        return text, params if own is None else own._params(params)

    def _merged(self, statement: str, params: Params, how: int) -> str:
        """The statement with its parameters written into it."""
        if how & BINARY:
            raise NotSupportedError("a client cursor has values as text only: leave out binary=True")
        return composed(statement, params, self)

    def _copied(self, statement: Statement, params: Params) -> str:
        """The text of a COPY. Parameters become literals of it: the server takes none here."""
        self._check()
        self.connection._check_no_block("COPY")
        self.connection._check_alone()
        return composed(text_of(statement, self), params, self)

    def _take(self, answers: list[Answer]) -> None:
        self._answers = answers
        if answers and (self._adapters is not None or self.connection._adapters is not None):
            self._load_again()
        self._at = 0
        self._answer = answers[0] if answers else None
        self._maker = None
        self._operations = []
        self._sums = False
        if not answers:
            self._count, self._tag = -1, None
        elif self._factory is not None:
            self._make_maker()

    def _load_again(self) -> None:
        """Makes the values of the results by what is registered for this cursor by now."""
        own, now = self._adapters, self.connection._adapters
        if own is None and now is not None and now._version != self._version:
            # Something else was registered on the connection since.
            own = self._inherited or _NOTHING
        if own is not None:
            native = self.connection._native_part()
            for answer in self._answers:
                native.load_by(answer, *own._functions)

    def _take_joined(self) -> None:
        """Takes the answers of what has joined the block of a pipeline; they are here."""
        if self._operations:
            answers = [operation._done() for operation in self._operations]
            sums = self._sums
            self._take([] if sums else answers)
            if sums:
                self._count = sum(answer.count for answer in answers)
                self._tag = answers[-1].tag

    def _show(self, at: int) -> None:
        self._at = at
        self._answer = self._answers[at]
        self._answer.seek(0)
        self._maker = None
        self._make_maker()

    def _rows(self) -> Answer:
        answer = self._answer
        if self._closed:
            raise InterfaceError("the cursor is closed")
        if answer is None or answer.columns is None:
            raise no_rows(answer)
        return answer


class Merging:
    """A cursor that writes parameters into the statement's text."""

    _HOW = ONCE
    _MERGES = True

    def mogrify(self, query: Statement, params: Params = None) -> str:
        """The statement with its parameters written into it."""
        cursor: Any = self
        text: str = cursor._asked(query, params, 0)[0]
        text.encode(cursor.connection.info.encoding)  # it can be sent as it is
        return text
