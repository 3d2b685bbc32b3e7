"""Blocks of operations, as far as nothing waits: what became of each, and what the end of a block raises."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from onetrip.errors import Error, OperationalError, PipelineAborted, PipelineUndone
from onetrip.info import PipelineStatus
from onetrip.session import logger

if TYPE_CHECKING:
    from typing_extensions import Self

    from onetrip._native import Answer

OnError = Literal["abort", "continue"]

GOES_ON = {"abort": False, "continue": True}


class BaseOperation:
    """One operation of a pipeline, and what became of it."""

    __slots__ = ("_answer", "_error", "_goes_on", "_pipeline", "id")

    def __init__(self, pipeline: Any, number: int, goes_on: bool) -> None:
        self.id = number
        self._goes_on = goes_on
        self._error: Error | None = None
        self._pipeline: Any = pipeline
        self._answer: Answer | None = None

    def _comes(self) -> bool:
        """Whether its answer is here; where nothing else would bring it, waits for it."""
        raise NotImplementedError

    def _taken(self) -> Answer:
        """Its answer; raises what became of it instead."""
        raise NotImplementedError

    def result(self) -> Self:
        """Raises the operation's error, `PipelineAborted` or `PipelineUndone`; returns the operation if it ran."""
        if self._error is not None:
            raise self._error
        if self._answer is None:
            try:
                self._answer = self._taken()
            except Error as error:
                self._error = error if is_outcome(error) else None
                raise
        return self

    @property
    def _is_known(self) -> bool:
        """Whether it is known what became of it."""
        return self._answer is not None or self._error is not None

    @property
    def rowcount(self) -> int:
        """Rows that were returned or changed; -1 where the statement counts none."""
        return self._done().count

    @property
    def statusmessage(self) -> str:
        """What the server says that it did."""
        return self._done().tag

    def fetchone(self) -> Any:
        """The next row of the result; None at the end."""
        return self._done().one()

    def fetchall(self) -> list[Any]:
        """All rows of the result that are left."""
        answer = self._done()
        return answer.many(len(answer))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    def _done(self) -> Answer:
        if self._answer is None:
            self.result()
        assert self._answer is not None
        return self._answer


class BasePipeline:
    """A block of operations, and the blocks that it is a part of."""

    def __init__(self, connection: Any, on_error: OnError) -> None:
        if on_error not in GOES_ON:
            raise ValueError(f"on_error has to be 'abort' or 'continue', not {on_error!r}")
        self.connection: Any = connection
        self.on_error: OnError = on_error
        # Those that were added since the block began, or since the last `sync`.
        self.operations: list[Any] = []
        # Those of blocks within it that ended before their answers came.
        self._left: list[Any] = []
        self._outer: Any = None
        # The blocks of those who have entered it again, within it.
        self._again: list[Any] = []
        # With asyncio, of the whole: itself and the blocks within it, in all tasks, that have not ended.
        self._members: list[Any] = []
        self._unheard: Error | None = None
        # Whether the next operation begins a transaction.
        self._begins = False

    def __repr__(self) -> str:
        kind = f"{type(self).__module__}.{type(self).__qualname__}"
        return f"<{kind} {self.connection._shown()} at 0x{id(self):x}>"

    @classmethod
    def is_supported(cls) -> bool:
        """True: it needs no libpq of a certain version."""
        return True

    @property
    def status(self) -> PipelineStatus:
        """Whether the block of a pipeline is open."""
        status: PipelineStatus = self.connection.info.pipeline_status
        return status

    def _warn_lost(self) -> None:
        logger.warning("the connection has ended within the block of %r: nobody hears of its last answers", self)

    def _whole(self) -> Self:
        """The block that this one is a part of, or itself."""
        whole: Self = self if self._outer is None else self._outer._whole()
        return whole

    def _parts(self) -> Iterator[Self]:
        part: Self | None = self
        while part is not None:
            yield part
            part = part._outer

    def _goes_on(self, on_error: OnError | None) -> bool | None:
        """What the native part is told about an operation: None leaves it to the block."""
        if self._outer is not None:
            return GOES_ON[on_error or self.on_error]
        return None if on_error is None else GOES_ON[on_error]

    def _ended(self, source: Source, raises: bool) -> Error | None:
        """Takes what became of the operations, before another block takes the place of this one; the error that its end
        has to raise, if it raises any."""
        error = None
        if raises and self.operations:
            try:
                raise_first(self.operations, source.first_failed, self._outer is None)
            except Error as first:
                error = first
        left = take_all([*self._left, *self.operations], source)
        if self._outer is not None:
            self._whole()._left += left
        if not raises:
            return None
        error, self._unheard = error or self._unheard, None
        return error

    def _halved(self, source: Source) -> None:
        """As `_ended`, for a block that begins anew, and all that it is a part of. What failed in blocks of other tasks, they
        hear at their own end."""
        whole = self._whole()
        for part in self._parts():
            whole._unheard = whole._unheard or unheard([*part._left, *part.operations], source)
            part.operations, part._left = [], []
        for other in whole._members:
            other._unheard = other._unheard or unheard([*other._left, *other.operations], source)
            other.operations, other._left = [], []

    def _hear(self) -> None:
        """Raises what the first half of the block would have raised at its end, unless somebody has heard of it."""
        whole = self._whole()
        if whole._unheard is not None:
            error, whole._unheard = whole._unheard, None
            raise error


class Source(Protocol):
    """What has the operations of the last block: the native part of a connection."""

    def first_failed(self, but: list[int]) -> int | None: ...

    def take_all(self, operations: list[int]) -> list[Answer | Exception]: ...


class Ended(Protocol):
    """An operation of a block that has ended."""

    id: int
    _goes_on: bool
    _answer: Answer | None
    _error: Error | None

    def result(self) -> Any: ...


def is_outcome(error: Error) -> bool:
    """Whether an error is what became of an operation, and not a mistake of its reader."""
    return error.sqlstate is not None or isinstance(error, OperationalError)


def raise_first(
    operations: Sequence[Ended], first_failed: Callable[[list[int]], int | None] | None, is_whole: bool = True
) -> None:
    """Raises what made a block fail, if nobody has heard of it: the error of an operation with "abort"."""
    if first_failed is None or all(operation._goes_on for operation in operations):
        return
    failed = first_failed([operation.id for operation in operations if operation._goes_on])
    if is_whole and failed is not None and failed < operations[0].id:
        # The BEGIN that went before them, which nobody has asked for.
        failed = next(operation.id for operation in operations if not operation._goes_on)
    for operation in operations:
        if operation.id == failed and operation._answer is None and operation._error is None:
            operation.result()


def take_all(operations: Sequence[Any], source: Source) -> list[Any]:
    """Takes what became of operations that nobody has asked for yet; returns those of which nothing is known."""
    asked = [operation for operation in operations if not operation._is_known]
    for operation, came in zip(asked, source.take_all([operation.id for operation in asked]), strict=True):
        if not isinstance(came, Exception):
            operation._answer = came
        elif isinstance(came, Error) and is_outcome(came):
            operation._error = came
    return [operation for operation in asked if not operation._is_known]


def unheard(operations: Sequence[Any], source: Source) -> Error | None:
    """Takes what became of the operations of a block that has ended, before another one begins; the error that its end
    would have raised."""
    error: Error | None = None
    try:
        raise_first(operations, source.first_failed)
    except (PipelineAborted, PipelineUndone):
        pass  # what made it fail has been heard
    except Error as first:
        error = first
    take_all(operations, source)
    return error
