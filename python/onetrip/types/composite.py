"""Composite types: rows of a table, and what CREATE TYPE ... AS has made."""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from onetrip import adapt
from onetrip.errors import DataError
from onetrip.types.info import TypeInfo, checked, register_loader

if TYPE_CHECKING:
    from onetrip.types.info import Context

_FIELDS = """SELECT a.attname, a.atttypid::bigint FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_type t ON t.typrelid = a.attrelid
WHERE t.oid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""

# A field with what ends it; nothing at all is NULL.
_FIELD = re.compile(r'(?:"((?:[^"\\]|\\.|"")*)"|([^,()"\\]*))([,)])', re.DOTALL)
_ESCAPED = re.compile(r'\\(.)|"(")', re.DOTALL)


class CompositeInfo(TypeInfo):
    """A composite type with the names and types of its fields."""

    _more = _FIELDS

    def __init__(
        self,
        name: str,
        oid: int,
        array_oid: int,
        *,
        regtype: str = "",
        delimiter: str = ",",
        field_names: Sequence[str] = (),
        field_types: Sequence[int] = (),
    ) -> None:
        super().__init__(name, oid, array_oid, regtype=regtype, delimiter=delimiter)
        self.field_names = list(field_names)
        self.field_types = list(field_types)
        self.python_type: type | None = None

    @classmethod
    def _details(cls, more: list[Any]) -> dict[str, Any]:
        return {"field_names": [name for name, _ in more], "field_types": [oid for _, oid in more]}


def register_composite(info: CompositeInfo, context: Context = None, factory: Callable[..., Any] | None = None) -> None:
    """Makes values of a composite type by a function of its fields, or named tuples; on a connection, or on all."""
    checked(info, "composite type")
    made: Any = factory
    if made is None:
        make: Any = namedtuple
        made = make(_identifier(info.name), [_identifier(name) for name in info.field_names], rename=True)
    info.python_type = made if isinstance(made, type) else None
    own: dict[int, Any] = {} if context is None else context._loaders()

    def load(text: str) -> Any:
        fields = parts(text)
        if len(fields) != len(info.field_types):
            raise DataError(f"{info.name} has {len(info.field_types)} fields, and its value has {len(fields)}")
        return made(*(adapt.loaded(oid, field, own) for oid, field in zip(info.field_types, fields, strict=True)))

    register_loader(context, info.oid, load)
    register_loader(context, info.array_oid, info._array(load))


def parts(text: str) -> list[str | None]:
    """The texts of the fields of a row."""
    if text[:1] != "(" or text[-1:] != ")":
        raise DataError(f"not a row: {text!r}")
    if text == "()":
        return []
    fields: list[str | None] = []
    at = 1
    while at < len(text):
        found = _FIELD.match(text, at)
        if found is None or (found[3] == ")") != (found.end() == len(text)):
            raise DataError(f"not a row: {text!r}")
        quoted, plain = found[1], found[2]
        fields.append(_ESCAPED.sub(r"\1\2", quoted) if quoted is not None else plain or None)
        at = found.end()
    return fields


def written(value: Sequence[Any]) -> tuple[int, str]:
    """A row as text; the server says of which type it is."""
    fields = []
    for field in value:
        if field is None:
            fields.append("")
            continue
        text = adapt._array_text(field, []) if isinstance(field, list) else adapt._element(field)[1]
        fields.append(text if text[:1] == '"' else adapt._quoted(text))
    return 0, "(" + ",".join(fields) + ")"


def _identifier(name: str) -> str:
    word = re.sub(r"\W", "_", name)
    return f"f{word}" if not word or word[0].isdigit() or word[0] == "_" else word


adapt.LOADERS[2249] = lambda text: tuple(parts(text))
adapt._DUMPERS[tuple] = written
