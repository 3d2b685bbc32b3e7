"""What a row becomes: row factories, as psycopg has them.

A factory takes a cursor whose statement has run and returns what makes a row of its values:

    connection.cursor(row_factory=onetrip.rows.dict_row)
"""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol

from onetrip.errors import InterfaceError, ProgrammingError

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from onetrip.dbapi import Column
else:
    from typing import TypeVar as _TypeVar

    def TypeVar(name: str, *, default: Any = None, **keywords: Any) -> Any:  # noqa: N802 (the name is typing's)
        """Only type checkers know what a variable stands for where nobody says so; Python does from 3.13 on."""
        return _TypeVar(name, **keywords)


class Described(Protocol):
    """A cursor, as factories see it."""

    @property
    def description(self) -> list[Column] | None: ...


TupleRow = tuple[Any, ...]
DictRow = dict[str, Any]
T = TypeVar("T")
# A cursor's rows, and those of a connection's cursors.
Row = TypeVar("Row", covariant=True, default=TupleRow)
CursorRow = TypeVar("CursorRow")


class RowMaker(Protocol[Row]):
    """Makes a row of values."""

    def __call__(self, values: Sequence[Any], /) -> Row: ...


class RowFactory(Protocol[Row]):
    """Takes a cursor, and returns what makes rows of its values."""

    def __call__(self, cursor: Any, /) -> RowMaker[Row]: ...


# psycopg has three, for what each kind of cursors takes; here, they are one.
AsyncRowFactory = RowFactory
BaseRowFactory = RowFactory


class MakesRows(Generic[Row]):
    """What all cursors share: rows are tuples, or what the cursor's factory makes of them."""

    def __init__(self, factory: RowFactory[Row] | None) -> None:
        # None for tuples, which rows are anyway.
        self._factory: Any = None if factory is tuple_row else factory
        self._maker: RowMaker[Row] | None = None

    @property
    def row_factory(self) -> RowFactory[Row]:
        """What makes rows of this cursor's values."""
        factory: Any = self._factory or tuple_row
        return factory  # type: ignore[no-any-return]

    @row_factory.setter
    def row_factory(self, factory: RowFactory[Row] | None) -> None:
        self._factory, self._maker = None if factory is tuple_row else factory, None

    def _make(self, row: Any) -> Any:
        """A row by the factory."""
        if self._maker is None:
            assert self._factory is not None
            self._maker = self._factory(self)
        return self._maker(row)

    def _make_maker(self) -> None:
        """Asks the factory what makes rows of the result that is shown."""
        self._maker = None
        if self._factory is not None:
            self._maker = self._factory(self)

    def _made(self, rows: list[Any]) -> list[Any]:
        return rows if self._factory is None else [self._make(row) for row in rows]


def no_result(values: Sequence[Any]) -> Any:
    """Makes no row: for factories whose cursor has no result."""
    raise InterfaceError("the cursor has no result")


def tuple_row(cursor: Described) -> RowMaker[TupleRow]:
    """Rows are tuples, as without a factory."""
    return tuple


def dict_row(cursor: Described) -> RowMaker[DictRow]:
    """Rows are dicts by the columns' names."""
    names = _names(cursor)
    return lambda values: dict(zip(names, values, strict=True))


def namedtuple_row(cursor: Described) -> RowMaker[NamedTuple]:
    """Rows are named tuples; what cannot be a field's name in Python is made into one."""
    kind = _named(*_names(cursor))
    return lambda values: kind(*values)


@lru_cache(512)
def _named(*names: str) -> Any:
    """The class of the rows with these columns; of all results that have them."""
    # Mypy wants the names of the fields to be written out.
    return namedtuple("Row", [_field(name) for name in names], rename=True)  # type: ignore[misc]


def class_row(cls: Callable[..., T]) -> RowFactory[T]:
    """Rows are made by a class, or any other function, from the columns as keyword arguments."""
    return kwargs_row(cls)


def kwargs_row(function: Callable[..., T]) -> RowFactory[T]:
    """Rows are what a function makes of the columns as keyword arguments."""

    def factory(cursor: Described) -> RowMaker[T]:
        names = _names(cursor)
        return lambda values: function(**dict(zip(names, values, strict=True)))

    return factory


def args_row(function: Callable[..., T]) -> RowFactory[T]:
    """Rows are what a function makes of the columns as arguments."""
    return lambda cursor: lambda values: function(*values)


def scalar_row(cursor: Described) -> RowMaker[Any]:
    """A row is the value of its first column."""
    if not _names(cursor):
        if cursor.description is None:
            return no_result
        raise ProgrammingError("a row without columns has no first value")
    return lambda values: values[0]


def _names(cursor: Described) -> list[str]:
    return [column.name for column in cursor.description or ()]


def _field(name: str) -> str:
    field = re.sub(r"\W", "_", name)
    return f"f{field}" if not field or field[0] == "_" or field[0].isdigit() else field
