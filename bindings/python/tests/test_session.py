"""What transactions are like, who hears what the server says, and where a connection leads."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import onetrip
import pytest
from onetrip import IsolationLevel, aio, sql

SHOWN = "SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')"


def test_begin_carries_what_transactions_shall_be_like(connection: onetrip.Connection) -> None:
    assert (connection.isolation_level, connection.read_only, connection.deferrable) == (None, None, None)
    connection.isolation_level = IsolationLevel.SERIALIZABLE
    connection.set_read_only(True)
    connection.set_deferrable(True)
    before = connection.trips
    assert connection.execute(SHOWN).fetchone() == ("serializable", "on")
    assert connection.trips - before == 1
    with pytest.raises(onetrip.ProgrammingError, match="isolation_level"):
        connection.isolation_level = 2
    connection.rollback()
    with connection.pipeline():
        shown = connection.execute(SHOWN)
    assert shown.fetchone() == ("serializable", "on")
    connection.rollback()
    connection.set_isolation_level(None)
    connection.set_read_only(None)
    connection.set_deferrable(None)
    assert connection.execute(SHOWN).fetchone() == ("read committed", "off")
    connection.rollback()
    connection.set_autocommit(True)
    connection.isolation_level = 3
    with connection.transaction():
        assert connection.execute(SHOWN).fetchone() == ("repeatable read", "off")
    assert connection.execute(SHOWN).fetchone() == ("read committed", "off")
    with pytest.raises(ValueError, match="9"):
        connection.isolation_level = 9


def test_a_pools_connection_forgets_what_its_last_user_wished(server: dict[str, Any]) -> None:
    with onetrip.Pool(**server, max_size=1) as pool:
        with pool.connection() as first:
            first.isolation_level = IsolationLevel.SERIALIZABLE
            assert first.execute(SHOWN).fetchone() == ("serializable", "off")
        with pool.connection() as second:
            assert second.execute(SHOWN).fetchone() == ("read committed", "off")


def test_handlers_hear_notices_and_notifications(
    server: dict[str, Any], connection: onetrip.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    connection.autocommit = True
    notices: list[Any] = []
    notifies: list[Any] = []

    def broken(_: Any) -> None:
        raise ZeroDivisionError

    connection.add_notice_handler(broken)
    connection.add_notice_handler(lambda notice: notices.append(notice.message_primary))
    connection.add_notify_handler(notifies.append)
    with caplog.at_level(logging.ERROR, "onetrip"):
        connection.execute("DO $$ BEGIN RAISE NOTICE 'hello'; END $$")
    assert notices == ["hello"] and "handler" in caplog.text
    with pytest.raises(onetrip.Error):
        connection.execute("DO $$ BEGIN RAISE NOTICE 'before'; RAISE EXCEPTION 'x'; END $$")
    assert notices == ["hello", "before"]
    connection.execute("LISTEN here")
    with onetrip.connect(**server, autocommit=True) as other:
        other.execute("NOTIFY here, 'x'")
    connection.execute("SELECT 1")
    assert [(one.channel, one.payload) for one in notifies] == [("here", "x")]
    connection.remove_notify_handler(notifies.append)
    with pytest.raises(ValueError):
        connection.remove_notify_handler(notifies.append)


def test_info_says_where_a_connection_leads(server: dict[str, Any], connection: onetrip.Connection) -> None:
    info = connection.info
    assert (info.host, info.port, info.user, info.dbname) == (
        server["host"], server["port"], server["user"], server["dbname"],
    )  # fmt: skip
    assert (info.vendor, info.encoding, info.status.name) == ("PostgreSQL", "utf-8", "OK")
    assert info.server_version // 10_000 == 15 and info.backend_pid == connection.backend_pid
    assert "password" not in info.dsn and info.get_parameters()["host"] == server["host"]
    assert str(info.timezone) == "UTC" and info.pipeline_status.name == "OFF"
    with connection.pipeline():
        assert info.pipeline_status.name == "ON"
    connection.close()
    assert info.status.name == "BAD" and info.transaction_status.name == "UNKNOWN"


def test_the_same_with_asyncio(server: dict[str, Any]) -> None:
    async def main() -> None:
        async with await aio.connect(**server) as connection:
            heard: list[Any] = []
            connection.add_notice_handler(lambda notice: heard.append(notice.message_primary))
            await connection.set_isolation_level(IsolationLevel.REPEATABLE_READ)
            await connection.set_read_only(True)
            assert await (await connection.execute(SHOWN)).fetchone() == ("repeatable read", "on")
            await connection.execute("DO $$ BEGIN RAISE NOTICE 'hello'; END $$")
            assert heard == ["hello"]
            await connection.rollback()
            await connection.set_autocommit(True)
            assert connection.info.dbname == server["dbname"]
            assert connection.info.backend_pid == connection.backend_pid
            cursor = await connection.execute(sql.SQL("SELECT {}; SELECT 2").format(1))
            assert [await one.fetchall() async for one in cursor.results()] == [[(1,)], [(2,)]]

    asyncio.run(main())


def test_statements_are_put_together_from_parts(connection: onetrip.Connection) -> None:
    name = 'odd "name"; --'
    connection.execute(sql.SQL("CREATE TEMP TABLE {} (id int, note text)").format(sql.Identifier(name)))
    insert = sql.SQL("INSERT INTO {table} ({columns}) VALUES ({values})").format(
        table=sql.Identifier(name),
        columns=sql.SQL(", ").join(map(sql.Identifier, ("id", "note"))),
        values=sql.SQL(", ").join([sql.Placeholder(), sql.Placeholder()]),
    )
    connection.execute(insert, (1, "x"))
    connection.cursor().executemany(insert, [(2, "y")])
    select = sql.SQL("SELECT note FROM {} WHERE id = {} OR note = {}").format(sql.Identifier(name), 2, "it's \\")
    assert connection.execute(select).fetchall() == [("y",)]
    assert connection.execute(b"SELECT 1").fetchone() == (1,)
    with connection.cursor().copy(sql.SQL("COPY {} TO STDOUT").format(sql.Identifier(name))) as copy:
        assert [row for row in copy] == [b"1\tx\n", b"2\ty\n"]
    assert repr(sql.SQL("a") + sql.Identifier("b", "c")) == "Composed([SQL('a'), Identifier('b', 'c')])"
    assert sql.Identifier("b", 'c"').as_string() == '"b"."c"""'
    assert sql.SQL("x") * 2 == sql.Composed([sql.SQL("x"), sql.SQL("x")]) and sql.NULL.as_string() == "NULL"
    assert (sql.Placeholder("a").as_string(), sql.Placeholder().as_string()) == ("%(a)s", "%s")
    for wrong in (lambda: sql.SQL(b"x"), lambda: sql.Identifier(), lambda: connection.execute(5)):  # type: ignore[arg-type]
        with pytest.raises(TypeError):
            wrong()
    for wrong in (lambda: sql.SQL("{}{0}").format(1), lambda: sql.SQL("{:x}").format(1), lambda: sql.Placeholder("(")):
        with pytest.raises(ValueError):
            wrong()


def test_results_of_a_script_can_be_gone_through(connection: onetrip.Connection) -> None:
    cursor = connection.execute("SELECT 1; SELECT 2; SELECT 3")
    assert [one.fetchall() for one in cursor.results()] == [[(1,)], [(2,)], [(3,)]]
    assert cursor.set_result(1).statusmessage == "SELECT 1"
    assert cursor.set_result(-1).fetchall() == [(3,)], "it is read from its beginning again"
    with pytest.raises(IndexError):
        cursor.set_result(3)
    cursor.execute("SELECT generate_series(1, 3)")
    assert (next(cursor), cursor.fetchone(), list(cursor)) == ((1,), (2,), [(3,)])
    with pytest.raises(StopIteration):
        next(cursor)
