"""Blocks of operations that travel together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from onetrip.errors import Error, OperationalError, PipelineAborted, PipelineUndone, ProgrammingError
from onetrip.sql import text_of

if TYPE_CHECKING:
    from onetrip._native import Answer
    from onetrip.connection import Connection
    from onetrip.cursor import Params, Row, Statement

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


class Pipeline:
    """A block: `with connection.pipeline() as p`. It ends with the `with`, by one trip for all that no `process` has
    waited for. Where the connection does not autocommit, the first operation begins a transaction. Statements of the
    connection and its cursors are operations of the block; a block within it is a part of it, whose end waits."""

    def __init__(self, connection: Connection, on_error: OnError) -> None:
        if on_error not in _GOES_ON:
            raise ValueError(f"on_error has to be 'abort' or 'continue', not {on_error!r}")
        self.connection = connection
        self.on_error = on_error
        self.operations: list[Operation] = []
        self._session = connection._session()
        self._outer: Pipeline | None = None
        self._unheard: Error | None = None
        self._begins = False
        self._is_open = False

    def execute(self, statement: Statement, params: Params = None, *, on_error: OnError | None = None) -> Operation:
        """Adds a statement, perhaps with another `on_error` than the block's. Nothing is waited for."""
        if not isinstance(statement, str):
            statement = text_of(statement, self.connection)
        adapters = self.connection._adapters
        return self._add(statement, params if adapters is None else adapters._params(params), 0, on_error)

    def _add(self, statement: str, params: Params, how: int, on_error: OnError | None = None) -> Operation:
        goes_on = None if on_error is None else _GOES_ON[on_error]
        if self._outer is not None:
            goes_on = _GOES_ON[on_error or self.on_error]
        whole = self._whole()
        number = self._session.push(statement, params, goes_on, whole._begins, how)
        operation = Operation(self, number, _GOES_ON[on_error or self.on_error])
        whole._begins = False
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
        if last is not None and last._answer is None and last._error is None:
            self._session.process(last.id)

    def sync(self) -> None:
        """Waits until all is answered. After an error with "abort", which it raises unless somebody has heard of it,
        operations run again; outside of a transaction, what came before it holds."""
        self._interrupted(lambda: None)
        whole = self._whole()
        if whole._unheard is not None:
            error, whole._unheard = whole._unheard, None
            raise error

    def end(self) -> None:
        """Ends the block and waits for all answers. Raises the error of an operation that failed with "abort"."""
        if not self._is_open:
            raise ProgrammingError("the pipeline is not open")
        self._close()
        raise_first(self.operations, self._session.first_failed, self._outer is None)
        if self._unheard is not None:
            raise self._unheard

    def __enter__(self) -> Pipeline:
        connection = self.connection
        self._outer = connection._pipeline
        if self._outer is None:
            connection._alone().begin_block(_GOES_ON[self.on_error])
            self._begins = connection._begins and self._session.status == 0
        self._is_open = True
        connection._pipeline = self
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if not self._is_open:
            return
        if kind is None:
            self.end()
        elif not self.connection.closed:
            self._close()

    def _whole(self) -> Pipeline:
        """The block that this one is a part of, or itself."""
        return self if self._outer is None else self._outer._whole()

    def _close(self) -> None:
        self._is_open = False
        self.connection._pipeline = self._outer
        if self._outer is None:
            self._session.end_block()
        else:
            self.process()

    def _interrupted(self, work: Callable[[], object]) -> None:
        """Does something between two halves of the block: it ends, and begins anew."""
        whole, parts = self._whole(), list(self._parts())
        self._session.end_block()
        whole._is_open = False
        for part in parts:
            whole._unheard = whole._unheard or unheard(part.operations, self._session)
        self.connection._pipeline = None
        try:
            work()
        finally:
            if not self.connection.closed:
                self._session.begin_block(_GOES_ON[whole.on_error])
                whole._is_open = True
                whole._begins = self.connection._begins and self._session.status == 0
            self.connection._pipeline = self

    def _parts(self) -> Iterable[Pipeline]:
        part: Pipeline | None = self
        while part is not None:
            yield part
            part = part._outer

    def _end_transaction(self, statement: str) -> Operation:
        whole = self._whole()
        whole._begins = False
        operation = self.execute(statement)
        whole._begins = self.connection._begins
        return operation

    def _run(self, statement: str) -> None:
        """Adds a statement of our own and waits for it. What made it fail may be an operation before it."""
        operation = self.execute(statement)
        self.process(operation)
        raise_first(self.operations, self._session.first_failed, self._outer is None)
        operation.result()

    def _take(self, operation: Operation) -> Answer:
        if self._whole()._is_open:
            self._session.process(operation.id)
        return self._session.take(operation.id)


def unheard(operations: Sequence[Any], source: Any) -> Error | None:
    """Takes what became of the operations of a block that has ended, before another one begins; the error that its end
    would have raised."""
    error: Error | None = None
    try:
        raise_first(operations, source.first_failed)
    except (PipelineAborted, PipelineUndone):
        pass  # what made it fail has been heard
    except Error as first:
        error = first
    for operation in operations:
        if operation._answer is None and operation._error is None:
            try:
                operation._answer = source.take(operation.id)
            except Error as failed:
                operation._error = failed
    return error
