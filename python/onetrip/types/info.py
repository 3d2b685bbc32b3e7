"""What the server knows about a type that it does not have from the start."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from onetrip import _native, adapt
from onetrip.errors import ProgrammingError

if TYPE_CHECKING:
    from typing_extensions import Self

    from onetrip.aio.connection import AsyncConnection
    from onetrip.connection import Connection

    Context = Connection | AsyncConnection | None

_TYPE = """SELECT t.typname, t.oid::bigint, t.typarray::bigint, t.typdelim::text, t.oid::regtype::text
FROM pg_catalog.pg_type t WHERE t.oid = pg_catalog.to_regtype(%s)"""


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
    def fetch(cls, conn: Connection, name: Any) -> Self | None: ...

    @overload
    @classmethod
    async def fetch(cls, conn: AsyncConnection, name: Any) -> Self | None: ...

    @classmethod
    def fetch(cls, conn: Any, name: Any) -> Any:
        """What the server knows about a type; None if it has none of that name. To be awaited on a connection for
        asyncio."""
        from onetrip.connection import Connection
        from onetrip.sql import text_of

        text = text_of(name, conn)
        if isinstance(conn, Connection):
            return cls._fetch(conn, text)
        return cls._fetch_async(conn, text)

    @classmethod
    def _fetch(cls, conn: Connection, name: str) -> Any:
        (answer,) = conn._alone().run(_TYPE, (name,), conn._begins)
        row = answer.one()
        if row is None or cls._more is None:
            return cls._made(row, [])
        (answer,) = conn._alone().run(cls._more, (row[1],), conn._begins)
        return cls._made(row, answer.many(len(answer)))

    @classmethod
    async def _fetch_async(cls, conn: AsyncConnection, name: str) -> Any:
        (answer,) = await conn._run(_TYPE, (name,), conn._begins)
        row = answer.one()
        if row is None or cls._more is None:
            return cls._made(row, [])
        (answer,) = await conn._run(cls._more, (row[1],), conn._begins)
        return cls._made(row, answer.many(len(answer)))

    @classmethod
    def _made(cls, row: Any, more: list[Any]) -> Any:
        if row is None:
            return None
        name, oid, array_oid, delimiter, regtype = row
        return cls(name, oid, array_oid, regtype=regtype, delimiter=delimiter, **cls._details(more))

    @classmethod
    def _details(cls, more: list[Any]) -> dict[str, Any]:
        return {}

    def register(self, context: Context = None) -> None:
        """Makes arrays of the type lists, on a connection or on all of them."""
        register_loader(context, self.array_oid, self._array(lambda text: text))

    def _array(self, load: Callable[[str], Any]) -> Callable[[str], Any]:
        delimiter = self.delimiter
        return lambda text: _native.loaded_array(text, delimiter, load)


def register_loader(context: Context, oid: int, load: Callable[[str], Any]) -> None:
    """Makes values of a type by a function, on a connection or, for None, on all of them."""
    if not oid:
        return
    if context is None:
        adapt.register_loader(oid, load)
    else:
        context.register_loader(oid, load)


def checked(info: TypeInfo | None, what: str) -> None:
    """Says what it means where nothing was fetched."""
    if info is None:
        raise ProgrammingError(f"there is no {what} to register: fetch has found no type of that name")
