"""The types that are known by name and id."""

from __future__ import annotations

from collections.abc import Iterator

from onetrip import _native
from onetrip.typeinfo import TypeInfo

# The type of arrays by that of their elements, and the type by its name, for the types that every server has.
ARRAY_OF, OIDS = _native.known_types()
_NAMES = {oid: name for name, oid in OIDS.items()}
# Names of the same types that the SQL standard has.
_ALIASES = {
    "smallint": "int2", "integer": "int4", "int": "int4", "bigint": "int8", "real": "float4",
    "double precision": "float8", "decimal": "numeric", "boolean": "bool", "character varying": "varchar",
    "character": "bpchar", "timestamp with time zone": "timestamptz", "timestamp without time zone": "timestamp",
    "time with time zone": "timetz", "time without time zone": "time", "bit varying": "varbit", '"char"': "char",
}  # fmt: skip
_REGTYPES = {name: alias for alias, name in _ALIASES.items() if alias not in ("int", "decimal")}
_ELEMENT_OF = {array: element for element, array in ARRAY_OF.items()}
ARRAY_OF[0] = ARRAY_OF[25]
# What a literal is without a cast, and what has no name that SQL would take for a type's.
_UNCAST = {None, "text", "unknown", "char"}


class TypesRegistry:
    """Types by name and id: those that the program has registered, and the numbers of those that every server has."""

    def __init__(self, template: TypesRegistry | None = None) -> None:
        self._infos: dict[int | str, TypeInfo] = dict(template._infos) if template else {}
        # By the types of their arrays.
        self._arrays: dict[int, TypeInfo] = dict(template._arrays) if template else {}

    def add(self, info: TypeInfo) -> None:
        """Takes a type in."""
        for key in (info.oid, info.name, info.regtype):
            self._infos[key] = info
        if info.array_oid:
            self._arrays[info.array_oid] = info

    def clear(self) -> None:
        """Forgets what was registered."""
        self._infos.clear()
        self._arrays.clear()

    def get(self, key: int | str) -> TypeInfo | None:
        """A type by its name or id: one that is registered, or that every server has."""
        found = self._infos.get(key)
        if found is not None:
            return found
        name = _NAMES.get(key) if isinstance(key, int) else _ALIASES.get(key, key)
        oid = OIDS.get(name or "")
        if oid is None or name is None:
            return None
        return TypeInfo(name, oid, ARRAY_OF.get(oid, 0), regtype=_REGTYPES.get(name, name))

    def __getitem__(self, key: int | str) -> TypeInfo:
        info = self.get(key)
        if info is None:
            raise KeyError(f"no type {key!r} is registered")
        return info

    def __iter__(self) -> Iterator[TypeInfo]:
        return iter(dict.fromkeys(self._infos.values()))

    def get_oid(self, name: str) -> int:
        """A type's id; that of its arrays for a name that ends in `[]`."""
        element = name.removesuffix("[]")
        info = self._infos.get(element)
        oid = OIDS.get(_ALIASES.get(element, element), 0) if info is None else info.oid
        found = self.array_of(oid) if oid and name != element else oid
        if not found:
            raise KeyError(f"there is no type {name!r}, and none is registered")
        return found

    def cast_of(self, oid: int) -> str | None:
        """The name of a type in a cast; None for text and for what is not known."""
        info = self._infos.get(oid) or self._arrays.get(oid)
        if info is not None:
            return info.regtype if info.oid == oid else f"{info.regtype}[]"
        element = _ELEMENT_OF.get(oid)
        if element is not None:
            return f"{_NAMES[element]}[]"
        name = _NAMES.get(oid)
        return None if name in _UNCAST else name

    def array_of(self, oid: int) -> int:
        """The type of arrays of a type; 0 where that is not known."""
        info = self._infos.get(oid)
        return ARRAY_OF.get(oid, 0) if info is None else info.array_oid
