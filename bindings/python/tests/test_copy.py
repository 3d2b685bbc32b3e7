"""COPY by the piece: data and rows, both ways, with and without an event loop; what errors, exceptions and a reader
that stops leave behind; and what waits in memory."""

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import io
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onetrip
import pytest
import uvloop
from onetrip import aio, errors

IN, OUT = "COPY copied FROM STDIN", "COPY copied TO STDOUT"
TABLE = "CREATE TEMP TABLE copied (id int, v text)"
IDLE, ACTIVE, FAILED = (onetrip.TransactionStatus(number) for number in (0, 2, 3))
ODD = "tab\t, line\n, return\r, back\\slash, \\N, \\."


@pytest.fixture
def table(connection: onetrip.Connection) -> onetrip.Connection:
    """A connection with an empty table `copied`."""
    connection.execute(TABLE)
    connection.commit()
    return connection


def count(connection: onetrip.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM copied").fetchall()[0][0])


def test_data_is_cut_anywhere_and_travels_in_one_trip(table: onetrip.Connection) -> None:
    cursor, before = table.cursor(), table.trips
    with cursor.copy(IN) as copy:
        for part in ("1\t", b"a\n2", bytearray(b"\tb"), memoryview(b"\n3\tc\n")):
            copy.write(part)
        copy.write("")
    assert (cursor.rowcount, table.trips - before) == (3, 1), "BEGIN and the data travel along"
    with cursor.copy(OUT) as copy:
        assert list(copy) == [b"1\ta\n", b"2\tb\n", b"3\tc\n"]
        assert copy.read() == b""
    assert (cursor.rowcount, table.transaction_status) == (3, ACTIVE)
    into = io.BytesIO()
    with cursor.copy("COPY copied TO STDOUT (FORMAT binary)") as copy:
        into.writelines(copy)
    with cursor.copy("COPY copied FROM STDIN (FORMAT binary)") as copy:
        shutil.copyfileobj(io.BytesIO(into.getvalue()), copy)
    assert cursor.rowcount == 3
    with cursor.copy(IN):
        pass
    assert (cursor.rowcount, count(table)) == (0, 6)


def test_rows_are_the_same_on_both_ways(table: onetrip.Connection) -> None:
    table.execute(
        "CREATE TEMP TABLE kinds (i int, t text, d date, n numeric, b bytea, a int[], j jsonb, f float8, l bool)"
    )
    row = (1, ODD, dt.date(2024, 2, 29), decimal.Decimal("1.50"), b"\0\\", [1, None], {"a": "\n"}, 0.1, True)
    nothing = (None,) * 9
    cursor = table.cursor()
    with cursor.copy("COPY kinds FROM STDIN") as copy:
        copy.write_row((*row[:6], onetrip.Jsonb(row[6]), *row[7:]))
        copy.write_row(list(nothing))
    assert table.execute("SELECT * FROM kinds").fetchall() == [row, nothing]
    with cursor.copy("COPY kinds TO STDOUT") as copy:
        copy.set_types(["int4", "text", "date", 1700, "bytea", "int4[]", "jsonb", "float8", "bool"])
        assert list(copy.rows()) == [row, nothing]
    with cursor.copy("COPY kinds (i, t) TO STDOUT") as copy:
        assert (copy.read_row(), copy.read_row(), copy.read_row()) == (("1", ODD), (None, None), None)
    with pytest.raises(onetrip.ProgrammingError, match="1 types were set"), cursor.copy("COPY kinds TO STDOUT") as copy:
        copy.set_types(["int4"])
        copy.read_row()


def memory(field: str) -> int:
    """What the kernel counts for this process, in bytes."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(next(line for line in status.splitlines() if line.startswith(field)).split()[1])


def test_data_is_never_held_whole(table: onetrip.Connection) -> None:
    def lines() -> Iterator[bytes]:
        for id in range(300_000):
            yield b"%d\t%s\n" % (id, b"x" * 190)

    cursor, size = table.cursor(), sum(map(len, lines()))
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here on
    before = memory("VmRSS")
    with cursor.copy(IN) as copy:
        for line in lines():
            copy.write(line)
    assert cursor.rowcount == 300_000
    with cursor.copy(OUT) as copy:
        assert sum(map(len, copy)) == size
    assert memory("VmHWM") - before < size // 4


@pytest.mark.parametrize("statement", [IN, "COPY nothing FROM STDIN"])
def test_what_the_server_refuses_is_its_error(table: onetrip.Connection, statement: str) -> None:
    wanted = errors.InvalidTextRepresentation if statement == IN else errors.UndefinedTable
    for rows in (1, 200_000):
        with pytest.raises(wanted) as caught, table.cursor().copy(statement) as copy:
            for _ in range(rows):
                copy.write_row(("no number", "x" * 20))
        assert caught.value.sqlstate is not None
        assert table.transaction_status == FAILED
        table.rollback()
    assert count(table) == 0


def test_an_exception_gives_the_data_up_and_says_why(table: onetrip.Connection) -> None:
    for rows in (0, 1, 20_000):
        with pytest.raises(ZeroDivisionError), table.cursor().copy(IN) as copy:
            for id in range(rows):
                copy.write_row((id, "x"))
            copy.write(str(1 // 0))
        assert table.transaction_status == (FAILED if rows else IDLE)
        table.rollback()
    table.autocommit = True
    with pytest.raises(ZeroDivisionError), table.cursor().copy(IN) as copy:
        copy.write_row((1, "x"))
        copy.write_row((1 // 0, "x"))
    assert (table.transaction_status, count(table)) == (IDLE, 0)


def test_who_stops_reading_leaves_the_connection_usable(table: onetrip.Connection) -> None:
    table.execute("INSERT INTO copied SELECT g, repeat('x', 100) FROM generate_series(1, 100000) g")
    table.commit()
    cursor = table.cursor()
    with cursor.copy(OUT) as copy:
        assert copy.read_row() == ("1", "x" * 100)
    assert (cursor.rowcount, table.transaction_status) == (100_000, ACTIVE), "the rest was thrown away"
    with (
        pytest.raises(ZeroDivisionError),
        cursor.copy("COPY (SELECT repeat('x', 4000), pg_sleep(0.01) FROM generate_series(1, 9999)) TO STDOUT") as copy,
    ):
        assert 1 // len(copy.read()[:0])
    assert table.transaction_status == FAILED, "it was cancelled"
    table.rollback()
    with (
        pytest.raises(errors.DivisionByZero),
        cursor.copy("COPY (SELECT 1 / (3 - g) FROM generate_series(1, 9) g) TO STDOUT") as copy,
    ):
        list(copy)
    table.rollback()
    assert count(table) == 100_000


def test_what_does_not_belong_together_is_refused(table: onetrip.Connection) -> None:
    cursor = table.cursor()
    with cursor.copy(IN) as copy:
        copy.write_row((1, "kept"))
        for mistake in (copy.read, table.commit, lambda: table.execute("SELECT 1"), lambda: list(copy.rows())):
            with pytest.raises(onetrip.ProgrammingError):
                mistake()
        with pytest.raises(TypeError):
            copy.write(1)  # type: ignore[arg-type]
        with pytest.raises(onetrip.ProgrammingError), table.cursor().copy(IN):
            pass
        assert table.trips > 0 and table.notices() == []
    assert cursor.rowcount == 1
    with cursor.copy(OUT) as copy, pytest.raises(onetrip.ProgrammingError, match="to be read|to read"):
        copy.write("1\ta\n")
    with pytest.raises(onetrip.ProgrammingError, match="block"):
        cursor.copy(IN).write("1\ta\n")
    assert copy.read() == b"", "it has been read"
    with pytest.raises(TypeError, match="once"), copy:
        pass
    with pytest.raises(onetrip.DatabaseError), cursor.copy("SELECT 1") as copy:
        copy.write("x")
    with pytest.raises(KeyError, match="nonesuch"), cursor.copy(OUT) as copy:
        copy.set_types(["integer", "nonesuch"])
    table.rollback()
    with pytest.raises(onetrip.DatabaseError):
        table.execute(IN)


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_event_loops_copy_the_same(server: dict[str, Any], run: Callable[[Any], None]) -> None:
    async def main() -> None:
        async with await aio.connect(**server) as connection:
            await connection.execute(TABLE)
            await connection.commit()
            cursor, before = connection.cursor(), connection.trips
            async with cursor.copy(IN) as copy:
                await copy.write("1\ta")
                await copy.write(b"\n")
                await copy.write_row((2, ODD))
            assert (cursor.rowcount, connection.trips - before) == (2, 1), "BEGIN and the data travel along"
            async with cursor.copy(OUT) as copy:
                copy.set_types(["int4", "text"])
                assert [row async for row in copy.rows()] == [(1, "a"), (2, ODD)]
                assert await copy.read() == b""
            async with cursor.copy(IN) as copy:
                for _ in range(100_000):
                    await copy.write_row((3, "x" * 100))
            assert cursor.rowcount == 100_000
            await connection.commit()
            wire, most, lines = connection._wire(), 0, 0
            async with cursor.copy(OUT) as copy:
                async for _ in copy:
                    lines += 1
                    if lines % 100 == 0:
                        await asyncio.sleep(0)
                        most = max(most, wire.copied_bytes)
            assert lines == cursor.rowcount == 100_002
            assert most < 1 << 20, "the server waits for who reads slowly"
            async with cursor.copy(OUT) as copy:
                await copy.read()
            assert (cursor.rowcount, connection.transaction_status) == (100_002, ACTIVE)
            assert await (await connection.execute("SELECT 7")).fetchone() == (7,)
            await connection.rollback()

    run(main())


def test_event_loops_hear_what_went_wrong(server: dict[str, Any]) -> None:
    async def fill(connection: aio.AsyncConnection, statement: str, rows: int, last: Any = "x") -> None:
        async with connection.cursor().copy(statement) as copy:
            for _ in range(rows):
                await copy.write_row((1, "x" * 50))
            await copy.write_row((last() if callable(last) else last, "x"))

    async def main() -> None:
        async with await aio.connect(**server) as connection:
            await connection.execute(TABLE)
            await connection.commit()
            for rows in (0, 50_000):
                for statement, wanted in (
                    (IN, errors.InvalidTextRepresentation),
                    ("COPY no FROM STDIN", errors.UndefinedTable),
                ):
                    with pytest.raises(wanted):
                        await fill(connection, statement, rows)
                    assert connection.transaction_status == FAILED
                    await connection.rollback()
                with pytest.raises(ZeroDivisionError):
                    await fill(connection, IN, rows + 1, lambda: 1 // 0)
                await connection.rollback()
            slow = "COPY (SELECT g, repeat('x', 1000), pg_sleep(0.001) FROM generate_series(1, 100000) g) TO STDOUT"

            async def read() -> None:
                async with connection.cursor().copy(slow) as copy:
                    async for _ in copy:
                        pass

            task = asyncio.create_task(read())
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert connection.transaction_status == FAILED, "it was cancelled on the server"
            await connection.rollback()
            with pytest.raises(errors.DivisionByZero):
                async with connection.cursor().copy(
                    "COPY (SELECT 1 / (3 - g) FROM generate_series(1, 9) g) TO STDOUT"
                ) as copy:
                    assert [piece async for piece in copy] == []
            await connection.rollback()
            with pytest.raises(onetrip.ProgrammingError):
                async with connection.cursor().copy(OUT) as copy:
                    await copy.write("1\ta\n")
            cursor = await connection.execute("SELECT count(*) FROM copied")
            assert await cursor.fetchone() == (0,)

    asyncio.run(main())
