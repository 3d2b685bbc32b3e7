"""Each type of the server's, read and written in each form and under each setting: the value is psycopg's, its class
too, and so is the class of an error."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from shown import shown

# Values of each type, as the server reads them.
VALUES: dict[str, list[str]] = {
    "aclitem": ["onetrip=r/onetrip"],
    "bit": ["1", "0"],
    "bool": ["t", "f"],
    "box": ["(3,4),(1,2)"],
    "bpchar": ["", "abc "],
    "bytea": ["", "\\x00ff5c61", "ab\\\\'\""],
    "char": ["x", ""],
    "cid": ["7"],
    "cidr": ["10.0.0.0/8", "::/0", "10.1.2.3/32"],
    "circle": ["<(1,2),3>"],
    "date": ["0001-01-01", "9999-12-31", "2024-02-29", "infinity", "-infinity", "0044-03-15 BC", "10000-01-01"],
    "datemultirange": ["{}", "{[2024-01-01,2024-02-01),[2025-01-01,)}"],
    "daterange": ["empty", "(,)", "[2024-01-01,2024-02-01)", "[0044-03-15 BC,)"],
    "float4": ["0.1", "-1e-30", "NaN", "-infinity", "16777216", "-0"],
    "float8": ["0.1", "1e300", "NaN", "infinity", "123456789.125", "5e-324", "-0"],
    "gtsvector": [],
    "inet": ["10.0.0.1", "::1/64", "10.0.0.1/8", "fe80::1"],
    "int2": ["-32768", "0", "32767"],
    "int2vector": ["1 2 -3", ""],
    "int4": ["-2147483648", "0", "2147483647"],
    "int4multirange": ["{}", "{[1,5),[7,)}"],
    "int4range": ["empty", "(,)", "[1,5)", "(,2147483647)"],
    "int8": ["-9223372036854775808", "0", "9223372036854775807"],
    "int8multirange": ["{}", "{[1,5),[9223372036854775806,9223372036854775807)}"],
    "int8range": ["empty", "[-9223372036854775808,9223372036854775807)"],
    "interval": [
        "0", "1 day", "-1 day +02:03:04.5", "1 year 2 mons 3 days", "-00:00:00.000001", "-14 mons", "1000000 hours",
        "300000 years", "-1 mons +1 day -00:00:01", "999999999 days", "1 day -00:00:00.5",
    ],
    "json": ['{"a": [1, null, "zwölf"]}', "1.50", "null", '"x"'],
    "jsonb": ['{"a": [1, null, "zwölf"]}', "1.50", "null", '[1.5, "x"]'],
    "jsonpath": ["$.a[*] ? (@ > 1)"],
    "line": ["{1,-1,0}"],
    "lseg": ["[(1,2),(3,4)]"],
    "macaddr": ["08:00:2b:01:02:03"],
    "macaddr8": ["08:00:2b:01:02:03:04:05"],
    "money": ["1.50", "-1234567.89"],
    "name": ["", "pg_class"],
    "numeric": ["0", "-1.50", "1e-20", "123456789012345678901234567890.5", "NaN", "Infinity", "-Infinity", "0.000"],
    "nummultirange": ["{}", "{[1.5,2.5],(7,)}"],
    "numrange": ["empty", "[1.5,2.5]", "(,NaN)"],
    "oid": ["0", "4294967295"],
    "oidvector": ["1 2 3", ""],
    "path": ["[(1,2),(3,4)]", "((1,2),(3,4))"],
    "pg_lsn": ["16/B374D848"],
    "pg_snapshot": ["10:20:10,14,15"],
    "point": ["(1,2)", "(-1.5,NaN)"],
    "polygon": ["((0,0),(1,1),(2,0))"],
    "refcursor": ["my cursor"],
    "regclass": ["pg_class"],
    "regcollation": ['"C"'],
    "regconfig": ["simple"],
    "regdictionary": ["simple"],
    "regnamespace": ["pg_catalog"],
    "regoper": ["||/"],
    "regoperator": ["+(integer,integer)"],
    "regproc": ["array_out"],
    "regprocedure": ["abs(integer)"],
    "regrole": ["onetrip"],
    "regtype": ["integer"],
    "text": ["", "zwölf", "a\\b'\"{},\n\t", "NULL", " "],
    "tid": ["(1,2)"],
    "time": ["00:00", "23:59:59.999999", "01:02:03.4", "24:00"],
    "timestamp": [
        "0001-01-01 00:00", "9999-12-31 23:59:59.999999", "2024-02-29 01:02:03.4", "infinity", "-infinity",
        "0044-03-15 12:00 BC", "10000-01-01 00:00",
    ],
    "timestamptz": [
        "2024-01-01 00:00+00", "1890-06-01 12:00+00", "2024-03-31 00:59:59.5+00", "2024-03-31 01:00+00",
        "2024-10-27 00:30+00", "2024-10-27 01:30+00", "2011-12-30 09:59:59+00", "infinity", "-infinity",
        "0044-03-15 12:00+00 BC", "10000-01-02 00:00+00",
    ],
    "timetz": ["00:00+00", "23:59:59.999999-05:30", "01:02:03+01", "24:00+00", "12:00+05:45:10"],
    "tsmultirange": ["{}", "{[2024-01-01 00:00,2024-02-01 01:02:03.4)}"],
    "tsquery": ["'a' & 'b'"],
    "tsrange": ["empty", "[2024-01-01 00:00,2024-02-01 01:02:03.4)", "[-infinity,infinity)"],
    "tstzmultirange": ["{}", "{[2024-01-01 00:00+00,2024-02-01 01:02:03.4+00)}"],
    "tstzrange": ["empty", "[2024-01-01 00:00+00,2024-02-01 01:02:03.4+00)"],
    "tsvector": ["'a':1 'b':2"],
    "txid_snapshot": ["10:20:10,14,15"],
    "uuid": ["00000000-0000-0000-0000-000000000000", "ffffffff-0123-4567-89ab-cdef01234567"],
    "varbit": ["10110", ""],
    "varchar": ["", "abc ", "zwölf"],
    "xid": ["7"],
    "xid8": ["7"],
    "xml": ["<a>b</a>"],
}  # fmt: skip
# Rows of no type with a name, which only the server makes.
RECORDS = [
    "ROW()", "ROW(NULL)", "ROW('')", "ROW(NULL, NULL)", "ROW(1, 'a', NULL, '')", "ROW('zwölf', 'q\"u,o\te()')",
    "ROW(1.50, date '2024-02-29', ARRAY[1, NULL], interval '1 day', true, '\\x00ff'::bytea)", "ROW(ROW(1, 'b,c'), 'x')",
    "ROW(json '[1]', uuid 'ffffffff-0123-4567-89ab-cdef01234567', inet '10.0.0.1/8', int4range(1, 5))",
    "ARRAY[ROW(1, 'a'), NULL, ROW(2, NULL)]", "ARRAY[[ROW(1)], [ROW(2)]]", "ROW(ARRAY[ROW(1, 2)])",
    "ARRAY(SELECT ROW(1) WHERE false)",
]  # fmt: skip
# Types whose values only the server makes.
NOT_READ = {
    "pg_brin_bloom_summary", "pg_brin_minmax_multi_summary", "pg_dependencies", "pg_mcv_list", "pg_ndistinct",
    "pg_node_tree",
}  # fmt: skip

SETTINGS = {
    "": "",
    "Rome": "SET TimeZone = 'Europe/Rome'",
    "New York": "SET TimeZone = 'America/New_York'",
    "Kolkata": "SET TimeZone = 'Asia/Kolkata'",
    "a zone without a name": "SET TimeZone = '<ours>-03:21'",
    "ISO, DMY": "SET DateStyle = 'ISO, DMY'",
    "SQL, DMY": "SET DateStyle = 'SQL, DMY'",
    "Postgres, MDY": "SET DateStyle = 'Postgres, MDY'",
    "German": "SET DateStyle = 'German, DMY'",
    "sql_standard": "SET IntervalStyle = sql_standard",
    "iso_8601": "SET IntervalStyle = iso_8601",
    "postgres_verbose": "SET IntervalStyle = postgres_verbose",
    "escape": "SET bytea_output = escape",
    "LATIN1": "SET client_encoding = LATIN1",
}

Outcome = tuple[str, Any]

# What differs from psycopg: the reason, the types, the ways, and the settings if it is not all of them.
KNOWN: list[tuple[str, set[str], str, set[str] | None]] = [
    ("psycopg does not know these types' names, nor their arrays", {"char", "pg_snapshot"}, "copied|read", None),
    ("psycopg reads memory that follows an empty value", {"bytea"}, "(read|copied out) text", {"escape"}),
    ("psycopg takes json for UTF-8", {"json", "jsonb"}, "read|copied out", {"LATIN1"}),
    ("a float4 is the same number in both formats", {"float4"}, "(read|copied out) binary", None),
    ("text stays text in binary", {"xml"}, "(read|copied out) binary", None),
    ("what has its text as binary form can be written", {"bpchar", "xml"}, "copied in binary", None),
    (
        "without a name that Python knows, a zone is an offset; psycopg takes UTC", {"timestamptz", "tstzrange", "tstzmultirange"},
        ".*", {"a zone without a name"},
    ),
]  # fmt: skip


def why(name: str, way: str, label: str) -> str | None:
    """Why a way of a value is known to differ."""
    for reason, names, ways, labels in KNOWN:
        if name in names and re.match(ways, way) and (labels is None or label in labels):
            return reason
    return None


CLASSES = ("DataError", "ProgrammingError", "NotSupportedError", "OperationalError", "InternalError", "InterfaceError")


def outcome(call: Callable[[], Any]) -> Outcome:
    """What a call returns, or the class of what it raises: DB-API's, if it is one of them."""
    try:
        return "is", shown(call())
    except Exception as error:
        names = [kind.__name__ for kind in type(error).__mro__]
        return "raises", next((name for name in CLASSES if name in names), names[0])


def read(connection: Any, name: str, text: str, binary: bool) -> tuple[Outcome, Any]:
    """A value alone, among others and in rows of them."""
    literal = f"'{text.replace(chr(39), chr(39) * 2)}'::\"{name}\""
    forms = [literal, f"ARRAY[{literal}, NULL]", f"ARRAY[[{literal}], [{literal}]]"]
    try:
        row = connection.execute(f"SELECT {', '.join(forms)}", binary=binary).fetchone()
        return ("is", [shown(value) for value in row]), row[0]
    except Exception:
        single = [outcome(lambda: connection.execute(f"SELECT {form}", binary=binary).fetchone()[0]) for form in forms]  # noqa: B023
        return ("each", single), None


def copied_out(connection: Any, name: str, text: str, form: str) -> Outcome:
    literal = f"'{text.replace(chr(39), chr(39) * 2)}'::\"{name}\""

    def rows() -> Any:
        with connection.cursor().copy(f"COPY (SELECT {literal}) TO STDOUT {form}") as copy:
            copy.set_types([name])
            return [list(row) for row in copy.rows()]

    return outcome(rows)


def written(connection: Any, name: str, value: Any, place: str) -> Outcome:
    return outcome(lambda: connection.execute(f'SELECT ({place}::"{name}")::text', (value,)).fetchone()[0])


def copied_in(connection: Any, name: str, value: Any, form: str) -> Outcome:
    def rows() -> Any:
        with connection.cursor().copy(f"COPY written FROM STDIN {form}") as copy:
            if form:
                copy.set_types([name])
            copy.write_row((value,))
        return [
            list(row) for row in connection.execute("DELETE FROM written RETURNING a::text", prepare=False).fetchall()
        ]

    return outcome(rows)


def selected(connection: Any, form: str, binary: bool) -> Outcome:
    return outcome(lambda: connection.execute(f"SELECT {form}", binary=binary).fetchone()[0])


@contextlib.contextmanager
def under(connections: tuple[Any, Any], setting: str) -> Iterator[None]:
    for connection in connections:
        if setting:
            connection.execute(setting)
    try:
        yield
    finally:
        for connection in connections:
            if setting:
                word = setting.split()[1]
                connection.execute("SET DateStyle = 'ISO, MDY'" if word == "DateStyle" else f"RESET {word}")


def ways(both: tuple[Any, Any], name: str, text: str) -> Iterator[tuple[str, Outcome, Outcome]]:
    """Each way of a value in and out: ours, and psycopg's."""
    values = []
    for binary in (False, True):
        found = [read(connection, name, text, binary) for connection in both]
        yield f"read {'binary' if binary else 'text'}", found[0][0], found[1][0]
        values.append([value for _, value in found])
    for form in ("", "(FORMAT binary)"):
        ours, theirs = (copied_out(connection, name, text, form) for connection in both)
        yield f"copied out {'binary' if form else 'text'}", ours, theirs
    mine, other = values[0]
    if mine is None or other is None:
        return
    for place in ("%s", "%t", "%b"):
        yield f"written {place}", written(both[0], name, mine, place), written(both[1], name, other, place)
    for form in ("", "(FORMAT binary)"):
        yield (
            f"copied in {'binary' if form else 'text'}",
            copied_in(both[0], name, mine, form),
            copied_in(both[1], name, other, form),
        )


def test_all_types_of_the_server_are_here(both: tuple[Any, Any]) -> None:
    names = both[0].execute(
        "SELECT typname FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace AND typtype IN ('b', 'r', 'm') "
        "AND typcategory <> 'A'"
    )
    assert {name for (name,) in names.fetchall()} - set(VALUES) == NOT_READ


@pytest.mark.parametrize("name", VALUES)
def test_each_value_is_psycopgs_in_each_form_under_each_setting(both: tuple[Any, Any], name: str) -> None:
    different, reasons = [], set()
    for connection in both:
        connection.execute(f'CREATE TEMP TABLE written (a "{name}")')
    try:
        for label, setting in SETTINGS.items():
            with under(both, setting):
                for text in VALUES[name]:
                    for way, ours, theirs in ways(both, name, text):
                        if ours == theirs:
                            continue
                        reason = why(name, way, label)
                        reasons.add(reason)
                        if reason is None:
                            different.append((label, text, way, ours, theirs))
    finally:
        for connection in both:
            connection.execute("DROP TABLE written")
    assert not different, "\n".join(map(str, different))
    assert {reason for reason, names, _, _ in KNOWN if name in names} == reasons, "what is known to differ does"


@pytest.mark.parametrize("form", RECORDS)
def test_each_record_is_psycopgs_in_each_form_under_each_setting(both: tuple[Any, Any], form: str) -> None:
    for label, setting in SETTINGS.items():
        with under(both, setting):
            for binary in (False, True):
                ours, theirs = (selected(connection, form, binary) for connection in both)
                assert ours == theirs, (label, binary)


def test_a_moment_in_a_record_has_the_sessions_zone(both: tuple[Any, Any]) -> None:
    with under(both, SETTINGS["Rome"]):
        for form in ("timestamptz '2024-01-01 00:00+00'", "ROW(timestamptz '2024-01-01 00:00+00')"):
            value = both[0].execute(f"SELECT {form}", binary=True).fetchone()[0]
            moment = value[0] if isinstance(value, tuple) else value
            assert str(moment.tzinfo) == "Europe/Rome"  # psycopg takes UTC for the one in the record
