"""The structs of Arrow's C interfaces, made by hand: what packages give each other, and what none of them would give."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from ctypes import POINTER, Structure, addressof, c_char_p, c_int, c_int64, c_void_p, cast, pointer
from typing import Any

_python: Any = ctypes.pythonapi
_python.PyCapsule_New.restype = ctypes.py_object
_python.PyCapsule_New.argtypes = [c_void_p, c_char_p, c_void_p]
_python.PyCapsule_GetPointer.restype = c_void_p
_python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, c_char_p]

# What structs point to has to live as long as they do.
_kept: list[Any] = []


class CSchema(Structure):
    """ArrowSchema."""


class CArray(Structure):
    """ArrowArray."""


class CStream(Structure):
    """ArrowArrayStream."""


RELEASE = ctypes.CFUNCTYPE(None, c_void_p)
CSchema._fields_ = [
    ("format", c_char_p),
    ("name", c_char_p),
    ("metadata", c_void_p),
    ("flags", c_int64),
    ("n_children", c_int64),
    ("children", POINTER(POINTER(CSchema))),
    ("dictionary", POINTER(CSchema)),
    ("release", c_void_p),
    ("private_data", c_void_p),
]
CArray._fields_ = [
    ("length", c_int64),
    ("null_count", c_int64),
    ("offset", c_int64),
    ("n_buffers", c_int64),
    ("n_children", c_int64),
    ("buffers", POINTER(c_void_p)),
    ("children", POINTER(POINTER(CArray))),
    ("dictionary", POINTER(CArray)),
    ("release", c_void_p),
    ("private_data", c_void_p),
]
GET_SCHEMA = ctypes.CFUNCTYPE(c_int, POINTER(CStream), POINTER(CSchema))
GET_NEXT = ctypes.CFUNCTYPE(c_int, POINTER(CStream), POINTER(CArray))
GET_LAST_ERROR = ctypes.CFUNCTYPE(c_void_p, POINTER(CStream))
CStream._fields_ = [
    ("get_schema", c_void_p),
    ("get_next", c_void_p),
    ("get_last_error", c_void_p),
    ("release", c_void_p),
    ("private_data", c_void_p),
]

# How often structs of each kind were released.
released = {CSchema: 0, CArray: 0, CStream: 0}


def _releases(kind: Any) -> int | None:
    def release(at: int) -> None:
        struct = kind.from_address(at)
        assert struct.release, "released twice"
        struct.release = None
        released[kind] += 1

    function = RELEASE(release)
    _kept.append(function)
    return cast(function, c_void_p).value


_release = {kind: _releases(kind) for kind in (CSchema, CArray, CStream)}


def _pointers(kind: Any, structs: Sequence[Any]) -> Any:
    made = (POINTER(kind) * len(structs))(*[pointer(one) if one is not None else None for one in structs])
    _kept.extend([made, list(structs)])
    return cast(made, POINTER(POINTER(kind)))


def schema(
    format: bytes | None = b"+s",
    name: bytes = b"",
    children: Sequence[CSchema | None] = (),
    dictionary: CSchema | None = None,
    metadata: bytes | None = None,
    **others: Any,
) -> CSchema:
    """A schema; `others` are fields to be set after that."""
    made = CSchema(format, name, None, 2, len(children))
    made.release = _release[CSchema]
    if children:
        made.children = _pointers(CSchema, children)
    if dictionary is not None:
        made.dictionary = pointer(dictionary)
    if metadata is not None:
        made.metadata = addressof(buffer(metadata))
    for field, value in others.items():
        setattr(made, field, value)
    _kept.append(made)
    return made


def buffer(data: bytes) -> Any:
    """Memory of so many bytes."""
    made = ctypes.create_string_buffer(data, max(len(data), 1))
    _kept.append(made)
    return made


def array(
    length: int,
    buffers: Sequence[bytes | None] = (None,),
    children: Sequence[CArray | None] = (),
    dictionary: CArray | None = None,
    **others: Any,
) -> CArray:
    """An array; `others` are fields to be set after that."""
    made = CArray(length, 0, 0, len(buffers), len(children))
    addresses = [None if one is None else addressof(buffer(one)) for one in buffers]
    made.buffers = cast((c_void_p * len(buffers))(*addresses), POINTER(c_void_p))
    made.release = _release[CArray]
    if children:
        made.children = _pointers(CArray, children)
    if dictionary is not None:
        made.dictionary = pointer(dictionary)
    for field, value in others.items():
        setattr(made, field, value)
    _kept.extend([made, made.buffers])
    return made


def capsule(struct: Any, name: bytes | None = None) -> Any:
    """A capsule of a struct."""
    names = {CSchema: b"arrow_schema", CArray: b"arrow_array", CStream: b"arrow_array_stream"}
    name = name or names[type(struct)]
    _kept.extend([struct, name])
    return _python.PyCapsule_New(addressof(struct), name, None)


def struct_in(kind: Any, capsule: Any, name: bytes) -> Any:
    """The struct in a capsule."""
    return kind.from_address(_python.PyCapsule_GetPointer(capsule, name))


class GivenArray:
    """An object with a schema and an array."""

    def __init__(self, schema: Any, array: Any) -> None:
        self.schema, self.array = schema, array

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return capsule(self.schema), capsule(self.array)


class GivenStream:
    """An object with a stream, of functions that return an error's number or 0."""

    def __init__(
        self,
        get_schema: Callable[[CSchema], int] | None,
        get_next: Callable[[CArray], int] | None,
        error: bytes | None = None,
    ) -> None:
        self.stream = CStream()
        self.stream.release = _release[CStream]
        functions = {
            "get_schema": get_schema and GET_SCHEMA(lambda _, out: get_schema(out.contents)),
            "get_next": get_next and GET_NEXT(lambda _, out: get_next(out.contents)),
            "get_last_error": GET_LAST_ERROR(lambda _: error and addressof(buffer(error))),
        }
        for field, function in functions.items():
            _kept.append(function)
            setattr(self.stream, field, cast(function, c_void_p).value if function else None)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return capsule(self.stream)


def moved(struct: Any, to: Any) -> int:
    """Moves a struct to where a consumer wants it."""
    ctypes.memmove(addressof(to), addressof(struct), ctypes.sizeof(struct))
    struct.release = None
    return 0
