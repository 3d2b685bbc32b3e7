"""Large values for asyncio, read and written in parts."""

from __future__ import annotations

import contextlib
import io
from typing import TYPE_CHECKING, Any, AnyStr, Generic

from onetrip import _native, errors
from onetrip.lob import _ALL, Writing, _open, _position

if TYPE_CHECKING:
    from onetrip.aio.connection import AsyncConnection


class AsyncLobReader(Generic[AnyStr]):
    """A large value, read from its beginning on, as `onetrip.LobReader`."""

    def __init__(self, connection: AsyncConnection, native: _native.Lob) -> None:
        self._connection = connection
        self._native: _native.Lob | None = native

    @property
    def length(self) -> int | None:
        """Its length in bytes, or characters of text, where it is known."""
        return _open(self._native).length

    @property
    def memory(self) -> int:
        """Bytes that were fetched ahead and take memory."""
        return 0 if self._native is None else self._native.memory

    async def read(self, size: int | None = -1) -> AnyStr:
        """The next bytes or characters, all that are left unless `size` is given; fewer at the end only."""
        most = _ALL if size is None or size < 0 else size
        await self._connection._fetch_lob(_open(self._native), most)
        part: AnyStr = _open(self._native).take(most)
        return part

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Goes elsewhere, without a trip. From the end only where the length is known."""
        native = _open(self._native)
        position = _position(native, offset, whence)
        native.seek(position)
        return position

    def tell(self) -> int:
        """Where reading goes on."""
        return _open(self._native).position

    def close(self) -> None:
        """Frees what was fetched ahead."""
        self._native = None

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._native is None

    async def __aenter__(self) -> AsyncLobReader[AnyStr]:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


class AsyncLobWriter:
    """Writes a large value in parts, as `onetrip.LobWriter`."""

    def __init__(self, connection: AsyncConnection, writing: Writing) -> None:
        self._connection = connection
        self._writing: Writing | None = writing
        self._owns_transaction = False

    async def write(self, data: Any) -> int:
        """Adds data, bytes or text as the value is; how much. Not all is sent before `close`."""
        writing = self._open()
        for part in writing.parts(data):
            if writing.add(part):
                await self._send()
        return len(data)

    def tell(self) -> int:
        """Bytes up to the place that is written next."""
        return self._open().tell()

    async def close(self) -> None:
        """Writes the rest, and waits until the server has all of it."""
        if self._writing is None:
            return
        writing, self._writing = self._writing, None
        async with self._connection.pipeline() as pipeline:
            operations = [await pipeline.execute(*statement) for statement in writing.last()]
            if self._owns_transaction:
                await pipeline.commit()
        writing.check([operation.rowcount for operation in operations])

    @property
    def closed(self) -> bool:
        """Whether `close` was called, or the block ended by an exception."""
        return self._writing is None

    async def __aenter__(self) -> AsyncLobWriter:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Writes the rest; after an exception, gives up."""
        if kind is None:
            await self.close()
            return
        undo = self._writing.undo() if self._writing is not None else None
        self._writing, connection = None, self._connection
        if connection.closed:
            return
        with contextlib.suppress(errors.Error):  # the exception on its way tells more
            if self._owns_transaction:
                await connection.rollback()
            elif undo is not None and connection.transaction_status == 2:
                await connection._run(*undo, False)

    async def _send(self) -> None:
        writing, connection = self._open(), self._connection
        if connection.autocommit and connection.transaction_status == 0:
            await connection._run("BEGIN", None, False)
            self._owns_transaction = True
        if writing.oid is None:
            (answer,) = await connection._run("SELECT lo_create(0)", None, connection._begins)
            (writing.oid,) = answer.one() or ()
        async with connection.pipeline() as pipeline:
            for statement in writing.pieces():
                await pipeline.execute(*statement)

    def _open(self) -> Writing:
        if self._writing is None:
            raise ValueError("the writer is closed")
        return self._writing
