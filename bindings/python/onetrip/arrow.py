"""Results as batches of Arrow, which pyarrow, polars, pandas and DuckDB take by the Arrow C stream interface; and as tables
of pyarrow. pyarrow is needed only for the latter."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Iterator
from typing import TYPE_CHECKING, Any

from onetrip._base.cursor import BaseCursor
from onetrip._native import ArrowBatch, ArrowBuilder, ArrowRows
from onetrip.errors import ProgrammingError

if TYPE_CHECKING:
    import pyarrow
    from typing_extensions import Self

    from onetrip._native import Answer

__all__ = ["BATCH_ROWS", "STREAM_ROWS", "ArrowBatch", "ArrowStream", "AsyncArrowStream"]

# Rows of a batch of a result that is here. It ends earlier at 16 MB.
BATCH_ROWS = 65_536
# Rows of a batch as rows arrive, unless somebody says how many. More rows save no time.
STREAM_ROWS = 16_384


def table(answer: Answer) -> pyarrow.Table:
    """The rows that are left, by columns, in chunks of `BATCH_ROWS`. Types that Arrow has become buffers without an object for
    each value; others go by way of Python's values. The memory of rows is given back as they become buffers."""
    import pyarrow

    builder = ArrowBuilder(answer, BATCH_ROWS, True, True)
    others = builder.others
    at = answer.at
    values = answer.many(len(answer)) if others else []
    answer.seek(at)
    made = pyarrow.Table.from_batches(map(pyarrow.record_batch, [*_batches(builder, answer)] or [builder.batch()]))
    for column in others:
        made = made.set_column(column, made.field(column).name, _of_values([row[column] for row in values]))
    return made


def joined(parts: list[pyarrow.Table]) -> pyarrow.Table:
    """One table of several pieces of a result."""
    import pyarrow

    return pyarrow.concat_tables(parts, promote_options="permissive")


def _of_values(values: list[Any]) -> Any:
    import pyarrow

    try:
        return pyarrow.array(values)
    except (ValueError, TypeError, NotImplementedError):
        return pyarrow.array([None if value is None else str(value) for value in values])


def capsule(answer: Answer, wanted: Any, rows_max: int = BATCH_ROWS) -> Any:
    """The stream of the rows that are left of a result, which count as read once the first batch is."""
    builder = ArrowBuilder(answer, rows_max, True, False, wanted)
    return builder.stream(_batches(builder, answer))


def _batches(builder: ArrowBuilder, answer: Answer) -> Iterator[ArrowBatch]:
    builder.begin(answer)
    while builder.add():
        yield builder.batch()
    if len(builder):
        yield builder.batch()


def parameters(given: Any) -> ArrowRows | None:
    """The rows of data of Arrow, as parameters of many executions; None for what is no such data. A cursor is some too, but
    its rows are Python's."""
    if isinstance(given, list | BaseCursor):
        return None
    is_arrow = hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__")
    return ArrowRows(given) if is_arrow else None


class Batching:
    """How a stream's batches are made: what its rows' generator shares with whoever reads it."""

    def __init__(self, size: int) -> None:
        self._size = size
        self.builder: ArrowBuilder | None = None
        # What a consumer asks for, if it does so before the first row has come.
        self.wanted: Any = None
        self._has_given = False

    def builder_of(self, answer: Answer) -> ArrowBuilder:
        """What makes batches of results like this one."""
        if self.builder is None:
            self.builder = ArrowBuilder(answer, self._size, False, False, self.wanted)
        return self.builder

    def full(self, builder: ArrowBuilder) -> ArrowBatch:
        """A batch that is full."""
        self._has_given = True
        return builder.batch()

    def last(self, builder: ArrowBuilder) -> ArrowBatch | None:
        """What is left. There is at least one batch, which says what the columns are."""
        return self.full(builder) if len(builder) or not self._has_given else None


class ArrowStream:
    """Batches of the rows of a statement, as they arrive. Whatever takes Arrow's C stream interface takes it, once; or
    iterate. `close`, or the end of a `with` block, interrupts the statement, unless all of its rows have been read."""

    def __init__(self, batching: Batching, batches: Any) -> None:
        self._batching = batching
        # Gives None, too, where there is a builder and no batch yet.
        self._batches: Generator[ArrowBatch | None, None, None] = batches
        # Whether somebody reads it, or nobody is to do so any more.
        self._is_taken = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ArrowBatch:
        for batch in self._batches:
            if batch is not None:
                return batch
        self._is_taken = True
        raise StopIteration

    def close(self) -> None:
        """Ends the statement."""
        self._is_taken = True
        self._batches.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """A capsule of the stream. The statement begins to run; its rows come as they are asked for. Who asks for the first
        is the one who reads them: others may have looked at what the columns are."""
        self._check()
        if self._batching.builder is None:
            self._batching.wanted = requested_schema
            next(self._batches)
        assert self._batching.builder is not None
        return self._batching.builder.stream(self._taken())

    def _taken(self) -> Iterator[ArrowBatch]:
        self._check()
        self._is_taken = True
        try:
            yield from self
        finally:
            self.close()

    def _check(self) -> None:
        if self._is_taken:
            raise ProgrammingError("the rows of this stream were taken, or it was closed: run the statement again")


class AsyncArrowStream:
    """Batches of the rows of a statement, as they arrive: iterate by `async for`. `aclose`, or the end of an `async with`
    block, interrupts the statement, unless all of its rows have been read."""

    def __init__(self, batching: Batching, batches: Any) -> None:
        self._batches: AsyncGenerator[ArrowBatch | None, None] = batches

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ArrowBatch:
        while (batch := await anext(self._batches)) is None:
            pass
        return batch

    async def aclose(self) -> None:
        """Ends the statement."""
        await self._batches.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
