"""Statements that are put together from parts, each written as what it is.

    sql.SQL("SELECT {} FROM {} WHERE id = %s").format(sql.Identifier("name"), sql.Identifier("shop", "item"))

`execute` takes what comes of it in place of text.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from onetrip import _native
from onetrip._base.adapting import PyFormat, adapters_of


class Composable:
    """A part of a statement."""

    def as_string(self, context: Any = None) -> str:
        """The part as text. `context` is a connection or a cursor, whose dumpers and types literals are made by."""
        raise NotImplementedError

    def as_bytes(self, context: Any = None) -> bytes:
        """The part as bytes, in the connection's encoding or UTF-8."""
        connection = None if context is None else context.connection
        return self.as_string(context).encode("utf-8" if connection is None else connection.info.encoding)

    def __add__(self, other: Any) -> Composed:
        if not isinstance(other, Composable):
            return NotImplemented
        return Composed([*_parts(self), *_parts(other)])

    def __mul__(self, count: int) -> Composed:
        return Composed([self] * count)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._shown()})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self), self._key()))

    def _key(self) -> Any:
        raise NotImplementedError

    def _shown(self) -> str:
        return repr(self._key())


class Composed(Composable):
    """Parts one after another. What is no part is a literal."""

    def __init__(self, seq: Iterable[Any]) -> None:
        self._parts = [part if isinstance(part, Composable) else Literal(part) for part in seq]

    def as_string(self, context: Any = None) -> str:
        """All parts as text."""
        return "".join(part.as_string(context) for part in self._parts)

    def join(self, joiner: SQL | str) -> Composed:
        """The parts with something between each two."""
        return (SQL(joiner) if isinstance(joiner, str) else joiner).join(self._parts)

    def __iter__(self) -> Iterator[Composable]:
        return iter(self._parts)

    def _key(self) -> Any:
        return tuple(self._parts)

    def _shown(self) -> str:
        return repr(self._parts)


class SQL(Composable):
    """A piece of SQL, written by the programmer and never by who uses the program."""

    def __init__(self, obj: str) -> None:
        if not isinstance(obj, str):
            raise TypeError(
                f"SQL is made of str, not of {type(obj).__name__}: what varies is an Identifier or a Literal"
            )
        self._text = obj

    def as_string(self, context: Any = None) -> str:
        """The text as it is."""
        return self._text

    def format(self, *args: Any, **kwargs: Any) -> Composed:
        """Puts parts in place of `{}`, `{0}` and `{name}`."""
        made: list[Composable] = []
        following: int | None = 0
        for text, name, spec, conversion in string.Formatter().parse(self._text):
            if text:
                made.append(SQL(text))
            if name is None:
                continue
            if spec or conversion:
                raise ValueError("a place of SQL.format has neither a format nor a conversion: write {name}")
            if not name:
                if following is None:
                    raise ValueError("places with and without numbers cannot be mixed")
                value = args[following]
                following += 1
            elif name.isdigit():
                if following:
                    raise ValueError("places with and without numbers cannot be mixed")
                following, value = None, args[int(name)]
            else:
                value = kwargs[name]
            made.append(value if isinstance(value, Composable) else Literal(value))
        return Composed(made)

    def join(self, seq: Iterable[Any]) -> Composed:
        """Parts with this between each two."""
        made: list[Any] = []
        for part in seq:
            made += [self, part] if made else [part]
        return Composed(made)

    def _key(self) -> Any:
        return self._text


class Identifier(Composable):
    """A name in quotes; several are one with dots between: `Identifier("schema", "table")`."""

    def __init__(self, *strings: str) -> None:
        if not strings or not all(isinstance(name, str) for name in strings):
            raise TypeError("an identifier is made of str, of one at least")
        self._names = strings

    def as_string(self, context: Any = None) -> str:
        """The name in quotes."""
        if any("\0" in name for name in self._names):
            raise ValueError("a name cannot have a NUL")
        return ".".join('"' + name.replace('"', '""') + '"' for name in self._names)

    def _key(self) -> Any:
        return self._names

    def _shown(self) -> str:
        return ", ".join(map(repr, self._names))


class Literal(Composable):
    """A value, as the server reads it within a statement. A parameter is better where there can be one."""

    def __init__(self, obj: Any) -> None:
        self._value = obj

    def as_string(self, context: Any = None) -> str:
        """The literal. What could run into a sign before it has a space in front."""
        if isinstance(self._value, Composable):
            return self._value.as_string(context)
        adapters = adapters_of(context)
        quoted = adapters._quoted(self._value)
        if quoted is None:
            return _native.composed("%s", adapters._params((self._value,)), "UTF8", adapters.types.cast_of)
        oid, text = quoted
        name = adapters.types.cast_of(oid) if text.endswith("'") else None
        return text if name is None else f"{text}::{name}"

    def _key(self) -> Any:
        return self._value


class Placeholder(Composable):
    """`%s`, or `%(name)s`."""

    def __init__(self, name: str = "", format: str = "s") -> None:
        if not isinstance(name, str) or "(" in name or ")" in name:
            raise ValueError(f"a placeholder's name is text without brackets, not {name!r}")
        self._name = name
        self._format = getattr(format, "value", format)

    def as_string(self, context: Any = None) -> str:
        """The placeholder."""
        return f"%({self._name}){self._format}" if self._name else f"%{self._format}"

    def _key(self) -> Any:
        return (self._name, self._format)

    def _shown(self) -> str:
        name = repr(self._name) if self._name else ""
        form = "" if self._format == "s" else f"format={PyFormat(self._format).name}"
        return ", ".join(part for part in (name, form) if part)


NULL = SQL("NULL")
DEFAULT = SQL("DEFAULT")


def quote(obj: Any, context: Any = None) -> str:
    """A value as a literal."""
    return Literal(obj).as_string(context)


def text_of(statement: Any, context: Any = None) -> str:
    """A statement as text, whatever it was given as."""
    if isinstance(statement, str):
        return statement
    if isinstance(statement, Composable):
        return statement.as_string(context)
    if isinstance(statement, bytes):
        return statement.decode()
    raise TypeError(f"a statement is str, bytes or a part of `onetrip.sql`, not {type(statement).__name__}")


def _parts(part: Composable) -> Sequence[Composable]:
    return part._parts if isinstance(part, Composed) else [part]


def as_string(obj: Any, context: Any = None) -> str:
    """A part as text; what is none as a literal."""
    part = obj if isinstance(obj, Composable) else Literal(obj)
    return part.as_string(context)


def as_bytes(obj: Any, context: Any = None) -> bytes:
    """The same as bytes."""
    part = obj if isinstance(obj, Composable) else Literal(obj)
    return part.as_bytes(context)
