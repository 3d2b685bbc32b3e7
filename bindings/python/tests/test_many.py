"""One statement with many rows: each way writes the same, says which row failed, and keeps all or nothing."""

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import onetrip
import pytest
from onetrip import aio, errors

WAYS = ("auto", "pipeline", "unnest", "copy")
MANY = 2000
TABLE = """CREATE TABLE many (id int PRIMARY KEY CHECK (id >= 0), a numeric(10,2), b text, c bytea, d timestamptz,
    e bool, f float8, g jsonb, h int[], i bigint, j date)"""
INSERT = "INSERT INTO many (id, a, b, c, d, e, f, g, h, i, j) VALUES ({})".format(", ".join(["%s"] * 11))
KEYS = "INSERT INTO many (id) VALUES (%s)"
ALL = "SELECT md5(string_agg(many::text, '|' ORDER BY id)), count(*) FROM many"

# (way, begins a transaction) -> (rows that were changed or the error, trips, all rows there)
Run = Callable[[str, list[Any], str, bool], tuple[Any, int, Any]]


def row(id: int) -> tuple[Any, ...]:
    """Everything that text and COPY escape, NULLs, and integers of several sizes."""
    words = ["a\tb\nc", "\\N", '"\\,{}', "NULL", "", "\\.", "ü\r'x", "\\x41", None][id % 9]
    at = dt.datetime(2026, 11, 22, 1, 2, 3, id, tzinfo=dt.timezone.utc)
    number = [float(id) / 3, 1e300, float("inf"), float("nan"), -0.0, None][id % 6]
    return (
        id, decimal.Decimal(id) / 4, words, bytes([92, id % 251, 0]) if id % 2 else None, at, id % 3 == 0, number,
        onetrip.Jsonb({"a": [id, '"x"\n']}), [id, -id], id * 10**7, at.date() if id % 5 else None,
    )  # fmt: skip


@pytest.fixture(params=["blocking", "awaiting"])
def run(request: pytest.FixtureRequest, server: dict[str, Any], connection: onetrip.Connection) -> Iterator[Run]:
    """Runs `executemany` by each kind of connection, on the empty table `many`."""
    connection.execute("DROP TABLE IF EXISTS many")
    connection.execute(TABLE)
    connection.commit()

    def blocking(statement: str, rows: list[Any], by: Any, autocommit: bool) -> tuple[Any, int]:
        with onetrip.connect(**server, autocommit=autocommit) as own:
            cursor = own.cursor()
            try:
                cursor.executemany(statement, rows, by=by)
                return cursor.rowcount, own.trips
            except onetrip.Error as error:
                own.rollback()
                return error, own.trips

    async def awaiting(statement: str, rows: list[Any], by: Any, autocommit: bool) -> tuple[Any, int]:
        async with await aio.connect(**server, autocommit=autocommit) as own:
            cursor = own.cursor()
            try:
                await cursor.executemany(statement, rows, by=by)
                return cursor.rowcount, own.trips
            except onetrip.Error as error:
                await own.rollback()
                return error, own.trips

    def both(statement: str, rows: list[Any], by: str, autocommit: bool) -> tuple[Any, int, Any]:
        if request.param == "blocking":
            done, trips = blocking(statement, rows, by, autocommit)
        else:
            done, trips = asyncio.run(awaiting(statement, rows, by, autocommit))
        there = connection.execute(ALL).fetchone()
        connection.execute("TRUNCATE many")
        connection.commit()
        return done, trips, there

    yield both
    connection.rollback()
    connection.execute("DROP TABLE many")
    connection.commit()


@pytest.mark.parametrize("autocommit", [True, False])
def test_every_way_writes_the_same_rows(run: Run, autocommit: bool) -> None:
    rows = [row(id) for id in range(MANY)]
    written = []
    for way in WAYS:
        if way == "unnest":
            # Arrays cannot hold arrays; the other columns can go.
            done, *_ = run(INSERT, rows, way, autocommit)
            assert isinstance(done, onetrip.DataError) and done.row == 0
            continue
        done, _, there = run(INSERT, rows, way, autocommit)
        assert done == MANY, way
        written.append(there)
    assert written[0][1] == MANY
    assert all(there == written[0] for there in written)
    flat = INSERT.replace(" h,", "").replace("%s, ", "", 1)
    rows = [(*values[:8], *values[9:]) for values in rows]
    written = [run(flat, rows, way, autocommit)[2] for way in WAYS]
    assert written[0][1] == MANY and all(there == written[0] for there in written)


@pytest.mark.parametrize("autocommit", [True, False])
def test_the_row_that_failed_is_told_and_nothing_is_kept(run: Run, autocommit: bool) -> None:
    for way in WAYS:
        for at in (0, 1234, MANY - 1):
            keys = [(-1 if id == at else id,) for id in range(MANY)]
            failed, _, there = run(KEYS, keys, way, autocommit)
            assert isinstance(failed, errors.CheckViolation), way
            assert (failed.row, there[1]) == (at, 0), way


def test_a_row_that_does_not_fit_is_told_before_anything_holds(run: Run) -> None:
    for way in WAYS:
        rows = [(id,) if id != 1500 else (id, 7) for id in range(MANY)]
        failed, _, there = run(KEYS, rows, way, True)
        assert isinstance(failed, onetrip.ProgrammingError)
        assert (failed.row, there[1]) == (1500, 0), way


def test_many_rows_are_one_trip_and_auto_asks_in_one_more(run: Run) -> None:
    trips = {}
    for way in WAYS:
        few, trips[way, 50], _ = run(KEYS, [(id,) for id in range(50)], way, True)
        assert few == 50
        many, trips[way, MANY], _ = run(KEYS, [(id,) for id in range(MANY)], way, True)
        assert many == MANY
    assert [trips[way, 50] for way in WAYS] == [1, 1, 2, 1], "unnest has to know the types first"
    assert trips["auto", MANY] == 2


def test_auto_repeats_the_statement_where_that_could_differ(run: Run, connection: onetrip.Connection) -> None:
    connection.execute(
        "CREATE OR REPLACE FUNCTION counted() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN NEW.i := (SELECT count(*) FROM many); RETURN NEW; END'"
    )
    connection.execute("CREATE TRIGGER counts BEFORE INSERT ON many FOR EACH ROW EXECUTE FUNCTION counted()")
    connection.commit()
    rows = [(id,) for id in range(MANY)]
    assert run(KEYS, rows, "auto", True)[2] == run(KEYS, rows, "pipeline", True)[2]


TYPED: dict[str, tuple[list[Any], str]] = {
    # Type of the column: values, and how the third call sends them.
    "bool": ([True, False, None], "COPY"),
    "int4": ([-(2**31), 2**31 - 1, 0, None], "COPY"),
    "int8": ([-(2**63), 2**63 - 1, 7], "COPY"),
    "bigint": ([-1, 0, 255, None], "COPY"),
    "smallint": ([-1, 0, 255, None], "INSERT"),
    "float8": ([0.1, -0.0, float("inf"), float("nan"), None], "COPY"),
    "float4": ([0.1, 1e30, None], "INSERT"),
    "text": (["", "zwölf 🙂", "\\N", "a\tb\n\\.", None], "COPY"),
    "varchar(4)": (["", "four", "four   ", None], "COPY"),
    "char(4)": (["", "four", "x", None], "COPY"),
    "bytea": ([b"", b"\0\xff\\", None], "COPY"),
    "date": ([dt.date(1, 1, 1), dt.date(9999, 12, 31), None], "COPY"),
    "time": ([dt.time(), dt.time(23, 59, 59, 999999), None], "COPY"),
    "timestamp": ([dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999), None], "COPY"),
    "timestamp(3)": ([dt.datetime(2026, 1, 2, 3, 4, 5, 678500), None], "COPY"),
    "timestamptz": ([dt.datetime(2026, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=5, minutes=30))), None], "COPY"),
    "interval": ([dt.timedelta(), dt.timedelta(-1, 5, 7), None], "COPY"),
    "uuid": ([uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), None], "COPY"),
    "numeric(10,2)": ([decimal.Decimal("1.005"), decimal.Decimal("-7"), None], "INSERT"),
    "int4[]": ([[1, 2], [], [None, 3], None], "COPY"),
}


@pytest.mark.parametrize("name", TYPED)
def test_values_go_by_copy_where_they_have_the_columns_types(connection: onetrip.Connection, name: str) -> None:
    values, tag = TYPED[name]
    rows = [(id, values[id % len(values)]) for id in range(60)]
    found = []
    for by in ("pipeline", "auto"):
        connection.execute(f"CREATE TEMP TABLE typed_{by} (id int4, value {name})")
        connection.commit()
        cursor = connection.cursor()
        for _ in range(3):
            cursor.executemany(f"INSERT INTO typed_{by} (id, value) VALUES (%s, %s)", rows, by=by)
            connection.commit()
        found.append(connection.execute(f"SELECT id, value::text FROM typed_{by} ORDER BY 1, 2").fetchall())
        connection.execute(f"DROP TABLE typed_{by}")
        connection.commit()
    assert found[0] == found[1]
    assert len(found[1]) == 180
    assert (cursor.statusmessage or "").split()[0] == tag


def test_statements_that_are_no_plain_insertion(run: Run) -> None:
    update = "UPDATE many SET b = %s WHERE id = %s"
    assert run(update, [("x", id) for id in range(MANY)], "auto", True)[0] == 0
    assert run("INSERT INTO many (id) VALUES (7) ON CONFLICT DO NOTHING", [()] * 3, "auto", True)[0] == 1
    for way in ("unnest", "copy"):
        failed, *_ = run(update, [("x", 1)], way, True)
        assert isinstance(failed, onetrip.ProgrammingError) and failed.row is None
        assert run(KEYS, [], way, True)[0] == 0


def test_rows_by_name_and_rows_that_nobody_can_count(connection: onetrip.Connection) -> None:
    connection.execute("CREATE TEMP TABLE named (id int, name text)")
    insert = "INSERT INTO named (id, name) VALUES (%(id)s, %(name)s)"
    cursor = connection.cursor()
    for way in WAYS:
        cursor.executemany(insert, ({"name": f"n{id}", "id": id} for id in range(1500)), by=way)
        assert cursor.rowcount == 1500
    assert connection.execute("SELECT count(*), count(DISTINCT name) FROM named").fetchone() == (6000, 1500)
    with pytest.raises(ValueError, match="by has to be"):
        cursor.executemany(insert, [], by="pigeon")  # type: ignore[arg-type]
    with pytest.raises(onetrip.ProgrammingError, match="pipeline"):
        cursor.executemany(insert, [], by="copy", returning=True)


def test_an_open_transaction_is_left_to_its_owner(connection: onetrip.Connection) -> None:
    connection.execute("CREATE TEMP TABLE kept (id int PRIMARY KEY)")
    connection.commit()
    connection.execute("INSERT INTO kept VALUES (5000)")
    with pytest.raises(errors.UniqueViolation) as caught:
        connection.cursor().executemany(
            "INSERT INTO kept (id) VALUES (%s)", [(id % 1999,) for id in range(MANY)], by="unnest"
        )
    assert caught.value.row is None, "trying again would take the transaction's own work away"
    assert connection.transaction_status == onetrip.TransactionStatus.INERROR
    connection.rollback()


def test_a_task_that_is_cancelled_keeps_nothing(server: dict[str, Any]) -> None:
    async def main() -> None:
        async with await aio.connect(**server, autocommit=True) as connection:
            await connection.execute("CREATE TEMP TABLE slow (id int)")
            insert = "INSERT INTO slow SELECT %s FROM pg_sleep(0.05)"
            running = connection.cursor().executemany(insert, [(id,) for id in range(MANY)])
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(running, 0.3)
            count = await connection.execute("SELECT count(*) FROM slow")
            assert await count.fetchone() == (0,)

    asyncio.run(main())
