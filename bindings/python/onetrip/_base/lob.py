"""Large values, as far as nothing waits: where they are, and what is to be sent to write them."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from onetrip import _native
from onetrip.errors import ProgrammingError

if TYPE_CHECKING:
    from onetrip._base.cursor import Params
    from onetrip.dbapi import Column

# What is fetched before anybody reads: -1 nothing, 0 the length, n bytes or characters, "auto" what memory allows.
Prefetch = int | Literal["auto"]

# Bytes that one statement writes, and that wait to be written together.
PIECE_BYTES = 64 * 1024
_BUFFER_BYTES = 16 * PIECE_BYTES
# All that there is.
ALL = 2**62


def word(prefetch: Prefetch | None) -> str | None:
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
            return _native.Lob.object(key, word(self.prefetch))
        return _native.Lob.value(self.read, self.length, key, word(self.prefetch))


OBJECTS = LobColumn()


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
            ("SELECT lo_put(%s, %s, %s)", (self.oid, start + at, data[at : at + PIECE_BYTES]))
            for at in range(0, len(data), PIECE_BYTES)
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


class BaseLobReader:
    """A large value that is read: where reading goes on."""

    def __init__(self, connection: Any, native: _native.Lob) -> None:
        self._connection: Any = connection
        self._native: _native.Lob | None = native

    @property
    def length(self) -> int | None:
        """Its length in bytes, or characters of text, where it is known."""
        return self._open().length

    @property
    def memory(self) -> int:
        """Bytes that were fetched ahead and take memory."""
        return 0 if self._native is None else self._native.memory

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Goes elsewhere, without a trip. From the end only where the length is known."""
        native = self._open()
        position = _position(native, offset, whence)
        native.seek(position)
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

    def _open(self) -> _native.Lob:
        if self._native is None:
            raise ValueError("the reader is closed")
        return self._native


class BaseLobWriter:
    """A large value that is written: how far."""

    def __init__(self, connection: Any, writing: Writing) -> None:
        self._connection: Any = connection
        self._writing: Writing | None = writing
        self._owns_transaction = False

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

    @property
    def closed(self) -> bool:
        """Whether `close` was called, or the block ended by an exception."""
        return self._writing is None

    def _open(self) -> Writing:
        if self._writing is None:
            raise ValueError("the writer is closed")
        return self._writing
