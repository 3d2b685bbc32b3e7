"""Blocks of operations."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import onetrip
import pytest
from onetrip import PipelineAborted, PipelineUndone, TransactionStatus, errors


class Turns:
    """A relay that counts turns: pieces of the conversation that begin with the client after the server spoke. Replies wait until
    the client has been silent for a while, so that one that has not waited for them is not counted as if it had."""

    SILENCE = 0.05

    def __init__(self, host: str, port: int) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.count = 0
        self._server_spoke = True
        self._client_spoke_at = 0.0
        self._target = (host, port)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        client, _ = self.listener.accept()
        server = socket.create_connection(self._target)
        threading.Thread(target=self._pass, args=(client, server, True), daemon=True).start()
        self._pass(server, client, False)

    def _pass(self, source: socket.socket, target: socket.socket, is_client: bool) -> None:
        with contextlib.suppress(OSError):  # the other direction ended first
            while data := source.recv(1 << 16):
                if is_client:
                    self.count += self._server_spoke
                    self._client_spoke_at = time.monotonic()
                else:
                    while (left := self._client_spoke_at + self.SILENCE - time.monotonic()) > 0:
                        time.sleep(left)
                self._server_spoke = not is_client
                target.sendall(data)
        target.close()


@pytest.fixture
def turns(server: dict[str, Any]) -> Iterator[Turns]:
    """The relay."""
    relay = Turns(server["host"], server["port"])
    yield relay
    relay.listener.close()


def test_begin_and_a_statement_are_one_trip_and_so_is_a_block(server: dict[str, Any], turns: Turns) -> None:
    with onetrip.connect(**{**server, "port": turns.port, "sslmode": "disable"}) as connection:
        before = turns.count
        connection.execute("CREATE TEMP TABLE t (id int)")
        assert turns.count - before == 1
        connection.commit()
        before = turns.count
        with connection.pipeline() as pipeline:
            for id in range(10):
                pipeline.execute("INSERT INTO t VALUES (%s)", (id,))
            pipeline.commit()
        assert turns.count - before == 1
        assert connection.transaction_status == TransactionStatus.IDLE
        before = turns.count
        connection.executemany("INSERT INTO t VALUES (%s)", [(id,) for id in range(100)])
        assert turns.count - before == 1
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (110,)


def test_abort_says_who_failed_and_what_did_not_run(connection: onetrip.Connection) -> None:
    connection.autocommit = True
    connection.execute("CREATE TEMP TABLE t (id int)")
    with pytest.raises(errors.DivisionByZero), connection.pipeline() as pipeline:
        first = pipeline.execute("INSERT INTO t VALUES (1)")
        failing = pipeline.execute("SELECT 1/0")
        last = pipeline.execute("INSERT INTO t VALUES (2)")
    with pytest.raises(PipelineUndone) as undone:
        first.result()
    with pytest.raises(PipelineAborted) as aborted:
        last.result()
    assert undone.value.by == aborted.value.by == failing.id
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)


def test_an_operation_that_may_fail_fails_no_block_and_tells_it_more_than_once(
    connection: onetrip.Connection,
) -> None:
    connection.autocommit = True
    with connection.pipeline() as pipeline:
        shrugged = pipeline.execute("SELECT 1/0", on_error="continue")
        pipeline.execute("SELECT 1")
    for _ in range(2):
        with pytest.raises(errors.DivisionByZero):
            shrugged.result()
    with pytest.raises(errors.UndefinedTable), connection.pipeline() as pipeline:
        pipeline.execute("SELECT 1/0", on_error="continue")
        failing = pipeline.execute("SELECT * FROM nothing_here")
    with pytest.raises(errors.UndefinedTable):
        failing.result()


def test_many_large_objects_are_one_trip(server: dict[str, Any], turns: Turns) -> None:
    with onetrip.connect(**{**server, "port": turns.port, "sslmode": "disable"}) as connection:
        oids = [connection.create_large_object(bytes([id]) * 4000) for id in range(50)]
        before = turns.count
        objects = connection.large_objects(oids, prefetch=10_000)
        assert [one.read() for one in objects] == [bytes([id]) * 4000 for id in range(50)]
        assert turns.count - before == 1
        assert [one.length for one in objects] == [4000] * 50
        connection.write_large_object(oids[0], b"abc", 3998)
        (again,) = connection.large_objects(oids[:1], prefetch=-1)
        assert (again.length, again.read(3998)[-1:], again.read(5), again.read()) == (None, b"\0", b"abc", b"")
        with pytest.raises(errors.UndefinedObject):
            connection.large_objects([1])
        connection.rollback()


@pytest.mark.parametrize("autocommit", [True, False])
def test_continue_runs_all_others(connection: onetrip.Connection, autocommit: bool) -> None:
    connection.autocommit = autocommit
    connection.execute("CREATE TEMP TABLE t (id int)")
    with connection.pipeline("continue") as pipeline:
        operations = [pipeline.execute("INSERT INTO t VALUES (6 / %s)", (id,)) for id in (1, 0, 2)]
    assert [operations[at].rowcount for at in (0, 2)] == [1, 1]
    with pytest.raises(errors.DivisionByZero):
        operations[1].result()
    assert connection.execute("SELECT id FROM t ORDER BY id").fetchall() == [(3,), (6,)]


def test_results_can_be_had_before_the_block_ends(connection: onetrip.Connection) -> None:
    with connection.pipeline() as pipeline:
        first = pipeline.execute("SELECT generate_series(1, 3)")
        pipeline.process(first)
        rows = first.fetchall()
        second = pipeline.execute("SELECT %s::int[]", ([value for (value,) in rows],))
        assert second.fetchone() == ([1, 2, 3],), "asking for it waits for it"
    assert connection.transaction_status == TransactionStatus.INTRANS


def test_calls_that_do_not_fit_say_so(server: dict[str, Any], connection: onetrip.Connection) -> None:
    with connection.pipeline() as pipeline, pytest.raises(onetrip.ProgrammingError):
        pipeline.execute("COPY t FROM STDIN")
    with pytest.raises(onetrip.ProgrammingError, match="block"):
        pipeline.execute("SELECT 1")
    with onetrip.connect(**server, pipelining="off") as plain, pytest.raises(onetrip.NotSupportedError):
        with plain.pipeline():
            pass
    with pytest.raises(ValueError, match="on_error"):
        connection.pipeline("stop")  # type: ignore[arg-type]


def test_commit_in_a_failed_transaction_is_an_error(connection: onetrip.Connection) -> None:
    with pytest.raises(errors.DivisionByZero):
        connection.execute("SELECT 1/0")
    with pytest.raises(onetrip.OperationalError), connection.pipeline() as pipeline:
        pipeline.commit()


def test_a_deep_block_does_not_block(connection: onetrip.Connection) -> None:
    text = "x" * 1000
    with connection.pipeline() as pipeline:
        operations = [pipeline.execute("SELECT %s, %s", (id, text)) for id in range(20_000)]
    assert operations[-1].fetchone() == (19_999, text)


def test_a_block_may_be_entered_again_within_itself(connection: onetrip.Connection) -> None:
    with connection.pipeline() as pipeline:
        first = pipeline.execute("SELECT 1")
        with pipeline, pipeline as same:
            assert same is pipeline
            second = pipeline.execute("SELECT 2")
        assert (first.fetchone(), second.fetchone()) == ((1,), (2,)), "the end of the inner one has waited"
        last = connection.execute("SELECT 3")
    assert last.fetchone() == (3,)
