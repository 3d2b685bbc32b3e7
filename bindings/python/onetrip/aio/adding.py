"""What is added to a pipeline's block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from onetrip._base.pipeline import OnError, raise_first
from onetrip.sql import text_of

if TYPE_CHECKING:
    from onetrip._base.cursor import Params, Statement
    from onetrip.aio.pipeline import AsyncOperation


class AsyncAdding:
    """The calls that add to a block. They need what the block itself brings: `_add`, `process` and `_interrupted`."""

    async def execute(
        self, statement: Statement, params: Params = None, *, on_error: OnError | None = None
    ) -> AsyncOperation:
        """Adds a statement, perhaps with another `on_error` than the block's. Nothing is waited for."""
        # Awaiting only: It waits only where the other side does not take any more, or where answers decide whether the
        # Awaiting only: statement may run.
        block: Any = self
        connection = block.connection
        text = statement if isinstance(statement, str) else text_of(statement, connection)
        adapters = connection._adapters
        operation: AsyncOperation = await block._add(
            text, params if adapters is None else adapters._params(params), 0, on_error
        )
        return operation

    async def call(self, function: str, args: Sequence[Any] = ()) -> AsyncOperation:
        """Adds a call of a function of the server."""
        marks = ", ".join(["%s"] * len(args))
        return await self.execute(f"SELECT {function}({marks})", tuple(args))

    async def commit(self) -> AsyncOperation:
        """Adds COMMIT; its result raises where the transaction was rolled back instead."""
        return await self._end_transaction("COMMIT")

    async def rollback(self) -> AsyncOperation:
        """Adds ROLLBACK."""
        return await self._end_transaction("ROLLBACK")

    async def sync(self) -> None:
        """Waits until all is answered. After an error with "abort", which it raises unless somebody has heard of it,
        operations run again; outside of a transaction, what came before it holds."""
        block: Any = self
        await block._interrupted(None)
        block._hear()

    async def _run(self, statement: str) -> None:
        """Adds a statement of our own and waits for it. What made it fail may be an operation before it."""
        block: Any = self
        operation = await self.execute(statement)
        await block.process(operation)
        raise_first(block.operations, block._first_failed, block._outer is None)
        operation.result()

    async def _end_transaction(self, statement: str) -> AsyncOperation:
        block: Any = self
        whole = block._whole()
        whole._begins = False
        operation = await self.execute(statement)
        whole._begins = block.connection._begins
        return operation
