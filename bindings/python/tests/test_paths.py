"""The package on other ways to a database than PostgreSQL 15 next door: PostgreSQL 18, PgBouncer, onetrip's own
gateway with its remedies, and the embedded server."""

from __future__ import annotations

import asyncio
import os
import pwd
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import onetrip
import pytest
from onetrip import aio, errors
from pgserver import PgServer, free_port

SECONDS_MAX = 20.0
QUIET = subprocess.DEVNULL
BOUNCER = Path("/usr/sbin/pgbouncer")
PATHS = ("postgresql-18", "bouncer-session", "bouncer-transaction", "gateway", "embedded")


@contextmanager
def running(command: list[Any], port: int, **options: Any) -> Iterator[None]:
    """A program, once it listens."""
    process = subprocess.Popen(command, stdin=QUIET, stdout=QUIET, stderr=QUIET, **options)
    try:
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert process.poll() is None and time.monotonic() < deadline, f"{command[0]} does not listen"
                time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait(SECONDS_MAX)


def bouncer(stack: ExitStack, server: dict[str, Any], mode: str) -> dict[str, Any]:
    """PgBouncer in front of a server; it refuses to run as root."""
    directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    port = free_port()
    (directory / "users").write_text('"{user}" "{password}"\n'.format(**server))
    (directory / "pgbouncer.ini").write_text(
        f"[databases]\n* = host={server['host']} port={server['port']}\n[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\npool_mode = {mode}\n"
        f"auth_type = scram-sha-256\nauth_file = {directory / 'users'}\n"
    )
    identity: dict[str, Any] = {}
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        for path in (directory, *directory.iterdir()):
            os.chown(path, nobody.pw_uid, nobody.pw_gid)
        identity = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    stack.enter_context(running([BOUNCER, directory / "pgbouncer.ini"], port, **identity))
    return {**server, "port": port}


@pytest.fixture(scope="module", params=PATHS)
def path(
    request: pytest.FixtureRequest, server: dict[str, Any], command: Path, whole_command: Path
) -> Iterator[tuple[str, dict[str, Any]]]:
    """A way to a database, and its keywords."""
    with ExitStack() as stack:
        if request.param == "postgresql-18":
            at = stack.enter_context(PgServer(version="18"))
            where = {"host": at.host, "port": at.port, "user": at.user, "password": at.password, "dbname": at.dbname}
        elif request.param.startswith("bouncer"):
            where = bouncer(stack, server, request.param.removeprefix("bouncer-"))
            if request.param == "bouncer-transaction":
                where["statement_cache"] = 0  # this release cannot keep its clients' statements apart
        elif request.param == "gateway":
            port = free_port()
            upstream = "postgres://{user}:{password}@{host}:{port}/{dbname}".format(**server)
            run = [command, "gateway", "--listen", f"127.0.0.1:{port}", "--upstream", upstream, "--remedies", "exact"]
            stack.enter_context(running(run, port))
            where = {**server, "port": port}
        else:
            port = free_port()
            file = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "data.sqlite"
            stack.enter_context(running([whole_command, "serve", file, "--listen", f"127.0.0.1:{port}"], port))
            where = {"host": "127.0.0.1", "port": port, "user": "ann", "dbname": "data"}
        yield request.param, where


@pytest.fixture
def connection(path: tuple[str, dict[str, Any]]) -> Iterator[onetrip.Connection]:
    """A connection that goes that way, with an empty table `way`."""
    with onetrip.connect(**path[1]) as connection:
        connection.execute("DROP TABLE IF EXISTS way")
        connection.execute("CREATE TABLE way (id int PRIMARY KEY, name text)")
        connection.commit()
        yield connection
        connection.rollback()


def test_statements_run_and_transactions_hold(connection: onetrip.Connection) -> None:
    connection.execute("INSERT INTO way VALUES (%s, %s)", (1, "nail"))
    connection.commit()
    connection.execute("UPDATE way SET name = %s WHERE id = %s", ("screw", 1))
    connection.rollback()
    assert connection.execute("SELECT id, name FROM way WHERE id = %s", (1,)).fetchall() == [(1, "nail")]
    connection.commit()
    with pytest.raises(errors.UniqueViolation):
        connection.execute("INSERT INTO way VALUES (1, 'again')")
    connection.rollback()
    with connection.transaction(), pytest.raises(errors.UniqueViolation), connection.transaction():
        connection.execute("INSERT INTO way VALUES (1, 'again')")
    assert connection.execute("SELECT count(*) FROM way").fetchone() == (1,)


def test_blocks_travel_together(connection: onetrip.Connection) -> None:
    before = connection.trips
    with connection.pipeline() as pipeline:
        for id in range(50):
            pipeline.execute("INSERT INTO way VALUES (%s, %s)", (id, f"n{id}"))
        found = pipeline.execute("SELECT count(*) FROM way")
        pipeline.commit()
    assert (found.fetchone(), connection.trips - before) == ((50,), 1)
    with connection.pipeline("continue") as pipeline:
        bad = pipeline.execute("INSERT INTO way VALUES (1, 'again')")
        good = pipeline.execute("INSERT INTO way VALUES (51, 'new')")
    assert good.rowcount == 1
    with pytest.raises(errors.UniqueViolation):
        bad.result()
    connection.cursor().executemany("DELETE FROM way WHERE id = %s", [(id,) for id in range(10)])
    connection.commit()
    assert connection.execute("SELECT count(*) FROM way").fetchone() == (41,)


def test_many_rows_arrive_and_the_one_that_fails_is_told(
    connection: onetrip.Connection, path: tuple[str, dict[str, Any]]
) -> None:
    insert = "INSERT INTO way (id, name) VALUES (%s, %s)"
    rows = [(id, f"n{id}") for id in range(1200)]

    async def main() -> int:
        async with await aio.connect(**path[1]) as other:
            cursor = other.cursor()
            await cursor.executemany(insert, rows)
            await other.rollback()
            return cursor.rowcount

    assert asyncio.run(main()) == 1200
    connection.executemany(insert, rows)
    connection.commit()
    with pytest.raises(errors.UniqueViolation) as caught:
        connection.executemany(insert, [(id + 1000, "again") for id, _ in reversed(rows)])
    assert caught.value.row == 1000
    connection.rollback()
    assert connection.execute("SELECT count(*) FROM way").fetchone() == (1200,)


def test_a_loop_reads_what_it_wrote(connection: onetrip.Connection) -> None:
    connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    connection.executemany("INSERT INTO way VALUES (%s, %s)", [(id, f"n{id}") for id in range(30)])
    ids = connection.execute("SELECT id FROM way ORDER BY id").fetchall()
    names = [connection.execute("SELECT name FROM way WHERE id = %s", row).fetchone() for row in ids]
    assert names == [(f"n{id}",) for id in range(30)]
    connection.commit()


def test_results_are_read_in_pieces(connection: onetrip.Connection, path: tuple[str, dict[str, Any]]) -> None:
    if path[0] == "embedded":
        pytest.skip("SQLite has no cursors that have a name")
    connection.executemany("INSERT INTO way VALUES (%s, NULL)", [(id,) for id in range(100)])
    with connection.cursor("pieces") as cursor:
        cursor.itersize = 30
        cursor.execute("SELECT id FROM way ORDER BY id")
        assert [row[0] for row in cursor] == list(range(100))


def test_copy_and_large_values_go_in_parts(connection: onetrip.Connection, path: tuple[str, dict[str, Any]]) -> None:
    if path[0] == "embedded":
        pytest.skip("SQLite has neither COPY nor large objects")
    cursor = connection.cursor()
    with cursor.copy("COPY way FROM STDIN") as copy:
        for id in range(5000):
            copy.write_row((id, "x" * 100))
    with cursor.copy("COPY way TO STDOUT") as copy:
        assert sum(row == (str(id), "x" * 100) for id, row in enumerate(copy.rows())) == 5000
    connection.commit()
    with pytest.raises(errors.UniqueViolation), cursor.copy("COPY way FROM STDIN") as copy:
        copy.write_row((1, "again"))
    connection.rollback()
    name = onetrip.LobColumn.of("way", "name", key="id", prefetch=7)
    oid = connection.create_large_object(b"large" * 100_000)
    with connection.large_value_writer(name, 1) as writer:
        for _ in range(300):
            writer.write("größer" * 1000)
    ((value, content),) = connection.execute("SELECT 1 AS value, %s::oid AS content", (oid,)).fetch_lobs(
        {"value": name, "content": None}
    )
    assert (value.memory, value.read()) == (len("größerg".encode()), "größer" * 300_000)
    assert content.read() == b"large" * 100_000
    connection.commit()
    with cursor.copy("COPY way FROM STDIN (FORMAT binary)") as copy:
        copy.write_row((5000, "binary"))
    with cursor.copy("COPY (SELECT * FROM way WHERE id > %s) TO STDOUT (FORMAT binary)", (4999,)) as copy:
        copy.set_types(["int4", "text"])
        assert list(copy.rows()) == [(5000, "binary")]
    connection.rollback()

    async def main() -> None:
        async with await aio.connect(**path[1]) as other, other.cursor().copy("COPY way TO STDOUT") as copy:
            assert len([row async for row in copy.rows()]) == 5000

    connection.rollback()
    asyncio.run(main())


def test_event_loops_go_that_way_too(connection: onetrip.Connection, path: tuple[str, dict[str, Any]]) -> None:
    async def main() -> None:
        async with await aio.connect(**path[1]) as other:
            async with other.pipeline() as pipeline:
                for id in range(20):
                    await pipeline.execute("INSERT INTO way VALUES (%s, %s)", (id, "async"))
            cursor = await other.execute("SELECT count(*) FROM way WHERE name = %s", ("async",))
            assert await cursor.fetchone() == (20,)

    asyncio.run(main())
    assert connection.execute("SELECT count(*) FROM way").fetchone() == (20,)
