"""Results as arrays of numpy, a column each. numpy is needed only here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onetrip.errors import ProgrammingError

if TYPE_CHECKING:
    import numpy

    from onetrip._native import Answer

# How a column's buffer is read, and what it is then.
_NUMBERS = {"int16": "<i2", "int32": "<i4", "int64": "<i8", "float32": "<f4", "float64": "<f8"}
_MOMENTS = ("<i8", "datetime64[us]")
_TIMES = {"date": ("<i4", "datetime64[D]"), "timestamp": _MOMENTS, "timestamptz": _MOMENTS}


def columns(answer: Answer) -> dict[str, numpy.ndarray[Any, Any]]:
    """The rows that are left, by columns. Numbers, booleans, dates and timestamps come without an object for each
    value; what has NULLs is a masked array of them, or NaT for times. Other columns are arrays of Python's values."""
    names = [column[0] for column in answer.columns or []]
    if len(set(names)) < len(names):
        raise ProgrammingError("several columns have the same name: name them by AS")
    buffers = answer.buffers()
    lists = answer.lists([made is None or not _has_arrays(made[0]) for made in buffers])
    answer.seek(len(answer))
    arrays = {}
    for name, made, values in zip(names, buffers, lists, strict=True):
        if values is not None:
            arrays[name] = _of_values(values)
        elif made is not None:
            kind, length, nulls, validity, data = made
            arrays[name] = _of_buffers(kind, length, nulls, validity, data)
    return arrays


def joined(parts: list[dict[str, numpy.ndarray[Any, Any]]]) -> dict[str, numpy.ndarray[Any, Any]]:
    """One result of several pieces."""
    import numpy

    together: dict[str, numpy.ndarray[Any, Any]] = {}
    for name in parts[0]:
        pieces: list[Any] = [part[name] for part in parts]
        is_masked = any(isinstance(piece, numpy.ma.MaskedArray) for piece in pieces)
        together[name] = numpy.ma.concatenate(pieces) if is_masked else numpy.concatenate(pieces)
    return together


def _has_arrays(kind: str) -> bool:
    return kind == "bool" or kind in _NUMBERS or kind in _TIMES


def _of_buffers(kind: str, length: int, nulls: int, validity: bytes, data: bytes) -> Any:
    import numpy

    is_null = ~_bits(validity, length) if nulls else None
    if kind in _TIMES:
        read_as, time = _TIMES[kind]
        array = numpy.frombuffer(data, read_as).astype("<i8").view(time)
        if is_null is not None:
            array[is_null] = numpy.array("NaT", dtype=array.dtype)
        return array
    array = _bits(data, length) if kind == "bool" else numpy.frombuffer(data, _NUMBERS[kind]).copy()
    return array if is_null is None else numpy.ma.MaskedArray(array, is_null)


def _bits(data: bytes, length: int) -> Any:
    import numpy

    return numpy.unpackbits(numpy.frombuffer(data, "u1"), count=length, bitorder="little").astype(bool)


def _of_values(values: list[Any]) -> Any:
    import numpy

    return numpy.fromiter(values, dtype=object, count=len(values))  # lists among them stay lists
