"""What the server knows about a type that it does not have from the start."""

from __future__ import annotations

import inspect
import struct
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, Any, Protocol, overload

from onetrip import _native
from onetrip._base.adapting import adapters_of
from onetrip.sql import text_of

# A connection, a cursor or a map of adapters; None for all connections.
Context = Any
# Statements with their parameters; answers are sent in.
Steps = Generator[tuple[str, Any], Any, Any]

if TYPE_CHECKING:
    from typing_extensions import Self

_TYPE = """SELECT t.typname, t.oid::bigint, t.typarray::bigint, t.typdelim::text, t.oid::regtype::text
FROM pg_catalog.pg_type t WHERE t.oid = pg_catalog.to_regtype(%s)"""


class Asks(Protocol):
    """A connection that waits for the answer."""

    def _run_outside(self, statement: str, params: Any = None) -> _native.Answer: ...


class AsksAsync(Protocol):
    """A connection whose answer is awaited."""

    async def _run_outside(self, statement: str, params: Any = None) -> _native.Answer: ...


class TypeInfo:
    """Name, id and array's id of a type of the database."""

    # What is fetched beyond that: a statement with the type's id for a parameter.
    _more: str | None = None

    def __init__(self, name: str, oid: int, array_oid: int, *, regtype: str = "", delimiter: str = ",") -> None:
        self.name = name
        self.oid = oid
        self.array_oid = array_oid
        self.regtype = regtype or name
        self.delimiter = delimiter

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.name} (oid: {self.oid}, array oid: {self.array_oid})>"

    @overload
    @classmethod
    def fetch(cls, conn: Asks, name: Any) -> Self | None: ...

    @overload
    @classmethod
    async def fetch(cls, conn: AsksAsync, name: Any) -> Self | None: ...

    @classmethod
    def fetch(cls, conn: Any, name: Any) -> Any:
        """What the server knows about a type; None if it has none of that name. To be awaited on a connection for
        asyncio."""
        steps = cls._steps(text_of(name, conn))
        return _awaited(conn, steps) if inspect.iscoroutinefunction(conn._run_outside) else _waited(conn, steps)

    @classmethod
    def _steps(cls, name: str) -> Steps:
        """What is asked, one statement after the other; it is sent the answers, and returns what was found."""
        answer = yield _TYPE, (name,)
        row = answer.one()
        if row is None or cls._more is None:
            return cls._made(row, [])
        answer = yield cls._more, (row[1],)
        return cls._made(row, answer.many(len(answer)))

    @classmethod
    def _made(cls, row: Any, more: list[Any]) -> Any:
        if row is None:
            return None
        name, oid, array_oid, delimiter, regtype = _texts(row)
        return cls(name, oid, array_oid, regtype=regtype, delimiter=delimiter, **cls._details(list(map(_texts, more))))

    @classmethod
    def _details(cls, more: list[Any]) -> dict[str, Any]:
        return {}

    def register(self, context: Context = None) -> None:
        """Makes arrays of the type lists, and lists of its values arrays, on a connection or on all of them."""
        adapters = adapters_of(context)
        adapters.types.add(self)
        register_loader(context, self.array_oid, self._array(lambda text: text))
        if self.array_oid:
            adapters.register_binary(self.array_oid, lambda data: binary_array(data, bytes))

    def _array(self, load: Callable[[str], Any]) -> Callable[[str], Any]:
        delimiter = self.delimiter
        return lambda text: _native.loaded_array(text, delimiter, load)


def _texts(row: Iterable[Any]) -> list[Any]:
    """A row of names, which are bytes in SQL_ASCII."""
    return [value.decode() if isinstance(value, bytes) else value for value in row]


def _waited(conn: Asks, steps: Steps) -> Any:
    try:
        asked = next(steps)
        while True:
            asked = steps.send(conn._run_outside(*asked))
    except StopIteration as found:
        return found.value


async def _awaited(conn: AsksAsync, steps: Steps) -> Any:
    try:
        asked = next(steps)
        while True:
            asked = steps.send(await conn._run_outside(*asked))
    except StopIteration as found:
        return found.value


def register_loader(context: Context, oid: int, load: Callable[[str], Any]) -> None:
    """Makes values of a type by a function, on a connection or, for None, on all of them."""
    if oid:
        adapters_of(context).register_loader(oid, load)


def register_binary(context: Context, info: TypeInfo, load: Callable[[bytes], Any]) -> None:
    """Makes values by a function of their binary form."""
    adapters = adapters_of(context)
    adapters.register_binary(info.oid, load)
    if info.array_oid:
        adapters.register_binary(info.array_oid, lambda data: binary_array(data, load))


def binary_array(data: bytes, load: Callable[[bytes], Any]) -> list[Any]:
    """The list of an array in binary, whose elements are what a function makes."""
    dimensions, _, _ = struct.unpack_from("!iii", data)
    lengths = [struct.unpack_from("!ii", data, 12 + 8 * at)[0] for at in range(dimensions)]
    place = [12 + 8 * dimensions]

    def listed(depth: int) -> Any:
        if depth < dimensions:
            return [listed(depth + 1) for _ in range(lengths[depth])]
        (length,) = struct.unpack_from("!i", data, place[0])
        start = place[0] + 4
        place[0] = start + max(length, 0)
        return None if length < 0 else load(data[start : place[0]])

    made: list[Any] = listed(0) if dimensions else []
    return made


def checked(info: TypeInfo | None, what: str) -> None:
    """Says what it means where nothing was fetched."""
    if info is None:
        raise TypeError(f"there is no {what} to register: fetch has found no type of that name")
