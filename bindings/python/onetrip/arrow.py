"""Results as tables of Arrow. pyarrow is needed only here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow

    from onetrip._native import Answer


def table(answer: Answer) -> pyarrow.Table:
    """The rows that are left, by columns. Numbers, text, bytes, dates and timestamps become buffers without an object
    for each value; other types go by way of Python's values."""
    import pyarrow

    columns = answer.columns or []
    buffers = answer.buffers()
    values = answer.many(len(answer)) if None in buffers else []
    answer.seek(len(answer))
    arrays = []
    for at, made in enumerate(buffers):
        if made is None:
            arrays.append(_of_values([row[at] for row in values]))
        else:
            arrays.append(_of_buffers(*made))
    return pyarrow.Table.from_arrays(arrays, names=[column[0] for column in columns])


def joined(parts: list[pyarrow.Table]) -> pyarrow.Table:
    """One table of several pieces of a result."""
    import pyarrow

    return pyarrow.concat_tables(parts, promote_options="permissive")


def _of_buffers(kind: str, length: int, nulls: int, validity: bytes, offsets: bytes | None, data: bytes) -> Any:
    import pyarrow

    parts = [validity if nulls else None, *([offsets] if offsets is not None else []), data]
    wrapped = [None if part is None else pyarrow.py_buffer(part) for part in parts]
    return pyarrow.Array.from_buffers(_type(kind), length, wrapped, nulls)


def _type(kind: str) -> Any:
    import pyarrow

    types = {
        "text": pyarrow.large_utf8,
        "bytes": pyarrow.large_binary,
        "bool": pyarrow.bool_,
        "date": pyarrow.date32,
        "timestamp": lambda: pyarrow.timestamp("us"),
        "timestamptz": lambda: pyarrow.timestamp("us", tz="UTC"),
    }
    return (types.get(kind) or getattr(pyarrow, kind))()


def _of_values(values: list[Any]) -> Any:
    import pyarrow

    try:
        return pyarrow.array(values)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, pyarrow.ArrowNotImplementedError):
        return pyarrow.array([None if value is None else str(value) for value in values])
