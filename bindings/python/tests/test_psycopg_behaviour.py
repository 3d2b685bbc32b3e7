"""What psycopg's programs rely on, beyond names."""

from __future__ import annotations

import asyncio
import datetime as dt
import gc
import logging
import os
import select
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import onetrip
import pytest
from onetrip import errors, sql
from onetrip.adapt import Dumper, PyFormat
from onetrip.postgres import types
from onetrip.rows import tuple_row
from onetrip.session import TransactionStatus
from onetrip.types.composite import CompositeInfo, register_composite
from onetrip.types.datetime import DateDumper, DateLoader
from onetrip.types.enum import EnumInfo, register_enum
from onetrip.types.multirange import Multirange
from onetrip.types.numeric import DecimalBinaryDumper, Int2BinaryDumper
from onetrip.types.range import Range
from onetrip.types.string import StrBinaryDumper, StrDumper, StrDumperUnknown, TextLoader


class Doubled(StrDumper):
    def dump(self, obj: str) -> Any:
        return super().dump(obj * 2)

    def quote(self, obj: str) -> bytes:
        return b"'quoted'"


def test_dumpers_and_loaders_of_the_package_can_be_built_on(connection: onetrip.Connection) -> None:
    class Late(DateDumper):
        def dump(self, obj: dt.date) -> Any:
            return b"infinity" if obj == dt.date.max else super().dump(obj)

    class Open(DateLoader):
        def load(self, data: Any) -> dt.date:
            return dt.date.max if bytes(data) == b"infinity" else super().load(data)

    connection.adapters.register_dumper(dt.date, Late)
    connection.adapters.register_loader("date", Open)
    connection.adapters.register_dumper(str, Doubled)
    row = connection.execute("SELECT %s, %s, %s, %s", (dt.date.max, dt.date(2024, 1, 2), "ab", ["a", "b"])).fetchone()
    assert row == (dt.date.max, dt.date(2024, 1, 2), "abab", ["aa", "bb"])
    assert sql.Literal("ab").as_string(connection) == "'quoted'"
    assert Int2BinaryDumper(int).dump(5) == b"\0\5"
    assert DecimalBinaryDumper(Decimal).dump(Decimal(1)) == b"\0\1\0\0\0\0\0\0\0\1"


def test_adapters_tell_what_they_have() -> None:
    adapters = onetrip.adapters
    assert adapters.get_dumper(str, PyFormat.TEXT) is StrDumperUnknown
    assert adapters.get_dumper(str, PyFormat.BINARY) is StrBinaryDumper
    assert adapters.get_loader(25, 0) is TextLoader and adapters.get_loader(600, 0) is None
    for name in ("int2", "int8", "numeric", "float4", "text", "varchar", "name"):
        for form in (0, 1):
            found = adapters.get_dumper_by_oid(types[name].oid, form)
            assert (found.oid, found.format) == (types[name].oid, form)
    listed = adapters.get_dumper(list, PyFormat.TEXT)(list, None).upgrade([1, 2], PyFormat.TEXT)
    assert (listed.oid, listed.dump([1, 2])) == (types["int4"].array_oid, b"{1,2}")
    with pytest.raises(onetrip.ProgrammingError, match="object"):
        adapters.get_dumper(object, PyFormat.TEXT)


def test_literals_are_short(connection: onetrip.Connection) -> None:
    for value, text in (
        (dt.date(2024, 1, 2), "'2024-01-02'::date"), ([dt.time(1)], "'{01:00:00}'::time[]"), (-5, " -5"),
        (Decimal("-1.5"), " -1.5"), (0.5, "'0.5'::float8"), ("a'b", "'a''b'"), ("a\\", " E'a\\\\'"), (None, "NULL"),
        (["a b", "c", "null", ""], "'{\"a b\",c,\"null\",\"\"}'::text[]"), (Decimal("sNaN"), "'NaN'::numeric"),
        (Range(dt.date(2024, 1, 1), None), "'[2024-01-01,)'::daterange"),
    ):  # fmt: skip
        assert sql.quote(value) == text
    connection.execute('CREATE TYPE "a-b" AS (x text)')
    info = CompositeInfo.fetch(connection, '"a-b"')
    register_composite(info, connection)
    assert sql.Literal(info.python_type("c")).as_string(connection) == "'(c)'::\"a-b\""
    assert repr(sql.Placeholder("a", "t")) == "Placeholder('a', format=TEXT)"


def test_values_that_need_the_servers_type_have_none(connection: onetrip.Connection) -> None:
    connection.execute("CREATE TABLE spans (small int4range, large int8range, many int8multirange, all_of int4range[])")
    one, none = Range(1, 5), Range(empty=True)
    row = (one, one, Multirange([one]), [one, none])
    connection.execute("INSERT INTO spans VALUES (%s, %s, %s, %s)", row)
    assert connection.execute("SELECT * FROM spans").fetchall() == [row]
    assert connection.execute("SELECT %s = large FROM spans", (one,)).fetchone() == (True,)
    with connection.cursor().copy("COPY spans (small, many) FROM STDIN (FORMAT binary)") as copy:
        copy.write_row((none, Multirange([Range(None, None)])))
    found = connection.execute("SELECT small, many FROM spans WHERE large IS NULL").fetchone()
    assert found == (none, Multirange([Range(None, None)]))


def test_a_select_of_nothing_has_rows(connection: onetrip.Connection) -> None:
    cursor = connection.execute("SELECT FROM generate_series(1, 2)")
    assert (cursor.description, cursor.rowcount, cursor.fetchall()) == ([], 2, [(), ()])
    assert list(connection.cursor().stream("SELECT")) == [()]
    assert connection.execute("SET lock_timeout TO 0").description is None


@pytest.mark.parametrize("style", ["ISO", "Postgres", "SQL", "German"])
def test_days_beyond_python_are_named(connection: onetrip.Connection, style: str) -> None:
    connection.execute(f"SET DateStyle TO {style}, YMD")
    for value, words in (("-infinity", "small"), ("1000-01-01 BC", "small"), ("10000-01-01", "large")):
        for kind in ("date", "timestamp"):
            with pytest.raises(onetrip.DataError, match=f"{kind} too {words}"):
                connection.execute(f"SELECT %s::{kind}", (value,)).fetchone()
    if style != "ISO":
        with pytest.raises(NotImplementedError, match="DateStyle"):
            connection.execute("SELECT now()").fetchone()


def test_the_edge_of_pythons_years_is_read(connection: onetrip.Connection) -> None:
    connection.execute("SET TimeZone TO 'America/Chicago'")
    for binary in (False, True):
        (value,) = connection.execute("SELECT '9999-12-31 23:59:59-06'::timestamptz", binary=binary).fetchone() or ()
        assert (value.year, value.hour, value.tzinfo) == (9999, 23, ZoneInfo("America/Chicago"))
    with pytest.raises(onetrip.DataError, match="Europe/Rome"):
        connection.execute("SELECT %s", (dt.time(12, tzinfo=ZoneInfo("Europe/Rome")),))


def test_registering_on_a_cursor_makes_its_results_anew(connection: onetrip.Connection) -> None:
    cursor = connection.execute("SELECT 'a'::text; SELECT row('b'::text)")
    cursor.adapters.register_loader("text", lambda text: text + "!")
    assert cursor.fetchone() == ("a!",) and cursor.nextset() and cursor.fetchone() == (("b!",),)


def test_a_cursor_keeps_what_the_connection_had_when_it_was_made(connection: onetrip.Connection) -> None:
    before = connection.cursor()
    connection.adapters.register_loader("text", lambda text: text + "1")
    first = connection.cursor()
    connection.adapters.register_loader("text", lambda text: text + "2")
    connection.adapters.register_dumper(str, Doubled)
    for cursor, value in ((before, "a"), (first, "a1"), (connection.cursor(), "aa2")):
        assert cursor.execute("SELECT %s::text", ("a",)).fetchone() == (value,)


def test_a_connection_has_the_number_of_its_socket(connection: onetrip.Connection, server: dict[str, Any]) -> None:
    async def main() -> None:
        async with await onetrip.AsyncConnection.connect(**server) as other:
            assert os.fstat(other.fileno()).st_mode & 0o170000 == 0o140000
        with pytest.raises(onetrip.OperationalError):
            other.fileno()

    asyncio.run(main())
    connection.autocommit = True
    connection.execute("LISTEN news")
    with onetrip.connect(**server, autocommit=True) as other:
        other.execute("NOTIFY news")
    assert select.select([connection.fileno()], [], [], 20)[0]
    assert [heard.channel for heard in connection.notifies(timeout=5, stop_after=1)] == ["news"]
    connection.close()
    with pytest.raises(onetrip.OperationalError):
        connection.fileno()


def test_a_copy_writes_by_what_the_connection_has_registered(connection: onetrip.Connection) -> None:
    class Nothing(StrDumper):
        def dump(self, obj: str) -> Any:
            return super().dump(obj) if obj else None

    connection.execute("CREATE TEMP TABLE filled (a text, b bigint)")
    connection.adapters.register_dumper(str, Nothing)
    for form in ("text", "binary"):
        with connection.cursor().copy(f"COPY filled FROM STDIN (FORMAT {form})") as copy:
            copy.set_types(["character varying", "bigint"])
            copy.write_row(("", 1))
    assert connection.execute("SELECT a, b FROM filled").fetchall() == [(None, 1)] * 2


def test_composites_are_made_and_written_by_functions(
    connection: onetrip.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    class Card:
        def __init__(self, *, title: str, price: int) -> None:
            self.title, self.price = title, price

    connection.execute("CREATE TYPE card AS (title text, price int)")
    info = CompositeInfo.fetch(connection, "card")
    register_composite(
        info,
        connection,
        Card,
        make_object=lambda values, info: Card(**dict(zip(info.field_names, values, strict=True))),
        make_sequence=lambda card, info: [getattr(card, name) for name in info.field_names],
    )
    assert not caplog.records
    for binary in (False, True):
        (card,) = connection.execute("SELECT %s", (Card(title="a b", price=5),), binary=binary).fetchone() or ()
        assert (type(card), card.title, card.price) == (Card, "a b", 5)
    with caplog.at_level(logging.WARNING):
        register_composite(info, connection, Card)
    assert "make_sequence" in caplog.text
    with pytest.raises(TypeError, match="make_sequence"):
        connection.execute("SELECT %s", (Card(title="a", price=5),))


def test_an_enum_is_cast_by_its_name(connection: onetrip.Connection) -> None:
    import enum

    class Mood(enum.Enum):
        GOOD = 1

    connection.execute("CREATE TYPE \"Mood\" AS ENUM ('GOOD')")
    register_enum(EnumInfo.fetch(connection, '"Mood"'), connection, Mood)
    assert onetrip.ClientCursor(connection).execute("SELECT %s", (Mood.GOOD,)).fetchone() == (Mood.GOOD,)
    info = onetrip.types.TypeInfo.fetch(connection, '"Mood"')
    info.register(connection)
    assert connection.execute("SELECT '{GOOD}'::\"Mood\"[]", binary=True).fetchone() == ([b"GOOD"],)


def test_a_boxs_array_has_semicolons(connection: onetrip.Connection) -> None:
    class Box:
        pass

    class BoxDumper(Dumper):
        oid = types["box"].oid

        def dump(self, obj: Box) -> bytes:
            return b"(3,4),(1,2)"

    connection.adapters.register_dumper(Box, BoxDumper)
    assert connection.execute("SELECT (%s::box[])::text", ([Box(), Box()],)).fetchone() == (
        "{(3,4),(1,2);(3,4),(1,2)}",
    )


def test_a_named_cursor_ends_with_its_transaction(connection: onetrip.Connection) -> None:
    cursor = connection.cursor("ends", scrollable=False)
    cursor.execute("SELECT generate_series(1, 3)")
    assert cursor.fetchone() == (1,)
    with pytest.raises(errors.ObjectNotInPrerequisiteState):
        cursor.scroll(-1)
    connection.commit()
    with pytest.raises(errors.InvalidCursorName):
        cursor.fetchone()
    connection.rollback()
    held = connection.cursor("holds", withhold=True)
    held.execute("SELECT generate_series(1, 2)")
    connection.commit()
    assert held.fetchall() == [(1,), (2,)]
    assert list(held.stream("SELECT 5")) == [(5,)]
    with pytest.warns(ResourceWarning, match="holds"):
        del held
        gc.collect()
    connection.execute("DECLARE taken CURSOR FOR SELECT 1")
    connection.cursor("taken").close()
    connection.execute("DECLARE taken CURSOR FOR SELECT 1")


def test_a_commit_in_a_block_raises_what_failed_before_it(connection: onetrip.Connection) -> None:
    with connection.pipeline():
        connection.execute("SELECT * FROM nowhere")
        with pytest.raises(errors.UndefinedTable):
            connection.commit()
        connection.rollback()
        cursor = connection.execute("SELECT 1")
        assert cursor.fetchone() == (1,)
        connection.execute("SELECT * FROM nowhere")
        connection.rollback()
        with pytest.raises(errors.UndefinedTable), connection.transaction():
            connection.execute("SELECT * FROM nowhere")
        with connection.transaction():
            cursor = connection.execute("SELECT 2")
        assert connection.transaction_status == TransactionStatus.IDLE
    assert cursor.fetchone() == (2,)


def test_a_block_whose_connection_has_ended_says_so(server: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    connection = onetrip.connect(**server)
    with pytest.raises(ZeroDivisionError), connection.pipeline():
        connection.close()
        raise ZeroDivisionError
    assert "has ended" in caplog.text


def test_representations_show_where_things_stand(connection: onetrip.Connection) -> None:
    cursor = connection.cursor()
    assert "[IDLE]" in repr(connection) and "[no result]" in repr(cursor)
    with connection.transaction() as transaction:
        cursor.execute("SELECT 1")
        assert "[INTRANS]" in repr(transaction) and "[TUPLES_OK]" in repr(cursor)
    with connection.pipeline() as pipeline:
        assert "[IDLE, pipeline=ON]" in repr(pipeline)
    with cursor.copy("COPY (SELECT 1) TO STDOUT") as copy:
        assert "[ACTIVE]" in repr(copy) and connection.transaction_status == TransactionStatus.ACTIVE
        copy.read()
    assert connection.transaction_status == TransactionStatus.INTRANS
    connection.close()
    assert "[BAD]" in repr(connection)
    with pytest.raises(onetrip.OperationalError):
        connection.autocommit = True


def test_small_things_are_as_in_psycopg(connection: onetrip.Connection, server: dict[str, Any]) -> None:
    cursor = connection.cursor()
    assert cursor.row_factory is tuple_row and connection.row_factory is tuple_row
    assert connection.execute("SELECT 1", binary=True).format == 1
    assert issubclass(onetrip.Cursor[Any].__origin__, onetrip.Cursor)
    connection.execute("CREATE TEMP TABLE rows_of (a int)")
    for kind in (onetrip.Cursor, onetrip.ClientCursor):
        one = kind(connection)
        one.executemany("INSERT INTO rows_of VALUES (%s)", [(1,), (2,)])
        assert one.statusmessage == "INSERT 0 1"
        assert one.execute("SELECT 1").statusmessage == "SELECT 1"
    for key in ("42P01", "42p01", "UNDEFINED_TABLE", "undefined_table"):
        assert errors.lookup(key) is errors.UndefinedTable
    with pytest.raises(onetrip.ProgrammingError) as failed:
        connection.execute("DO $$BEGIN RAISE EXCEPTION 'own' USING ERRCODE = 'PXX99'; END$$")
    assert failed.value.sqlstate == "PXX99" and failed.value.pgresult is None
    info = connection.info
    assert info.password == server["password"] and str(server["password"]) not in f"{info!r}{info.dsn}{connection!r}"
    assert "password" not in info.get_parameters()
    with pytest.raises(onetrip.OperationalError, match="nosuchmode"):
        onetrip.connect(**server, target_session_attrs="nosuchmode")
    with pytest.raises(onetrip.ProgrammingError, match="nosuchparam"):
        onetrip.connect(**server, nosuchparam=1)
    with pytest.raises(TypeError, match="sequence"):
        onetrip.RawCursor(connection).execute("SELECT $1", {"a": 1})


def test_an_unknown_time_zone_is_utc_and_told_once(
    connection: onetrip.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    connection.execute("SET TimeZone TO 'ODDZONE0'")
    assert (connection.info.timezone, connection.info.timezone) == (dt.timezone.utc,) * 2
    assert len(caplog.records) == 1 and "ODDZONE0" in caplog.text
