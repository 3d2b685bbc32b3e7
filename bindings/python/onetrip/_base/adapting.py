"""What dumpers and loaders are, as psycopg has them."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

from onetrip import _native
from onetrip.errors import DataError


class PyFormat(str, enum.Enum):
    """How a placeholder asks for its parameter: `%s`, `%t` or `%b`."""

    AUTO = "s"
    TEXT = "t"
    BINARY = "b"


class Format(enum.IntEnum):
    """How a value is written on its way; the protocol's numbers."""

    TEXT = 0
    BINARY = 1


class Dumper(ABC):
    """Writes the values of a class, as psycopg's dumpers do."""

    oid: int = 0
    format: Format = Format.TEXT

    def __init__(self, cls: type, context: Any = None) -> None:
        self.cls = cls
        self.connection = context.connection if context is not None else None

    @abstractmethod
    def dump(self, obj: Any) -> Any:
        """The value as bytes; None for NULL."""

    def quote(self, obj: Any) -> bytes:
        """The value as a literal."""
        data = self.dump(obj)
        return b"NULL" if data is None else literal(bytes(data).decode()).encode()

    def get_key(self, obj: Any, format: PyFormat) -> Any:
        """What tells values that need another dumper."""
        return self.cls

    def upgrade(self, obj: Any, format: PyFormat) -> Dumper:
        """The dumper of a value."""
        return self


class Loader(ABC):
    """Makes values of a type, as psycopg's loaders do."""

    format: Format = Format.TEXT

    def __init__(self, oid: int, context: Any = None) -> None:
        self.oid = oid
        self.connection = context.connection if context is not None else None

    @abstractmethod
    def load(self, data: Any) -> Any:
        """The value of some bytes: text of UTF-8, or the type's binary form."""


class PlainDumper(Dumper):
    """Writes values as they are where the program says nothing about their class: to build others on."""

    def dump(self, obj: Any) -> Any:
        """The value as bytes."""
        data = _native.dumped(obj, self.oid, self.format == Format.BINARY)
        if data is None:
            raise DataError(f"{type(self).__name__} writes no {type(obj).__name__!r}")
        return data


class PlainLoader(Loader):
    """Makes values as they are where the program says nothing about their type: to build others on."""

    # Of which type they are, whichever it is registered for.
    _oid = 25

    def load(self, data: Any) -> Any:
        """The value of some bytes."""
        return _native.built_in(self._oid, bytes(data), self.format == Format.BINARY)


class Adapters(Protocol):
    """Which dumpers and loaders there are, for a connection, a cursor or all: `onetrip.adapt.AdaptersMap`."""

    # Types by name and id.
    types: Any
    # Types of ranges by that of their bounds, of multiranges by that of their ranges.
    _ranges: dict[int, int]
    _multiranges: dict[int, int]
    # For text and for the binary form: the functions that loaders come to, by the types of their values.
    _functions: tuple[dict[int, Any], dict[int, Any]]

    def register_dumper(self, cls: type | str | None, dumper: Any) -> None: ...

    def register_loader(self, oid: int | str, loader: Any) -> None: ...

    def register_binary(self, oid: int, load: Callable[[bytes], Any]) -> None: ...

    def _params(self, params: Any) -> Any: ...

    def _quoted(self, value: Any) -> tuple[int, str] | None: ...

    def _encoding(self) -> str: ...


# Those of the process. `onetrip.adapt` makes them.
_of_process: list[Adapters] = []


def set_adapters_of_process(adapters: Adapters) -> None:
    """Says which adapters there are where no context is named."""
    _of_process[:] = [adapters]


def adapters_of(context: Any) -> Adapters:
    """The adapters of a connection, a cursor or a map of adapters; for None those of the process."""
    if context is None:
        return _of_process[0]
    adapters: Adapters = context.adapters
    return adapters


def literal(text: str) -> str:
    """Text as a literal, which the server reads in the same way whatever its settings."""
    quoted = text.replace("\\", "\\\\").replace("'", "''")
    return f"E'{quoted}'" if "\\" in text else f"'{quoted}'"
