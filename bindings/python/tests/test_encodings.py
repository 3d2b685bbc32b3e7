"""Text under another `client_encoding` than UTF8."""

from __future__ import annotations

import asyncio
from typing import Any

import onetrip
import pytest
from onetrip import aio, errors, sql

# Two bytes of UTF-8 each, and one of LATIN9, where the second has another number than in Unicode.
ODD = "ä€"


@pytest.fixture
def latin9(server: dict[str, Any]) -> Any:
    connection = onetrip.connect(**server, client_encoding="latin9")
    assert connection.info.encoding == "iso8859-15"
    connection.execute("CREATE TEMP TABLE told (a text)")
    yield connection
    connection.close()


def test_statements_parameters_and_values_arrive(latin9: onetrip.Connection) -> None:
    row = (ODD, 2, [ODD, None, "a"])
    for binary in (False, True):
        cursor = latin9.cursor(binary=binary)
        cursor.execute(f"SELECT '{ODD}' AS \"{ODD}\", length(%s), %s", (ODD, [ODD, None, "a"]))
        assert cursor.description is not None and cursor.description[0].name == ODD
        assert cursor.fetchall() == [row]
        assert cursor.execute("SELECT %t, length(%b), %t::text[]", (ODD, ODD, row[2])).fetchall() == [row]
    assert latin9.execute(f"SELECT 1; SELECT '{ODD}'").set_result(1).fetchone() == (ODD,)
    with pytest.raises(errors.UndefinedTable, match=ODD) as failed:
        latin9.execute(f'SELECT * FROM "{ODD}"')
    assert ODD in (failed.value.diag.message_primary or "")


@pytest.mark.parametrize("by", ["pipeline", "unnest", "copy"])
def test_many_rows_and_blocks_arrive(latin9: onetrip.Connection, by: Any) -> None:
    latin9.cursor().executemany("INSERT INTO told (a) VALUES (%s)", [(ODD,), ("a",)], by=by)
    with latin9.pipeline():
        cursor = latin9.execute("SELECT a, octet_length(a) FROM told WHERE a = %s", (ODD,))
    assert cursor.fetchall() == [(ODD, 5)]
    assert list(latin9.cursor().stream("SELECT a FROM told")) == [(ODD,), ("a",)]


@pytest.mark.parametrize("form", ["text", "binary"])
def test_copies_arrive(latin9: onetrip.Connection, form: str) -> None:
    cursor = latin9.cursor()
    with cursor.copy(f"COPY told FROM STDIN (FORMAT {form})") as copy:
        copy.set_types(["text"])
        copy.write_row((ODD,))
        if form == "text":
            copy.write(ODD + "\n")
    assert latin9.execute("SELECT DISTINCT a FROM told").fetchall() == [(ODD,)]
    with cursor.copy(f"COPY (SELECT a FROM told LIMIT 1) TO STDOUT (FORMAT {form})") as copy:
        copy.set_types(["text"])
        assert list(copy.rows()) == [(ODD,)]


def test_what_the_encoding_has_not_is_refused(latin9: onetrip.Connection) -> None:
    strange = "\N{SNOWMAN}"
    for refused in (
        lambda: latin9.execute("SELECT %s", (strange,)),
        lambda: latin9.execute(f"SELECT '{strange}'"),
        lambda: latin9.cursor().executemany("INSERT INTO told VALUES (%s)", [(strange,)]),
        lambda: onetrip.ClientCursor(latin9).mogrify("SELECT %s", (strange,)),
        lambda: sql.SQL(strange).as_bytes(latin9),
    ):
        with pytest.raises(UnicodeEncodeError):
            refused()
    assert sql.Literal(ODD).as_bytes(latin9) == f"'{ODD}'".encode("iso8859-15")
    latin9.execute("SET client_encoding TO euc_tw")
    with pytest.raises(onetrip.NotSupportedError, match="EUC_TW"):
        latin9.execute("SELECT %s", (ODD,))
    latin9.execute("SET client_encoding TO utf8")
    assert latin9.execute("SELECT %s::text", (strange,)).fetchone() == (strange,)


def test_text_in_no_encoding_is_bytes(connection: onetrip.Connection) -> None:
    connection.execute("SET client_encoding TO sql_ascii")
    for binary in (False, True):
        row = connection.execute("SELECT %s::text, %s::text[], 1", (ODD, [ODD]), binary=binary).fetchone()
        assert row == (ODD.encode(), [ODD.encode()], 1)


def test_event_loops_convert_the_same(server: dict[str, Any]) -> None:
    async def main() -> None:
        async with await aio.connect(**server) as connection:
            await connection.execute("SET client_encoding TO latin9")
            cursor = await connection.execute(f"SELECT '{ODD}', length(%s), %s", (ODD, [ODD]))
            assert await cursor.fetchall() == [(ODD, 2, [ODD])]
            await connection.execute("CREATE TEMP TABLE told (a text)")
            await connection.executemany("INSERT INTO told VALUES (%s)", [(ODD,)])
            with pytest.raises(UnicodeEncodeError):
                await connection.execute("SELECT %s", ("\N{SNOWMAN}",))
            async with connection.cursor().copy("COPY told TO STDOUT") as copy:
                assert [row async for row in copy.rows()] == [(ODD,)]

    asyncio.run(main())
