"""Ranges, rows, enums and hstore."""

from __future__ import annotations

import asyncio
import datetime as dt
import enum
import pickle
from decimal import Decimal
from typing import Any, NamedTuple

import onetrip
import pytest
from onetrip import aio
from onetrip.types.composite import CompositeInfo, register_composite
from onetrip.types.enum import EnumInfo, register_enum
from onetrip.types.hstore import register_hstore
from onetrip.types.info import TypeInfo
from onetrip.types.multirange import Int8Multirange, Multirange
from onetrip.types.range import DateRange, Int4Range, Int8Range, Range

RANGES = [
    Int4Range(1, 5), Int8Range(1, 2**40, "()"), Range(Decimal("1.5"), None, "(]"), Range(dt.date(2024, 1, 1), None),
    Range(dt.datetime(2024, 1, 1, 2, 3), dt.datetime(2024, 1, 2)),
    Range(None, dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)),
    Int4Range(empty=True), Int4Range(None, None, "()"), DateRange(empty=True),
]  # fmt: skip


@pytest.mark.parametrize("value", RANGES, ids=repr)
def test_a_range_comes_back_as_it_went_in(connection: onetrip.Connection, value: Range[Any]) -> None:
    for given in (value, Multirange([value])):
        back = connection.execute("SELECT %s", (given,)).fetchone()[0]
        kind = connection.execute("SELECT pg_typeof(%s)::text", (given,)).fetchone()[0]
        again = connection.execute(f"SELECT %s::{kind}", (back,)).fetchone()[0]
        assert back == again and isinstance(back, Range | Multirange)
    assert connection.execute("SELECT %s = %s", (value, value)).fetchone() == (True,)
    assert pickle.loads(pickle.dumps(value)) == value


def test_ranges_are_values(connection: onetrip.Connection) -> None:
    assert 3 in Range(1, 5) and 5 not in Range(1, 5) and 5 in Range(1, 5, "[]") and 1 not in Range(empty=True)
    assert sorted([Range(2, 3), Range(empty=True), Range(None, 1), Range(1, 2)]) == [
        Range(empty=True), Range(None, 1), Range(1, 2), Range(2, 3),
    ]  # fmt: skip
    assert (Range(1, 2).lower_inc, Range(1, 2).upper_inc, Range(None, 2).lower_inf, bool(Range(empty=True))) == (
        True, False, True, False,
    )  # fmt: skip
    assert (
        str(Range(1, 2)) == "[1, 2)" and repr(Range(1, 2)) == "Range(1, 2, '[)')" and hash(Range(1)) == hash(Range(1))
    )
    with pytest.raises(ValueError, match="bounds"):
        Range(1, 2, "<>")
    many = Int8Multirange([Range(1, 2), Range(5, 7)])
    assert connection.execute("SELECT %s", (many,)).fetchone() == (Multirange([Range(1, 2), Range(5, 7)]),)
    with pytest.raises(TypeError):
        Multirange([1])  # type: ignore[list-item]


def test_rows_are_tuples_of_text_until_their_type_is_known(connection: onetrip.Connection) -> None:
    assert connection.execute("SELECT ROW(1, 'a \"b\\', NULL, '')").fetchone() == (("1", 'a "b\\', None, ""),)
    connection.execute("CREATE TYPE pg_temp.card AS (id int, name text, on_day date, parts text[])")
    info = CompositeInfo.fetch(connection, "pg_temp.card")
    assert info is not None and info.field_names == ["id", "name", "on_day", "parts"]
    register_composite(info, connection)
    value = (7, 'it"s, \\x', dt.date(2024, 1, 2), ["a", 'b"'])
    row = connection.execute("SELECT %s::pg_temp.card, ARRAY[%s::pg_temp.card, NULL]", (value, value)).fetchone()
    assert row == (value, [value, None]) and row[0].name == value[1]

    class Card(NamedTuple):
        id: int
        name: str
        on_day: dt.date
        parts: list[str]

    register_composite(info, connection, Card)
    back = connection.execute("SELECT %s::pg_temp.card", (Card(*value),)).fetchone()[0]
    assert type(back) is Card and back == value
    assert CompositeInfo.fetch(connection, "no_such_type") is None
    with pytest.raises(TypeError, match="composite"):
        register_composite(None, connection)  # type: ignore[arg-type]


class Mood(enum.Enum):
    SAD = 1
    OK = 2


def test_enums_are_classes_of_python(connection: onetrip.Connection) -> None:
    connection.execute("CREATE TYPE pg_temp.mood AS ENUM ('SAD', 'fine', 'other')")
    info = EnumInfo.fetch(connection, "pg_temp.mood")
    assert info is not None and info.labels == ["SAD", "fine", "other"]
    register_enum(info, connection, Mood, mapping={Mood.OK: "fine"})
    row = connection.execute("SELECT %s::pg_temp.mood, %s::pg_temp.mood[]", (Mood.OK, [Mood.SAD, Mood.OK])).fetchone()
    assert row == (Mood.OK, [Mood.SAD, Mood.OK])
    with pytest.raises(onetrip.DataError, match="other"):
        connection.execute("SELECT 'other'::pg_temp.mood").fetchone()
    register_enum(info, connection)
    made = connection.execute("SELECT 'other'::pg_temp.mood").fetchone()[0]
    assert made is info.enum["other"] and connection.execute("SELECT %s::pg_temp.mood", (made,)).fetchone() == (made,)


def test_hstore_is_a_dict(connection: onetrip.Connection) -> None:
    try:
        connection.execute("CREATE EXTENSION hstore")
    except onetrip.Error:
        pytest.skip("the server has no hstore")
    register_hstore(TypeInfo.fetch(connection, "hstore"), connection)
    pairs = {"a": "1", 'b "\\': None, "": 'x,"=>'}
    row = connection.execute("SELECT %s::hstore, ARRAY[%s::hstore, '']", (pairs, pairs)).fetchone()
    assert row == (pairs, [pairs, {}])
    with pytest.raises(onetrip.DataError):
        connection.execute("SELECT %s::hstore", ({"a": 1},))


def test_types_are_fetched_with_asyncio(server: dict[str, Any]) -> None:
    async def main() -> None:
        async with await aio.connect(**server) as connection:
            await connection.execute("CREATE TYPE pg_temp.card AS (id int, name text)")
            info = await CompositeInfo.fetch(connection, "pg_temp.card")
            assert info is not None
            register_composite(info, connection)
            cursor = await connection.execute("SELECT ROW(1, 'x')::pg_temp.card")
            assert await cursor.fetchone() == ((1, "x"),)

    asyncio.run(main())
