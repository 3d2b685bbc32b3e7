"""Composite types: rows of a table, and what CREATE TYPE ... AS has made."""

from __future__ import annotations

import logging
import re
import struct
from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from onetrip import _native, adapt
from onetrip._base.adapting import adapters_of
from onetrip.errors import DataError
from onetrip.types.info import TypeInfo, checked, register_binary, register_loader

if TYPE_CHECKING:
    from onetrip.types.info import Context

logger = logging.getLogger("onetrip")

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


def register_composite(
    info: CompositeInfo,
    context: Context = None,
    factory: Callable[..., Any] | None = None,
    *,
    make_object: Callable[[Sequence[Any], CompositeInfo], Any] | None = None,
    make_sequence: Callable[[Any, CompositeInfo], Sequence[Any]] | None = None,
) -> None:
    """Makes values of a composite type by a function of its fields, or named tuples; on a connection, or on all.

    `make_object` makes a value of the fields and the type, where `factory` does not take the fields in their order.
    `make_sequence` makes the fields of a value, where that is no sequence."""
    checked(info, "composite type")
    made: Any = factory
    if made is None:
        make: Any = namedtuple
        made = make(_identifier(info.name), [_identifier(name) for name in info.field_names], rename=True)
    info.python_type = made if isinstance(made, type) else None
    adapters = adapters_of(context)
    texts, binaries = adapters._functions

    def plainly(values: Sequence[Any], info: CompositeInfo) -> Any:
        return made(*values)

    make_of = make_object or plainly

    def load(text: str) -> Any:
        fields = parts(text)
        if len(fields) != len(info.field_types):
            raise DataError(f"{info.name} has {len(info.field_types)} fields, and its value has {len(fields)}")
        return make_of(
            [adapt.loaded(oid, field, texts) for oid, field in zip(info.field_types, fields, strict=True)], info
        )

    info.register(context)
    register_loader(context, info.oid, load)
    register_loader(context, info.array_oid, info._array(load))
    register_binary(context, info, lambda data: make_of(binary_parts(data, texts, binaries), info))
    if info.python_type is not None:
        adapters.register_dumper(info.python_type, _dumper(info, info.python_type, make_sequence))


def _dumper(
    info: CompositeInfo, kind: type, make_sequence: Callable[[Any, CompositeInfo], Sequence[Any]] | None
) -> Callable[[Any], tuple[int, str]]:
    """What writes the values of a class as those of a type."""
    if make_sequence is not None:
        make = make_sequence
        return lambda value: (info.oid, written(make(value, info))[1])
    if issubclass(kind, Sequence):
        return lambda value: (info.oid, written(value)[1])
    how = f"{kind.__name__!r} is not a sequence: give make_sequence to register_composite()"
    logger.warning("values of %s cannot be written: %s", info.name, how)

    def refuse(value: Any) -> tuple[int, str]:
        raise TypeError(f"cannot write a value of {info.name}: {how}")

    return refuse


def binary_parts(data: bytes, texts: Any = None, binaries: Any = None) -> list[Any]:
    """The values of a row in binary: how many, then type, length and bytes of each."""
    (count,) = struct.unpack_from("!i", data)
    values: list[Any] = []
    at = 4
    for _ in range(count):
        oid, length = struct.unpack_from("!Ii", data, at)
        start, at = at + 8, at + 8 + max(length, 0)
        value = None if length < 0 else data[start:at]
        # What has no type has no form that anybody knows.
        is_untyped = oid == 705
        values.append(value if is_untyped else _native.loaded_binary(oid, value, texts, binaries))
    return values


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
        element = (0, adapt._part(adapt._array_text(field, []))) if isinstance(field, list) else adapt._element(field)
        if element is None:
            fields.append("")
        else:
            fields.append(element[1])
    return 0, "(" + ",".join(fields) + ")"


def _identifier(name: str) -> str:
    word = re.sub(r"\W", "_", name)
    return f"f{word}" if not word or word[0].isdigit() or word[0] == "_" else word


def read(text: str, subtype: int = 25, own: dict[int, Any] | None = None) -> tuple[Any, ...]:
    """A row whose type is not known: the server does not say of which types its fields are."""
    return tuple(adapt.loaded(subtype, part, own) for part in parts(text))


adapt.BINARY_LOADERS[2249] = lambda data: tuple(binary_parts(data))
adapt.LOADERS[2249] = read
adapt._WHOLES.setdefault(25, []).append((2249, read))
adapt._BINARY_WHOLES[2249] = lambda data, texts, binaries: tuple(binary_parts(data, texts, binaries))
adapt._DUMPERS[tuple] = written
