"""Values go in and come back as psycopg has them."""

from __future__ import annotations

import datetime as dt
import decimal
import ipaddress
import uuid
from typing import Any

import onetrip
import pytest

VALUES: list[Any] = [
    0, -1, 2**31 - 1, 2**31, -(2**63), 2**63, 10**40, 1.5, float("inf"), True, False, "", "zwölf", None,
    b"", b"\0\xff\\", bytearray(b"ab"), memoryview(b"ab"),
    decimal.Decimal("1.50"), decimal.Decimal("-1E-10"), dt.date(1, 1, 1), dt.date(9999, 12, 31),
    dt.time(23, 59, 59, 999999), dt.time(1, 2, tzinfo=dt.timezone(dt.timedelta(hours=-5, minutes=-30))),
    dt.datetime(2026, 1, 2, 3, 4, 5, 60000), dt.datetime(2026, 1, 2, tzinfo=dt.timezone.utc),
    dt.timedelta(days=-1, seconds=5, microseconds=7), dt.timedelta(hours=-1), dt.timedelta(days=40),
    uuid.UUID(int=5), ipaddress.ip_address("::1"), ipaddress.ip_network("10.0.0.0/8"),
    ipaddress.ip_interface("10.0.0.1/8"),
    [1, None, 2**40], [1, decimal.Decimal("1.5")], [[1, 2], [3, 4]], ['a"b', "c\\d", "NULL", "", "{,}", None],
    [b"x", b""], [True, False], [1.5], [dt.date(2026, 1, 2)], [uuid.UUID(int=1)],
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_comes_back_as_it_went_in(connection: onetrip.Connection, value: Any) -> None:
    for _ in range(2):
        assert connection.execute("SELECT %s", (value,)).fetchone() == (value,)


@pytest.mark.parametrize("kind", [onetrip.Json, onetrip.Jsonb])
def test_json_comes_back_as_an_object(connection: onetrip.Connection, kind: type[onetrip.Json]) -> None:
    obj = {"a": [1, None, "x"], "b": {"c": 1.5}}
    assert connection.execute("SELECT %s", (kind(obj),)).fetchone() == (obj,)
    assert connection.execute("SELECT %s", ([kind(obj)],)).fetchone() == ([obj],)


def test_a_type_without_a_class_of_its_own_comes_as_text(connection: onetrip.Connection) -> None:
    connection.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
    row = connection.execute("SELECT 'ok'::mood, '(1,2)'::point, NULL::mood").fetchone()
    assert row == ("ok", "(1,2)", None)


def test_an_array_with_bounds_is_a_list(connection: onetrip.Connection) -> None:
    assert connection.execute("SELECT '[2:3]={5,6}'::int[], '{}'::text[]").fetchone() == ([5, 6], [])


def test_a_date_that_python_cannot_hold_is_a_data_error(connection: onetrip.Connection) -> None:
    cursor = connection.execute("SELECT 'infinity'::date")
    with pytest.raises(onetrip.DataError, match="infinity"):
        cursor.fetchone()
    connection.commit()


def test_a_value_of_an_unknown_class_needs_a_dumper(connection: onetrip.Connection) -> None:
    class Point:
        pass

    with pytest.raises(onetrip.ProgrammingError, match="Point"):
        connection.execute("SELECT %s", (Point(),))
    onetrip.register_dumper(Point, lambda _: (600, "(1,2)"))
    assert connection.execute("SELECT %s", (Point(),)).fetchone() == ("(1,2)",)


def test_the_older_form_of_bytea_is_read_too(connection: onetrip.Connection) -> None:
    connection.execute("SET bytea_output = escape")
    assert connection.execute("SELECT %s", (b"\0a\\\xff",)).fetchone() == (b"\0a\\\xff",)


def test_placeholders_are_positions_or_names(connection: onetrip.Connection) -> None:
    assert connection.execute("SELECT 5 %% %s", (3,)).fetchone() == (2,)
    named = connection.execute("SELECT %(a)s, %(b)s, %(a)s", {"a": 1, "b": 2, "c": 3})
    assert named.fetchone() == (1, 2, 1)
    assert connection.execute("SELECT 5 % 3").fetchone() == (2,)
    for statement, params in [
        ("SELECT %s", ()), ("SELECT %s", (1, 2)), ("SELECT %(a)s", {}), ("SELECT %s, %(a)s", (1,)), ("SELECT %d", (1,)),
    ]:  # fmt: skip
        with pytest.raises(onetrip.ProgrammingError):
            connection.execute(statement, params)
    for statement, params in [("SELECT %s", "a"), ("SELECT %s", {"a": 1}), ("SELECT %(a)s", (1,))]:
        with pytest.raises(TypeError):
            connection.execute(statement, params)
