"""The pool of connections that wait."""

from __future__ import annotations

import threading
from typing import Any

import onetrip
import pytest
from onetrip import errors, rows


def test_a_pool_gives_connections_out_in_turn_without_trips(server: dict[str, Any]) -> None:
    with onetrip.Pool(**server, max_size=2, row_factory=rows.scalar_row) as pool:
        with pool.connection() as first:
            pid = first.execute("SELECT pg_backend_pid()").fetchone()
        before = onetrip._native.counts()
        with pool.connection() as again:
            assert onetrip._native.counts() == before, "neither a trip nor a new connection"
            assert again.execute("SELECT pg_backend_pid()").fetchone() == pid
            with pool.connection() as second:
                assert second.execute("SELECT pg_backend_pid()").fetchone() != pid
                assert pool.size == (0, 2)
                with pytest.raises(onetrip.OperationalError):
                    pool.take(timeout=0.05)
        assert pool.size == (2, 0)
    with pytest.raises(onetrip.InterfaceError):
        pool.take()


def test_what_a_block_did_is_kept_unless_it_raised(server: dict[str, Any]) -> None:
    with onetrip.Pool(**server, max_size=1) as pool:
        with pool.connection() as connection:
            connection.execute("CREATE TEMP TABLE t (a int)")
        with pytest.raises(errors.DivisionByZero), pool.connection() as connection:
            connection.execute("INSERT INTO t VALUES (1)")
            connection.execute("SELECT 1/0")
        left_open = pool.take()
        left_open.execute("INSERT INTO t VALUES (2)")
        left_open.close()
        with pytest.raises(onetrip.InterfaceError):
            left_open.execute("SELECT 1")
        with pool.connection() as connection:
            assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_threads_wait_for_their_turn(server: dict[str, Any]) -> None:
    found: list[int] = []
    with onetrip.Pool(**server, max_size=3) as pool:

        def work(number: int) -> None:
            with pool.connection() as connection:
                found.extend(connection.execute("SELECT %s", (number,)).fetchall()[0])

        threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(found) == list(range(20))
        assert pool.size[1] == 0 and pool.size[0] <= 3
