"""Large values in parts: what comes along at which level, what reading costs in trips and memory, and that every byte
is right; with and without an event loop."""

from __future__ import annotations

import asyncio
import io
import shutil
from typing import Any

import onetrip
import pytest
from onetrip import LobColumn, aio, errors, rows

DATA = bytes(range(256)) * 4096  # a megabyte
TEXT = "Grüße, 世界! 🙂 " * 20_000  # characters of one to four bytes
PIECE = 64 * 1024
PAGE = LobColumn.of("page", "body", key="id")
SCAN = LobColumn.of("page", "scan", key="id")


@pytest.fixture
def pages(connection: onetrip.Connection) -> onetrip.Connection:
    """A connection with a table of two pages, the second with NULL."""
    connection.execute("CREATE TEMP TABLE page (id int PRIMARY KEY, body text, scan bytea)")
    connection.execute("INSERT INTO page VALUES (1, %s, %s), (2, NULL, NULL)", (TEXT, DATA))
    connection.commit()
    return connection


def test_the_narrowest_level_says_what_comes_along(server: dict[str, Any]) -> None:
    with onetrip.Pool(**server, lob_prefetch=0) as pool, pool.connection() as connection:
        oid = connection.create_large_object(DATA)
        connection.execute("CREATE TEMP TABLE doc AS SELECT %s::oid AS one, %s::oid AS other", (oid, oid))
        cursor = connection.execute("SELECT one, other FROM doc")
        ((one, other),) = cursor.fetch_lobs({"one": None, "other": LobColumn(prefetch=10)}, prefetch=-1)
        assert (one.length, one.memory, other.memory) == (None, 0, 10), "a statement, and a column of it"
        (one,) = connection.large_objects([oid])
        assert (one.length, one.memory) == (len(DATA), 0), "the pool"
        (one,) = connection.large_objects([oid], prefetch="auto")
        assert (one.length, one.memory) == (None, len(DATA)), "a call"
        connection.rollback()
    with onetrip.connect(**server, lob_prefetch=7) as connection:
        oid = connection.create_large_object(DATA)
        assert [one.memory for one in connection.large_objects([oid, oid])] == [7, 7]
        assert connection.large_values(SCAN, [], prefetch=3) == []
        connection.rollback()
    with onetrip.connect("postgres://{user}:{password}@{host}:{port}/{dbname}?lob_prefetch=-1".format(**server)) as it:
        assert it.large_objects([it.create_large_object(DATA)])[0].memory == 0
        it.rollback()


def test_words_that_say_nothing_are_refused(server: dict[str, Any], connection: onetrip.Connection) -> None:
    with pytest.raises(onetrip.OperationalError, match="lob_prefetch"):
        onetrip.connect(**server, lob_prefetch="4kB")
    with pytest.raises(onetrip.ProgrammingError, match="-2"):
        connection.large_objects([1], prefetch=-2)
    with pytest.raises(onetrip.ProgrammingError, match="all"):
        LobColumn(prefetch="all")._native(1)  # type: ignore[arg-type]
    with pytest.raises(onetrip.ProgrammingError, match="key, position, count"):
        LobColumn(read="SELECT substr(a, %(from)s, %(count)s) FROM t WHERE id = %(key)s")._native(1)
    with pytest.raises(onetrip.ProgrammingError, match="cannot be mixed"):
        LobColumn(read="SELECT substr(a, %s, %s) FROM t WHERE id = %s")._native(1)
    with pytest.raises(onetrip.ProgrammingError, match="no column 'b'"):
        connection.execute("SELECT 1 AS a").fetch_lobs({"b": None})


def test_a_thousand_large_objects_are_two_trips_for_rows_and_all(connection: onetrip.Connection) -> None:
    connection.execute(
        "CREATE TEMP TABLE many AS SELECT id, lo_from_bytea(0, decode(repeat(md5(id::text), 125), 'escape')) AS content"
        " FROM generate_series(1, 1000) AS id"
    )
    before = connection.trips
    cursor = connection.cursor(row_factory=rows.dict_row)
    found = cursor.execute("SELECT id, content FROM many ORDER BY id").fetch_lobs({"content": None})
    assert sum(row["content"].memory for row in found) <= 8 << 20
    assert [len(row["content"].read()) for row in found] == [4000] * 1000
    assert connection.trips - before == 2
    assert sum(row["content"].memory for row in found) == 0, "what was read is freed"
    before = connection.trips
    with connection.cursor("by_piece") as cursor:
        assert isinstance(cursor, onetrip.ServerCursor)
        cursor.itersize = 250
        cursor.execute("SELECT content FROM many")
        count = 0
        while some := cursor.fetch_lobs({"content": None}, size=250):
            count += sum(len(reader.read()) for (reader,) in some)
    assert (count, connection.trips - before) == (4_000_000, 4 + 4 + 1)
    connection.rollback()


def test_text_is_read_by_characters_and_bytea_by_bytes(pages: onetrip.Connection) -> None:
    body, nothing, nobody = pages.large_values(PAGE, [1, 2, 3], prefetch=10)
    assert (body.read(3), body.read(1), body.read(7)) == (TEXT[:3], TEXT[3], TEXT[4:11])
    assert (body.tell(), body.read(200_000), body.read()) == (11, TEXT[11:200_011], TEXT[200_011:])
    assert (body.length, body.read(), body.read(1)) == (len(TEXT), "", "")
    assert (nothing.read(), nobody.read(), nothing.length) == ("", "", 0)
    scan, nothing = pages.large_values(SCAN, [1, 2], prefetch=0)
    assert (scan.length, scan.memory, scan.read(5), scan.read()) == (len(DATA), 0, DATA[:5], DATA[5:])
    assert (nothing.length, nothing.read()) == (None, b"")
    (own,) = pages.large_values(
        LobColumn("SELECT substr(replace(body, '!', '%%'), %(position)s, %(count)s) FROM page WHERE id = %(key)s"),
        [1],
        -1,
    )
    assert (own.length, own.read()) == (None, TEXT.replace("!", "%"))


def test_what_was_fetched_is_freed_and_the_rest_continues_in_few_trips(pages: onetrip.Connection) -> None:
    oid = pages.create_large_object(DATA * 3)
    (reader,) = pages.large_objects([oid], prefetch=1000)
    before = pages.trips
    assert (reader.read(400), reader.memory) == (DATA[:400], 1000), "the buffer is freed when it was read"
    assert (reader.read(600), reader.memory, pages.trips - before) == (DATA[400:1000], 0, 0)
    rest, most = bytearray(), 0
    while part := reader.read(8192):
        rest += part
        most = max(most, reader.memory)
    assert rest == (DATA * 3)[1000:]
    assert most <= 16 * PIECE, "a little at a time is fetched ahead by a megabyte"
    assert pages.trips - before <= 7
    before = pages.trips
    (whole,) = pages.large_objects([oid], prefetch=-1)
    assert whole.read() == DATA * 3
    assert pages.trips - before == 2, "the first pieces with the length, and all others"


def test_what_a_failed_read_had_taken_is_read_again(pages: onetrip.Connection) -> None:
    read = "SELECT substr(body, %(position)s, CASE WHEN %(position)s > 1 THEN %(count)s / f.by ELSE %(count)s END) "
    pages.execute("CREATE TEMP TABLE f (by int)")
    pages.execute("INSERT INTO f VALUES (0)")
    pages.commit()
    (body,) = pages.large_values(LobColumn(read + "FROM page, f WHERE id = %(key)s"), [1], 100)
    assert body.read(40) == TEXT[:40]
    with pytest.raises(errors.DivisionByZero):
        body.read(200_000)
    pages.rollback()
    assert body.tell() == 40, "nothing was read"
    pages.execute("UPDATE f SET by = 1")
    assert body.read(200_000) == TEXT[40:200_040]
    assert body.seek(2**63 - 1) == 2**63 - 1
    assert body.read(1) == "", "no value is that long"
    pages.rollback()


def test_a_reader_is_a_file(pages: onetrip.Connection) -> None:
    (scan,) = pages.large_values(SCAN, [1], prefetch=0)
    assert scan.seek(-6, io.SEEK_END) == len(DATA) - 6
    assert scan.read() == DATA[-6:]
    assert (scan.seek(250), scan.read(10), scan.seek(-5, io.SEEK_CUR), scan.read(2)) == (
        250,
        DATA[250:260],
        255,
        b"\xff\0",
    )
    assert (scan.seek(len(DATA) + 9), scan.read(), scan.length) == (len(DATA) + 9, b"", len(DATA))
    for at in (900_000, 100_000, 500_000):
        scan.seek(at)
        assert (scan.read(10), scan.memory <= PIECE) == (DATA[at : at + 10], True), "elsewhere, little is fetched"
    scan.seek(0)
    buffered = io.BufferedReader(scan)  # type: ignore[type-var]
    assert buffered.read(300) == DATA[:300]
    buffered.detach()
    scan.seek(0)
    into = io.BytesIO()
    shutil.copyfileobj(scan, into)
    assert into.getvalue() == DATA
    with pytest.raises(ValueError, match="before the beginning"):
        scan.seek(-1)
    with scan:
        pass
    with pytest.raises(ValueError, match="closed"):
        scan.read()
    (unknown,) = pages.large_values(SCAN, [1], prefetch=-1)
    with pytest.raises(io.UnsupportedOperation):
        unknown.seek(0, io.SEEK_END)
    assert (unknown.seek(2 * len(DATA)), unknown.read(), unknown.length) == (2 * len(DATA), b"", len(DATA))


@pytest.mark.parametrize("autocommit", [True, False])
def test_values_are_written_in_parts(pages: onetrip.Connection, autocommit: bool) -> None:
    pages.autocommit = autocommit
    objects = "SELECT count(*) FROM pg_largeobject_metadata"
    before = pages.execute(objects).fetchall()
    with pages.large_value_writer(SCAN, 2) as writer:
        for _ in range(5):
            assert writer.write(DATA[:700_000]) == 700_000
        assert writer.tell() == 3_500_000
    with pages.large_value_writer(PAGE, 2) as writer:
        for at in range(0, len(TEXT), 1000):
            writer.write(TEXT[at : at + 1000])
    with pages.large_value_writer(PAGE, 1) as writer:
        writer.write("short")
    assert pages.execute("SELECT scan, body FROM page WHERE id = 2").fetchone() == (DATA[:700_000] * 5, TEXT)
    assert pages.execute("SELECT body FROM page WHERE id = 1").fetchone() == ("short",)
    assert pages.execute(objects).fetchall() == before, "what they were written by is gone"
    for data in ("short", TEXT * 4):
        with pytest.raises(onetrip.ProgrammingError, match="no row"), pages.large_value_writer(PAGE, 9) as writer:
            writer.write(data)
    with pytest.raises(TypeError), pages.large_value_writer(PAGE, 1) as writer:
        writer.write("a")
        writer.write(b"b")
    with pytest.raises(ZeroDivisionError), pages.large_value_writer(PAGE, 1) as writer:
        writer.write("x" * 2_000_000)
        writer.write("x" * (1 // 0))
    assert pages.execute("SELECT body FROM page WHERE id = 1").fetchone() == ("short",)
    assert pages.execute(objects).fetchall() == before, "what was half written is gone, in a transaction too"
    with pytest.raises(onetrip.ProgrammingError, match="no statement to write"):
        pages.large_value_writer(LobColumn(), 1)


def test_outside_of_a_transaction_a_writer_keeps_all_or_nothing(pages: onetrip.Connection) -> None:
    pages.autocommit = True
    oid = pages.create_large_object(b"first")
    with pytest.raises(ZeroDivisionError), pages.large_object_writer(oid, 5) as writer:
        writer.write(DATA * 2)
        writer.write(DATA[: 1 // 0])
    assert pages.transaction_status == onetrip.TransactionStatus.IDLE
    assert pages.large_objects([oid])[0].read() == b"first"
    with pages.large_object_writer(oid, 5) as writer:
        shutil.copyfileobj(io.BytesIO(DATA * 2), writer)
    assert pages.large_objects([oid])[0].read() == b"first" + DATA * 2
    with pytest.raises(errors.UndefinedObject), pages.large_object_writer(1) as writer:
        writer.write(b"x")
    with pytest.raises(TypeError):
        pages.large_object_writer(oid).write("text")


def test_event_loops_read_and_write_the_same(server: dict[str, Any]) -> None:
    async def main() -> None:
        async with await aio.connect(**server, lob_prefetch=0) as connection:
            await connection.execute("CREATE TEMP TABLE page (id int PRIMARY KEY, body text, scan bytea)")
            await connection.execute("INSERT INTO page VALUES (1), (2)")
            async with connection.large_value_writer(PAGE, 1) as text:
                for at in range(0, len(TEXT), 1000):
                    await text.write(TEXT[at : at + 1000])
            async with connection.large_value_writer(SCAN, 1) as scan:
                await scan.write(DATA * 3)
            cursor = await connection.execute("SELECT id AS body, id AS scan FROM page ORDER BY id")
            columns = {"body": LobColumn.of("page", "body", key="id", prefetch=5), "scan": SCAN}
            before = connection.trips
            (first, second) = await cursor.fetch_lobs(columns)
            assert connection.trips - before == 1
            body, bytes_ = first
            assert (body.memory, bytes_.memory, bytes_.length) == (len(TEXT[:5].encode()), 0, len(DATA) * 3)
            assert (await body.read(20), body.tell()) == (TEXT[:20], 20)
            assert await body.read() == TEXT[20:]
            assert await bytes_.read(9) + await bytes_.read() == DATA * 3
            assert (bytes_.seek(-3, io.SEEK_END), await bytes_.read()) == (len(DATA) * 3 - 3, DATA[-3:])
            assert [await one.read() for one in second] == ["", b""]
            async with body:
                pass
            with pytest.raises(ValueError, match="closed"):
                await body.read()
            with pytest.raises(onetrip.ProgrammingError, match="no row"):
                async with connection.large_value_writer(PAGE, 3) as text:
                    await text.write("nowhere")
            await connection.rollback()
            connection.autocommit = True
            oid = await connection.create_large_object(b"first")
            with pytest.raises(ZeroDivisionError):
                async with connection.large_object_writer(oid) as writer:
                    await writer.write(DATA * 2)
                    await writer.write(DATA[: 1 // 0])
            assert await (await connection.large_objects([oid], "auto"))[0].read() == b"first"
            async with connection.cursor("named") as named:
                connection.autocommit = False
                await named.execute("SELECT %s::oid AS content FROM generate_series(1, 5)", (oid,))
                assert [await one.read() for (one,) in await named.fetch_lobs({"content": None}, size=3)] == [
                    b"first"
                ] * 3
                assert len(await named.fetchall()) == 2

    asyncio.run(main())


def test_tasks_that_read_at_once_do_not_mix(server: dict[str, Any]) -> None:
    async def main() -> None:
        async with await aio.connect(**server) as connection:
            oids = [await connection.create_large_object(bytes([seed]) * 300_000) for seed in range(8)]
            readers = await connection.large_objects(oids, prefetch=-1)

            async def all_of(reader: aio.AsyncLobReader[bytes]) -> bytes:
                parts = []
                while part := await reader.read(10_000):
                    parts.append(part)
                return b"".join(parts)

            found = await asyncio.gather(*map(all_of, readers))
            assert found == [bytes([seed]) * 300_000 for seed in range(8)]
            await connection.rollback()

    asyncio.run(main())
