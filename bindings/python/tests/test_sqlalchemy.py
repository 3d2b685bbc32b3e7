"""The SQLAlchemy dialects beyond the compliance suite: what a program gets, and what it costs in trips."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import logging
from decimal import Decimal
from typing import Any

import onetrip
import pytest
from pgserver import PgServer
from sqlalchemy import Column, Integer, MetaData, Table, Text, create_engine, insert, text
from sqlalchemy.dialects import postgresql as pg
from sqlalchemy.dialects.postgresql import HSTORE, INET, JSONB, Range
from sqlalchemy.engine import URL, Engine
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.ext.asyncio import create_async_engine


def url(server: dict[str, Any], driver: str = "onetrip") -> URL:
    parts = {"username": "user", "password": "password", "host": "host", "port": "port", "database": "dbname"}
    return URL.create(f"postgresql+{driver}", **{name: server[keyword] for name, keyword in parts.items()})


@pytest.fixture
def engine(server: dict[str, Any]) -> Any:
    engine = create_engine(url(server))
    yield engine
    engine.dispose()


def trips(engine: Engine, work: Any) -> int:
    with engine.connect() as connection:
        driver: onetrip.Connection = connection.connection.driver_connection  # type: ignore[assignment]
    before = driver.trips
    work()
    return driver.trips - before


def test_a_transaction_costs_a_trip_for_each_statement_and_one_for_its_end(engine: Engine) -> None:
    def work() -> None:
        with engine.begin() as connection:
            assert connection.scalar(text("SELECT :a + 1"), {"a": 1}) == 2
            assert connection.scalar(text("SELECT 3")) == 3

    assert trips(engine, work) == 3


def test_many_rows_are_inserted_in_one_trip(engine: Engine) -> None:
    table = Table("many_rows", MetaData(), Column("id", Integer, primary_key=True), Column("name", Text))
    table.create(engine)

    def work() -> None:
        with engine.begin() as connection:
            connection.execute(insert(table), [{"id": id, "name": f"n{id}"} for id in range(500)])
            assert connection.scalar(text("SELECT count(*) FROM many_rows")) == 500

    assert trips(engine, work) == 3
    with pytest.raises(IntegrityError), engine.begin() as connection:
        connection.execute(insert(table), [{"id": 1, "name": "again"}])
    table.drop(engine)


def test_rows_are_streamed_by_named_cursors(engine: Engine) -> None:
    with engine.connect() as connection:
        result = connection.execution_options(yield_per=100).execute(text("SELECT generate_series(1, 350)"))
        assert isinstance(result.cursor, onetrip.ServerCursor)
        assert sum(row[0] for row in result) == 350 * 351 // 2


def test_an_engine_has_its_own_json_and_inet(server: dict[str, Any]) -> None:
    parsed: list[str] = []

    def loads(written: str) -> Any:
        parsed.append(written)
        return json.loads(written)

    engine = create_engine(url(server), json_deserializer=loads, native_inet_types=False)
    with engine.connect() as connection:
        query = text("SELECT '{\"a\": 1}'::jsonb AS a, '::1'::inet AS b").columns(a=JSONB, b=INET)
        row = connection.execute(query).one()
    assert (row.a, row.b, parsed) == ({"a": 1}, "::1", ['{"a": 1}'])
    engine.dispose()


def test_a_connection_that_broke_is_replaced(server: dict[str, Any]) -> None:
    engine = create_engine(url(server), pool_pre_ping=True, isolation_level="REPEATABLE READ")
    with engine.connect() as connection:
        assert connection.scalar(text("SHOW transaction_isolation")) == "repeatable read"
        pid = connection.scalar(text("SELECT pg_backend_pid()"))
    with onetrip.connect(**server) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT pg_backend_pid()")) != pid
    with engine.connect() as connection, pytest.raises(DBAPIError) as caught:
        connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
    assert caught.value.connection_invalidated
    engine.dispose()


def test_other_connections_of_an_engine_hear_of_its_ddl(engine: Engine) -> None:
    metadata = MetaData()
    Table("widening", metadata, Column("a", Integer))
    with engine.connect() as one, engine.connect() as other:
        metadata.create_all(one)
        one.commit()
        read = text("SELECT * FROM widening")
        assert len(other.execute(read).keys()) == 1
        other.commit()
        metadata.drop_all(one)
        Table("widening", MetaData(), Column("a", Integer), Column("b", Integer)).create(one)
        one.commit()
        other.execute(text("SELECT 1"))
        assert len(other.execute(read).keys()) == 2, "in the middle of a transaction"
        other.commit()
        metadata.drop_all(one)
        one.commit()


def test_ranges_and_arrays_come_back_as_they_went(engine: Engine) -> None:
    day, moment = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 30)
    values: dict[str, tuple[Any, Any]] = {
        "int4": (pg.INT4RANGE, Range(1, 10)),
        "int8": (pg.INT8RANGE, Range(None, 2**40)),
        "num": (pg.NUMRANGE, Range(Decimal("1.5"), Decimal("2.5"), bounds="(]")),
        "day": (pg.DATERANGE, Range(day, None)),
        "moment": (pg.TSRANGE, Range(moment, moment + dt.timedelta(hours=1), bounds="[]")),
        "none": (pg.INT4RANGE, Range(empty=True)),
        "many": (pg.INT4MULTIRANGE, [Range(1, 3), Range(5, 8)]),
        "texts": (pg.ARRAY(Text), ["a", 'b"c', None]),
        "pairs": (pg.HSTORE, {"a": "1", "b": None}),
        "words": (pg.OIDVECTOR, [1, 2]) if hasattr(pg, "OIDVECTOR") else (Integer, 1),
    }
    with engine.begin() as connection:
        connection.execute(text("CREATE EXTENSION IF NOT EXISTS hstore"))
    table = Table("shapes", MetaData(), *[Column(name, kind) for name, (kind, _) in values.items()])
    with engine.connect() as connection:
        table.create(connection)
        connection.execute(insert(table), {name: value for name, (_, value) in values.items()})
        assert connection.execute(table.select()).one()._asdict() == {
            name: value for name, (_, value) in values.items()
        }
        found = connection.execute(table.select().where(table.c.int4.contains(5))).one()
        assert found.int4 == Range(1, 10)


def test_values_as_the_server_wrote_them_are_parameters(engine: Engine) -> None:
    table = Table("kept", MetaData(), Column("many", pg.INT4MULTIRANGE), Column("one", pg.INT4RANGE), prefixes=["TEMP"])
    row = {"many": [Range(1, 3), Range(5, 8)], "one": Range(1, 3)}
    with engine.connect() as connection:
        table.create(connection)
        connection.execute(insert(table), row)
        # A statement of text says nothing of types, so the client's own values come.
        many, one = connection.execute(text("SELECT many, one FROM kept")).one()
        found = connection.execute(table.select().where(table.c.many == many, table.c.one == one)).one()
        assert found._asdict() == row


@pytest.mark.parametrize("native", [True, False])
def test_hstore_is_dicts_by_the_client_or_by_sqlalchemy(server: dict[str, Any], native: bool) -> None:
    with onetrip.connect(**server, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS hstore")
    engine = create_engine(url(server), use_native_hstore=native)
    pairs = {"a": 'b"c', "none": None}
    table = Table("paired", MetaData(), Column("pairs", HSTORE), Column("all", pg.ARRAY(HSTORE)), prefixes=["TEMP"])
    for _ in range(2):  # the connection that looked for the type, and another one
        with engine.connect() as connection:
            table.create(connection)
            connection.execute(insert(table), {"pairs": pairs, "all": [pairs, {}]})
            assert connection.execute(table.select()).one() == (pairs, [pairs, {}])
            plain = connection.scalar(text("SELECT pairs FROM paired"))
            assert plain == pairs if native else isinstance(plain, str)
        engine.dispose()


def test_a_transaction_in_two_phases_has_an_id_of_the_driver() -> None:
    with PgServer(auth="trust", settings={"max_prepared_transactions": "5"}) as at:
        engine = create_engine(f"postgresql+onetrip://{at.user}@{at.host}:{at.port}/postgres")
        with engine.connect() as connection, engine.connect() as other:
            driver: Any = connection.connection.driver_connection
            transaction = connection.begin_twophase(driver.xid(42, "a", "b"))
            connection.execute(text("SELECT 1"))
            transaction.prepare()
            assert str(transaction.xid) in other.recover_twophase()
            other.rollback()
            transaction.rollback()
            assert str(transaction.xid) not in other.recover_twophase()
        engine.dispose()


@pytest.mark.parametrize("driver", ["onetrip", "onetrip_async"])
def test_notices_are_logged_where_sqlalchemys_dialects_log_them(
    server: dict[str, Any], driver: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        engine = create_async_engine(url(server, driver))
        async with engine.connect() as connection:
            await connection.execute(text("DO $$ BEGIN RAISE WARNING 'it is late'; END $$"))
        await engine.dispose()

    with caplog.at_level(logging.INFO, logger="sqlalchemy.dialects.postgresql"):
        asyncio.run(main())
    assert [record.getMessage() for record in caplog.records] == ["WARNING: it is late"]


def test_ranges_in_arrays_have_bounds_of_their_type(engine: Engine) -> None:
    moment = dt.datetime(2024, 7, 1, 12, tzinfo=dt.timezone.utc)
    values: dict[str, tuple[Any, Any]] = {
        "numbers": (pg.ARRAY(pg.INT4RANGE), [Range(1, 5), None, Range(empty=True)]),
        "several": (pg.ARRAY(pg.INT4MULTIRANGE, dimensions=1), [[Range(1, 3), Range(5, None)]]),
        "moments": (pg.ARRAY(pg.TSTZRANGE), [Range(moment, None)]),
        "moment": (pg.TSTZRANGE, Range(None, moment)),
        "day": (pg.DATERANGE, Range(dt.date(2024, 2, 3), None)),
    }
    table = Table("arrays", MetaData(), *[Column(name, kind) for name, (kind, _) in values.items()], prefixes=["TEMP"])
    with engine.connect() as connection:
        table.create(connection)
        connection.execute(insert(table), {name: value for name, (_, value) in values.items()})
        connection.execute(text("SET timezone TO 'Europe/Berlin'"))
        found = connection.execute(table.select()).one()
        assert found._asdict() == {name: value for name, (_, value) in values.items()}
        # Bounds are read as values of their type are, under the session's settings.
        assert str(found.moment.upper.tzinfo) == str(found.moments[0].lower.tzinfo) == "Europe/Berlin"
        connection.execute(text("SET DateStyle TO 'German'"))
        assert connection.execute(table.select().with_only_columns(table.c.day)).scalar() == values["day"][1]


@pytest.mark.parametrize("driver", ["onetrip", "onetrip_async"])
def test_one_url_serves_both_kinds_of_engines(server: dict[str, Any], driver: str) -> None:
    async def main() -> None:
        engine = create_async_engine(url(server, driver))
        async with engine.begin() as connection:
            assert await connection.scalar(text("SELECT :a || 'b'"), {"a": "a"}) == "ab"
            rows = [row[0] async for row in await connection.stream(text("SELECT generate_series(1, 30)"))]
            assert rows == list(range(1, 31))
            with pytest.raises(DBAPIError):
                async with connection.begin_nested():
                    await connection.execute(text("SELECT 1/0"))
            assert await connection.scalar(text("SELECT 1")) == 1
        await engine.dispose()

    asyncio.run(main())
