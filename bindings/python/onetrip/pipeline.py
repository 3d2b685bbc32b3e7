"""Blocks of operations that travel together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from onetrip._base.pipeline import GOES_ON, BaseOperation, BasePipeline, OnError
from onetrip.adding import Adding
from onetrip.errors import Error, ProgrammingError

if TYPE_CHECKING:
    from onetrip._base.cursor import Params
    from onetrip._native import Answer
    from onetrip.connection import Connection

__all__ = ["OnError", "Operation", "Pipeline"]


class Operation(BaseOperation):
    """One operation of a pipeline. Its result can be had once it is answered: after `Pipeline.process` up to it, or
    after the block. In a block that is still open, `result` waits for the answer."""

    __slots__ = ()

    _pipeline: Pipeline

    def _comes(self) -> bool:
        self._came()
        return True

    def _came(self) -> None:
        if not self._is_known and self._pipeline._whole()._is_open:
            self._pipeline._processed(self.id)

    def _taken(self) -> Answer:
        self._came()
        return self._pipeline._session.take(self.id)


class Pipeline(Adding, BasePipeline):
    """A block: `with connection.pipeline() as p`. It ends with the `with`, by one trip for all that no `process` has
    waited for. Where the connection does not autocommit, the first operation begins a transaction. Statements of the
    connection and its cursors are operations of the block; a block within it is a part of it, whose end waits."""

    connection: Connection[Any]
    operations: list[Operation]
    _outer: Pipeline | None

    def __init__(self, connection: Connection[Any], on_error: OnError) -> None:
        super().__init__(connection, on_error)
        # Whether other threads wait for its end. What they run is a part of the block otherwise.
        self._is_alone = self._is_held = False
        self._session = connection._usable()
        self._is_open = False

    def _add(self, statement: str, params: Params, how: int, on_error: OnError | None = None) -> Operation:
        whole = self._whole()
        number = self._session.push(statement, params, self._goes_on(on_error), whole._begins, how)
        operation = Operation(self, number, GOES_ON[on_error or self.on_error])
        whole._begins = False
        self.operations.append(operation)
        return operation

    def process(self, up_to: Operation | None = None) -> None:
        """Waits until an operation and those before it are answered; all, if none is named. The block goes on."""
        last = up_to or (self.operations[-1] if self.operations else None)
        if last is not None and not last._is_known:
            self._processed(last.id)

    def _processed(self, number: int) -> None:
        try:
            self._session.process(number)
        finally:
            self.connection._tell_what_came()

    def end(self) -> None:
        """Ends the block and waits for all answers. Raises the error of an operation that failed with "abort"."""
        if not self._is_open:
            raise ProgrammingError("the pipeline is not open")
        error = self._close(True)
        if error is not None:
            raise error

    def __enter__(self) -> Pipeline:
        connection = self.connection
        outer = connection._own_block()
        if outer is not None and any(part is self for part in outer._parts()):
            self._again.append(type(self)(connection, self.on_error).__enter__())
            return self
        self._outer = outer
        if outer is None:
            self._is_held = self._is_alone and self._session.hold()
            try:
                connection._usable().begin_block(GOES_ON[self.on_error])
            except BaseException:
                self._release()
                raise
            self._begins = connection._begins and self._session.status == 0
        self._is_open = True
        if outer is not None or not self._is_alone:
            connection._block = self
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._again:
            self._again.pop().__exit__(kind)
            return
        if not self._is_open:
            return
        if kind is None:
            self.end()
        elif self.connection.closed:
            self._warn_lost()
            self._release()
        else:
            self._close(False)

    def _close(self, raises: bool) -> Error | None:
        """Ends the block and waits for its answers; the error that the end has to raise, if it raises any."""
        self._is_open = False
        self.connection._block = self._outer
        error = None
        # No other thread comes in between: its block would take the place of this one.
        self._is_held = self._is_held or (self._outer is None and self._session.hold())
        try:
            if self._outer is None:
                self._session.end_block()
            else:
                self.process()
        finally:
            error = self._ended(self._session, raises)
            self._release()
            if self._outer is None:
                self.connection._tell_what_came()
        return error

    def _release(self) -> None:
        if self._is_held:
            self._is_held = False
            self._session.release()

    def _interrupted(self, statement: str | None) -> None:
        """Runs a statement between two halves of the block: it ends, and begins anew."""
        connection, whole = self.connection, self._whole()
        self._session.end_block()
        whole._is_open = False
        self._halved(self._session)
        connection._block = None
        try:
            if statement is not None:
                self._session.run(statement, None, False)
        finally:
            if not connection.closed:
                self._session.begin_block(GOES_ON[whole.on_error])
                whole._is_open = True
                whole._begins = connection._begins and self._session.status == 0
            connection._block = self
            connection._tell_what_came()

    @property
    def _first_failed(self) -> Callable[[list[int]], int | None]:
        return self._session.first_failed
