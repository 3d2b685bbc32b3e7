"""Large values, read and written in parts: large objects, and values of bytea and text."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, AnyStr, Generic, Literal

from onetrip import _native, errors
from onetrip.errors import ProgrammingError

if TYPE_CHECKING:
    from onetrip.connection import Connection
    from onetrip.cursor import Params
    from onetrip.dbapi import Column

# What is fetched before anybody reads: -1 nothing, 0 the length, n bytes or characters, "auto" what memory allows.
Prefetch = int | Literal["auto"]

# Bytes that one statement writes, and that wait to be written together.
_PIECE_BYTES = 64 * 1024
_BUFFER_BYTES = 16 * _PIECE_BYTES
# All that there is.
_ALL = 2**62


def _word(prefetch: Prefetch | None) -> str | None:
    return None if prefetch is None else str(prefetch)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""').replace("%", "%%") + '"'


@dataclass(frozen=True)
class LobColumn:
    """Where large values are that are found by a key each.

    As it is, `LobColumn()`, these are large objects and the keys their ids. `LobColumn.of` names a column of bytea or
    text. Any other values are read by statements: `read` has the placeholders `%(key)s`, `%(position)s` (counted from
    one) and `%(count)s`; `length` and `write` are for those who want to measure and to write, and have `%(key)s`, and
    `%(value)s` to write. What has no length cannot tell it before it was read."""

    read: str | None = None
    length: str | None = None
    write: str | None = None
    prefetch: Prefetch | None = None

    @classmethod
    def of(
        cls, table: str, column: str, *, key: str, schema: str | None = None, prefetch: Prefetch | None = None
    ) -> LobColumn:
        """A column of bytea or text of a table whose rows are found by the column `key`. Names are as they are in the
        catalog: upper case stays so."""
        where = _quoted(table) if schema is None else f"{_quoted(schema)}.{_quoted(table)}"
        name, found = _quoted(column), f"{_quoted(key)} = %(key)s"
        return cls(
            read=f"SELECT substr({name}, %(position)s, %(count)s) FROM {where} WHERE {found}",
            length=f"SELECT length({name}) FROM {where} WHERE {found}",
            write=f"UPDATE {where} SET {name} = %(value)s WHERE {found}",
            prefetch=prefetch,
        )

    def _native(self, key: Any) -> _native.Lob:
        if self.read is None:
            return _native.Lob.object(key, _word(self.prefetch))
        return _native.Lob.value(self.read, self.length, key, _word(self.prefetch))


OBJECTS = LobColumn()


class LobReader(Generic[AnyStr]):
    """A large value, read from its beginning on, as a file is: bytes, or text where the value is text, of which sizes
    and positions count characters. NULL and a row that does not exist read as nothing."""

    def __init__(self, connection: Connection, native: _native.Lob) -> None:
        self._connection = connection
        self._native: _native.Lob | None = native

    @property
    def length(self) -> int | None:
        """Its length in bytes, or characters of text, where it is known."""
        return self._open().length

    @property
    def memory(self) -> int:
        """Bytes that were fetched ahead and take memory."""
        return 0 if self._native is None else self._native.memory

    def read(self, size: int | None = -1) -> AnyStr:
        """The next bytes or characters, all that are left unless `size` is given; fewer at the end only. What was
        fetched ahead is taken from memory and freed; the rest comes in pieces, several to a trip."""
        most = _ALL if size is None or size < 0 else size
        connection = self._connection
        part: AnyStr = connection._session().read_lob(self._open(), most, connection._begins)
        return part

    def readinto(self, buffer: Any) -> int:
        """Reads bytes into a buffer; how many."""
        view = memoryview(buffer).cast("B")
        part: Any = self.read(len(view))
        view[: len(part)] = part
        return len(part)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Goes elsewhere, without a trip. From the end only where the length is known."""
        position = _position(self._open(), offset, whence)
        self._open().seek(position)
        return position

    def tell(self) -> int:
        """Where reading goes on."""
        return self._open().position

    def readable(self) -> bool:
        """It is."""
        return True

    def writable(self) -> bool:
        """It is not."""
        return False

    def seekable(self) -> bool:
        """It is."""
        return True

    def flush(self) -> None:
        """Nothing waits to be written."""

    def close(self) -> None:
        """Frees what was fetched ahead."""
        self._native = None

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._native is None

    def __enter__(self) -> LobReader[AnyStr]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> _native.Lob:
        return _open(self._native)


def _open(native: _native.Lob | None) -> _native.Lob:
    if native is None:
        raise ValueError("the reader is closed")
    return native


def _position(native: _native.Lob, offset: int, whence: int) -> int:
    if whence == io.SEEK_CUR:
        offset += native.position
    elif whence == io.SEEK_END:
        if native.length is None:
            raise io.UnsupportedOperation("the length is not known: prefetch=0 fetches it")
        offset += native.length
    elif whence != io.SEEK_SET:
        raise ValueError(f"whence has to be 0, 1 or 2, not {whence!r}")
    if offset < 0:
        raise ValueError("there is nothing before the beginning")
    return offset


class Found:
    """The large values that rows name: the same for both kinds of cursors."""

    def __init__(
        self, rows: Sequence[Sequence[Any]], description: Sequence[Column], columns: Mapping[str, LobColumn | None]
    ) -> None:
        names = [column.name for column in description]
        for name in columns:
            if name not in names:
                raise ProgrammingError(f"the rows have no column {name!r}")
        self._places = [(names.index(name), column or OBJECTS) for name, column in columns.items()]
        self._rows = [list(row) for row in rows]
        self.natives: list[_native.Lob] = []
        for row in self._rows:
            for at, column in self._places:
                if row[at] is not None:
                    row[at] = column._native(row[at])
                    self.natives.append(row[at])

    def rows(self, reader: Any) -> list[tuple[Any, ...]]:
        """The rows, with what `reader` makes of each value."""
        for row in self._rows:
            for at, _ in self._places:
                if row[at] is not None:
                    row[at] = reader(row[at])
        return [tuple(row) for row in self._rows]


class Writing:
    """What is to be sent of a large value that is being written: the same for both kinds of connections.

    A large object is written where it is. A value of a row goes whole with its UPDATE if it is short; a longer one is
    written as a large object first, which the UPDATE reads, so that no side needs to hold all of it in pieces."""

    def __init__(self, oid: int | None, column: LobColumn | None, key: Any, position: int) -> None:
        if column is not None and column.write is None:
            raise ProgrammingError("the column has no statement to write by")
        self.oid = oid
        self._column = column
        self._key = key
        self._position = position
        self._buffer = bytearray()
        self._is_text: bool | None = None

    def parts(self, data: Any) -> Iterable[memoryview]:
        """Data in parts to `add`."""
        is_text = isinstance(data, str)
        if self._is_text is None:
            self._is_text = is_text
        if is_text and self._column is None:
            raise TypeError("a large object is made of bytes, not of str")
        if is_text != self._is_text:
            raise TypeError("a value is made of either bytes or str")
        view = memoryview(data.encode() if is_text else data).cast("B")
        return (view[at : at + _BUFFER_BYTES] for at in range(0, len(view), _BUFFER_BYTES))

    def add(self, part: memoryview) -> bool:
        """Takes a part; whether it is time to send."""
        self._buffer += part
        return len(self._buffer) >= _BUFFER_BYTES

    def pieces(self) -> list[tuple[str, Params]]:
        """What writes all that waits."""
        data, start = bytes(self._buffer), self._position
        self._buffer.clear()
        self._position += len(data)
        return [
            ("SELECT lo_put(%s, %s, %s)", (self.oid, start + at, data[at : at + _PIECE_BYTES]))
            for at in range(0, len(data), _PIECE_BYTES)
        ]

    def tell(self) -> int:
        """Bytes up to the place that is written next."""
        return self._position + len(self._buffer)

    def last(self) -> list[tuple[str, Params]]:
        """What writes the rest. The statement that makes it a value of a row is the first then."""
        if self._column is None:
            return self.pieces()
        assert self._column.write is not None
        if self.oid is None:
            data = bytes(self._buffer)
            value = data.decode() if self._is_text else data
            return [(self._column.write, {"key": self._key, "value": value})]
        whole = "convert_from(lo_get(%(value)s), 'UTF8')" if self._is_text else "lo_get(%(value)s)"
        store = self._column.write.replace("%(value)s", whole)
        return [
            *self.pieces(),
            (store, {"key": self._key, "value": self.oid}),
            ("SELECT lo_unlink(%s)", (self.oid,)),
        ]

    def undo(self) -> tuple[str, Params] | None:
        """What takes away that a value was half written, in a transaction that may go on."""
        if self._column is None or self.oid is None:
            return None
        return "SELECT lo_unlink(%s)", (self.oid,)

    def check(self, counts: Sequence[int]) -> None:
        """Takes the row counts of the last statements; raises where none of them found the row."""
        if self._column is not None and counts[-1 if self.oid is None else -2] == 0:
            raise ProgrammingError("there is no row with this key")


class LobWriter:
    """Writes a large value, as a file is written. Data is sent by the megabyte, many pieces to a trip. With
    `autocommit` and outside of a transaction all of it is kept, or nothing after an exception; in a transaction that
    is the transaction's affair."""

    def __init__(self, connection: Connection, writing: Writing) -> None:
        self._connection = connection
        self._writing: Writing | None = writing
        self._owns_transaction = False

    def write(self, data: Any) -> int:
        """Adds data, bytes or text as the value is; how much. Not all is sent before `close`."""
        writing = self._open()
        for part in writing.parts(data):
            if writing.add(part):
                self._send()
        return len(data)

    def tell(self) -> int:
        """Bytes up to the place that is written next."""
        return self._open().tell()

    def readable(self) -> bool:
        """It is not."""
        return False

    def writable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is not."""
        return False

    def flush(self) -> None:
        """Nothing is to be seen before the end."""

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

    @property
    def closed(self) -> bool:
        """Whether `close` was called, or the block ended by an exception."""
        return self._writing is None

    def __enter__(self) -> LobWriter:
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
                connection.execute(*undo)

    def _send(self) -> None:
        writing, connection = self._open(), self._connection
        if connection.autocommit and connection.transaction_status == 0:
            connection.execute("BEGIN")
            self._owns_transaction = True
        if writing.oid is None:
            (writing.oid,) = connection.execute("SELECT lo_create(0)").fetchall()[0]
        with connection.pipeline() as pipeline:
            for statement in writing.pieces():
                pipeline.execute(*statement)

    def _open(self) -> Writing:
        if self._writing is None:
            raise ValueError("the writer is closed")
        return self._writing
