"""Blocks that are a transaction, or a savepoint within one."""

from __future__ import annotations

import contextlib
import enum
from types import TracebackType
from typing import TYPE_CHECKING, Any

from onetrip.errors import Error, ProgrammingError

if TYPE_CHECKING:
    from onetrip.aio.connection import AsyncConnection
    from onetrip.connection import Connection


class Rollback(Exception):
    """Undoes a block of `transaction()` and leaves it without an error: the innermost, or the one that is named."""

    def __init__(self, transaction: Nested | None = None) -> None:
        super().__init__(transaction)
        self.transaction = transaction


class OutOfOrderTransactionNesting(ProgrammingError):
    """A block of `transaction()` ended before one that was opened within it."""


class Nested:
    """One block of a connection, whichever kind: what is sent for it."""

    class Status(str, enum.Enum):
        """What became of a block."""

        NOT_STARTED = "not_started"
        ACTIVE = "active"
        COMMITTED = "committed"
        FAILED = "failed"
        ROLLED_BACK_EXPLICITLY = "rolled_back_explicitly"
        ROLLED_BACK_WITH_ERROR = "rolled_back_with_error"

    def __init__(self, connection: Any, savepoint_name: str | None, force_rollback: bool) -> None:
        self._connection = connection
        self._name = savepoint_name or ""
        self._is_outermost = False
        # Whether a block around it has ended before it.
        self._is_lost = False
        self.force_rollback = force_rollback
        self.status = self.Status.NOT_STARTED

    @property
    def connection(self) -> Any:
        """The connection whose transaction it is."""
        return self._connection

    @property
    def savepoint_name(self) -> str:
        """The savepoint that stands at the block's beginning; empty where it is the whole transaction."""
        return self._name

    def __repr__(self) -> str:
        name = f" {self._name!r}" if self._name else ""
        return f"<{type(self).__module__}.{type(self).__qualname__}{name} ({self.status.value})>"

    def _open(self, is_idle: bool) -> str | None:
        """Begins the block; what is to be sent now. BEGIN itself travels with the block's first statement."""
        if self.status != self.Status.NOT_STARTED:
            raise TypeError("a block of transaction() can be entered only once")
        blocks = self._connection._transactions
        self._is_outermost = is_idle and not blocks
        if not self._is_outermost and not self._name:
            self._name = f"onetrip_transaction_{len(blocks) + 1}"
        blocks.append(self)
        self._connection._set_begins()
        self.status = self.Status.ACTIVE
        return f"SAVEPOINT {_quoted(self._name)}" if self._name else None

    def _leave(self) -> None:
        """The block is none of the connection's any more."""
        blocks = self._connection._transactions
        is_last = bool(blocks) and blocks[-1] is self
        if self in blocks:
            blocks.remove(self)
        self._connection._set_begins()
        if not is_last or self._is_lost:
            for block in blocks:
                block._is_lost = True
            self.status = self.Status.FAILED
            raise OutOfOrderTransactionNesting(f"another block of transaction() was opened within this one: {self}")

    def _keeping(self) -> str:
        """What keeps the block."""
        self.status = self.Status.COMMITTED
        return "COMMIT" if self._is_outermost else f"RELEASE SAVEPOINT {_quoted(self._name)}"

    def _undoing(self, error: BaseException | None) -> list[str]:
        """What undoes it."""
        is_wanted = error is None or isinstance(error, Rollback)
        self.status = self.Status.ROLLED_BACK_EXPLICITLY if is_wanted else self.Status.ROLLED_BACK_WITH_ERROR
        if self._is_outermost:
            return ["ROLLBACK"]
        name = _quoted(self._name)
        return [f"ROLLBACK TO SAVEPOINT {name}", f"RELEASE SAVEPOINT {name}"]

    def _takes(self, error: BaseException | None) -> bool:
        """Whether an exception has done its work with this block."""
        return isinstance(error, Rollback) and error.transaction in (None, self)


class AsyncTransaction(Nested):
    """A transaction, or a savepoint within one, of a connection for asyncio."""

    _connection: AsyncConnection

    async def __aenter__(self) -> AsyncTransaction:
        connection = self._connection
        opening = self._open(connection._is_outside())
        try:
            block = connection._own_block()
            if block is not None and self._is_outermost:
                await block.execute("BEGIN")
            if opening is not None:
                await connection._command(opening)
        except BaseException:
            self._leave()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        connection = self._connection
        if connection.closed:
            connection._transactions.clear()
            self.status = self.Status.FAILED
            return False
        self._leave()
        if error is None and not self.force_rollback:
            keeping = self._keeping()
            if self._is_outermost and connection._is_outside():
                return False
            try:
                await connection._command(keeping)
            except Error as failed:
                await self._undo_in_block(failed)
                raise
            return False
        undoing = self._undoing(error)
        try:
            if not self._is_outermost or not connection._is_outside():
                await connection._undo(undoing)
        except Error:
            if error is None:
                raise
            return False  # the exception on its way tells more
        return self._takes(error)

    async def _undo_in_block(self, failed: Error) -> None:
        connection = self._connection
        undoing = self._undoing(failed)
        if connection._own_block() is not None and not connection.closed:
            with contextlib.suppress(Error):
                await connection._undo(undoing)


class Transaction(Nested):
    """A transaction, or a savepoint within one: kept at the end of the block, undone if it raises."""

    _connection: Connection

    def __enter__(self) -> Transaction:
        connection = self._connection
        opening = self._open(connection._is_outside())
        try:
            if connection._pipeline is not None and self._is_outermost:
                connection._pipeline.execute("BEGIN")
            if opening is not None:
                connection._command(opening)
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        connection = self._connection
        if connection.closed:
            connection._transactions.clear()
            self.status = self.Status.FAILED
            return False
        self._leave()
        if error is None and not self.force_rollback:
            keeping = self._keeping()
            if self._is_outermost and connection._is_outside():
                return False
            try:
                connection._command(keeping)
            except Error as failed:
                self._undo_in_block(failed)
                raise
            return False
        undoing = self._undoing(error)
        try:
            if not self._is_outermost or not connection._is_outside():
                connection._undo(undoing)
        except Error:
            if error is None:
                raise
            return False  # the exception on its way tells more
        return self._takes(error)

    def _undo_in_block(self, failed: Error) -> None:
        """The server undoes what cannot be committed, but skips COMMIT where a pipeline's operation failed."""
        connection = self._connection
        undoing = self._undoing(failed)
        if connection._pipeline is not None and not connection.closed:
            with contextlib.suppress(Error):
                connection._undo(undoing)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
