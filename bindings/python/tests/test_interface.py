"""What users of psycopg expect: cursors of several kinds, values in binary, rows as they come, adapters, two phases."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import enum
import ipaddress
import socket
import threading
import uuid
from contextlib import aclosing, closing
from decimal import Decimal
from typing import Any

import onetrip
import pytest
from onetrip import aio, errors, rows
from onetrip.adapt import Dumper, Format, Loader
from onetrip.session import TransactionStatus
from onetrip.types.composite import CompositeInfo, register_composite
from onetrip.types.enum import EnumInfo, register_enum
from onetrip.types.json import set_json_dumps, set_json_loads
from onetrip.types.multirange import Int8Multirange, Multirange, MultirangeInfo, register_multirange
from onetrip.types.range import Int4Range, Range, RangeInfo, register_range

LONG = "SELECT i, repeat('x', 1000) FROM generate_series(1, 50000) AS i"

VALUES = [
    ("int2", "-7"), ("int4", "7"), ("int8", "-9000000000"), ("numeric", "12.50"), ("numeric", "NaN"), ("float4", "1.5"),
    ("float8", "-1e300"), ("bool", "t"), ("text", "häß"), ("varchar", "a"), ("bytea", "\\x00ff"),
    ("date", "2024-02-29"),
    ("time", "01:02:03.5"), ("timestamp", "2024-02-29 01:02:03"), ("timestamptz", "2024-02-29 01:02:03+02"),
    ("interval", "1 day 02:00:00"), ("uuid", "12345678-1234-5678-1234-567812345678"), ("json", '{"a": 1}'),
    ("jsonb", "[1, null]"), ("inet", "10.0.0.1"), ("cidr", "10.0.0.0/8"), ("int4[]", "{1,NULL,3}"),
    ("text[]", '{a,"b c"}'), ("date[]", "{2024-02-29}"),
    ("int4range", "[1,5)"), ("int8range", "empty"), ("numrange", "(,1.5]"),
    ("daterange", "[2024-01-01,)"), ("tsrange", '["2024-01-01 00:00:00","2024-01-02 00:00:00")'),
    ("int4multirange", "{[1,2),[4,)}"), ("datemultirange", "{}"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text"), VALUES)
def test_a_value_is_the_same_in_binary(connection: onetrip.Connection, kind: str, text: str) -> None:
    statement = f"SELECT %s::{kind}, NULL::{kind}"
    plain = connection.execute(statement, (text,)).fetchone()
    cursor = connection.cursor(binary=True)
    assert cursor.format == Format.BINARY
    assert repr(cursor.execute(statement, (text,)).fetchone()) == repr(plain)
    assert repr(connection.execute(statement, (text,), binary=True).fetchone()) == repr(plain)
    assert repr(cursor.execute(statement, (text,), binary=False).fetchone()) == repr(plain)


PARAMETERS = [
    1, 2**40, 2**70, 1.5, True, "häß", b"\0\xff", Decimal("1.50"), dt.date(2024, 2, 29), dt.time(1, 2, 3),
    dt.datetime(2024, 2, 29, 1, 2), dt.timedelta(days=1, seconds=2), uuid.UUID(int=5), ipaddress.ip_address("::1"),
    [1, None, 3], ["a", "b"], [], onetrip.Jsonb({"a": 1}), Int4Range(1, 5), Range(Decimal("1.5"), None, "(]"),
    Int8Multirange([Range(1, 2), Range(5, None)]), None,
]  # fmt: skip


@pytest.mark.parametrize("value", PARAMETERS, ids=repr)
@pytest.mark.parametrize("sign", ["t", "b"])
def test_a_parameter_means_the_same_by_each_placeholder(connection: onetrip.Connection, value: Any, sign: str) -> None:
    # What has no type of its own is given one.
    kinds = {"'häß'": "text", "['a', 'b']": "text[]", "[]": "int4[]", "None": "int4"}
    kind = kinds.get(repr(value)) or connection.execute("SELECT pg_typeof(%s)::text", (value,)).fetchone()[0]
    statement = f"SELECT %s::{kind}, %{sign}::{kind}, NULL::{kind}"
    plain, other, _ = connection.execute(statement, (value, value)).fetchone()
    assert repr(plain) == repr(other)


def test_text_in_binary_has_a_type(connection: onetrip.Connection) -> None:
    assert connection.execute("SELECT pg_typeof(%b)::text", ("a",)).fetchone() == ("text",)
    with pytest.raises(errors.IndeterminateDatatype):
        connection.execute("SELECT pg_typeof(%t)::text", ("a",))
    connection.rollback()
    assert connection.execute("SELECT %(a)b || %(a)b", {"a": "x"}).fetchone() == ("xx",)
    with pytest.raises(onetrip.ProgrammingError, match="one format"):
        connection.execute("SELECT %(a)b || %(a)t", {"a": "x"})


def test_what_is_not_known_in_binary_comes_as_bytes(connection: onetrip.Connection) -> None:
    assert connection.execute("SELECT '(1,2)'::point", binary=True).fetchone()[0] == bytes.fromhex(
        "3ff00000000000004000000000000000"
    )
    assert connection.execute("SELECT ROW(1, 'a'::text, NULL)", binary=True).fetchone() == ((1, "a", None),)
    table = connection.cursor(binary=True).execute("SELECT true AS yes, 7 AS n").fetch_arrow()
    assert table.to_pylist() == [{"yes": True, "n": 7}]


def test_rows_are_streamed(connection: onetrip.Connection) -> None:
    cursor = connection.cursor()
    before = connection.trips
    assert sum(1 for _ in cursor.stream(LONG)) == 50000
    assert connection.trips - before == 1
    assert list(cursor.stream("SELECT %s, i FROM generate_series(1, 2) AS i", ("a",))) == [("a", 1), ("a", 2)]
    assert list(connection.cursor(row_factory=rows.dict_row).stream("SELECT 1 AS a")) == [{"a": 1}]
    assert list(cursor.stream("SELECT i FROM generate_series(1, 0) AS i")) == []
    assert list(cursor.stream("SELECT 5::int8", binary=True)) == [(5,)]
    with pytest.raises(ValueError, match="size"):
        next(cursor.stream("SELECT 1", size=0))
    with pytest.raises(onetrip.ProgrammingError, match="no rows"):
        list(cursor.stream("CREATE TEMP TABLE streamed (a int)"))
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_stream_that_is_left_early_leaves_the_connection_usable(connection: onetrip.Connection) -> None:
    connection.autocommit = True
    for _ in range(3):
        with closing(connection.cursor().stream(LONG)) as stream:
            assert next(stream)[0] == 1
            with pytest.raises(onetrip.ProgrammingError, match="stream"):
                connection.execute("SELECT 1")
        assert connection.transaction_status == TransactionStatus.IDLE
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_rows_before_an_error_are_given_out(connection: onetrip.Connection) -> None:
    connection.autocommit = True
    seen = []
    with pytest.raises(errors.DivisionByZero):
        for (value,) in connection.cursor().stream("SELECT 1 / (3000 - i) FROM generate_series(1, 4000) AS i"):
            seen.append(value)
    assert len(seen) == 2999
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_stream_ends_with_its_connection(connection: onetrip.Connection) -> None:
    with pytest.raises(onetrip.OperationalError, match="closed"):
        for _ in connection.cursor().stream(LONG):
            connection.close()


def test_event_loops_stream_too(server: dict[str, Any]) -> None:
    async def run() -> None:
        async with await aio.connect(**server, autocommit=True) as connection:
            cursor = connection.cursor()
            assert [row[0] async for row in cursor.stream(LONG)] == list(range(1, 50001))
            for _ in range(3):
                async with aclosing(cursor.stream(LONG)) as stream:
                    assert (await anext(stream))[0] == 1
                    with pytest.raises(onetrip.ProgrammingError, match="stream"):
                        await connection.execute("SELECT 1")
                assert connection.transaction_status == TransactionStatus.IDLE
                assert await (await connection.execute("SELECT 1")).fetchone() == (1,)
            seen = []
            with pytest.raises(errors.DivisionByZero):
                async for (value,) in cursor.stream("SELECT 1 / (3000 - i) FROM generate_series(1, 4000) AS i"):
                    seen.append(value)
            assert len(seen) == 2999
            with pytest.raises(onetrip.ProgrammingError, match="no rows"):
                _ = [row async for row in cursor.stream("CREATE TEMP TABLE streamed (a int)")]

            # Other tasks wait for its end.
            stream = cursor.stream("SELECT i FROM generate_series(1, 3) AS i")
            await anext(stream)
            other = asyncio.ensure_future(connection.execute("SELECT 2"))
            await asyncio.sleep(0.05)
            assert not other.done()
            assert [row async for row in stream] == [(2,), (3,)]
            assert await (await other).fetchone() == (2,)

            # A task that is cancelled within one interrupts it.
            async def slow() -> None:
                async for _ in cursor.stream("SELECT i, pg_sleep(0.01) FROM generate_series(1, 100000) AS i"):
                    pass

            task = asyncio.ensure_future(slow())
            await asyncio.sleep(0.2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await (await connection.execute("SELECT 1")).fetchone() == (1,)

    asyncio.run(run())


def test_raw_and_client_cursors(connection: onetrip.Connection) -> None:
    raw = onetrip.RawCursor(connection)
    assert raw.execute("SELECT $2::text, $1::int, '%s'", (1, "a")).fetchone() == ("a", 1, "%s")
    with pytest.raises(TypeError):
        raw.execute("SELECT $1", {"a": 1})
    raw.execute("CREATE TEMP TABLE raw (a int, b text)")
    raw.executemany("INSERT INTO raw VALUES ($1, $2)", [(1, "x"), (2, None)])
    assert raw.rowcount == 2
    with pytest.raises(onetrip.ProgrammingError, match="values"):
        raw.executemany("INSERT INTO raw VALUES ($1, $2)", [(1, "x"), (2,)])
    connection.rollback()
    connection.cursor_factory = onetrip.ClientCursor
    cursor = connection.execute("SELECT %s; SELECT %s, %s", ("it's \\", 2, None))
    assert cursor.fetchall() == [("it's \\",)] and cursor.nextset() and cursor.fetchall() == [(2, None)]
    assert isinstance(cursor, onetrip.ClientCursor)
    assert cursor.mogrify("SELECT %s,%s%%", ("a'b", -5)) == "SELECT 'a''b', -5 %"
    assert cursor.mogrify("SELECT 1+%s-(%s)", (2, 3)) == "SELECT 1+ 2 -(3)"
    assert cursor.mogrify("SELECT %s::text, %s", (-5, 0.5)) == "SELECT (-5)::text, '0.5'::float8"
    assert cursor.mogrify("SELECT (%s)[1], %s[1]", ([1], [2])) == "SELECT ('{1}'::int4[])[1], ('{2}'::int4[]) [1]"
    assert cursor.mogrify("SELECT %s", (-(2**31),)) == "SELECT '-2147483648'::int4"
    with pytest.raises(onetrip.ProgrammingError, match="placeholder"):
        cursor.mogrify("SELECT '%s'", ("a",))
    cursor.execute("CREATE TEMP TABLE made (a int DEFAULT %s)", (7,))
    cursor.executemany("INSERT INTO made VALUES (%s)", [(1,), (2,)])
    assert cursor.rowcount == 2
    cursor.executemany("INSERT INTO made VALUES (%s)", [])
    assert cursor.rowcount == 0
    with pytest.raises(onetrip.NotSupportedError):
        cursor.execute("SELECT 1", binary=True)
    named = onetrip.RawServerCursor(connection, "named")
    assert named.execute("SELECT i FROM generate_series(1, $1) AS i", (3,)).fetchall() == [(1,), (2,), (3,)]


def test_statements_stay_prepared_as_asked(connection: onetrip.Connection) -> None:
    connection.autocommit = True
    known = "SELECT statement FROM pg_prepared_statements ORDER BY statement"

    def prepared() -> list[str]:
        found = connection.execute(known, prepare=False).fetchall()
        return [text for (text,) in found if "$1" in text]

    for _ in range(3):
        assert connection.execute("SELECT %s + 1", (1,), prepare=False).fetchone() == (2,)
    assert prepared() == []
    connection.execute("SELECT %s + 2", (1,))
    assert prepared() == ["SELECT $1 + 2"]
    connection.prepare_threshold = 2
    for runs in range(4):
        connection.execute("SELECT %s + 3", (1,))
        assert ("SELECT $1 + 3" in prepared()) == (runs >= 2)
    connection.prepare_threshold = None
    for _ in range(3):
        connection.execute("SELECT %s + 4", (1,))
    connection.execute("SELECT %s + 5", (1,), prepare=True)
    assert prepared() == ["SELECT $1 + 2", "SELECT $1 + 3", "SELECT $1 + 5"]
    with connection.pipeline():
        three = [connection.execute("SELECT %s + 6", (number,), prepare=False) for number in range(3)]
    assert [cursor.fetchone() for cursor in three] == [(6,), (7,), (8,)]


class Shout(Dumper):
    """Text in capitals."""

    def dump(self, obj: str) -> bytes | None:
        return obj.upper().encode() if obj else None


class Whisper(Loader):
    """Text with a sign after it."""

    def load(self, data: bytes) -> str:
        return bytes(data).decode() + "?"


def test_adapters_hold_for_what_they_are_registered_on(server: dict[str, Any], connection: onetrip.Connection) -> None:
    statement = "SELECT %s::text, %s::text[]"
    connection.adapters.register_dumper(str, Shout)
    assert connection.execute(statement, ("a", ["b", ""])).fetchone() == ("A", ["B", None])
    assert connection.execute("SELECT %(x)s::text", {"x": ""}).fetchone() == (None,)
    cursor = connection.cursor()
    cursor.adapters.register_loader("text", Whisper)
    assert cursor.execute(statement, ("a", ["b"])).fetchone() == ("A?", ["B?"])
    assert connection.execute(statement, ("a", ["b"])).fetchone() == ("A", ["B"])
    with onetrip.connect(**server, context=connection) as other:
        assert other.execute("SELECT %s::text", ("a",)).fetchone() == ("A",)
    with onetrip.connect(**server) as plain:
        assert plain.execute(statement, ("a", ["b"])).fetchone() == ("a", ["b"])
    many = connection.cursor()
    many.execute("CREATE TEMP TABLE shouted (a text)")
    many.executemany("INSERT INTO shouted VALUES (%s)", [("a",), ("",)])
    assert many.execute("SELECT a FROM shouted").fetchall() == [("A",), (None,)]
    assert connection.adapters.types["integer"].oid == 23 and connection.adapters.types.get_oid("int4[]") == 1007
    with pytest.raises(KeyError):
        connection.adapters.types.get_oid("nothing")


def test_adapters_hold_in_event_loops_too(server: dict[str, Any]) -> None:
    async def run() -> None:
        async with await aio.connect(**server, autocommit=True) as connection:
            connection.adapters.register_dumper(str, Shout)
            cursor = connection.cursor(binary=True)
            cursor.adapters.register_loader("text", Whisper)
            assert await (await cursor.execute("SELECT %s::text, 5", ("a",))).fetchone() == ("A?", 5)
            assert await (await cursor.execute("SELECT %s::text", ("a",), binary=False)).fetchone() == ("A?",)
            await cursor.executemany("SELECT %s::text", [("a",), ("b",)], returning=True)
            assert cursor.rowcount == 1 and cursor.nextset() and await cursor.fetchall() == [("B?",)]
            await cursor.set_result(0)
            assert await cursor.fetchall() == [("A?",)] and cursor.rownumber == 1
            await cursor.scroll(-1)
            assert await cursor.fetchone() == ("A?",)
            raw = aio.AsyncRawCursor(connection)
            assert await (await raw.execute("SELECT $1::int", (1,))).fetchone() == (1,)
            client = aio.AsyncClientCursor(connection)
            assert client.mogrify("SELECT %s", ("a",)) == "SELECT 'A'"
            await cursor.close()
            assert cursor.closed
            with pytest.raises(onetrip.InterfaceError):
                await cursor.execute("SELECT 1")

    asyncio.run(run())


class Mood(enum.Enum):
    """A registered enum."""

    SAD = 1
    FINE = 2


def test_types_of_the_database_go_in_and_come_out(connection: onetrip.Connection) -> None:
    connection.execute("CREATE TYPE mood AS ENUM ('SAD', 'FINE')")
    connection.execute("CREATE TYPE spot AS (x int, label text, mood mood)")
    connection.execute("CREATE TYPE span AS RANGE (subtype = text)")
    register_enum(EnumInfo.fetch(connection, "mood"), connection, Mood)
    register_composite(CompositeInfo.fetch(connection, "spot"), connection)
    register_range(RangeInfo.fetch(connection, "span"), connection)
    register_multirange(MultirangeInfo.fetch(connection, "span_multirange"), connection)
    span = Range("a b", 'c"d', "[]")
    for binary in (False, True):
        cursor = connection.cursor(binary=binary)
        assert cursor.execute("SELECT %s, pg_typeof(%s)::text", (Mood.SAD, Mood.SAD)).fetchone() == (Mood.SAD, "mood")
        assert cursor.execute("SELECT %s", ([Mood.SAD, None],)).fetchone() == ([Mood.SAD, None],)
        row = cursor.execute("SELECT ROW(1, 'a b', 'FINE')::spot, ARRAY[NULL::spot]").fetchone()
        assert row == ((1, "a b", Mood.FINE), [None]) and row[0].label == "a b"
        assert cursor.execute("SELECT %s, %s", (row[0], span)).fetchone() == (row[0], span)
        assert cursor.execute("SELECT %s", (Multirange([span]),)).fetchone() == (Multirange([span]),)


def test_json_by_functions_of_the_program(connection: onetrip.Connection) -> None:
    set_json_dumps(lambda obj: f'{{"is": "{obj}"}}', connection)
    set_json_loads(lambda text: len(text), connection)
    for binary in (False, True):
        cursor = connection.cursor(binary=binary)
        assert cursor.execute("SELECT %s->>'is', '[1]'::jsonb, '[1]'::json", (onetrip.Json(5),)).fetchone() == (
            "5",
            3,
            3,
        )


def test_a_named_cursor_scrolls_to_the_row_that_was_asked_for(connection: onetrip.Connection) -> None:
    for itersize in (1, 3, 10, 1000):
        cursor = connection.cursor("moved", scrollable=True)
        cursor.itersize = itersize
        cursor.execute("SELECT generate_series(0, 9)")
        for target, move, mode in ((2, 2, "relative"), (5, 2, "relative"), (3, -3, "relative"), (9, 9, "absolute")):
            cursor.scroll(move, mode)
            assert cursor.rownumber == target
            assert cursor.fetchone() == (target,), (itersize, target)
        assert cursor.fetchone() is None
        cursor.scroll(0, "absolute")
        assert cursor.fetchall() == [(number,) for number in range(10)]
        cursor.close()
    stolen = connection.execute("DECLARE stolen CURSOR FOR SELECT generate_series(1, 3)")
    assert stolen.statusmessage == "DECLARE CURSOR"
    assert connection.cursor("stolen", row_factory=lambda _: lambda row: None).fetchall() == [None, None, None]


def test_closing_twice_and_using_what_is_closed(connection: onetrip.Connection) -> None:
    connection.close()
    connection.close()
    connection.cancel()
    assert connection.info.status == 1 and connection.info.port
    for kind in (onetrip.OperationalError, onetrip.InterfaceError):
        with pytest.raises(kind, match="closed"):
            connection.execute("SELECT 1")


def test_a_pipeline_goes_on_after_an_error_that_was_heard(connection: onetrip.Connection) -> None:
    connection.autocommit = True
    with connection.pipeline() as pipeline:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        with pytest.raises(errors.UndefinedTable):
            connection.execute("SELECT * FROM nothing_here").fetchone()
        pipeline.sync()
        second = connection.execute("SELECT 2")
    assert second.fetchone() == (2,)
    with connection.pipeline() as pipeline:
        connection.execute("SELECT * FROM nothing_here")
        with pytest.raises(errors.UndefinedTable):
            pipeline.sync()


def test_transactions_in_two_phases_are_refused_where_the_server_has_none(connection: onetrip.Connection) -> None:
    xid = connection.xid(42, "gtrid", "bqual")
    assert str(xid) == "42_Z3RyaWQ=_YnF1YWw=" and onetrip.Xid.from_string(str(xid)) == xid
    assert onetrip.Xid.from_string("other") == onetrip.Xid(None, "other", None)
    with pytest.raises(ValueError, match="gtrid"):
        connection.xid(1, "x" * 65, "")
    connection.tpc_begin(xid)
    assert connection.transaction_status == TransactionStatus.INTRANS
    for refused in (connection.commit, connection.rollback, lambda: connection.tpc_begin("x")):
        with pytest.raises(onetrip.ProgrammingError):
            refused()
    connection.tpc_rollback()
    assert connection.transaction_status == TransactionStatus.IDLE
    with pytest.raises(onetrip.ProgrammingError):
        connection.tpc_prepare()
    connection.tpc_begin("it's")
    with pytest.raises(onetrip.NotSupportedError):
        connection.tpc_prepare()
    connection.rollback()
    assert connection.tpc_recover() == []
    assert connection.transaction_status == TransactionStatus.IDLE


def test_transactions_in_two_phases() -> None:
    from pgserver import PgServer

    async def awaited(keywords: dict[str, Any]) -> None:
        async with await aio.connect(**keywords) as connection:
            await connection.tpc_begin("awaited")
            await connection.execute("INSERT INTO phased VALUES (3)")
            await connection.tpc_prepare()
            assert [xid.gtrid for xid in await connection.tpc_recover()] == ["awaited"]
            await connection.tpc_commit()
            await connection.tpc_begin("given up")
            await connection.execute("INSERT INTO phased VALUES (4)")
            await connection.tpc_prepare()
            await connection.tpc_rollback()

    with PgServer(auth="trust", settings={"max_prepared_transactions": "5"}) as at:
        keywords: dict[str, Any] = {"host": at.host, "port": at.port, "user": at.user, "dbname": at.dbname}
        with onetrip.connect(**keywords) as connection:
            connection.execute("CREATE TABLE phased (a int)")
            connection.commit()
            connection.tpc_begin(connection.xid(1, "one", "two"))
            connection.execute("INSERT INTO phased VALUES (1)")
            connection.tpc_prepare()
            with pytest.raises(onetrip.ProgrammingError):
                connection.cancel()
            connection.close()
        with onetrip.connect(**keywords) as connection:
            (xid,) = connection.tpc_recover()
            assert (xid.format_id, xid.gtrid, xid.bqual, xid.database) == (1, "one", "two", at.dbname)
            connection.tpc_commit(xid)
            connection.tpc_begin("at once")
            connection.execute("INSERT INTO phased VALUES (2)")
            connection.tpc_commit()
            asyncio.run(awaited(keywords))
            assert connection.execute("SELECT a FROM phased ORDER BY a").fetchall() == [(1,), (2,), (3,)]


def test_notifications_are_waited_for(connection: onetrip.Connection, server: dict[str, Any]) -> None:
    connection.autocommit = True
    connection.execute("LISTEN here")
    assert list(connection.notifies(timeout=0)) == []
    for payload in "abc":
        connection.execute("SELECT pg_notify('here', %s)", (payload,))
    assert [heard.payload for heard in connection.notifies(stop_after=1)] == ["a", "b", "c"]

    async def run() -> None:
        async with await aio.connect(**server, autocommit=True) as waiting:
            await waiting.execute("LISTEN there")
            connection.execute("NOTIFY there, 'x'")
            assert [heard.payload async for heard in waiting.notifies(stop_after=1)] == ["x"]
            assert [heard async for heard in waiting.notifies(timeout=0.01)] == []

    asyncio.run(run())


def test_a_cancel_that_nobody_takes_is_given_up(server: dict[str, object]) -> None:
    """What stands in front of the server takes the connection of the request, and no more."""
    deaf = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener, onetrip.connect(**server) as direct:
        front = {**server, "host": "127.0.0.1", "port": listener.getsockname()[1]}
        relays: list[socket.socket] = []

        def relay() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                relays.append(client)
                if deaf.is_set():
                    continue
                to_server = socket.create_connection((str(server["host"]), int(str(server["port"]))))
                relays.append(to_server)
                for source, sink in ((client, to_server), (to_server, client)):
                    threading.Thread(target=pump, args=(source, sink), daemon=True).start()

        threading.Thread(target=relay, daemon=True).start()
        with onetrip.connect(**front) as connection:
            connection.cancel_safe(timeout=30)
            deaf.set()
            with pytest.raises(errors.CancellationTimeout):
                connection.cancel_safe(timeout=0.2)
            assert connection.execute("SELECT 1").fetchone() == (1,)
        assert direct.execute("SELECT 2").fetchone() == (2,)
        listener.close()
        for each in relays:
            each.close()


def pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
