"""Blocks that are a transaction, or a savepoint within one, for asyncio."""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import TYPE_CHECKING, Any

from onetrip._base.transaction import Nested, OutOfOrderTransactionNesting, Rollback
from onetrip.errors import Error

if TYPE_CHECKING:
    from onetrip.aio.connection import AsyncConnection

__all__ = ["AsyncTransaction", "Nested", "OutOfOrderTransactionNesting", "Rollback"]


class AsyncTransaction(Nested):
    """A transaction, or a savepoint within one: kept at the end of the block, undone if it raises."""

    _connection: AsyncConnection[Any]

    async def __aenter__(self) -> AsyncTransaction:
        connection = self._connection
        opening = self._open(connection._is_outside())
        try:
            block = connection._own_block()
            if block is not None and self._is_outermost:
                block._whole()._begins = True
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
                self._begins_no_more()
                return False
            try:
                await connection._command(keeping, self._is_outermost)
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
        self._begins_no_more()
        return self._takes(error)

    async def _undo_in_block(self, failed: Error) -> None:
        """The server undoes what cannot be committed, but skips COMMIT where a pipeline's operation failed."""
        connection = self._connection
        undoing = self._undoing(failed)
        if connection._own_block() is not None and not connection.closed:
            with contextlib.suppress(Error):
                await connection._undo(undoing)
