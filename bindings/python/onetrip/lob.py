# Made from aio/lob.py by tests/test_twins.py: change that one.
"""Large values, read and written in parts: large objects, and values of bytea and text."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, AnyStr, Generic

from onetrip import errors
from onetrip._base.lob import ALL, OBJECTS, BaseLobReader, BaseLobWriter, LobColumn, Prefetch, Writing

if TYPE_CHECKING:
    from typing_extensions import Self

    from onetrip.connection import Connection

__all__ = ["OBJECTS", "LobColumn", "LobReader", "LobWriter", "Prefetch", "Writing"]


class LobReader(BaseLobReader, Generic[AnyStr]):
    """A large value, read from its beginning on, as a file is: bytes, or text where the value is text, of which sizes
    and positions count characters. NULL and a row that does not exist read as nothing."""

    _connection: Connection[Any]

    def read(self, size: int | None = -1) -> AnyStr:
        """The next bytes or characters, all that are left unless `size` is given; fewer at the end only. What was
        fetched ahead is taken from memory and freed; the rest comes in pieces, several to a trip."""
        most = ALL if size is None or size < 0 else size
        part: AnyStr = self._connection._read_lob(self._open(), most)
        return part

    def readinto(self, buffer: Any) -> int:
        """Reads bytes into a buffer; how many."""
        view = memoryview(buffer).cast("B")
        part: Any = self.read(len(view))
        view[: len(part)] = part
        return len(part)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class LobWriter(BaseLobWriter):
    """Writes a large value, as a file is written. Data is sent by the megabyte, many pieces to a trip. With
    `autocommit` and outside of a transaction all of it is kept, or nothing after an exception; in a transaction that
    is the transaction's affair."""

    _connection: Connection[Any]

    def write(self, data: Any) -> int:
        """Adds data, bytes or text as the value is; how much. Not all is sent before `close`."""
        writing = self._open()
        for part in writing.parts(data):
            if writing.add(part):
                self._send()
        return len(data)

    def close(self) -> None:
        """Writes the rest, and waits until the server has all of it."""
        if self._writing is None:
            return
        writing, self._writing = self._writing, None
        with self._connection.pipeline() as pipeline:
            operations = [pipeline.execute(*statement) for statement in writing.last()]
            if self._owns_transaction:
                pipeline.commit()
        writing.check([operation.rowcount for operation in operations])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Writes the rest; after an exception, gives up."""
        if kind is None:
            self.close()
            return
        undo = self._writing.undo() if self._writing is not None else None
        self._writing, connection = None, self._connection
        if connection.closed:
            return
        with contextlib.suppress(errors.Error):  # the exception on its way tells more
            if self._owns_transaction:
                connection.rollback()
            elif undo is not None and connection.transaction_status == 2:
                connection._ask(*undo, False)

    def _send(self) -> None:
        writing, connection = self._open(), self._connection
        if connection.autocommit and connection.transaction_status == 0:
            connection._ask("BEGIN", None, False)
            self._owns_transaction = True
        if writing.oid is None:
            answer = connection._ask("SELECT lo_create(0)", None, connection._begins)
            (writing.oid,) = answer.one()
        with connection.pipeline() as pipeline:
            for statement in writing.pieces():
                pipeline.execute(*statement)
