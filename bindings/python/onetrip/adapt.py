"""Which Python values stand for which of PostgreSQL's, beyond the plain ones that the native part converts.

`register_loader(oid, function)` makes values of a type by a function of their text; `register_dumper(class,
function)` writes the values of a class: the function returns the type's id (0 leaves it to the server) and text, or
bytes in the type's binary form. Classes as psycopg has them, `Dumper` and `Loader`, do as well. What is registered here
holds for the process, on the `adapters` of a connection or a cursor for that alone.
"""

from __future__ import annotations

import datetime as dt
import decimal
import ipaddress
import json
import re
import uuid
import weakref
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any

from onetrip import _native
from onetrip._base.adapting import Dumper as Dumper
from onetrip._base.adapting import Format as Format
from onetrip._base.adapting import Loader as Loader
from onetrip._base.adapting import PlainDumper as PlainDumper
from onetrip._base.adapting import PlainLoader as PlainLoader
from onetrip._base.adapting import PyFormat as PyFormat
from onetrip._base.adapting import adapters_of, set_adapters_of_process
from onetrip._base.adapting import literal as literal
from onetrip._base.registry import ARRAY_OF as ARRAY_OF
from onetrip._base.registry import OIDS as OIDS
from onetrip._base.registry import TypesRegistry as TypesRegistry
from onetrip.errors import DataError, ProgrammingError

loaded = _native.loaded


# What holds bytes.
Buffer = bytes | bytearray | memoryview
LoadFunction = Callable[[str], Any]
Dumped = tuple[int, "str | bytes"]
DumpFunction = Callable[[Any], Dumped]

# The type whose arrays have semicolons.
_BOX = OIDS["box"]
_PLAIN_PART = re.compile(r'[^\s{}()\[\]",;\\]+')

_dumps: Callable[[Any], str | bytes] = json.dumps


class Json:
    """An object to be written as `json`."""

    oid = 114

    def __init__(self, obj: Any, dumps: Callable[[Any], str | bytes] | None = None) -> None:
        self.obj = obj
        self.dumps = dumps

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.obj!r})"


def _json_dumper(own: Callable[[Any], str | bytes] | None) -> DumpFunction:
    def written(value: Json) -> Dumped:
        text = (value.dumps or own or _dumps)(value.obj)
        return value.oid, text if isinstance(text, str) else bytes(text).decode()

    return written


def set_json_dumps(dumps: Callable[[Any], str | bytes], context: Any = None) -> None:
    """Writes json by a function, on a connection or a cursor, or on all."""
    global _dumps
    if context is None:
        _dumps = dumps
    else:
        context.adapters.register_dumper(Json, _json_dumper(dumps))


def set_json_loads(loads: Callable[[str | bytes], Any], context: Any = None) -> None:
    """Makes values of json by a function, on a connection or a cursor, or on all."""
    own = adapters_of(context)
    for oid in (114, 3802):
        own.register_loader(oid, loads)
    own.register_binary(114, loads)
    # A byte for the version goes before it.
    own.register_binary(3802, lambda data: loads(data[1:]))


class Jsonb(Json):
    """An object to be written as `jsonb`."""

    oid = 3802


class AdaptersMap:
    """Which values are written and made by what the program has registered, for a connection, a cursor or all: those of
    a connection begin as a copy of those of the process, those of a cursor as one of the connection's."""

    def __init__(self, template: AdaptersMap | None = None, connection: Any = None, cursor: Any = None) -> None:
        self.connection = connection
        self._cursor = None if cursor is None else weakref.ref(cursor)
        self.types: TypesRegistry = TypesRegistry(template.types if template is not None else None)
        self._dumpers: dict[type | str, dict[str, Any]] = {}
        # Types of ranges by that of their bounds, of multiranges by that of their ranges.
        self._ranges: dict[int, int] = dict(template._ranges) if template is not None else {}
        self._multiranges: dict[int, int] = dict(template._multiranges) if template is not None else {}
        # For text and for the binary form: what was registered, and the function that it comes to.
        self._loaders: tuple[dict[int, Any], dict[int, Any]] = ({}, {})
        self._functions: tuple[dict[int, Any], dict[int, Any]] = ({}, {})
        if template is not None:
            self._dumpers = {kind: dict(forms) for kind, forms in template._dumpers.items()}
            for mine, others in ((self._loaders, template._loaders), (self._functions, template._functions)):
                for one, other in zip(mine, others, strict=True):
                    one.update(other)
        # How often something was registered, and what there was at the last time that somebody asked.
        self._version = 0
        self._kept: AdaptersMap | None = None
        self._instances: dict[Any, Any] = {}
        self._needs: dict[type, bool] = {}

    @property
    def adapters(self) -> AdaptersMap:
        """Itself: it can stand for a connection where something is registered."""
        return self

    def register_dumper(self, cls: type | str | None, dumper: Any) -> None:
        """Writes values of a class, and of those under it, by a dumper or a function. A class may be named by text, and
        need not be imported then. Of two dumpers for text and for binary, `%s` takes the one registered last."""
        if cls is None:
            return  # a dumper for a type, which none of our values are written by
        form = _form(dumper)
        self._dumpers.setdefault(cls, {}).update({"s": dumper, form: dumper})
        self._changed()

    def register_loader(self, oid: int | str, loader: Any) -> None:
        """Makes values of a type, given by id or name, by a loader or a function of text."""
        number = self.types.get_oid(oid) if isinstance(oid, str) else oid
        at = 1 if getattr(loader, "format", 0) == 1 else 0
        self._loaders[at][number] = loader
        self._functions[at][number] = self._function(number, loader, at)
        if at:
            texts, binaries = self._functions
            for whole, read_binary in _BINARY_WHOLES.items():
                if whole not in self._loaders[1]:
                    binaries[whole] = partial(read_binary, texts=texts, binaries=binaries)
        else:
            for whole, read in _WHOLES.get(number, ()):
                # Unless the program has a loader for these, too.
                if whole not in self._loaders[0]:
                    self._functions[0][whole] = partial(read, subtype=number, own=self._functions[0])
        self._changed()

    def register_binary(self, oid: int, load: Callable[[bytes], Any]) -> None:
        """Makes values of a type by a function of their binary form."""
        self._loaders[1][oid] = self._functions[1][oid] = load
        self._changed()

    def get_dumper(self, cls: type, format: PyFormat) -> Any:
        """What writes values of a class: what was registered for it, or what this package has."""
        sign = PyFormat(format).value
        found = (self._forms(cls) or {}).get(sign) or _dumper_of(cls, sign == "b")
        if found is None:
            raise ProgrammingError(f"no dumper is registered for {cls.__name__!r} by %{sign}")
        return found

    def get_dumper_by_oid(self, oid: int, format: int) -> Any:
        """What writes values of a type, whatever their class is."""
        sign = "b" if format == 1 else "t"
        own = [forms[sign] for forms in reversed(self._dumpers.values()) if sign in forms]
        found = next((one for one in own if getattr(one, "oid", 0) == oid), None)
        found = found or _built_in().DUMPERS_BY_OID.get((oid, format == 1))
        if found is None:
            raise ProgrammingError(f"no dumper is registered for the type with oid {oid} by %{sign}")
        return found

    def get_loader(self, oid: int, format: int) -> Any:
        """What makes values of a type: what was registered for it, or what this package has; None where that is nothing."""
        found = self._loaders[1 if format == 1 else 0].get(oid)
        return found or _built_in().LOADERS_BY_OID.get((oid, format == 1))

    def _function(self, oid: int, loader: Any, at: int) -> Callable[[Any], Any]:
        if not (isinstance(loader, type) and hasattr(loader, "load")):
            function: Callable[[Any], Any] = loader
            return function
        made: list[Callable[[Any], Any]] = []

        def load(data: Any) -> Any:
            if not made:
                made.append(loader(oid, self).load)
            return made[0](data if at else data.encode())

        return load

    def _as_now(self) -> AdaptersMap:
        """What is registered by now, whatever is registered later."""
        if self._kept is None:
            self._kept = AdaptersMap(self, self.connection)
        return self._kept

    def _changed(self) -> None:
        self._version, self._kept = self._version + 1, None
        self._instances.clear()
        self._needs.clear()
        cursor = None if self._cursor is None else self._cursor()
        if cursor is not None:
            cursor._load_again()
        if self.connection is not None:
            self._give(self.connection)
        elif self is adapters:
            LOADERS.update(self._functions[0])
            BINARY_LOADERS.update(self._functions[1])
            _OWN.clear()
            # The native part asks for classes as soon as there is one.
            _OWN[AdaptersMap] = False

    def _give(self, connection: Any) -> None:
        """Lets the connection's own results be made by them."""
        if connection._adapters is self and not connection.closed:
            native = connection._native_part()
            native.loaders.update(self._functions[0])
            native.binary_loaders.update(self._functions[1])

    def _forms(self, cls: type) -> dict[str, Any] | None:
        if self._dumpers:
            for kind in cls.__mro__:
                forms = self._dumpers.get(kind) or self._dumpers.get(f"{kind.__module__}.{kind.__qualname__}")
                if forms:
                    return forms
                if kind in _DUMPERS or kind in _PLAIN:
                    return None
        return None

    def _encoding(self) -> str:
        """Python's name of the encoding that text in a type's binary form has."""
        cursor = None if self._cursor is None else self._cursor()
        connection = self.connection if cursor is None else cursor.connection
        if connection is None:
            return "utf-8"
        name: str = connection.info.encoding
        return "utf-8" if name == "ascii" else name  # in SQL_ASCII nobody has converted it

    def _params(self, params: Any) -> Any:
        """Parameters of a statement, of which those that need it are written by this."""
        if isinstance(params, Mapping):
            return {name: self._param(value) for name, value in params.items()}
        if params is None or isinstance(params, str | bytes):
            return params
        return [self._param(value) for value in params]

    def _param(self, value: Any) -> Any:
        cls = type(value)
        needs = self._needs.get(cls)
        if needs is None:
            needs = self._forms(cls) is not None or issubclass(cls, _CONTAINERS)
            self._needs[cls] = needs
        return Within(value, self) if needs and value is not None else value

    def _quoted(self, value: Any) -> tuple[int, str] | None:
        """A value's type and literal by a dumper of the program's that quotes; None where there is none."""
        forms = None if value is None else self._forms(type(value))
        registered = (forms or {}).get("t") or (forms or {}).get("s")
        if not (isinstance(registered, type) and hasattr(registered, "quote")):
            return None
        dumper = self._dumper(registered, value, "t")
        return dumper.oid, bytes(dumper.quote(value)).decode()

    def _dump(self, value: Any, sign: str) -> Dumped | None:
        """A value's type and text or bytes."""
        forms = self._forms(type(value))
        if forms:
            registered = forms.get(sign) or forms.get("s")
            return self._written(registered, value, sign)
        for kind in type(value).__mro__:
            dumper = _DUMPERS.get(kind)
            if dumper is not None:
                written = dumper(value)
                if sign == "b" and not written[0] and kind in _BINARY_DUMPERS:
                    binary = _BINARY_DUMPERS[kind](value)
                    return written if binary is None else (0, binary)
                return written
        if isinstance(value, tuple(_PLAIN)):
            return _plain(value)
        if type(value).__module__ == "numpy" and hasattr(value, "item"):
            return _of_numpy(value)
        raise ProgrammingError(
            f"cannot adapt type {type(value).__name__!r} using placeholder '%{sign}': register a dumper for it"
        )

    def _dumper(self, registered: Any, value: Any, sign: str) -> Any:
        """The dumper of a class for a value."""
        key = (registered, type(value))
        dumper = self._instances.get(key)
        if dumper is None:
            dumper = self._instances[key] = registered(type(value), self)
        if dumper.get_key(value, PyFormat(sign)) is not type(value):
            dumper = dumper.upgrade(value, PyFormat(sign))
        return dumper

    def _written(self, registered: Any, value: Any, sign: str) -> Dumped | None:
        if not (isinstance(registered, type) and hasattr(registered, "dump")):
            dumped: Dumped = registered(value)
            return dumped
        dumper = self._dumper(registered, value, sign)
        data = dumper.dump(value)
        if data is None:
            return None
        return dumper.oid, (bytes(data) if dumper.format == 1 else bytes(data).decode())


def _built_in() -> Any:
    """The dumpers and loaders of this package. Few programs need them as classes: they are imported when one does."""
    from onetrip.types import built_in

    return built_in


class KnownDumper(Dumper):
    """Writes values of any class that can be written."""

    def __init__(self, cls: type, context: Any = None) -> None:
        super().__init__(cls, context)
        self._adapters: AdaptersMap = (context or adapters).adapters

    def dump(self, obj: Any) -> Any:
        """The value as bytes."""
        written = self._adapters._dump(obj, "t")
        if written is None:
            return None
        return written[1] if isinstance(written[1], bytes) else written[1].encode()

    def get_key(self, obj: Any, format: PyFormat) -> Any:
        """What tells values that need another dumper: their type."""
        return self.cls, self._oid(obj)

    def upgrade(self, obj: Any, format: PyFormat) -> Dumper:
        """A dumper that says of which type the value is."""
        made = type(self)(self.cls, self._adapters)
        made.oid = self._oid(obj)
        return made

    def _oid(self, obj: Any) -> int:
        written = self._adapters._dump(obj, "t")
        return 0 if written is None else written[0]


def _dumper_of(cls: type, is_binary: bool) -> type[Dumper] | None:
    """What this package writes values of a class by; None where they cannot be written."""
    own = _built_in().DUMPERS
    for kind in cls.__mro__:
        if kind in own:
            dumper: type[Dumper] = own[kind][is_binary]
            return dumper
        if kind in _DUMPERS or kind in _PLAIN:
            return KnownDumper
    return None


class Within:
    """A value that is written by what a connection or a cursor has registered."""

    __slots__ = ("adapters", "value")

    def __init__(self, value: Any, adapters: AdaptersMap) -> None:
        self.value = value
        self.adapters = adapters


def _form(dumper: Any) -> str:
    return "b" if getattr(dumper, "format", 0) == 1 else "t"


def _plain(value: Any) -> Dumped:
    """A value of a class that the native part writes."""
    if isinstance(value, str):
        return 0, str(value)
    if isinstance(value, bytes):
        return 17, bytes(value)
    found = _plain_element(value)
    assert found is not None
    return found


def _of_numpy(value: Any) -> Dumped:
    """A number of numpy: as Python's, of the type that is as wide."""
    oid = _NUMPY.get(type(value).__name__)
    plain = value.item()
    if oid is None or not isinstance(plain, bool | int | float):
        raise ProgrammingError(f"cannot adapt type {type(value).__name__!r} of numpy: register a dumper for it")
    return oid, _plain_element(plain)[1]  # type: ignore[index]


_NUMPY = {
    "bool": 16, "bool_": 16, "int8": 21, "int16": 21, "int32": 23, "int64": 20, "longlong": 20, "uint8": 21,
    "uint16": 23, "uint32": 20, "uint64": 1700, "ulonglong": 1700, "float16": 700, "float32": 700, "float64": 701,
}  # fmt: skip


def dump(value: Any, sign: str = "s") -> Dumped | None:
    """The type id of a value and how it is written; None for NULL."""
    if type(value) is not Within:
        return adapters._dump(value, sign)
    before = _WITHIN.set(value.adapters)
    try:
        return value.adapters._dump(value.value, sign)
    finally:
        _WITHIN.reset(before)


def register_dumper(kind: type, dumper: Any) -> None:
    """Writes values of a class, and of those under it, by a function or a dumper."""
    adapters.register_dumper(kind, dumper)


def register_loader(oid: int | str, loader: Any) -> None:
    """Makes values of a type by a function of their text, or by a loader."""
    adapters.register_loader(oid, loader)


def _interval(value: dt.timedelta) -> Dumped:
    # With a sign of its own: behind a sign in front, IntervalStyle sql_standard takes all for negative.
    return 1186, f"{value.days} days +{value.seconds}.{value.microseconds:06} seconds"


def _time(value: dt.time) -> Dumped:
    if value.tzinfo is not None and value.utcoffset() is None:
        raise DataError(f"cannot tell the UTC offset of a time of day in the zone {value.tzinfo}: use a datetime")
    return (1083 if value.tzinfo is None else 1266), value.isoformat()


def _timestamp(value: dt.datetime) -> Dumped:
    return (1114 if value.tzinfo is None else 1184), value.isoformat(" ")


def _array(value: list[Any]) -> Dumped:
    oids: list[int] = []
    text = _array_text(value, oids)
    if set(oids) == {_BOX}:
        oids, text = [_BOX], _array_text(value, [], ";")
    known = {oid for oid in oids if oid}
    for widest in (1700, 20, 23):  # numbers of several sizes go into the widest
        if widest in known and known <= {21, 23, 20, 1700}:
            known = {widest}
    if len(known) > 1:
        raise DataError("cannot adapt a list whose elements are of several types")
    if not known:
        # The server has to say what it is.
        return 0, text
    return _WITHIN.get().types.array_of(known.pop()), text


def _array_text(values: list[Any], oids: list[int], delimiter: str = ",") -> str:
    parts = []
    for value in values:
        if isinstance(value, list):
            parts.append(_array_text(value, oids, delimiter))
        elif value is None:
            parts.append("NULL")
        else:
            written = _element(value)
            if written is None:
                parts.append("NULL")
                continue
            oids.append(written[0])
            parts.append(written[1])
    return "{" + delimiter.join(parts) + "}"


def _element(value: Any) -> tuple[int, str] | None:
    """A value within another one; None for NULL."""
    within = _WITHIN.get()
    if within._forms(type(value)) is None:
        plain = _plain_element(value)
        if plain is not None:
            return plain
    written = within._dump(value, "t")
    if written is None:
        return None
    oid, text = written
    if isinstance(text, bytes):
        raise DataError(f"cannot adapt {type(value).__name__!r} in a list: its dumper writes binary")
    return oid, _part(text)


def _number(value: Any) -> tuple[int, str]:
    """A number that says of which type it is."""
    return _NUMBERS[type(value)], str(value)


def _plain_element(value: Any) -> tuple[int, str] | None:
    if type(value) in _NUMBERS:
        return _number(value)
    if isinstance(value, bool):
        return 16, "t" if value else "f"
    if isinstance(value, int):
        return _int_oid(value), str(int(value))
    if isinstance(value, float):
        return 701, repr(float(value))
    if isinstance(value, str):
        return 25, _part(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return 17, f'"\\\\x{bytes(value).hex()}"'
    return None


def _int_oid(value: int) -> int:
    if -(2**31) <= value < 2**31:
        return 23
    return 20 if -(2**63) <= value < 2**63 else 1700


def _part(text: str) -> str:
    """Text within an array, a row or a range: in quotes, where it could be taken for something else."""
    return text if _PLAIN_PART.fullmatch(text) and text.upper() != "NULL" else _quoted(text)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _load_inet(text: str) -> Any:
    return ipaddress.ip_interface(text) if "/" in text else ipaddress.ip_address(text)


_DUMPERS: dict[type, DumpFunction] = {
    bytearray: lambda value: (17, bytes(value)),
    memoryview: lambda value: (17, bytes(value)),
    # The server has one kind of NaN.
    decimal.Decimal: lambda value: (1700, "NaN" if value.is_nan() else str(value)),
    dt.date: lambda value: (1082, value.isoformat()),
    dt.datetime: _timestamp,
    dt.time: _time,
    dt.timedelta: _interval,
    uuid.UUID: lambda value: (2950, str(value)),
    list: _array,
    Json: _json_dumper(None),
    ipaddress.IPv4Address: lambda value: (869, str(value)),
    ipaddress.IPv6Address: lambda value: (869, str(value)),
    ipaddress.IPv4Interface: lambda value: (869, str(value)),
    ipaddress.IPv6Interface: lambda value: (869, str(value)),
    ipaddress.IPv4Network: lambda value: (650, str(value)),
    ipaddress.IPv6Network: lambda value: (650, str(value)),
}

# Numbers, text, bytes, dates and times, uuid and arrays have loaders in the native part.
LOADERS: dict[int, LoadFunction] = {
    114: json.loads,
    3802: json.loads,
    650: ipaddress.ip_network,
    869: _load_inet,
}

# Those of a type's binary form.
BINARY_LOADERS: dict[int, Callable[[bytes], Any]] = {}

# Types whose values have such of another type within them, and what reads their text; by that other type.
_WHOLES: dict[int, list[tuple[int, Callable[..., Any]]]] = {}
# Types that may have any other within them, and what reads their binary form.
_BINARY_WHOLES: dict[int, Callable[..., Any]] = {}
# What writes values that say of no type, in the binary form that they have in each; None where there is none.
_BINARY_DUMPERS: dict[type, Callable[[Any], bytes | None]] = {}

# Classes of numbers that say of which type they are; `onetrip.types.numeric` has them.
_NUMBERS: dict[type, int] = {}

# Classes that the native part writes by itself, unless the program has registered a dumper.
_PLAIN = {str, int, float, bool, bytes}
# Classes whose values have others within them.
_CONTAINERS: tuple[type, ...] = (list, tuple)
# Whether the program's own dumpers are for a class, as far as it was asked; empty as long as it has registered none.
_OWN: dict[type, bool] = {}
_OWN_MAX = 1000


def _has_own(kind: type) -> bool:
    """Whether the nearest dumper of a class is one of the program's."""
    if len(_OWN) >= _OWN_MAX:
        _OWN.clear()
    _OWN[kind] = adapters._forms(kind) is not None
    return _OWN[kind]


adapters = AdaptersMap()
set_adapters_of_process(adapters)
# What the value that is being written is a part of.
_WITHIN: ContextVar[AdaptersMap] = ContextVar("onetrip_adapters", default=adapters)

_native.set_adapters(dump, (LOADERS, BINARY_LOADERS), _OWN, _has_own)
