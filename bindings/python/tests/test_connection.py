"""Connections, cursors, transactions and errors."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from typing import Any

import onetrip
import pytest
from onetrip import TransactionStatus, aio, errors


def test_the_first_statement_begins_a_transaction(connection: onetrip.Connection) -> None:
    assert connection.transaction_status == TransactionStatus.IDLE
    connection.execute("CREATE TABLE kept (id int)")
    assert connection.transaction_status == TransactionStatus.INTRANS
    connection.rollback()
    with pytest.raises(errors.UndefinedTable):
        connection.execute("SELECT * FROM kept")
    assert connection.transaction_status == TransactionStatus.INERROR
    with pytest.raises(errors.InFailedSqlTransaction):
        connection.execute("SELECT 1")
    with pytest.raises(onetrip.OperationalError, match="rolled"):
        connection.commit()
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_with_autocommit_each_statement_holds(connection: onetrip.Connection) -> None:
    connection.autocommit = True
    connection.execute("CREATE TEMP TABLE kept (id int)")
    assert connection.transaction_status == TransactionStatus.IDLE
    with pytest.raises(ZeroDivisionError), connection.transaction():
        connection.execute("INSERT INTO kept VALUES (1)")
        raise ZeroDivisionError
    with connection.transaction():
        connection.execute("INSERT INTO kept VALUES (2)")
        with pytest.raises(errors.DivisionByZero), connection.transaction():
            connection.execute("INSERT INTO kept VALUES (3)")
            connection.execute("SELECT 1/0")
    assert connection.execute("SELECT id FROM kept").fetchall() == [(2,)]


def test_the_end_of_a_with_commits_or_rolls_back(server: dict[str, Any]) -> None:
    with onetrip.connect(**server) as connection:
        connection.execute("CREATE TABLE held (id int)")
    assert connection.closed
    with pytest.raises(ZeroDivisionError), onetrip.connect(**server) as connection:
        connection.execute("DROP TABLE held")
        raise ZeroDivisionError
    with onetrip.connect(**server) as connection:
        assert connection.execute("SELECT count(*) FROM held").fetchone() == (0,)
        connection.execute("DROP TABLE held")


def test_an_error_says_what_and_where(connection: onetrip.Connection) -> None:
    connection.execute("CREATE TEMP TABLE one (id int CONSTRAINT alone UNIQUE); INSERT INTO one VALUES (1)")
    with pytest.raises(errors.UniqueViolation) as caught:
        connection.execute("INSERT INTO one VALUES (%s)", (1,))
    error = caught.value
    assert isinstance(error, onetrip.IntegrityError)
    assert (error.sqlstate, error.diag.constraint_name, error.retry) == ("23505", "alone", "safe")
    assert error.diag.message_detail == "Key (id)=(1) already exists."
    connection.rollback()
    with pytest.raises(onetrip.ProgrammingError) as wrong:
        connection.execute("SELECT nothing")
    assert (wrong.value.diag.statement_position, wrong.value.diag.severity) == ("8", "ERROR")
    assert errors.lookup("42703") is type(wrong.value)


def test_executemany_takes_values_of_several_sizes_and_nulls(connection: onetrip.Connection) -> None:
    connection.execute("CREATE TEMP TABLE many (id bigint, v numeric, t text)")
    rows = [(i, None if i % 3 else 1.5, "x" * (i % 7)) for i in range(1500)] + [(2**40, None, None)]
    cursor = connection.executemany("INSERT INTO many VALUES (%s, %s, %s)", rows)
    assert cursor.rowcount == 1501
    found = connection.execute("SELECT count(*), count(v), max(id) FROM many").fetchone()
    assert found == (1501, 500, 2**40)
    names = connection.execute("SELECT name FROM pg_prepared_statements WHERE statement LIKE 'INSERT INTO many%'")
    assert len(names.fetchall()) <= 2, "one for small numbers, one for large"


def test_executemany_gives_the_rows_of_returning(connection: onetrip.Connection) -> None:
    cursor = connection.cursor()
    cursor.executemany("SELECT %s + 1", [(1,), (2,)], returning=True)
    assert (cursor.fetchone(), cursor.nextset(), cursor.fetchone(), cursor.nextset()) == (
        (2,),
        True,
        (3,),
        None,
    )


def test_executemany_that_fails_leaves_nothing_outside_of_a_transaction(
    connection: onetrip.Connection,
) -> None:
    connection.autocommit = True
    connection.execute("CREATE TEMP TABLE many (id int PRIMARY KEY)")
    with pytest.raises(errors.UniqueViolation):
        connection.executemany("INSERT INTO many VALUES (%s)", [(1,), (2,), (1,), (3,)])
    assert connection.execute("SELECT count(*) FROM many").fetchone() == (0,)
    with pytest.raises(onetrip.ProgrammingError):
        connection.executemany("INSERT INTO many VALUES (%s)", [(1,), (1, 2)])
    assert connection.execute("SELECT 1").fetchone() == (1,), "the connection goes on"


def test_a_mistake_in_a_late_row_leaves_nothing_either(connection: onetrip.Connection) -> None:
    connection.autocommit = True
    connection.execute("CREATE TEMP TABLE many (id int)")
    rows = [(id,) for id in range(5000)]
    for wrong in [(1, 2), (object(),)]:
        with pytest.raises(onetrip.ProgrammingError):
            connection.executemany("INSERT INTO many VALUES (%s)", [*rows, wrong])
        assert connection.execute("SELECT count(*) FROM many").fetchone() == (0,)


def test_a_cursor_scrolls_and_describes(connection: onetrip.Connection) -> None:
    cursor = connection.execute("SELECT n, 'x'::varchar(7), 1.5::numeric(6,2) FROM generate_series(1, 10) n")
    assert [column.name for column in cursor.description or []] == ["n", "varchar", "numeric"]
    assert cursor.description[1].display_size == 7
    assert (cursor.description[2].precision, cursor.description[2].scale) == (6, 2)
    assert cursor.description[0].type_code == onetrip.NUMBER
    cursor.scroll(3)
    assert cursor.fetchone()[0] == 4
    cursor.scroll(0, "absolute")
    assert [row[0] for row in cursor] == list(range(1, 11))
    with pytest.raises(IndexError):
        cursor.scroll(1)


def test_a_cancel_interrupts_and_other_threads_run_meanwhile(connection: onetrip.Connection) -> None:
    connection.execute("SELECT 1")
    threading.Timer(0.2, connection.cancel).start()
    started = time.monotonic()
    with pytest.raises(errors.QueryCanceled):
        connection.execute("SELECT pg_sleep(30)")
    assert time.monotonic() - started < 25


def test_ctrl_c_interrupts_a_wait_and_leaves_the_connection_whole(connection: onetrip.Connection) -> None:
    connection.autocommit = True
    # What a shell runs in the background ignores SIGINT, and Python then leaves it ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    started = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            connection.execute("SELECT pg_sleep(30)")
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - started < 25
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_signal_whose_handler_raises_nothing_interrupts_no_wait(connection: onetrip.Connection) -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: seen.append(number))
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1)).start()
    try:
        assert connection.execute("SELECT pg_sleep(0.5), 1").fetchone() == ("", 1)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen == [signal.SIGUSR1]


def test_a_wait_that_is_too_long_is_cancelled(connection: onetrip.Connection) -> None:
    connection.set_timeout(0.2)
    with pytest.raises(errors.QueryCanceled):
        connection.execute("SELECT pg_sleep(30)")


def test_notices_and_notifications_are_heard(connection: onetrip.Connection) -> None:
    connection.autocommit = True
    connection.execute("DO $$ BEGIN RAISE NOTICE 'hello'; END $$")
    assert [notice.message_primary for notice in connection.notices()] == ["hello"]
    connection.execute("LISTEN here")
    connection.execute("NOTIFY here, 'x'")
    heard = next(connection.notifies(5))
    assert (heard.channel, heard.payload, heard.pid) == ("here", "x", connection.backend_pid)


def test_what_procedures_print_comes_along(server: dict[str, Any]) -> None:
    printing = "SELECT dbms_output.put_line('line ' || n) FROM generate_series(1, 3) AS n"

    async def awaiting() -> list[str]:
        async with await aio.connect(**server, autocommit=True) as connection:
            assert await connection.collect_output("dbms_output")
            before = connection.trips
            await connection.execute(printing)
            assert connection.trips - before == 1
            return connection.lines()

    with onetrip.connect(**server, autocommit=True) as connection:
        assert connection.collect_output() is False
        connection.execute("CREATE EXTENSION orafce")
        try:
            assert connection.collect_output("dbms_output")
            before = connection.trips
            connection.execute(printing)
            connection.execute("DO $$ BEGIN RAISE NOTICE 'and this'; END $$")
            assert connection.lines() == ["line 1", "line 2", "line 3", "and this"]
            assert (connection.trips - before, connection.lines()) == (2, [])
            assert asyncio.run(awaiting()) == ["line 1", "line 2", "line 3"]
            with pytest.raises(ValueError, match="source"):
                connection.collect_output("paper")  # type: ignore[arg-type]
        finally:
            connection.execute("DROP EXTENSION orafce CASCADE")


def test_a_lost_connection_is_an_operational_error(server: dict[str, Any], connection: onetrip.Connection) -> None:
    with onetrip.connect(**server, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", (connection.backend_pid,))
    with pytest.raises(onetrip.OperationalError):
        connection.execute("SELECT 1")
        connection.execute("SELECT 1")
    assert connection.closed
    connection.close()
    with pytest.raises(onetrip.InterfaceError):
        connection.execute("SELECT 1")


def test_a_wrong_password_is_an_operational_error(server: dict[str, Any]) -> None:
    with pytest.raises(onetrip.OperationalError) as caught:
        onetrip.connect(**{**server, "password": "wrong"})
    assert caught.value.sqlstate == "28P01"
