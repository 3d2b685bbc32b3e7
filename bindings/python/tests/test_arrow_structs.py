"""Data of Arrow that is not what it should be is an error, and what is taken or given is released once."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator
from typing import Any

import arrow_structs as c
import onetrip
import pytest
from arrow_structs import CArray, CSchema, CStream, GivenArray, GivenStream, array, schema

MOST = 2**63 - 1


def ints(*values: int) -> bytes:
    return struct.pack(f"{len(values)}i", *values)


def longs(*values: int) -> bytes:
    return struct.pack(f"{len(values)}q", *values)


def column(format: bytes, buffers: list[bytes | None], length: int = 1, **others: Any) -> GivenArray:
    """A table of one column."""
    fields = {key: others.pop(key) for key in ("values", "metadata") if key in others}
    inner = fields.get("values")
    child = schema(format, b"a", dictionary=inner and inner[0], metadata=fields.get("metadata"))
    is_without = others.pop("without_buffers", False)
    data = array(length, buffers, dictionary=inner and inner[1], **others)
    if is_without:
        data.buffers = None
    return GivenArray(schema(children=[child]), array(length, children=[data]))


# What is wrong, what the error says, and the data. Each is made anew: structs are released.
BAD: dict[str, tuple[str, Callable[[], Any]]] = {
    "no children": ("2 children", lambda: GivenArray(schema(n_children=2), array(0))),
    "a negative number of children": ("-1 children", lambda: GivenArray(schema(n_children=-1), array(0))),
    "more children than memory": (
        "children",
        lambda: GivenArray(schema(children=[schema(b"i")], n_children=MOST), array(0)),
    ),
    "a schema's child that is null": ("child 0", lambda: GivenArray(schema(children=[None]), array(0))),
    "a schema's child that was moved": (
        "child 0",
        lambda: GivenArray(schema(children=[schema(b"i", release=None)]), array(0, children=[array(0)])),
    ),
    "no format": ("without a format", lambda: GivenArray(schema(None), array(0))),
    "a format that is no text": ("UTF-8", lambda: GivenArray(schema(b"\xff"), array(0))),
    "an array that is no table": ("not an array of int32", lambda: GivenArray(schema(b"i"), array(1, [None, ints(1)]))),
    "a schema that was released": ("released", lambda: GivenArray(schema(release=None), array(0))),
    "an array that was released": ("released", lambda: GivenArray(schema(), array(0, release=None))),
    "fewer columns than the schema": ("0 columns", lambda: GivenArray(schema(children=[schema(b"i")]), array(1))),
    "an array's child that is null": (
        "child 0",
        lambda: GivenArray(schema(children=[schema(b"i")]), array(1, children=[None])),
    ),
    "an array's child that was moved": (
        "child 0",
        lambda: GivenArray(
            schema(children=[schema(b"i")]), array(1, children=[array(1, [None, ints(1)], release=None)])
        ),
    ),
    "a negative length": ("-1 values", lambda: GivenArray(schema(), array(-1))),
    "a negative offset": ("from -1 on", lambda: column(b"i", [None, ints(1)], offset=-1)),
    "a length that overflows": ("memory", lambda: column(b"i", [None, ints(1)], MOST)),
    "an offset that overflows": ("memory", lambda: column(b"i", [None, ints(1)], offset=MOST)),
    "bytes that overflow": ("memory", lambda: column(b"l", [None, longs(1)], 2**61)),
    "offsets that overflow": ("memory", lambda: column(b"U", [None, longs(0, 0), b""], 2**61)),
    "a column that is too short": (
        "0 values for 2 rows",
        lambda: GivenArray(schema(children=[schema(b"i", b"a")]), array(2, children=[array(0, [None, None])])),
    ),
    "no buffers": ("no buffers", lambda: column(b"i", [None, ints(1)], without_buffers=True)),
    "too few buffers": ("no buffer 1", lambda: column(b"i", [None])),
    "a negative number of buffers": ("negative", lambda: column(b"i", [None, ints(1)], n_buffers=-1)),
    "values without a buffer": ("no buffer with them", lambda: column(b"i", [None, None])),
    "NULLs without a buffer": ("nothing that says where", lambda: column(b"i", [None, ints(1)], null_count=1)),
    "rows that are NULL": (
        "a row that is NULL",
        lambda: GivenArray(
            schema(children=[schema(b"i")]),
            array(1, [b"\0"], children=[array(1, [None, ints(1)])], null_count=1),
        ),
    ),
    "text from a negative offset": ("-4", lambda: column(b"u", [None, ints(-4, 4), b"text"])),
    "text to a negative offset": ("-4", lambda: column(b"u", [None, ints(0, -4), b"text"])),
    "text that ends before it begins": ("no buffer", lambda: column(b"u", [None, ints(0, 4, 2), b"text"], 2)),
    "text behind the last offset": ("no buffer", lambda: column(b"u", [None, ints(0, 9, 4), b"text"], 2)),
    "text without bytes": ("no buffer", lambda: column(b"u", [None, ints(0, 4), None])),
    "text that is not UTF-8": ("UTF-8", lambda: column(b"u", [None, ints(0, 1), b"\xff"])),
    "text with NUL": ("NUL", lambda: column(b"u", [None, ints(0, 3), b"a\0b"])),
    "views without lengths": ("lengths", lambda: column(b"vu", [None, ints(20, 0, 0, 0)])),
    "a view of no buffer": ("no buffer", lambda: column(b"vu", [None, ints(20, 0, 1, 0), b"x" * 20, longs(20)])),
    "a view that is too long": ("no buffer", lambda: column(b"vu", [None, ints(21, 0, 0, 0), b"x" * 20, longs(20)])),
    "a view from a negative offset": (
        "no buffer",
        lambda: column(b"vu", [None, ints(20, 0, 0, -1), b"x" * 20, longs(20)]),
    ),
    "a negative view": ("no buffer", lambda: column(b"vu", [None, ints(-1, 0, 0, 0), b"x" * 20, longs(20)])),
    "a view's buffer of negative length": (
        "memory",
        lambda: column(b"vu", [None, ints(20, 0, 0, 0), b"x" * 20, longs(-20)]),
    ),
    "a number of no value": (
        "number 2",
        lambda: column(b"i", [None, ints(2)], values=(schema(b"i"), array(2, [None, ints(5, 6)]))),
    ),
    "a negative number of a value": (
        "number -1",
        lambda: column(b"i", [None, ints(-1)], values=(schema(b"i"), array(2, [None, ints(5, 6)]))),
    ),
    "numbers without values": ("no values", lambda: column(b"i", [None, ints(0)], values=(schema(b"i"), None))),
    "metadata of negative length": (
        "metadata",
        lambda: column(b"w:16", [None, b"x" * 16], metadata=ints(1, -4)),
    ),
    "a time of no day": ("out of range", lambda: column(b"ttu", [None, longs(-1)])),
    "a timestamp that overflows": ("out of range", lambda: column(b"tss:", [None, longs(MOST)])),
    "the timestamp of infinity": ("out of range", lambda: column(b"tsu:", [None, longs(-MOST - 1)])),
    "a decimal of two billion zeros": ("cannot be written", lambda: column(b"d:38,-2000000000", [None, b"\1" * 16])),
    "a decimal of two billion digits": ("cannot be written", lambda: column(b"d:38,2000000000", [None, b"\1" * 16])),
    "a day of no date": ("out of the range", lambda: column(b"tdD", [None, ints(-(2**31))])),
}


@pytest.fixture
def item(connection: onetrip.Connection) -> Iterator[onetrip.Cursor]:
    """A cursor, and a table with one column of text."""
    yield connection.execute("CREATE TEMP TABLE item (a text)")


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("way", ["executemany", "copy"])
def test_what_cannot_be_is_an_error(item: onetrip.Cursor, name: str, way: str) -> None:
    message, make = BAD[name]
    before = dict(c.released)
    given = make()
    taken = [one for one in (given.schema, given.array) if one.release]
    with pytest.raises((onetrip.Error, ValueError), match=message):
        if way == "copy":
            with item.connection.transaction(), item.copy("COPY item FROM STDIN") as copy:
                copy.write_arrow(given)
        else:
            item.executemany("INSERT INTO item VALUES (%s)", given)
    # What was taken is released, and what was not is the producer's.
    left = [one for one in taken if one.release]
    assert not left or (len(left) == 1 and left[0] is given.array), "only what the schema's error left alone"
    after = c.released[CSchema] + c.released[CArray] - before[CSchema] - before[CArray]
    assert after == len(taken) - len(left)
    item.connection.rollback()


def test_good_structs_are_taken_and_released_once(item: onetrip.Cursor) -> None:
    before = dict(c.released)
    given = column(b"u", [b"\x05", ints(0, 1, 1, 3), b"abc"], 3, null_count=1)
    item.executemany("INSERT INTO item VALUES (%s)", given)
    assert item.execute("SELECT a FROM item").fetchall() == [("a",), (None,), ("bc",)]
    assert c.released[CSchema] == before[CSchema] + 1 and c.released[CArray] == before[CArray] + 1
    # Both are gone now.
    with pytest.raises(ValueError, match="released"):
        item.executemany("INSERT INTO item VALUES (%s)", given)


def test_streams_are_asked_until_they_end_and_released_once(item: onetrip.Cursor) -> None:
    before = c.released[CStream]
    batches = [column(b"i", [None, ints(number)]).array for number in (1, 2)]
    batches.insert(1, array(0, children=[array(0, [None, None])]))

    def get_next(out: CArray) -> int:
        return c.moved(batches.pop(0), out) if batches else setattr(out, "release", None) or 0

    given = GivenStream(lambda out: c.moved(schema(children=[schema(b"i", b"a")]), out), get_next)
    item.executemany("INSERT INTO item VALUES (%(a)s::text)", given)
    assert item.execute("SELECT a FROM item").fetchall() == [("1",), ("2",)]
    assert c.released[CStream] == before + 1 and not given.stream.release
    with pytest.raises(ValueError, match="released"):
        item.executemany("INSERT INTO item VALUES (%s)", given)


def test_errors_of_a_stream_are_raised_with_its_words(item: onetrip.Cursor) -> None:
    good = lambda out: c.moved(schema(children=[schema(b"i", b"a")]), out)  # noqa: E731
    cases = [
        (GivenStream(lambda _: 5, None, b"no schema today"), OSError, "no schema today"),
        (GivenStream(lambda _: 5, None), OSError, "does not say why"),
        (GivenStream(None, None), TypeError, "lacks a function"),
        (GivenStream(good, None), TypeError, "lacks a function"),
        (GivenStream(lambda _: 0, None), ValueError, "released"),
        (GivenStream(good, lambda _: 22, b"not a number"), ValueError, "not a number"),
        (GivenStream(good, lambda _: 5, b"the disk is full"), OSError, "the disk is full"),
    ]
    for given, kind, message in cases:
        with pytest.raises(kind, match=message):
            item.executemany("INSERT INTO item VALUES (%s)", given)
        assert not given.stream.release, "it was released"
    assert item.execute("SELECT count(*) FROM item").fetchone() == (0,)


def test_what_is_no_capsule_of_the_right_name_is_refused(item: onetrip.Cursor) -> None:
    class Given:
        def __init__(self, capsule: Any) -> None:
            self.capsule = capsule

        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return self.capsule

    for capsule in (7, None, c.capsule(schema()), c.capsule(CStream(), b"stream"), c.capsule(CStream())):
        with pytest.raises((ValueError, TypeError, AttributeError)):
            item.executemany("INSERT INTO item VALUES (%s)", Given(capsule))


def test_a_stream_of_ours_is_released_once_and_children_may_be_moved(connection: onetrip.Connection) -> None:
    cursor = connection.execute("SELECT n, n::text AS t, nullif(n, 2) AS u FROM generate_series(1, 3) n")
    capsule = cursor.__arrow_c_stream__()
    stream = c.struct_in(CStream, capsule, b"arrow_array_stream")
    found, batch = CSchema(), CArray()
    assert c.GET_SCHEMA(stream.get_schema)(stream, found) == 0
    assert found.format == b"+s" and [found.children[at].contents.format for at in range(3)] == [b"i", b"U", b"i"]
    assert c.GET_NEXT(stream.get_next)(stream, batch) == 0
    assert (batch.length, batch.n_children, batch.n_buffers) == (3, 3, 1)
    child, other = CArray(), CSchema()
    c.moved(batch.children[0].contents, child)
    c.moved(found.children[1].contents, other)
    c.RELEASE(batch.release)(ctypes.addressof(batch))
    c.RELEASE(found.release)(ctypes.addressof(found))
    assert not batch.release and not found.release
    # What was moved away is still there.
    assert ctypes.string_at(child.buffers[1], 12) == ints(1, 2, 3) and child.buffers[1] % 64 == 0
    assert other.name == b"t" and other.release
    c.RELEASE(child.release)(ctypes.addressof(child))
    c.RELEASE(other.release)(ctypes.addressof(other))
    assert c.GET_NEXT(stream.get_next)(stream, batch) == 0 and not batch.release, "the end"
    assert c.GET_NEXT(stream.get_next)(stream, batch) == 0 and not batch.release, "and again"
    c.RELEASE(stream.release)(ctypes.addressof(stream))
    assert not stream.release
    del capsule  # nothing is left to be released


def test_a_capsule_that_nobody_reads_ends_the_statement(connection: onetrip.Connection) -> None:
    stream = connection.cursor().stream_arrow("SELECT n, repeat('x', 1000) FROM generate_series(1, 1000000) n", size=10)
    capsule = stream.__arrow_c_stream__()
    with pytest.raises(onetrip.ProgrammingError, match="stream"):
        connection.execute("SELECT 1")
    del stream, capsule
    assert not connection.closed
    connection.rollback()
    assert connection.execute("SELECT 1").fetchone() == (1,)
