"""Modules and classes that programs of psycopg import, under the same names."""

from __future__ import annotations

import asyncio
import datetime as dt
import gc
import re
import warnings
from pathlib import Path
from typing import Any

import onetrip
import pytest
from onetrip import aio, errors, pq
from onetrip.adapt import AdaptersMap
from onetrip.postgres import types
from onetrip.types import TypeInfo
from onetrip.types.datetime import DateLoader, TimestampLoader, TimestamptzLoader
from onetrip.types.numeric import Float4, Int2, Int4, Int8, IntNumeric
from onetrip.types.range import Int8Range, Range, RangeDumper
from onetrip.types.string import TextLoader


def test_numbers_say_of_which_type_they_are(connection: onetrip.Connection) -> None:
    for number, name in (
        (Int2(1), "smallint"), (Int4(1), "integer"), (Int8(1), "bigint"), (IntNumeric(1), "numeric"),
        (Float4(1.5), "real"), ([Int2(1)], "smallint[]"), ([Int2(1), Int8(2)], "bigint[]"),
    ):  # fmt: skip
        asked = connection.execute("SELECT pg_typeof(%s)::text, %s", (number, number))
        assert asked.fetchone() == (name, number)
    assert repr(Int2(5)) == "Int2(5)"
    assert str(Float4(1.5)) == "1.5"


def test_loaders_leave_text_and_may_be_built_on(connection: onetrip.Connection) -> None:
    class Naive(TimestamptzLoader):
        def load(self, data: object) -> dt.datetime:
            return super().load(data).replace(tzinfo=None)

    connection.adapters.register_loader("jsonb", TextLoader)
    connection.adapters.register_loader("timestamptz", Naive)
    connection.execute("SET timezone TO 'Europe/Berlin'")
    row = connection.execute("SELECT '{\"a\": 1}'::jsonb, '2024-01-02 03:04:05.5+00'::timestamptz").fetchone()
    assert row == ('{"a": 1}', dt.datetime(2024, 1, 2, 4, 4, 5, 500000))
    # Bounds of ranges are such values, and those of lists of ranges.
    row = connection.execute("SELECT '[2024-01-02 03:00+00,)'::tstzrange, '{[2024-01-02 03:00+00,)}'::tstzmultirange")
    ranged, several = row.fetchone()
    assert ranged.lower == several[0].lower == dt.datetime(2024, 1, 2, 4)


@pytest.mark.parametrize(
    ("loader", "text", "value"),
    [
        (DateLoader, b"2024-02-29", dt.date(2024, 2, 29)),
        (TimestampLoader, b"2024-02-29 01:02:03.45", dt.datetime(2024, 2, 29, 1, 2, 3, 450000)),
        (
            TimestamptzLoader,
            b"2024-02-29 01:02:03+05:30",
            dt.datetime(2024, 2, 29, 1, 2, 3, tzinfo=dt.timezone(dt.timedelta(hours=5, minutes=30))),
        ),
    ],
)
def test_loaders_read_what_the_server_sends(loader: type, text: bytes, value: object) -> None:
    assert loader(0).load(text) == value
    with pytest.raises(onetrip.DataError):
        loader(0).load(b"infinity")


def test_a_range_of_plain_numbers_has_no_type_by_its_dumper() -> None:
    adapters = AdaptersMap(onetrip.adapters)
    adapters.register_dumper(Range, RangeDumper)
    assert adapters._dump(Range(1, 2), "s") == (0, "[1,2)")
    assert adapters._dump(Range(dt.date(2024, 1, 1)), "s") == (3912, "[2024-01-01,)")
    assert adapters._dump(Int8Range(1, 2), "s") == (3926, "[1,2)")


def test_a_named_cursor_may_write_parameters_into_its_text(connection: onetrip.Connection) -> None:
    from onetrip.client_cursor import ClientCursorMixin

    class Named(ClientCursorMixin, onetrip.ServerCursor):
        pass

    with Named(connection, "named") as cursor:
        cursor.execute("SELECT %s::int, %s", (1, "it's"))
        assert cursor.fetchall() == [(1, "it's")]


def test_numbers_of_libpq_and_types_are_found() -> None:
    assert pq.TransactionStatus.INTRANS == 2
    assert pq.Format.BINARY == 1
    assert types["timestamptz"].oid == 1184
    assert isinstance(types["timestamptz"], TypeInfo)


def test_connection_text_is_read_and_made() -> None:
    from onetrip.conninfo import conninfo_to_dict, make_conninfo

    assert conninfo_to_dict("postgres://ann@db.example/shop", port=5433, user=None) == {
        "host": "db.example", "user": "ann", "dbname": "shop", "port": 5433,
    }  # fmt: skip
    assert make_conninfo("dbname=shop") == "dbname=shop"
    made = make_conninfo("dbname=shop user=ann", dbname="it's a shop", password=None)
    assert conninfo_to_dict(made) == {"dbname": "it's a shop", "user": "ann"}
    assert (conninfo_to_dict(), make_conninfo()) == ({}, "")
    for wrong in ("colour=blue", "nothing at all"):
        with pytest.raises(onetrip.ProgrammingError):
            conninfo_to_dict(wrong)
    with pytest.raises(onetrip.ProgrammingError, match="colour"):
        make_conninfo("dbname=shop", colour="blue")


def test_programs_may_ask_what_there_is(connection: onetrip.Connection) -> None:
    can = onetrip.Capabilities()
    assert can.has_pipeline() and can.has_cancel_safe(check=True) and not can.has_encrypt_password()
    with pytest.raises(onetrip.NotSupportedError, match="encrypt_password"):
        can.has_encrypt_password(check=True)
    connection.adapters.register_loader('"char"', TextLoader)
    cursor = connection.execute(query="SELECT %s::int", params=(1,))
    cursor.executemany(query="SELECT %s", params_seq=[("a",)])
    assert [row for row in cursor.stream(query="SELECT 7")] == [(7,)]
    assert onetrip.ClientCursor(connection).mogrify(query="SELECT %s", params=(1,)) == "SELECT 1"


def test_empty_parameters_are_none(connection: onetrip.Connection) -> None:
    cursor = connection.execute("SELECT 1; SELECT '5 %%'", {})
    assert [result.fetchall() for result in cursor.results()] == [[(1,)], [("5 %",)]]
    with pytest.raises(onetrip.ProgrammingError):
        connection.execute("SELECT 1; SELECT 2", (1,))


def test_names_of_psycopg_are_there(connection: onetrip.Connection) -> None:
    from onetrip.copy import AsyncCopy, Copy
    from onetrip.types.hstore import Hstore

    assert (Copy, AsyncCopy) == (onetrip.Copy, onetrip.AsyncCopy) and Hstore == dict[str, str | None]
    assert onetrip.capabilities.has_pipeline() and onetrip.Pipeline.is_supported()
    assert isinstance(connection, onetrip.BaseConnection) and isinstance(connection.info, onetrip.ConnectionInfo)
    for value, text in ((1, "1"), ("it's", "'it''s'"), (onetrip.sql.Identifier("a"), '"a"')):
        assert onetrip.sql.as_string(value, connection) == text
        assert onetrip.sql.as_bytes(value) == text.encode()
    theirs = pytest.importorskip("psycopg")
    assert not set(theirs.__all__) - set(onetrip.__all__)


def test_how_many_statements_stay_prepared_is_said_when_connecting(server: dict[str, Any]) -> None:
    with onetrip.connect(**server) as plain, onetrip.connect(**server, statement_cache=7) as other:
        assert (plain.prepared_max, other.prepared_max) == (256, 7)
        with pytest.raises(onetrip.NotSupportedError, match="statement_cache"):
            plain.prepared_max = 5


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # asyncio warns of the socket, too
def test_a_connection_that_is_left_open_is_warned_of(server: dict[str, Any]) -> None:
    async def leave() -> None:
        with pytest.warns(ResourceWarning, match="AsyncConnection.* was left open"):
            await aio.connect(**server)
            gc.collect()

    with pytest.warns(ResourceWarning, match="Connection.* was left open"):
        onetrip.connect(**server)
        gc.collect()
    asyncio.run(leave())
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        onetrip.connect(**server).close()
        with pytest.raises(onetrip.OperationalError):
            onetrip.connect(**{**server, "password": "wrong"})
        gc.collect()


def test_each_sqlstate_has_psycopgs_exception_with_psycopgs_base() -> None:
    theirs = pytest.importorskip("psycopg.errors")

    def shown(kind: type) -> tuple[str, str, str | None]:
        return kind.__name__, kind.__mro__[1].__name__, getattr(kind, "sqlstate", None)

    known = theirs._sqlcodes
    assert len(known) > 500
    assert {key: shown(errors.lookup(key)) for key in known} == {key: shown(kind) for key, kind in known.items()}
    # Conditions that neither has: by their class.
    for sqlstate in ("08XYZ", "22XYZ", "28XYZ", "2AXYZ", "3BXYZ", "F0XYZ", "HVXYZ", "P0XYZ", "XXXYZ", "99XYZ"):
        ours = type(errors.from_native("server", "no", {"C": sqlstate}, "safe", None))
        assert ours.__name__ == theirs.get_base_exception(sqlstate).__name__
    names = {name for name, kind in vars(theirs).items() if isinstance(kind, type) and issubclass(kind, Exception)}
    assert not {name for name in names if not name.startswith("_")} - set(vars(errors)) - {"CancelledError"}


def test_stubs_say_which_base_an_exception_has() -> None:
    stub = (Path(errors.__file__).parent / "errors.pyi").read_text()
    said = dict(re.findall(r"^class (\w+)\((\w+)\): \.\.\.$", stub, re.MULTILINE))
    classes = [kind for kind in vars(errors).values() if isinstance(kind, type) and getattr(kind, "sqlstate", None)]
    assert {kind.__name__: kind.__mro__[1].__name__ for kind in classes}.items() <= said.items()
