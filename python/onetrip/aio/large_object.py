"""Large objects for asyncio: the server's functions for them, several calls to a trip."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onetrip.errors import ProgrammingError

if TYPE_CHECKING:
    from onetrip.aio.connection import AsyncConnection

# Bytes of one call, and of what is fetched ahead where nobody says how much.
_PIECE_BYTES = 256 * 1024
_AHEAD_BYTES = 8 * 1024 * 1024
# Pieces that one trip fetches or writes.
_PIECES = 16

_READ = "SELECT lo_get(%s, %s, %s)"
# The length: a descriptor is opened for reading (INV_READ), taken to its end (SEEK_END), and closed.
_LENGTH = "SELECT lo_lseek64(fd, 0, 2), lo_close(fd) FROM (SELECT lo_open(%s, 262144) AS fd OFFSET 0) AS opened"


class AsyncLargeObject:
    """A large object, read from its beginning on."""

    def __init__(self, connection: AsyncConnection, oid: int) -> None:
        self.oid = oid
        self._connection = connection
        self._ahead = b""
        self._position = 0
        self._length: int | None = None

    @property
    def length(self) -> int | None:
        """Its length in bytes, where it is known."""
        return self._length

    @property
    def memory(self) -> int:
        """Bytes that were fetched ahead and take memory."""
        return len(self._ahead)

    async def read(self, size: int = -1) -> bytes:
        """The next bytes, all that are left unless `size` is given; fewer at the end only."""
        parts = []
        wanted = size if size >= 0 else 2**62
        while wanted > 0:
            if not self._ahead:
                await self._fetch(wanted)
            part, self._ahead = self._ahead[:wanted], self._ahead[wanted:]
            if not part:
                break
            parts.append(part)
            wanted -= len(part)
        return b"".join(parts)

    async def _fetch(self, wanted: int) -> None:
        if self._length is not None and self._position >= self._length:
            return
        count = min(_PIECES, -(-wanted // _PIECE_BYTES))
        async with self._connection.pipeline() as pipeline:
            starts = [self._position + at * _PIECE_BYTES for at in range(count)]
            pieces = [await pipeline.execute(_READ, (self.oid, start, _PIECE_BYTES)) for start in starts]
        self._took(b"".join(piece.fetchall()[0][0] for piece in pieces), count * _PIECE_BYTES)

    def _took(self, data: bytes, asked: int) -> None:
        self._ahead += data
        self._position += len(data)
        if len(data) < asked:
            self._length = self._position


async def fetch_ahead(connection: AsyncConnection, oids: list[int], prefetch: int | None) -> list[AsyncLargeObject]:
    """Large objects with what is wanted of them, in one trip; -1 nothing, 0 the length, n so many bytes of each."""
    if prefetch is not None and prefetch < -1:
        raise ProgrammingError("prefetch is -1, 0, a number of bytes or None")
    objects = [AsyncLargeObject(connection, oid) for oid in oids]
    if prefetch == -1 or not objects:
        return objects
    ahead = max(_AHEAD_BYTES // len(objects), 1) if prefetch is None else prefetch
    async with connection.pipeline() as pipeline:
        if ahead == 0:
            found = [await pipeline.execute(_LENGTH, (one.oid,)) for one in objects]
        else:
            found = [await pipeline.execute(_READ, (one.oid, 0, ahead)) for one in objects]
    for one, answer in zip(objects, found, strict=True):
        value = answer.fetchall()[0][0]
        if ahead == 0:
            one._length = value
        else:
            one._took(value, ahead)
    return objects


async def create(connection: AsyncConnection, data: bytes) -> int:
    """Makes a large object; its id."""
    cursor = await connection.execute("SELECT lo_from_bytea(0, %s)", (data[:_PIECE_BYTES],))
    oid: int = (await cursor.fetchall())[0][0]
    await write(connection, oid, data[_PIECE_BYTES:], _PIECE_BYTES)
    return oid


async def write(connection: AsyncConnection, oid: int, data: bytes, position: int) -> None:
    """Writes into a large object; its pieces are one block, and hold together or not at all."""
    if not data:
        return
    async with connection.pipeline() as pipeline:
        for at in range(0, len(data), _PIECE_BYTES):
            await pipeline.execute("SELECT lo_put(%s, %s, %s)", (oid, position + at, data[at : at + _PIECE_BYTES]))
