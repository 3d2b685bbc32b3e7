"""`hstore`, as dicts of text."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

from onetrip import adapt
from onetrip._base.adapting import adapters_of
from onetrip.errors import DataError
from onetrip.types.info import TypeInfo, checked, register_binary, register_loader

if TYPE_CHECKING:
    from onetrip.types.info import Context

Hstore = dict[str, str | None]

_PAIR = re.compile(r'"((?:[^"\\]|\\.)*)"=>(?:"((?:[^"\\]|\\.)*)"|NULL)(?:, |$)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def read(text: str) -> dict[str, str | None]:
    """The pairs of some text."""
    pairs: dict[str, str | None] = {}
    at = 0
    while at < len(text):
        found = _PAIR.match(text, at)
        if found is None:
            raise DataError(f"not an hstore: {text!r}")
        key, value = found.groups()
        pairs[_ESCAPED.sub(r"\1", key)] = None if value is None else _ESCAPED.sub(r"\1", value)
        at = found.end()
    return pairs


def read_binary(data: bytes) -> dict[str, str | None]:
    """The pairs of the binary form: how many, then the length and text of each key and value."""
    (count,) = struct.unpack_from("!i", data)
    texts: list[str | None] = []
    at = 4
    for _ in range(2 * count):
        (length,) = struct.unpack_from("!i", data, at)
        start, at = at + 4, at + 4 + max(length, 0)
        texts.append(None if length < 0 else data[start:at].decode())
    return {str(key): value for key, value in zip(texts[::2], texts[1::2], strict=True)}


def written(pairs: dict[str, str | None]) -> tuple[int, str]:
    """Pairs as text; the server says of which type that is."""
    parts = []
    for key, value in pairs.items():
        if not isinstance(key, str) or not isinstance(value, str | None):
            raise DataError("hstore has keys and values of text only")
        parts.append(f"{adapt._quoted(key)}=>{'NULL' if value is None else adapt._quoted(value)}")
    return 0, ",".join(parts)


def register_hstore(info: TypeInfo | None, context: Context = None) -> None:
    """Makes values of `hstore` dicts, on a connection or on all; dicts are written as such from now on.

    register_hstore(TypeInfo.fetch(connection, "hstore"), connection)"""
    checked(info, "hstore (is its extension created?)")
    assert info is not None
    info.register(context)
    register_loader(context, info.oid, read)
    register_loader(context, info.array_oid, info._array(read))
    register_binary(context, info, read_binary)
    adapters_of(context).register_dumper(dict, lambda pairs: (info.oid, written(pairs)[1]))
