"""Small programs that end alike with this package and with psycopg."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import onetrip
import pytest
from onetrip import PipelineAborted, aio


@pytest.fixture(params=["onetrip", "psycopg"])
def module(request: pytest.FixtureRequest) -> Any:
    """The package that a program is for."""
    return onetrip if request.param == "onetrip" else pytest.importorskip(request.param)


@pytest.fixture
def opened(module: Any, server: dict[str, Any]) -> Iterator[Any]:
    """A connection of that package."""
    connection = module.connect(**server)
    yield connection
    connection.close()


def test_a_cursor_forgets_that_it_ran_many(opened: Any) -> None:
    opened.execute("CREATE TEMP TABLE t (id int PRIMARY KEY)")
    cursor = opened.cursor()
    with opened.pipeline():
        cursor.executemany("INSERT INTO t VALUES (%s)", [(1,), (2,)])
        cursor.execute("SELECT id FROM t")
        assert cursor.fetchall() == [(1,), (2,)]
        cursor.executemany("INSERT INTO t VALUES (%s)", [])
        cursor.execute("SELECT 3")
        assert cursor.fetchall() == [(3,)]


def test_a_factorys_type_may_be_named_where_it_is_defined(module: Any, opened: Any) -> None:
    rows = module.rows
    program = """
def upper(cursor) -> rows.RowMaker[dict]:
    names = [column.name.upper() for column in cursor.description]
    return lambda values: dict(zip(names, values))

kinds = (rows.RowFactory[dict], rows.AsyncRowFactory[dict], rows.BaseRowFactory[dict], rows.Row)
"""
    known: dict[str, Any] = {"rows": rows}
    exec(program, known)
    assert opened.cursor(row_factory=known["upper"]).execute("SELECT 1 AS a").fetchone() == {"A": 1}


def test_named_tuples_of_two_results_have_one_class(module: Any, opened: Any) -> None:
    cursor = opened.cursor(row_factory=module.rows.namedtuple_row)
    first, second, other = (cursor.execute(f"SELECT 1 AS {name}").fetchone() for name in ("a", "a", "b"))
    assert type(first) is type(second) is not type(other)


SAY = "CREATE FUNCTION pg_temp.say(text) RETURNS text LANGUAGE plpgsql AS $$BEGIN RAISE NOTICE '%', $1; RETURN $1; END$$"
NOTICE = "DO $$BEGIN RAISE NOTICE 'x'; END$$"


def test_handlers_hear_what_comes_in_blocks_copies_and_named_cursors(opened: Any) -> None:
    heard: list[str | None] = []
    opened.add_notice_handler(lambda notice: heard.append(notice.message_primary))
    opened.add_notify_handler(lambda notification: heard.append(notification.payload))
    opened.execute(SAY)
    with opened.pipeline() as pipeline:
        opened.execute(NOTICE)
    assert heard == ["x"]
    with opened.pipeline() as pipeline:
        opened.execute("SELECT pg_temp.say('a')").fetchall()
        assert heard == ["x", "a"]
        opened.execute("SELECT pg_temp.say('b')")
        (pipeline.process if hasattr(pipeline, "process") else pipeline.sync)()
    assert heard == ["x", "a", "b"]
    with opened.cursor().copy("COPY (SELECT pg_temp.say('c')) TO STDOUT") as copy:
        assert list(copy.rows()) == [("c",)]
    assert heard == ["x", "a", "b", "c"]
    with opened.cursor("named") as cursor:
        cursor.execute("SELECT pg_temp.say('d')")
        cursor.fetchall()
    assert heard == ["x", "a", "b", "c", "d"]
    opened.commit()
    opened.execute("LISTEN there")
    opened.commit()
    with opened.pipeline():
        opened.execute("NOTIFY there, 'e'")
        opened.commit()
    assert heard == ["x", "a", "b", "c", "d", "e"]


def test_handlers_of_asyncio_hear_them_too(server: dict[str, Any]) -> None:
    async def main() -> None:
        heard: list[str | None] = []
        async with await aio.connect(**server) as opened:
            opened.add_notice_handler(lambda notice: heard.append(notice.message_primary))
            opened.add_notify_handler(lambda notification: heard.append(notification.payload))
            async with opened.pipeline():
                await opened.execute(NOTICE)
            assert heard == ["x"]
            async with opened.pipeline() as pipeline:
                await opened.execute(NOTICE)
                await pipeline.process()
                assert heard == ["x", "x"]
            await opened.execute(SAY)
            async with opened.cursor().copy("COPY (SELECT pg_temp.say('c')) TO STDOUT") as copy:
                assert [row async for row in copy.rows()] == [("c",)]
            assert heard == ["x", "x", "c"]
            async with opened.cursor("named") as cursor:
                await cursor.execute("SELECT pg_temp.say('d')")
            assert heard == ["x", "x", "c", "d"]
            await opened.execute("LISTEN there")
            await opened.commit()
            async with opened.pipeline():
                await opened.execute("NOTIFY there, 'e'")
                await opened.commit()
            assert heard == ["x", "x", "c", "d", "e"]

    asyncio.run(main())


def timed(call: Callable[[], Any]) -> float:
    """How long a call takes, in seconds."""
    began = time.monotonic()
    call()
    return time.monotonic() - began


def in_thread(call: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Begins a call in a thread; its result or its error comes into the list."""
    came: list[Any] = []

    def run() -> None:
        try:
            came.append(call())
        except Exception as error:
            came.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, came


def test_what_is_known_waits_for_no_statement(module: Any, server: dict[str, Any]) -> None:
    opened = module.connect(**server, autocommit=True)
    thread, came = in_thread(lambda: opened.execute("SELECT pg_sleep(30)"))
    time.sleep(0.5)
    looks: list[Callable[[], Any]] = [
        lambda: opened.closed,
        lambda: opened.broken,
        lambda: opened.info.backend_pid,
        lambda: opened.info.dsn,
        lambda: opened.fileno(),
        lambda: repr(opened),
    ]
    assert sum(timed(look) for look in looks) < 5
    assert (opened.closed, opened.info.transaction_status, "[ACTIVE]" in repr(opened)) == (False, 1, True)
    assert timed(opened.close) < 5
    thread.join(5)
    assert isinstance(came[0], module.OperationalError) and opened.closed


def test_other_threads_wait_for_the_end_of_a_copy_and_of_rows(opened: Any) -> None:
    def count() -> Any:
        return opened.execute("SELECT count(*) FROM t").fetchone()

    opened.execute("CREATE TEMP TABLE t (id int)")
    with opened.cursor().copy("COPY t FROM STDIN") as copy:
        copy.write_row((1,))
        thread, came = in_thread(count)
        time.sleep(0.3)
        copy.write_row((2,))
        assert not came
    thread.join(10)
    assert came == [(2,)]
    stream = opened.cursor().stream("SELECT generate_series(1, 3)")
    assert next(stream) == (1,)
    thread, came = in_thread(count)
    time.sleep(0.3)
    assert list(stream) == [(2,), (3,)]
    thread.join(10)
    assert came == [(2,)]


def test_a_closed_connection_ends_the_wait_for_its_rows(server: dict[str, Any]) -> None:
    opened = onetrip.connect(**server, autocommit=True)
    stream = opened.cursor().stream("SELECT generate_series(1, 3)")
    assert next(stream) == (1,)
    thread, came = in_thread(lambda: opened.execute("SELECT 1"))
    time.sleep(0.3)
    opened.close()
    thread.join(10)
    assert isinstance(came[0], onetrip.OperationalError)
    with pytest.raises(onetrip.OperationalError):
        list(stream)


def test_connection_text_of_a_connection_opens_one_like_it(module: Any, server: dict[str, Any]) -> None:
    given = {**server, "host": "localhost", "sslmode": "disable", "connect_timeout": 7, "keepalives_idle": 5}
    with module.connect(**given, application_name="it") as opened:
        info = opened.info
        assert info.hostaddr in ("127.0.0.1", "::1") and info.host == "localhost"
        found = {name: info.get_parameters().get(name) for name in (*given, "application_name", "sslrootcert")}
        assert found == {
            "host": "localhost", "port": str(server["port"]), "user": server["user"], "dbname": server["dbname"],
            "sslmode": "disable", "connect_timeout": "7", "keepalives_idle": "5", "application_name": "it",
            "sslrootcert": None, "password": None,
        }  # fmt: skip
        with module.connect(info.dsn, password=server["password"]) as other:
            assert other.info.get_parameters() == info.get_parameters()
    with module.connect(**server) as opened:
        assert not {"sslmode", "connect_timeout", "passfile", "password"} & set(opened.info.get_parameters())


def test_connection_text_keeps_that_certificates_are_checked() -> None:
    (candidate,) = onetrip._native.addresses(
        "host=127.0.0.1 sslmode=verify-full sslrootcert=/there/root.crt password=p sslpassword=q passfile=/there/pass", []
    )
    target = dict(candidate.target())
    assert (target["sslmode"], target["sslrootcert"], target["passfile"]) == (
        "verify-full", "/there/root.crt", "/there/pass",
    )  # fmt: skip
    assert (target["password"], target["address"]) == ("p", "127.0.0.1") and "sslpassword" not in target


def test_each_result_is_read_from_its_beginning(opened: Any) -> None:
    cursor = opened.execute("SELECT 1; SELECT 2")
    assert (cursor.fetchall(), cursor.nextset(), cursor.fetchall()) == ([(1,)], True, [(2,)])
    cursor.set_result(0)
    assert (cursor.nextset(), cursor.fetchone()) == (True, (2,))


def test_a_named_cursor_does_not_know_how_many_rows_there_are(opened: Any) -> None:
    with opened.cursor("named") as cursor:
        cursor.execute("SELECT generate_series(1, 2500)")
        assert (cursor.rowcount, len(cursor.fetchmany(3)), cursor.rowcount) == (-1, 3, -1)
        assert (len(cursor.fetchall()), cursor.rowcount) == (2497, -1)


def test_binary_is_for_one_query_of_a_named_cursor(opened: Any) -> None:
    with opened.cursor("named") as cursor:
        cursor.execute("SELECT '(1,2)'::point", binary=True)
        assert (cursor.format, type(cursor.fetchone()[0])) == (0, bytes)
        cursor.execute("SELECT '(1,2)'::point")
        assert cursor.fetchone() == ("(1,2)",)


def test_a_size_of_zero_is_none(opened: Any) -> None:
    for cursor in (opened.cursor(), opened.cursor("named")):
        cursor.execute("SELECT generate_series(1, 5)")
        assert cursor.fetchmany(0) == [(1,)]
        cursor.arraysize = 2
        assert cursor.fetchmany(0) == [(2,), (3,)]
        cursor.close()


def test_an_empty_result_has_no_first_row(opened: Any) -> None:
    cursor = opened.execute("SELECT 1 WHERE false")
    for mode in ("relative", "absolute"):
        with pytest.raises(IndexError):
            cursor.scroll(0, mode)


def test_a_cursor_that_did_not_run_has_no_result(module: Any, opened: Any) -> None:
    cursors = [opened.cursor() for _ in range(3)]
    with pytest.raises(module.errors.DivisionByZero), opened.pipeline():
        for cursor, statement in zip(cursors, ("SELECT 1", "SELECT 1/0", "SELECT 2"), strict=True):
            cursor.execute(statement)
    for cursor in cursors[1:]:
        shown = (cursor.rowcount, cursor.description, cursor.nextset(), cursor.rownumber, cursor.statusmessage)
        assert shown == (-1, None, None, None, None)
    assert cursors[0].fetchone() == (1,)


def test_results_outlive_the_block_of_their_pipeline(module: Any, opened: Any) -> None:
    opened.execute("CREATE TEMP TABLE t (id int)")
    cursors = []
    for number in range(3):
        with opened.pipeline():
            cursors += [opened.execute("SELECT %s", (number,)), opened.execute("SELECT %s AS a", (number + 10,))]
    opened.cursor().executemany("INSERT INTO t VALUES (%s)", [(1,), (2,)])
    with opened.cursor("named") as named:
        named.execute("SELECT id FROM t ORDER BY id")
        assert named.fetchall() == [(1,), (2,)]
    with opened.pipeline(), opened.pipeline():
        cursors.append(opened.execute("SELECT 20"))
    with pytest.raises(KeyError), opened.pipeline():
        cursors.append(opened.execute("SELECT 21"))
        raise KeyError
    with pytest.raises(module.errors.DivisionByZero), opened.pipeline():
        cursors.append(opened.execute("SELECT 22"))
        opened.execute("SELECT 1/0")
    opened.rollback()
    with opened.pipeline() as pipeline:
        cursors.append(opened.execute("SELECT 23"))
        pipeline.sync()
        cursors.append(opened.execute("SELECT 24"))
    opened.close()
    assert [cursor.fetchone()[0] for cursor in cursors] == [0, 10, 1, 11, 2, 12, 20, 21, 22, 23, 24]
    assert [column.name for column in cursors[1].description] == ["a"]


def test_results_outlive_the_block_of_a_pipeline_of_asyncio_too(module: Any, server: dict[str, Any]) -> None:
    async def main() -> None:
        connect = aio.connect if module is onetrip else module.AsyncConnection.connect
        opened = await connect(**server)
        cursors = []
        for number in range(3):
            async with opened.pipeline():
                cursors += [await opened.execute("SELECT %s", (number,)), await opened.execute("SELECT 10")]
        async with opened.pipeline():
            async with opened.pipeline():
                cursors.append(await opened.execute("SELECT 20"))
        with pytest.raises(KeyError):
            async with opened.pipeline():
                cursors.append(await opened.execute("SELECT 21"))
                raise KeyError
        await opened.cursor().executemany("SELECT %s::int", [(1,), (2,)])
        async with opened.pipeline() as pipeline:
            cursors.append(await opened.execute("SELECT 23"))
            await pipeline.sync()
            cursors.append(await opened.execute("SELECT 24"))
        await opened.close()
        assert [(await one.fetchone())[0] for one in cursors] == [0, 10, 1, 10, 2, 10, 20, 21, 23, 24]

    asyncio.run(main())


def test_who_looks_at_a_failed_cursor_takes_no_error_away(connection: onetrip.Connection) -> None:
    with pytest.raises(onetrip.errors.DivisionByZero), connection.pipeline() as pipeline:
        connection.execute("SELECT 1/0")
        after = connection.execute("SELECT 2")
        pipeline.process()
        assert after.rowcount == -1
    with pytest.raises(PipelineAborted):
        after.fetchone()


def test_each_nan_is_a_nan(module: Any, opened: Any) -> None:
    from importlib import import_module

    one = import_module(f"{module.__name__}.types.range").Range
    for nan in (Decimal("NaN"), Decimal("sNaN")):
        row = opened.execute("SELECT %s::text, %s::text[], %s::numrange::text", (nan, [nan], one(nan, None))).fetchone()
        assert row == ("NaN", ["NaN"], "[NaN,)")


def test_text_with_a_nul_does_not_leave(module: Any, opened: Any) -> None:
    text = "a\0b"
    opened.execute("CREATE TEMP TABLE t (name text)")
    opened.commit()
    for value in (text, [text], (text, 1), type("Name", (str,), {})(text)):
        with pytest.raises(module.DataError, match="NUL") as caught:
            opened.execute("SELECT %s::text", (value,))
        assert caught.value.sqlstate is None
    with pytest.raises(module.DataError, match="NUL"):
        opened.cursor().executemany("INSERT INTO t VALUES (%s)", [(text,)])
    opened.rollback()
    with pytest.raises(module.DataError, match="NUL"), opened.cursor().copy("COPY t FROM STDIN") as copy:
        copy.write_row((text,))
    opened.rollback()
    assert opened.execute("SELECT %s::bytea", (text.encode(),)).fetchone() == (text.encode(),)


def test_intervals_are_read_however_they_are_written(both: tuple[Any, Any]) -> None:
    some = [[], ["1 year"], ["-3 years"], ["1 mon"], ["11 mons"], ["-1 mon"], ["1 day"], ["-2 days"], ["300000 days"]]
    clocks = ["", "04:05:06", "-04:05:06.7", "00:00:00.000001", "23:59:59.999999", "100:00:00", "-123456:07:08.09"]
    texts = [" ".join([*days, clock]) or "0" for days in some for clock in clocks]
    texts += ["1 year 2 mons -3 days -04:05:06.789", "-1 year -2 mons +3 days 04:05:06"]
    ours, theirs = both
    for style in ("postgres", "iso_8601"):
        for connection in both:
            connection.execute(f"SET IntervalStyle = {style}")
        query = "SELECT one::interval FROM unnest(%s::text[]) WITH ORDINALITY all_of_them(one, at) ORDER BY at"
        binary = ours.cursor(binary=True).execute(query, (texts,)).fetchall()
        assert binary == theirs.cursor(binary=True).execute(query, (texts,)).fetchall()
        if style == "postgres":
            assert ours.execute(query, (texts,)).fetchall() == theirs.execute(query, (texts,)).fetchall() == binary
    for connection in both:
        connection.execute("RESET IntervalStyle")
