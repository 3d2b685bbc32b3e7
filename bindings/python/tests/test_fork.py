"""A child made by fork has copies of its parent's connections: it uses none of them, and ends none."""

from __future__ import annotations

import asyncio
import os
import traceback
from collections.abc import Callable
from typing import Any

import onetrip
import pytest
from onetrip import aio

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork"),
    # Python itself warns of forks where there are threads.
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


def in_child(act: Callable[[], None]) -> None:
    """Runs something in a child process; it has to end well."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            act()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_a_child_is_told_and_its_parents_session_goes_on(server: dict[str, Any]) -> None:
    connection = onetrip.connect(**server, autocommit=True)
    cursor = connection.execute("SELECT 1 UNION ALL SELECT 2")
    pid = connection.backend_pid

    def child() -> None:
        assert cursor.fetchall() == [(1,), (2,)], "what had come is here"
        for use in (
            lambda: connection.execute("SELECT 1"), cursor.connection.commit, connection.fileno,
            lambda: connection.cursor("named").execute("SELECT 1"), lambda: connection.pipeline().__enter__(),
        ):  # fmt: skip
            with pytest.raises(onetrip.InterfaceError, match="fork"):
                use()
        assert connection.closed
        connection.cancel()
        connection.close()
        with onetrip.connect(**server) as own:
            assert own.backend_pid != pid

    in_child(child)
    assert connection.execute("SELECT pg_backend_pid()").fetchone() == (pid,)
    connection.close()


def test_a_fork_in_an_open_block_leaves_the_block_to_the_parent(server: dict[str, Any]) -> None:
    with onetrip.connect(**server) as connection, connection.transaction():
        connection.execute("CREATE TEMP TABLE forked (id int)")

        def child() -> None:
            with pytest.raises(onetrip.InterfaceError, match="fork"):
                connection.execute("INSERT INTO forked VALUES (1)")

        in_child(child)
        connection.execute("INSERT INTO forked VALUES (2)")
        assert connection.execute("SELECT id FROM forked").fetchall() == [(2,)]


def test_a_child_that_ends_as_programs_do_ends_no_session(server: dict[str, Any]) -> None:
    import subprocess
    import sys

    program = f"""
import os, sys, onetrip
connection = onetrip.connect(**{server!r})
pool = onetrip.Pool(**{server!r}, max_size=1)
with pool.connection() as pooled:
    pooled.execute("SELECT 1")
if os.fork() == 0:
    sys.exit(0)  # everything is taken down here
os.wait()
print(connection.execute("SELECT 1").fetchone())
with pool.connection() as pooled:
    print(pooled.execute("SELECT 2").fetchone(), pool.size)
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["(1,)", "(2,) (0, 1)"], done.stderr


def test_pools_begin_anew_in_a_child(server: dict[str, Any]) -> None:
    plain = onetrip.Pool(**server, max_size=1)
    pids: set[int] = set()
    with onetrip.ConnectionPool(kwargs=server, min_size=1, max_size=2) as pool, plain:
        pool.wait()
        with pool.connection() as held, plain.connection() as taken:
            pids = {held.backend_pid, taken.backend_pid}

            def child() -> None:
                # All of both were taken, and a lock may have been held by a thread that is not here.
                with pool.connection(timeout=20) as own, plain.connection(timeout=20) as other:
                    assert not pids & {own.backend_pid, other.backend_pid}
                    assert own.execute("SELECT 1").fetchone() == other.execute("SELECT 1").fetchone() == (1,)
                pool.close()

            in_child(child)
            assert held.execute("SELECT 1").fetchone() == (1,)
        with pool.connection() as one, plain.connection() as other:
            assert {one.backend_pid, other.backend_pid} == pids


def test_a_child_does_not_touch_what_belongs_to_its_parents_loop(server: dict[str, Any]) -> None:
    async def main() -> None:
        async with await aio.connect(**server) as connection, aio.AsyncPool(**server) as pool:
            async with pool.connection() as pooled:
                await pooled.execute("SELECT 1")

            def child() -> None:
                assert connection.closed and pool.size == (0, 0)
                with pytest.raises(onetrip.InterfaceError, match="fork"):
                    connection.pipeline()
                connection.terminate()

            in_child(child)
            assert await (await connection.execute("SELECT 1")).fetchone() == (1,)
            async with pool.connection() as again:
                assert again is pooled

    asyncio.run(main())
