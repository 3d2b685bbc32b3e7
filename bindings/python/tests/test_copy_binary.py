"""COPY in binary, with types that are said, and with parameters: the same values as SELECT and text have, and as
psycopg gives for the same calls; with and without an event loop."""

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import io
import struct
import uuid
import zoneinfo
from collections.abc import Iterator
from typing import Any

import onetrip
import psycopg
import pytest
from onetrip import aio, errors
from test_types import VALUES

JSON = {"a": [1, None, "x\n\\"], "b": {"c": 1.5}}
EVERY: list[Any] = [*VALUES, onetrip.Json(JSON), onetrip.Jsonb(JSON), [onetrip.Jsonb(JSON), None]]

# What the server writes for values of a type, the odd ones among them.
TEXTS: dict[str, list[str]] = {
    "bool": ["t", "f"],
    "int2": ["-32768", "0", "32767"],
    "int4": ["-2147483648", "2147483647"],
    "int8": ["-9223372036854775808", "9223372036854775807"],
    "oid": ["0", "4294967295"],
    "float4": ["0.1", "1e+06", "123456", "-0", "1.1754944e-38", "7.8608176e+07", "NaN", "Infinity", "-Infinity", "0.0001", "1e-05"],
    "float8": ["0.1", "1e+15", "123456789012345", "-0", "5e-324", "NaN", "Infinity", "-Infinity", "1.5e+300", "1e-05"],
    "numeric": [
        "0", "0.00", "-0.0001", "1.50", "10000", "9999.9999", "100000000", "0.00000001", "-12345.678900", "NaN",
        "123456789012345678901234567890.123456789", "Infinity", "-Infinity", "1" + "0" * 100, "0." + "0" * 50 + "1",
    ],
    "text": ["", "zwölf 🙂", "tab\t, line\n, back\\slash, \\N"],
    "varchar": ["x"],
    "name": ["x"],
    "bytea": ["\\x", "\\x00ff5c27"],
    "json": ['{"a" : 1}', "null"],
    "jsonb": ['{"a": 1}', '"x"'],
    "uuid": ["00000000-0000-0000-0000-000000000005", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
    "date": ["2000-01-01", "1999-12-31", "2024-02-29", "1900-03-01", "0001-01-01", "0044-03-15 BC", "5874897-12-31",
             "4714-11-24 BC", "infinity", "-infinity"],
    "time": ["00:00:00", "23:59:59.999999", "24:00:00", "01:02:03.5"],
    "timetz": ["00:00:00+00", "23:59:59.999999-05:30", "12:00:00+15:59:59", "01:00:00-01"],
    "timestamp": ["2000-01-01 00:00:00", "1969-12-31 23:59:59.000001", "0044-03-15 12:00:00 BC", "infinity",
                  "294276-12-31 23:59:59.999999", "-infinity"],
    "timestamptz": ["2026-01-02 03:04:05.06+00", "1900-03-01 00:00:00+00", "0044-03-15 12:00:00+00 BC", "infinity"],
    "interval": ["00:00:00", "1 year 2 mons -3 days +04:05:06.789", "-00:00:01", "-1 years -2 mons", "1 day",
                 "-1 days +00:00:05.000007", "1 mon -1 days -00:00:00.1", "100:00:00", "-1 mons +1 day"],
    "inet": ["10.0.0.1", "10.0.0.1/8", "::1", "2001:db8::1/64", "0.0.0.0/0"],
    "cidr": ["10.0.0.0/8", "10.0.0.1/32", "::/0", "2001:db8::/32"],
    "int4[]": ["{}", "{1,NULL,-3}", "{{1,2},{3,4}}", "{{{1}},{{2}}}"],
    "text[]": ['{"a\\"b","c\\\\d","NULL","","{,}",NULL,plain}'],
    "numeric[]": ["{1.50,NaN}"],
    "timestamptz[]": ['{"2026-01-02 03:04:05+00",NULL}'],
    "bytea[]": ['{"\\\\x00ff"}'],
    "bool[]": ["{t,f,NULL}"],
}  # fmt: skip


@pytest.fixture
def row(connection: onetrip.Connection) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...], list[int]]]:
    """A table `every` for a row of all values that parameters can be, what SELECT gives for them, and their types."""
    marks = ", ".join(f"%s AS c{at}" for at in range(len(EVERY)))
    connection.execute(f"CREATE TEMP TABLE every AS SELECT {marks}", tuple(EVERY))
    cursor = connection.execute("SELECT * FROM every")
    assert cursor.description is not None
    types = [column.type_code for column in cursor.description]
    found = cursor.fetchall()[0]
    connection.execute("TRUNCATE every")
    yield tuple(EVERY), found, types
    connection.rollback()


@pytest.mark.parametrize("form", ["text", "binary"])
@pytest.mark.parametrize("says_types", [True, False])
def test_every_value_is_written_and_read_as_by_select(
    connection: onetrip.Connection, row: Any, form: str, says_types: bool
) -> None:
    values, found, types = row
    cursor, nothing = connection.cursor(), (None,) * len(values)
    with cursor.copy(f"COPY every FROM STDIN (FORMAT {form})") as copy:
        if says_types:
            copy.set_types(types)
        copy.write_row(values)
        copy.write_row(nothing)
    assert cursor.rowcount == 2
    assert connection.execute("SELECT * FROM every").fetchall() == [found, nothing]
    with cursor.copy(f"COPY every TO STDOUT (FORMAT {form})") as copy:
        copy.set_types(types)
        assert list(copy.rows()) == [found, nothing]
    with cursor.copy(f"COPY every TO STDOUT WITH (FORMAT '{form}')") as copy:
        raw = copy.read_row()
        assert raw is not None and {type(value) for value in raw} <= {str if form == "text" else bytes, type(None)}
        assert (copy.read_row(), copy.read_row(), copy.read_row()) == (nothing, None, None)
    assert cursor.rowcount == 2


@pytest.mark.parametrize("name", TEXTS)
def test_binary_is_the_same_value_as_the_servers_text(connection: onetrip.Connection, name: str) -> None:
    """Both ways: what is written in binary is what its text is, and what is read has the server's text."""
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(f"CREATE TEMP TABLE one (id int, v {name})")
    texts = TEXTS[name]
    cursor = connection.execute("SELECT v FROM one")
    assert cursor.description is not None
    oid = cursor.description[0].type_code
    connection.register_loader(oid, str)
    cursor = connection.cursor()
    for form in ("text", "binary"):
        with cursor.copy(f"COPY one FROM STDIN (FORMAT {form})") as copy:
            copy.set_types(["int4", oid])
            for id, text in enumerate(texts):
                copy.write_row((id, text))
    wrong = "SELECT id, array_agg(v::text) FROM one GROUP BY id HAVING count(DISTINCT v::text) > 1"
    assert connection.execute(wrong).fetchall() == []
    assert len(connection.execute("SELECT id FROM one").fetchall()) == 2 * len(texts)
    read = []
    for form in ("text", "binary"):
        with cursor.copy(f"COPY (SELECT v FROM one ORDER BY id) TO STDOUT (FORMAT {form})") as copy:
            copy.set_types([oid])
            read.append([value for (value,) in copy.rows()])
    assert read[0] == read[1]
    connection.rollback()


def test_types_that_are_said_take_what_their_text_takes(connection: onetrip.Connection) -> None:
    types = "int2 int8 oid numeric float4 float8 varchar date jsonb json int8[] timestamp".split()
    connection.execute(f"CREATE TEMP TABLE wide ({', '.join(f'c{at} {name}' for at, name in enumerate(types))})")
    aware = dt.datetime(2026, 1, 2, 3, tzinfo=dt.timezone(dt.timedelta(hours=5)))
    row = (1, 2, 3, 4, 5, decimal.Decimal("6.5"), "seven", "2026-08-09", JSON, [1, "a"], [1, None], aware)
    for form in ("text", "binary"):
        with connection.cursor().copy(f"COPY wide FROM STDIN (FORMAT {form})") as copy:
            copy.set_types(types)
            copy.write_row(row)
    date = dt.date(2026, 8, 9)
    wanted = (1, 2, 3, 4, 5.0, 6.5, "seven", date, JSON, [1, "a"], [1, None], aware.replace(tzinfo=None))
    assert connection.execute("SELECT * FROM wide").fetchall() == [wanted] * 2
    connection.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
    connection.execute("CREATE TEMP TABLE moods (v mood, w mood[])")
    with connection.cursor().copy("COPY moods (v) FROM STDIN WITH BINARY") as copy:
        copy.write_row(("ok",))
    with connection.cursor().copy("COPY BINARY moods (v) TO STDOUT") as copy:
        copy.set_types(["text"])
        assert list(copy.rows()) == [("ok",)]
    connection.rollback()


class Number(int):
    """A class under a plain one."""


PLAIN: dict[str, list[Any]] = {
    "bool": [True, False],
    "int2": [-32768, 32767, Number(7), "5"],
    "int4": [-(2**31), 2**31 - 1, Number(7)],
    "int8": [-(2**63), 2**63 - 1, Number(7)],
    "float8": [0.1, -0.0, float("inf"), 7],
    "text": ["", "zwölf 🙂", "x" * 300, Number(7)],
    "bytea": [b"", b"\0\xff" * 200],
    "date": [dt.date(1, 1, 1), dt.date(9999, 12, 31), "2026-01-02"],
    "time": [dt.time(), dt.time(23, 59, 59, 999999), "12:00"],
    "timestamp": [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)],
    "timestamptz": [
        dt.datetime(2026, 1, 2, 3, 4, tzinfo=dt.timezone.utc),
        dt.datetime(2026, 1, 2, 3, 4, tzinfo=dt.timezone(dt.timedelta(hours=5, minutes=30))),
        dt.datetime(2026, 1, 2, 3, 4, tzinfo=zoneinfo.ZoneInfo("UTC")),
        dt.datetime(2026, 1, 2, 3, 4, tzinfo=zoneinfo.ZoneInfo.no_cache("UTC")),
        dt.datetime(2026, 7, 2, 3, 4, tzinfo=zoneinfo.ZoneInfo("Europe/Rome")),
    ],
    "interval": [dt.timedelta(), dt.timedelta(-1, 5, 7), dt.timedelta.max, "1 mon"],
    "uuid": [uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
}


def test_a_row_is_written_the_same_by_either_way(connection: onetrip.Connection) -> None:
    """A tuple of plain values has a way of its own; lists, and tuples with other values, go the general one."""
    columns = ", ".join(f"c{at} {name}" for at, name in enumerate(PLAIN))
    connection.execute(f"CREATE TEMP TABLE plain (way text, at int4, {columns})")
    longest = max(map(len, PLAIN.values()))
    padded = [values + [None] * (longest - len(values)) for values in PLAIN.values()]
    rows = list(enumerate(zip(*padded, strict=True)))
    with connection.cursor().copy("COPY plain FROM STDIN (FORMAT binary)") as copy:
        copy.set_types(["text", "int4", *PLAIN])
        for at, values in rows:
            copy.write_row(("tuple", at, *values))
            copy.write_row(["list", at, *values])
    connection.execute("UPDATE plain SET way = ''")
    counts = connection.execute("SELECT count(*), count(DISTINCT plain.*::text) FROM plain").fetchall()
    assert counts == [(2 * longest, longest)]
    for at, (name, values) in enumerate(PLAIN.items()):
        found = connection.execute(f"SELECT DISTINCT ON (at) c{at} FROM plain ORDER BY at").fetchall()
        assert found[0] == (values[0],), name
    connection.rollback()


def test_a_plain_row_is_refused_as_another_one_is(connection: onetrip.Connection) -> None:
    connection.execute("CREATE TEMP TABLE plain (a int4, b text)")
    for row in ((2**31, "x"), (1, "a\0b"), (1, "x", 2), (1,), (), (dt.date(2026, 1, 2), "x"), (1, object())):
        said = []
        for kind in (tuple, list):
            with pytest.raises(Exception) as caught:
                with connection.cursor().copy("COPY plain FROM STDIN (FORMAT binary)") as copy:
                    copy.set_types(["int4", "text"])
                    copy.write_row((1, "before"))
                    copy.write_row(kind(row))
            said.append((type(caught.value), str(caught.value)))
            connection.rollback()
            connection.execute("CREATE TEMP TABLE plain (a int4, b text)")
        assert said[0] == said[1], row
    # What was refused leaves nothing behind in the data.
    with connection.cursor().copy("COPY plain FROM STDIN (FORMAT binary)") as copy:
        copy.set_types(["int4", "text"])
        copy.write_row((1, "a"))
        for row in ((2, "a\0b"), (2, "x", 3)):
            with pytest.raises(errors.DataError):
                copy.write_row(row)
        copy.write_row((3, "c"))
    assert connection.execute("SELECT * FROM plain ORDER BY a").fetchall() == [(1, "a"), (3, "c")]
    connection.rollback()


def test_rows_go_where_the_class_and_the_types_say(connection: onetrip.Connection) -> None:
    class Loud(onetrip.Copy):
        def write_row(self, row: Any) -> None:
            super().write_row((row[0] * 10, *row[1:]))

    connection.execute("CREATE TEMP TABLE plain (a int4, b jsonb)")
    with Loud(connection.cursor(), "COPY plain FROM STDIN (FORMAT binary)") as loud:
        loud.set_types(["int4", "jsonb"])
        loud.write_row((1, JSON))
    with connection.cursor().copy("COPY plain (a) FROM STDIN (FORMAT binary)") as copy:
        copy.set_types(["int4"])
        copy.write_row((2,))
        write = copy.write_row
    with pytest.raises(errors.ProgrammingError, match="within its block"):
        write((3,))
    assert connection.execute("SELECT * FROM plain ORDER BY a").fetchall() == [(2, None), (10, JSON)]
    connection.rollback()


def test_what_has_no_binary_form_is_refused_in_words(connection: onetrip.Connection) -> None:
    connection.execute("CREATE TEMP TABLE two (a int, b timestamptz)")
    connection.commit()

    class Odd:
        pass

    onetrip.register_dumper(Odd, lambda _: (600, "(1,2)"))
    naive = dt.datetime(2026, 1, 2)
    mistakes: list[tuple[list[Any], tuple[Any, ...], str]] = [
        (["int4"], (1, 2), "1 types were set, and the row has 2"),
        (["int4", "timestamptz"], (1, naive), "value 2: .* no timestamptz"),
        (["int4", "timestamptz"], (2**40, None), "value 1: .* no int4"),
        (["int4", "timestamptz"], ("x", None), "value 1: .* no int4"),
        (["int4[]", "timestamptz"], ([[1, 2], [3]], None), "inconsistent depths"),
        (["int4[]", "timestamptz"], ("{1,2}garbage", None), "value 1: "),
        (["text[]", "timestamptz"], ("{a,,b}", None), "value 1: "),
        (["float4", "timestamptz"], (1e300, None), "value 1: .* no float4"),
        (["float4", "timestamptz"], (1e-300, None), "value 1: .* no float4"),
        (["float8", "timestamptz"], (10**400, None), "value 1: .* no float8"),
        (["float8", "timestamptz"], (decimal.Decimal("1e-400"), None), "value 1: .* no float8"),
        (["int4", "date"], (1, "0000-01-01"), "value 2: .* no date"),
        (["int4", "date"], (1, "0000-01-01 BC"), "value 2: .* no date"),
        ([], (1, Odd()), "value 2: .* type point is not known"),
    ]
    for types, row, problem in mistakes:
        with (
            pytest.raises(onetrip.DataError, match=problem),
            connection.cursor().copy("COPY two FROM STDIN (FORMAT binary)") as copy,
        ):
            copy.set_types(types)
            copy.write_row(row)
        connection.rollback()
    with (
        pytest.raises(onetrip.ProgrammingError, match="type 99999 is not known"),
        connection.cursor().copy("COPY two FROM STDIN (FORMAT binary)") as copy,
    ):
        copy.set_types([99999, 600])
        copy.write_row(("x", None))
    connection.rollback()
    with connection.cursor().copy("COPY two FROM STDIN (FORMAT binary)") as copy:
        copy.write_row((1, None))
        with pytest.raises(onetrip.DataError):
            copy.write_row((2, Odd()))
        with pytest.raises(TypeError, match="bytes, not str"):
            copy.write("text")
        copy.write_row((3, dt.datetime(2026, 1, 2, tzinfo=dt.timezone.utc)))
    assert connection.execute("SELECT a FROM two").fetchall() == [(1,), (3,)], "nothing is left of a refused row"
    cursor = connection.cursor()
    with cursor.copy("COPY two FROM STDIN (FORMAT binary)"):
        pass
    assert cursor.rowcount == 0
    with pytest.raises(errors.BadCopyFileFormat), cursor.copy("COPY two FROM STDIN (FORMAT binary)") as copy:
        copy.write(b"1\t\\N\n")
    connection.rollback()
    with cursor.copy("COPY two FROM STDIN (FORMAT binary)") as copy:
        copy.write(b"")
    assert cursor.rowcount == 0, "nothing is nothing"
    with cursor.copy("COPY (SELECT point(1, 2)) TO STDOUT (FORMAT binary)") as copy:
        copy.set_types(["point"])
        assert copy.read_row() == (struct.pack("!dd", 1, 2),), "as in a cursor whose values come in binary"
    with (
        pytest.raises(onetrip.DataError, match="no int8"),
        cursor.copy("COPY (SELECT 1) TO STDOUT (FORMAT binary)") as copy,
    ):
        copy.set_types(["int8"])
        copy.read_row()
    connection.rollback()


def test_the_format_is_known_from_the_statement_alone(connection: onetrip.Connection) -> None:
    connection.execute('CREATE TEMP TABLE "binary" ("to stdout" int, "format" int)')
    text = [
        'COPY "binary" FROM STDIN',
        "COPY \"binary\" FROM STDIN (FORMAT text, NULL 'format binary') -- (FORMAT binary)",
        'copy "binary" from stdin /* to stdout (format binary) */ (format text)',
        "COPY \"binary\" FROM STDIN WITH NULL AS E'\\\\'' BINARY'",
    ]
    text.append('COPY "binary" FROM STDIN (FORMAT text) WHERE "format" > (CASE WHEN true THEN 1 END)')
    binary = [
        'COPY "binary" FROM STDIN (FORMAT binary)',
        "copy \"binary\" from stdin with (freeze false, format 'binary')",
        'COPY "binary" FROM STDIN (FORMAT "binary")',
        'COPY BINARY "binary" ("to stdout", "format") FROM STDIN',
        'COPY "binary" FROM STDIN WITH BINARY',
        "COPY \"binary\" FROM STDIN (FORMAT E'binary')",
        'COPY "binary" FROM STDIN (FORMAT $x$binary$x$)',
    ]
    for statement in (*text, *binary):
        with connection.cursor().copy(statement) as copy:
            copy.write_row((1, 2))
    assert connection.execute('SELECT * FROM "binary"').fetchall() == [(1, 2)] * 12
    for broken in ("(FORMAT", "(FORMAT $1)", "(FORMAT $$)"):
        connection.execute("SAVEPOINT s")
        with pytest.raises(errors.SyntaxError), connection.cursor().copy(f'COPY "binary" FROM STDIN {broken}') as copy:
            copy.write("1\t2\n")
        connection.execute("ROLLBACK TO s")
    with connection.cursor().copy('COPY "binary" FROM STDIN (FORMAT csv, FORCE_NOT_NULL ("format"))') as copy:
        copy.write("1,2\n")
    with connection.cursor().copy("COPY (SELECT 'to stdout (format binary)', 5) TO STDOUT") as copy:
        assert copy.read_row() == ("to stdout (format binary)", "5")
    connection.rollback()


def test_data_of_a_program_and_rows_are_the_same_file(connection: onetrip.Connection) -> None:
    connection.execute("CREATE TEMP TABLE file (id int, v text)")
    into, rows = io.BytesIO(), [(id, "x" * id) for id in range(2000)]
    with connection.cursor().copy("COPY file FROM STDIN (FORMAT binary)") as copy:
        for row in rows:
            copy.write_row(row)
    with connection.cursor().copy("COPY file TO STDOUT (FORMAT binary)") as copy:
        into.writelines(copy)
    connection.execute("TRUNCATE file")
    with connection.cursor().copy("COPY file FROM STDIN (FORMAT binary)") as copy:
        data = into.getvalue()
        for at in range(0, len(data), 777):
            copy.write(data[at : at + 777])
    assert connection.execute("SELECT * FROM file ORDER BY id").fetchall() == rows
    connection.rollback()


QUOTES = ["", "'", "''", "\\", "\\'", "'; DROP TABLE a; --", "%s", "$1", "zwölf \n\t", "E'\\''", "\\' OR 1=1 --"]


@pytest.mark.parametrize("conforms", ["on", "off"])
def test_parameters_are_literals_that_mean_what_parameters_mean(connection: onetrip.Connection, conforms: str) -> None:
    connection.execute(f"SET standard_conforming_strings = {conforms}")
    cursor = connection.cursor()
    for value in (*EVERY, *QUOTES, -5, -(2**31), [-1]):
        cursor.execute("SELECT %s AS v", (value,))
        assert cursor.description is not None
        oid, found = cursor.description[0].type_code, cursor.fetchall()
        with cursor.copy("COPY (SELECT %s AS v) TO STDOUT (FORMAT binary)", (value,)) as copy:
            copy.set_types([oid])
            assert list(copy.rows()) == found, repr(value)
    connection.execute("CREATE TEMP TABLE a (id int, v text)")
    options = {"by": "|", "has": True}
    with cursor.copy("COPY a FROM STDIN (FORMAT csv, DELIMITER %(by)s, HEADER %(has)s)", options) as copy:
        copy.write("id|v\n1|'\n2|x\n")
    with cursor.copy("COPY (SELECT v FROM a WHERE id - %s=3 AND 5 %% 3 = 2) TO STDOUT", [-1]) as copy:
        assert copy.read_row() == ("x",)
    with cursor.copy("COPY (SELECT 100 % 7) TO STDOUT") as copy:
        assert copy.read_row() == ("2",), "nothing is replaced without parameters, as with psycopg"
    with cursor.copy("COPY (SELECT 100 %% 7) TO STDOUT", ()) as copy:
        assert copy.read_row() == ("2",), "none are parameters too"
    with cursor.copy("COPY (SELECT %s[1]) TO STDOUT", ([7, 8],)) as copy:
        assert copy.read_row() == ("7",)
    connection.rollback()


def test_a_dumper_of_the_programs_writes_no_sql(connection: onetrip.Connection) -> None:
    class Typed:
        def __init__(self, oid: int, text: str) -> None:
            self.oid, self.text = oid, text

    cursor = connection.cursor()
    for oid in (16, 20, 23):
        onetrip.register_dumper(Typed, lambda value, oid=oid: (oid, value.text))
        with (
            pytest.raises(errors.InvalidTextRepresentation),
            cursor.copy("COPY (SELECT %s) TO STDOUT", (Typed(oid, "usename FROM pg_user"),)) as copy,
        ):
            copy.read_row()
        connection.rollback()
    onetrip.register_dumper(Typed, lambda value: (16, value.text))
    for text, is_true in (("t", "t"), ("true", "t"), ("on", "t"), ("off", "f"), ("f", "f")):
        with cursor.copy("COPY (SELECT %s) TO STDOUT", (Typed(16, text),)) as copy:
            assert copy.read_row() == (is_true,)
    connection.rollback()


def test_what_is_no_safe_literal_is_refused(connection: onetrip.Connection) -> None:
    cursor = connection.cursor()
    for statement in (
        "COPY (SELECT '%s') TO STDOUT", "COPY (SELECT \"%s\") TO STDOUT", "COPY (SELECT E'\\'%s') TO STDOUT",
        "COPY (SELECT 1 /* %s */) TO STDOUT", "COPY (SELECT 1) TO STDOUT -- %s", "COPY (SELECT $$%s$$) TO STDOUT",
        "COPY (SELECT '%s', $1) TO STDOUT", "COPY (SELECT a%s) TO STDOUT",
        "COPY (SELECT '\\', %s, '\\') TO STDOUT", "COPY (SELECT U&\"%s\") TO STDOUT",
    ):  # fmt: skip
        with pytest.raises(onetrip.ProgrammingError, match="placeholder"):
            cursor.copy(statement, ("x",))
    with pytest.raises(onetrip.DataError, match="NUL"):
        cursor.copy("COPY (SELECT %s, %s) TO STDOUT", ("", "a\0b"))
    with pytest.raises(onetrip.ProgrammingError, match="placeholders"):
        cursor.copy("COPY (SELECT %s) TO STDOUT", (1, 2))

    class Binary:
        pass

    onetrip.register_dumper(Binary, lambda _: (600, b"\0" * 16))
    with pytest.raises(onetrip.DataError, match="binary form only"):
        cursor.copy("COPY (SELECT %s) TO STDOUT", (Binary(),))
    connection.execute("SET client_encoding = SJIS")
    with pytest.raises(onetrip.ProgrammingError, match="client_encoding"):
        cursor.copy("COPY (SELECT %s) TO STDOUT", ("x",))
    connection.rollback()


def plain(value: Any) -> Any:
    """A value for psycopg: it has wrappers of its own."""
    if isinstance(value, onetrip.Json):
        kind = psycopg.types.json.Jsonb if isinstance(value, onetrip.Jsonb) else psycopg.types.json.Json
        return kind(value.obj)
    return [plain(one) for one in value] if isinstance(value, list) else value


def is_psycopgs(value: Any) -> bool:
    """Whether psycopg writes a value as well: it takes no list of several types."""
    return not isinstance(value, list) or len({type(one) for one in value if one is not None}) == 1


@pytest.mark.parametrize("form", ["text", "binary"])
def test_psycopg_gives_the_same_for_the_same_calls(
    server: dict[str, Any], connection: onetrip.Connection, row: Any, form: str
) -> None:
    values, found, types = row
    made = connection.execute(
        "SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' ORDER BY attnum)"
        " FROM pg_attribute WHERE attrelid = 'every'::regclass AND attnum > 0"
    )
    ((definition,),) = made.fetchall()
    with psycopg.connect(**server) as other:
        other.execute(f"CREATE TEMP TABLE every ({definition})")

        def written_and_read(who: Any, at: int, value: Any) -> list[Any]:
            who.execute("TRUNCATE every")
            with who.cursor().copy(f"COPY every (c{at}) FROM STDIN (FORMAT {form})") as copy:
                copy.set_types([types[at]])
                copy.write_row((value,))
            with who.cursor().copy(f"COPY every (c{at}) TO STDOUT (FORMAT {form})") as copy:
                copy.set_types([types[at]])
                return list(copy.rows())

        for at, value in enumerate(values):
            if is_psycopgs(value):
                ours, theirs = written_and_read(connection, at, value), written_and_read(other, at, plain(value))
                assert ours == theirs == [(found[at],)], repr(value)
        other.rollback()


def test_psycopg_writes_the_same_parameters(server: dict[str, Any], connection: onetrip.Connection) -> None:
    with psycopg.connect(**server) as other:
        for value in filter(is_psycopgs, (*EVERY, *QUOTES, -5)):
            data = []
            for who, one in ((connection, value), (other, plain(value))):
                connected: Any = who
                with connected.cursor().copy("COPY (SELECT %s AS v) TO STDOUT", (one,)) as copy:
                    data.append(b"".join(bytes(part) for part in copy))
            assert data[0] == data[1], repr(value)
        other.rollback()
    connection.rollback()


def test_event_loops_do_the_same(server: dict[str, Any]) -> None:
    async def main() -> None:
        async with await aio.connect(**server) as connection:
            await connection.execute("CREATE TEMP TABLE both_ways (id int8, v jsonb, at timestamptz)")
            cursor, before = connection.cursor(), connection.trips
            at = dt.datetime(2026, 1, 2, tzinfo=dt.timezone.utc)
            types = ["int8", "jsonb", "timestamptz"]
            async with cursor.copy("COPY both_ways FROM STDIN (FORMAT binary)") as copy:
                copy.set_types(types)
                for id in range(20_000):
                    await copy.write_row((id, JSON, at))
            assert (cursor.rowcount, connection.trips - before) == (20_000, 1)
            query = "COPY (SELECT * FROM both_ways WHERE id > %s ORDER BY id) TO STDOUT (FORMAT binary)"
            async with cursor.copy(query, (19_997,)) as copy:
                copy.set_types(types)
                assert [row async for row in copy.rows()] == [(19_998, JSON, at), (19_999, JSON, at)]
                assert await copy.read_row() is None
            assert cursor.rowcount == 2
            with pytest.raises(onetrip.DataError, match="value 1"):
                async with cursor.copy("COPY both_ways FROM STDIN (FORMAT binary)") as copy:
                    copy.set_types(types)
                    await copy.write_row((uuid.UUID(int=1), None, None))
            await connection.rollback()

    asyncio.run(main())
