"""Values are psycopg's, whatever the session's settings: each type read, written, and by COPY in both formats."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from typing import Any
from zoneinfo import ZoneInfo

import onetrip
import pytest
from shown import shown

# Expressions of each type, of which psycopg makes a value under all settings.
EXPRESSIONS = {
    "bool": ["true", "false"],
    "int2": ["-32768", "32767"],
    "int4": ["-2147483648", "0", "2147483647"],
    "int8": ["-9223372036854775808", "9223372036854775807", "1234567890123456789"],
    "oid": ["4294967295"],
    "float4": ["0.1", "1e-30", "'NaN'", "'-infinity'"],
    "float8": ["0.1", "1e300", "'infinity'", "123456789.125"],
    "numeric": ["0", "-1.50", "1e-20", "123456789012345678901234567890.5", "'NaN'"],
    "text": ["''", "'zwölf'", "'a\\b''\"{},'"],
    "varchar": ["'abc'"],
    "bpchar": ["'abc '"],
    "bytea": ["'\\x'", "'\\x00ff5c61'"],
    "uuid": ["'00000000-0000-0000-0000-000000000000'", "'ffffffff-0123-4567-89ab-cdef01234567'"],
    "date": ["'0001-01-01'", "'9999-12-31'", "'2024-02-29'"],
    "time": ["'00:00'", "'23:59:59.999999'", "'01:02:03.4'"],
    "timetz": ["'00:00+00'", "'23:59:59.999999-05:30'", "'01:02:03+01'"],
    "timestamp": ["'0001-01-01 00:00'", "'9999-12-31 23:59:59.999999'", "'2024-02-29 01:02:03.4'"],
    "timestamptz": [
        "'2024-01-01 00:00+00'", "'1890-06-01 12:00+00'", "'2024-03-31 00:59:59.5+00'", "'2024-03-31 01:00+00'",
        "'2024-10-27 00:30+00'", "'2024-10-27 01:30+00'", "'2011-12-30 09:59:59+00'",
    ],
    "interval": [
        "'0'", "'1 day'", "'-1 day 02:03:04.5'", "'1 year 2 mons 3 days'", "'-00:00:00.000001'", "'-14 mons'",
        "'1000000 hours'",
    ],
    "json": ["'{\"a\": [1, null]}'"],
    "jsonb": ["'[1.5, \"x\"]'"],
    "inet": ["'10.0.0.1'", "'::1/64'"],
    "cidr": ["'10.0.0.0/8'"],
    "int4range": ["'[1,5)'", "'empty'", "'(,5)'", "'(,)'"],
    "numrange": ["'[1.5,2.5]'"],
    "daterange": ["'[2024-01-01,2024-02-01)'"],
    "tsrange": ["'[2024-01-01 00:00,2024-02-01 01:02:03.4)'"],
    "tstzrange": ["'[2024-01-01 00:00+00,2024-02-01 01:02:03.4+00)'"],
    "int4multirange": ["'{[1,5),[7,9)}'", "'{}'"],
    "nummultirange": ["'{[1.5,2.5],(7,)}'"],
}  # fmt: skip

ZONES = ["UTC", "Europe/Rome", "America/New_York", "Pacific/Apia", "Asia/Kolkata"]
STYLES = ["ISO, MDY", "ISO, DMY", "SQL, DMY", "SQL, MDY", "Postgres, DMY", "Postgres, MDY", "German, DMY"]
# What has a style of its own; the ones with a zone are written with an abbreviation, which tells no offset.
STYLED = ("date", "timestamp", "time", "interval")

VALUES: list[Any] = [
    True, 0, -1, 2**31 - 1, 2**31, -(2**63), 2**63, 1.5, float("inf"), "zwölf", "", "a\tb\\n\n", b"", b"\0\\\xff",
    decimal.Decimal("1.50"), decimal.Decimal("-1E-10"), dt.date(1, 1, 1), dt.date(2024, 2, 29),
    dt.time(23, 59, 59, 999999), dt.time(1, 2, tzinfo=dt.timezone(dt.timedelta(hours=-5, minutes=-30))),
    dt.datetime(2024, 2, 29, 1, 2, 3, 40000), dt.datetime(1, 1, 1), dt.datetime(2024, 1, 2, tzinfo=dt.timezone.utc),
    dt.datetime(2024, 10, 27, 2, 30, tzinfo=ZoneInfo("Europe/Rome")),
    dt.datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Rome")),
    dt.datetime(2024, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=5, minutes=45))),
    dt.timedelta(days=-1, seconds=5, microseconds=7), dt.timedelta(days=400), uuid.UUID(int=2**127 + 5),
    [1, None, 3], [2**40, 1], [[1, 2], [3, 4]], [1.5], ["a", "b\"{},", None], [True], [b"x", None],
    [dt.date(2024, 1, 2), None], [dt.datetime(2024, 1, 2, 3, 4, 5)], [uuid.UUID(int=7)], [decimal.Decimal("1.5")],
    [dt.datetime(2024, 1, 2, tzinfo=dt.timezone.utc)], [dt.timedelta(seconds=1)], [[["deep"]]],
]  # fmt: skip


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_each_type_is_read_as_psycopg_reads_it(both: Any, name: str, zone: str) -> None:
    for text in EXPRESSIONS[name]:
        literal = f"({text})::{name}"
        query = f"SELECT {literal}, ARRAY[{literal}, NULL], ARRAY[[{literal}], [{literal}]]"
        rows = []
        for connection in both:
            connection.execute(f"SET TimeZone = '{zone}'")
            rows.append(connection.execute(query).fetchone())
        assert [shown(value) for value in rows[0]] == [shown(value) for value in rows[1]], literal
        copied = []
        for connection in both:
            with connection.cursor().copy(f"COPY (SELECT {literal}) TO STDOUT") as copy:
                copy.set_types([name])
                (row,) = copy.rows()
                copied.append(row[0])
        assert shown(copied[0]) == shown(copied[1]), f"COPY of {literal}"


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", STYLED)
def test_dates_are_read_in_each_style(both: Any, name: str, style: str) -> None:
    try:
        for text in EXPRESSIONS[name]:
            rows = []
            for connection in both:
                connection.execute(f"SET DateStyle = '{style}'")
                rows.append(connection.execute(f"SELECT {text}::{name}, ARRAY[{text}::{name}, NULL]").fetchone())
            assert shown(rows[0][0]) == shown(rows[1][0])
            assert shown(rows[0][1]) == [shown(rows[1][0]), shown(None)]
    finally:
        both[0].execute("SET DateStyle = 'ISO'")
        both[1].execute("RESET DateStyle")


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_each_value_is_written_as_psycopg_writes_it(both: Any, value: Any) -> None:
    ours, theirs = both
    query = "SELECT pg_typeof(%s)::text, %s::text"
    if isinstance(value, str) or (isinstance(value, list) and isinstance(value[0], str | list)):
        query = "SELECT %s::text, %s::text"
    found = ours.execute(query, (value, value)).fetchone()
    expected = theirs.execute(query, (value, value)).fetchone()
    if isinstance(value, int) and not isinstance(value, bool):
        expected = (found[0], expected[1])  # psycopg makes smallint of small ones
        assert found[0] in ("integer", "bigint", "numeric")
    if not (isinstance(value, list) and isinstance(value[0], int)):
        assert found == expected
    assert found[1] == expected[1]


@pytest.mark.parametrize("form", ["", "(FORMAT binary)"], ids=["text", "binary"])
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_each_value_goes_through_copy_as_psycopgs_does(both: Any, value: Any, form: str) -> None:
    ours, theirs = both
    is_text = isinstance(value, str)
    kind = "text" if is_text else ours.execute("SELECT pg_typeof(%s)::text", (value,)).fetchone()[0]
    held = []
    for connection in both:
        connection.execute(f"CREATE TEMP TABLE copied (a {kind})")
        try:
            with connection.cursor().copy(f"COPY copied FROM STDIN {form}") as copy:
                if form:
                    copy.set_types([kind_name(kind)])
                copy.write_row((value,))
                copy.write_row((None,))
            held.append(connection.execute("SELECT a::text FROM copied").fetchall())
        finally:
            connection.execute("DROP TABLE copied")
    assert held[0] == held[1]


@pytest.mark.parametrize("style", ["postgres", "postgres_verbose", "sql_standard", "iso_8601"])
def test_an_interval_is_the_same_under_each_style(connection: onetrip.Connection, style: str) -> None:
    connection.execute(f"SET IntervalStyle = {style}")
    connection.execute("CREATE TEMP TABLE written (way text, a interval)")
    for value in [dt.timedelta(seconds=-1), dt.timedelta(days=-2, hours=3), dt.timedelta(days=1, microseconds=5)]:
        micros = value // dt.timedelta(microseconds=1)
        for place in ("%s", "%t", "%b"):
            connection.execute(f"INSERT INTO written VALUES ('{place.strip('%')}', {place})", (value,))
        with connection.cursor().copy("COPY written FROM STDIN") as copy:
            copy.write_row(("copy", value))
        wrong = connection.execute(
            "SELECT way FROM written WHERE extract(epoch FROM a) <> %s / 1000000.0", (micros,)
        ).fetchall()
        assert wrong == [], value
        connection.execute("DELETE FROM written")


def kind_name(kind: str) -> str:
    """The name that both packages know, of the server's own."""
    names = {
        "boolean": "bool", "integer": "int4", "bigint": "int8", "double precision": "float8",
        "time without time zone": "time", "time with time zone": "timetz", "timestamp without time zone": "timestamp",
        "timestamp with time zone": "timestamptz",
    }  # fmt: skip
    return names.get(kind.removesuffix("[]"), kind.removesuffix("[]")) + ("[]" if kind.endswith("[]") else "")


@pytest.mark.parametrize(
    "expression",
    ["'infinity'::date", "'0044-03-15 BC'::date", "'infinity'::timestamp", "'10000-01-01'::timestamptz",
     "'24:00'::time",
     "'24:00+00'::timetz", "'300000 years'::interval * 100"],
)  # fmt: skip
def test_what_python_cannot_hold_is_a_data_error(connection: onetrip.Connection, expression: str) -> None:
    cursor = connection.execute(f"SELECT {expression}, ARRAY[{expression}]")
    with pytest.raises(onetrip.DataError):
        cursor.fetchone()
    with pytest.raises(onetrip.DataError):
        connection.execute(f"SELECT ARRAY[{expression}]").fetchone()


def test_the_zone_of_a_time_is_the_sessions(connection: onetrip.Connection) -> None:
    connection.execute("SET TimeZone = 'Europe/Rome'")
    value = connection.execute("SELECT '2024-07-01 00:00+00'::timestamptz").fetchone()[0]
    assert (value.tzinfo, value.hour) == (ZoneInfo("Europe/Rome"), 2)
    connection.execute("SET TimeZone = '<ours>-03:21'")  # which Python does not know
    value = connection.execute("SELECT '2024-07-01 00:00+00'::timestamptz").fetchone()[0]
    assert value.utcoffset() == dt.timedelta(hours=3, minutes=21)
    assert value == dt.datetime(2024, 7, 1, tzinfo=dt.timezone.utc)


def test_a_dumper_of_the_programs_goes_before_what_is_built_in(connection: onetrip.Connection) -> None:
    class Metres(float):
        pass

    class Marked(str):
        pass

    onetrip.register_dumper(Metres, lambda value: (25, f"{float(value)} m"))
    assert connection.execute("SELECT %s, %s, %s", (Metres(2), 2.5, Marked("x"))).fetchone() == ("2.0 m", 2.5, "x")
    assert connection.execute("SELECT %s::text[]", ([Metres(2)],)).fetchone() == (["2.0 m"],)


def test_rows_that_are_kept_are_no_work_for_the_collector(connection: onetrip.Connection) -> None:
    import gc

    plain, nested = connection.execute("SELECT 1, 'x', now() UNION ALL SELECT 2, 'y', now()").fetchall()
    assert not gc.is_tracked(plain) and not gc.is_tracked(nested)
    (with_list,) = connection.execute("SELECT ARRAY[1]").fetchall()
    assert gc.is_tracked(with_list)


def test_uuids_are_as_the_class_makes_them(connection: onetrip.Connection) -> None:
    import copy
    import pickle

    made = connection.execute("SELECT 'ffffffff-0123-4567-89ab-cdef01234567'::uuid").fetchone()[0]
    same = uuid.UUID("ffffffff-0123-4567-89ab-cdef01234567")
    assert (type(made), made, hash(made), made.is_safe, made.hex) == (
        uuid.UUID,
        same,
        hash(same),
        same.is_safe,
        same.hex,
    )
    assert copy.copy(made) == pickle.loads(pickle.dumps(made)) == same
    with pytest.raises(TypeError):
        made.int = 1
