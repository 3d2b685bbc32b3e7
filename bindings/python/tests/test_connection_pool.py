"""The pool in psycopg_pool's form."""

from __future__ import annotations

import contextlib
import gc
import threading
import time
import warnings
import weakref
from typing import Any

import onetrip
import pytest
from onetrip import ConnectionPool, PoolClosed, PoolTimeout, TooManyRequests


def pool_of(server: dict[str, Any], **keywords: Any) -> ConnectionPool:
    return ConnectionPool(kwargs=server, **{"min_size": 0, "max_size": 1, "timeout": 20.0} | keywords)


def test_a_block_commits_or_rolls_back_and_gives_back(server: dict[str, Any]) -> None:
    with pool_of(server) as pool:
        with pool.connection() as connection:
            pid = connection.backend_pid
            connection.execute("CREATE TABLE pooled (id int)")
        with pytest.raises(ZeroDivisionError), pool.connection() as connection:
            connection.execute("INSERT INTO pooled VALUES (1)")
            raise ZeroDivisionError
        with pool.connection() as connection:
            assert connection.backend_pid == pid
            assert connection.execute("SELECT count(*) FROM pooled").fetchone() == (0,)
            connection.execute("DROP TABLE pooled")


def test_the_smallest_number_is_made_ahead(server: dict[str, Any]) -> None:
    with pool_of(server, min_size=2, max_size=3) as pool:
        pool.wait()
        assert pool.get_stats()["pool_size"] == 2
        assert pool.get_stats()["pool_min"] == 2


def test_a_pool_that_nobody_has_any_more_ends_without_a_warning(server: dict[str, Any]) -> None:
    pool = pool_of(server, min_size=2, max_size=2)
    pool.wait()
    with pool.connection() as connection:
        connection.execute("SELECT 1")
    gone = weakref.ref(pool)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        del pool, connection
        gc.collect()
    assert gone() is None
    assert [str(warning.message) for warning in warned if warning.category is ResourceWarning] == []


def test_a_burst_waits_in_order(server: dict[str, Any]) -> None:
    with pool_of(server) as pool:
        held = pool.getconn()
        order: list[int] = []

        def take(number: int) -> None:
            with pool.connection():
                order.append(number)

        threads = []
        for number in range(5):
            thread = threading.Thread(target=take, args=(number,))
            thread.start()
            threads.append(thread)
            while pool.get_stats()["requests_waiting"] <= number:
                time.sleep(0.001)
        pool.putconn(held)
        for thread in threads:
            thread.join()
        assert order == [0, 1, 2, 3, 4]
        assert pool.pop_stats()["requests_queued"] == 6, "they, and the first, who waited for a new connection"
        assert "requests_queued" not in pool.get_stats()


def test_who_waits_too_long_or_in_too_long_a_queue_is_told(server: dict[str, Any]) -> None:
    with pool_of(server, max_waiting=1) as pool:
        held = pool.getconn()
        with pytest.raises(PoolTimeout):
            pool.getconn(timeout=0.01)
        waiting = threading.Thread(target=lambda: pool.putconn(pool.getconn()))
        waiting.start()
        while not pool.get_stats()["requests_waiting"]:
            time.sleep(0.001)
        with pytest.raises(TooManyRequests):
            pool.getconn()
        pool.putconn(held)
        waiting.join()
        assert pool.get_stats()["requests_errors"] == 2


def test_a_lost_connection_is_replaced(server: dict[str, Any]) -> None:
    with pool_of(server, check=ConnectionPool.check_connection) as pool:
        with pool.connection() as connection:
            pid = connection.backend_pid
        with onetrip.connect(**server, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))
        with pool.connection() as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
            assert connection.backend_pid != pid


def test_an_old_connection_is_replaced(server: dict[str, Any]) -> None:
    with pool_of(server, max_lifetime=0.0) as pool:
        first = pool.getconn()
        pool.putconn(first)
        assert first.closed
        second = pool.getconn()
        assert second is not first
        pool.putconn(second)


def test_a_drained_pool_gives_new_ones(server: dict[str, Any]) -> None:
    with pool_of(server, max_size=2) as pool:
        used, free = pool.getconn(), pool.getconn()
        pool.putconn(free)
        pool.drain()
        assert free.closed and not used.closed
        pool.putconn(used)
        assert used.closed


def test_callbacks_are_called_and_may_leave_no_transaction(server: dict[str, Any]) -> None:
    called: list[str] = []
    callbacks = {name: lambda _, name=name: called.append(name) for name in ("configure", "check", "reset")}
    with pool_of(server, **callbacks) as pool:
        with pool.connection():
            pass
        with pool.connection():
            pass
    assert called[:4] == ["configure", "check", "reset", "check"]
    with pool_of(server, configure=lambda new: new.execute("SELECT 1"), timeout=0.05) as pool:
        with pytest.raises(PoolTimeout, match="left a transaction open"):
            pool.getconn()


def test_a_closed_pool_says_so_to_who_asks_and_to_who_waits(server: dict[str, Any]) -> None:
    pool = pool_of(server)
    held = pool.getconn()
    errors: list[Exception] = []

    def wait() -> None:
        try:
            pool.getconn()
        except PoolClosed as error:
            errors.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    while not pool.get_stats()["requests_waiting"]:
        time.sleep(0.001)
    pool.close()
    waiting.join()
    assert len(errors) == 1
    with pytest.raises(PoolClosed, match="already closed"):
        pool.getconn()
    pool.putconn(held)
    assert held.closed
    with pytest.raises(ValueError, match="not one of the pool"):
        pool.putconn(held)


def test_it_gives_up_where_nobody_listens(server: dict[str, Any]) -> None:
    with ConnectionPool(kwargs={**server, "port": 1}, min_size=0, max_size=1, timeout=0.01) as pool:
        with pytest.raises(PoolTimeout, match="could be made in .* cannot connect"):
            for _ in range(100):  # the first may give up before the try to connect has failed
                with contextlib.suppress(PoolTimeout):
                    pool.getconn()
                if pool.get_stats().get("connections_errors"):
                    break
            pool.getconn()
        assert pool.get_stats()["requests_errors"] >= 1
