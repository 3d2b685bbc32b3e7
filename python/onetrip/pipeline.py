"""Blocks of operations that travel together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from onetrip.errors import Error, OperationalError, ProgrammingError

if TYPE_CHECKING:
    from onetrip._native import Answer
    from onetrip.connection import Connection
    from onetrip.cursor import Params, Row

OnError = Literal["abort", "continue"]

_GOES_ON = {"abort": False, "continue": True}


class Operation:
    """One operation of a pipeline. Its result can be had once it is answered: after `Pipeline.process` up to it, or
    after the block."""

    __slots__ = ("_answer", "_error", "_goes_on", "_pipeline", "id")

    def __init__(self, pipeline: Pipeline, number: int, goes_on: bool) -> None:
        self.id = number
        self._goes_on = goes_on
        self._error: Error | None = None
        self._pipeline = pipeline
        self._answer: Answer | None = None

    def result(self) -> Operation:
        """Raises the operation's error, `PipelineAborted` or `PipelineUndone`; returns the operation if it ran. In a
        block that is still open it waits for the answer."""
        if self._error is not None:
            raise self._error
        if self._answer is None:
            try:
                self._answer = self._pipeline._take(self)
            except Error as error:
                self._error = error if is_outcome(error) else None
                raise
        return self

    @property
    def rowcount(self) -> int:
        """Rows that were returned or changed; -1 where the statement counts none."""
        return self._done().count

    @property
    def statusmessage(self) -> str:
        """What the server says that it did."""
        return self._done().tag

    def fetchone(self) -> Row | None:
        """The next row of the result; None at the end."""
        return self._done().one()

    def fetchall(self) -> list[Row]:
        """All rows of the result that are left."""
        answer = self._done()
        return answer.many(len(answer))

    def __repr__(self) -> str:
        return f"<Operation {self.id}>"

    def _done(self) -> Answer:
        if self._answer is None:
            self.result()
        assert self._answer is not None
        return self._answer


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


def raise_first(operations: Sequence[Ended], first_failed: Callable[[list[int]], int | None] | None) -> None:
    """Raises what made a block fail, if nobody has heard of it: the error of an operation with "abort"."""
    if first_failed is None or all(operation._goes_on for operation in operations):
        return
    failed = first_failed([operation.id for operation in operations if operation._goes_on])
    for operation in operations:
        if operation.id == failed and operation._answer is None and operation._error is None:
            operation.result()


class Pipeline:
    """A block: `with connection.pipeline() as p`. It ends with the `with`, by one trip for all that no `process` has
    waited for. Where the connection does not autocommit, the first operation begins a transaction."""

    def __init__(self, connection: Connection, on_error: OnError) -> None:
        if on_error not in _GOES_ON:
            raise ValueError(f"on_error has to be 'abort' or 'continue', not {on_error!r}")
        self.connection = connection
        self.on_error = on_error
        self.operations: list[Operation] = []
        self._session = connection._session()
        self._begins = False
        self._is_open = False

    def execute(self, statement: str, params: Params = None, *, on_error: OnError | None = None) -> Operation:
        """Adds a statement, perhaps with another `on_error` than the block's. Nothing is waited for."""
        goes_on = None if on_error is None else _GOES_ON[on_error]
        number = self._session.push(statement, params, goes_on, self._begins)
        operation = Operation(self, number, _GOES_ON[on_error or self.on_error])
        self._begins = False
        self.operations.append(operation)
        return operation

    def call(self, function: str, args: Sequence[Any] = ()) -> Operation:
        """Adds a call of a function of the server."""
        marks = ", ".join(["%s"] * len(args))
        return self.execute(f"SELECT {function}({marks})", tuple(args))

    def commit(self) -> Operation:
        """Adds COMMIT; its result raises where the transaction was rolled back instead."""
        return self._end_transaction("COMMIT")

    def rollback(self) -> Operation:
        """Adds ROLLBACK."""
        return self._end_transaction("ROLLBACK")

    def process(self, up_to: Operation | None = None) -> None:
        """Waits until an operation and those before it are answered; all, if none is named. The block goes on."""
        last = up_to or (self.operations[-1] if self.operations else None)
        if last is not None:
            self._session.process(last.id)

    def end(self) -> None:
        """Ends the block and waits for all answers. Raises the error of an operation that failed with "abort"."""
        if not self._is_open:
            raise ProgrammingError("the pipeline is not open")
        self._close()
        raise_first(self.operations, self._session.first_failed)

    def __enter__(self) -> Pipeline:
        self._session.begin_block(_GOES_ON[self.on_error])
        self._is_open = True
        self._begins = self.connection._begins and self._session.status == 0
        self.connection._pipeline = self
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if not self._is_open:
            return
        if kind is None:
            self.end()
        elif not self.connection.closed:
            self._close()

    def _close(self) -> None:
        self._is_open = False
        self.connection._pipeline = None
        self._session.end_block()

    def _end_transaction(self, statement: str) -> Operation:
        self._begins = False
        operation = self.execute(statement)
        self._begins = self.connection._begins
        return operation

    def _take(self, operation: Operation) -> Answer:
        if self._is_open:
            self._session.process(operation.id)
        return self._session.take(operation.id)
