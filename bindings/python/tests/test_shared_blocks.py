"""Tasks that share the block of a pipeline: programs that end alike with psycopg and with this package."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import onetrip
import pytest
from onetrip import aio

SECONDS_MAX = 60

Program = Callable[[Any], Coroutine[Any, Any, Any]]


@pytest.fixture(params=["psycopg", "onetrip"])
def ran(request: pytest.FixtureRequest, server: dict[str, Any]) -> Callable[[Program], Any]:
    """Runs a program on a connection that autocommits; one that waits for itself fails."""
    if request.param == "onetrip":
        connect: Any = aio.connect
    else:
        connect = pytest.importorskip("psycopg").AsyncConnection.connect

    async def main(program: Program) -> Any:
        async with await connect(**server, autocommit=True) as connection:
            return await program(connection)

    return lambda program: asyncio.run(asyncio.wait_for(main(program), SECONDS_MAX))


async def one(connection: Any, value: Any, text: str = "SELECT %s::int") -> Any:
    """A statement and its row, by a cursor of its own."""
    async with connection.cursor() as cursor:
        await cursor.execute(text, (value,))
        return await cursor.fetchone()


async def outcome(work: Awaitable[Any]) -> Any:
    """What becomes of some work: its value, or the name of its error's class."""
    try:
        return await work
    except (Exception, asyncio.CancelledError) as error:
        return type(error).__name__


class Held:
    """A task that has opened a block and waits to be let out of it. All others are none of its own."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.pipeline: Any = None
        self._is_open, self._may_end = asyncio.Event(), asyncio.Event()
        self._task = asyncio.ensure_future(self._hold())

    async def _hold(self) -> None:
        async with self.connection.pipeline() as self.pipeline:
            self._is_open.set()
            await self._may_end.wait()

    async def open(self) -> Held:
        """Waits until the block is open."""
        await self._is_open.wait()
        return self

    async def end(self) -> Any:
        """Ends the block; what becomes of it."""
        self._may_end.set()
        return await outcome(self._task)


def test_tasks_join_the_block_of_another_one(ran: Callable[[Program], Any]) -> None:
    async def program(connection: Any) -> Any:
        held = await Held(connection).open()
        rows = await asyncio.gather(*(one(connection, number) for number in range(100)))
        return rows, await held.end(), await one(connection, 7)

    assert ran(program) == ([(number,) for number in range(100)], None, (7,))


def test_who_fails_hears_of_it_and_a_sync_lets_others_run(ran: Callable[[Program], Any]) -> None:
    async def program(connection: Any) -> Any:
        held = await Held(connection).open()
        said = [await outcome(one(connection, value, "SELECT 1 / %s::int")) for value in (1, 0, 1)]
        await asyncio.ensure_future(held.pipeline.sync())
        return said, await outcome(one(connection, 2)), await held.end(), await one(connection, 3)

    assert ran(program) == ([(1,), "DivisionByZero", "PipelineAborted"], (2,), None, (3,))


def test_the_blocks_end_raises_what_nobody_has_heard(ran: Callable[[Program], Any]) -> None:
    async def program(connection: Any) -> Any:
        held = await Held(connection).open()
        await asyncio.ensure_future(connection.execute("SELECT 1 / 0"))
        return await held.end(), await one(connection, 3)

    assert ran(program) == ("DivisionByZero", (3,))


def test_a_task_that_is_cancelled_interrupts_its_own_statement(ran: Callable[[Program], Any]) -> None:
    async def program(connection: Any) -> Any:
        held = await Held(connection).open()
        sleeping = asyncio.ensure_future(one(connection, 600, "SELECT pg_sleep(%s)"))
        await asyncio.sleep(0.2)
        sleeping.cancel()
        said = [await outcome(sleeping), await outcome(one(connection, 1)), await held.end()]
        return said, await one(connection, 2)

    assert ran(program) == (["CancelledError", "PipelineAborted", None], (2,))


def test_blocks_of_tasks_may_end_in_any_order(ran: Callable[[Program], Any]) -> None:
    async def program(connection: Any) -> Any:
        first = await Held(connection).open()
        second = await Held(connection).open()
        third = await Held(connection).open()
        said: list[Any] = [await one(connection, 1), await first.end()]
        said += [await one(connection, 2), await third.end()]
        said += [await one(connection, 3), await second.end()]
        return said, await one(connection, 4)

    assert ran(program) == ([(1,), None, (2,), None, (3,), None], (4,))


def test_one_block_may_be_entered_by_many_tasks(ran: Callable[[Program], Any]) -> None:
    async def within(connection: Any, number: int) -> Any:
        async with connection.pipeline(), connection.transaction():
            return await one(connection, number)

    async def program(connection: Any) -> Any:
        held = await Held(connection).open()
        rows = [await asyncio.ensure_future(within(connection, number)) for number in range(5)]
        many = connection.cursor()
        await asyncio.ensure_future(many.executemany("SELECT %s::int", [(5,), (6,)], returning=True))
        rows += [await many.fetchone(), many.nextset() and await many.fetchone()]
        return rows, await held.end()

    assert ran(program) == ([(number,) for number in range(7)], None)


def test_what_cannot_join_says_so_to_other_tasks_too(ran: Callable[[Program], Any]) -> None:
    async def streamed(connection: Any) -> list[Any]:
        return [row async for row in connection.cursor().stream("SELECT 1")]

    async def copied(connection: Any) -> None:
        async with connection.cursor().copy("COPY (SELECT 1) TO STDOUT"):
            pass

    async def program(connection: Any) -> Any:
        held = await Held(connection).open()
        said = [await outcome(asyncio.ensure_future(work(connection))) for work in (streamed, copied)]
        return said, await held.end(), await streamed(connection)

    assert ran(program) == (["ProgrammingError", "NotSupportedError"], None, [(1,)])


def test_tasks_that_waited_while_the_block_was_opened_join_it_too(server: dict[str, Any]) -> None:
    async def main() -> Any:
        async with await aio.connect(**server) as connection:
            tasks = [asyncio.ensure_future(one(connection, 0.2, "SELECT pg_sleep(%s)::text"))]
            await asyncio.sleep(0.05)  # the first has the connection; the block waits, and the others after it
            held = Held(connection)
            await asyncio.sleep(0)
            tasks += [asyncio.ensure_future(one(connection, number)) for number in range(20)]
            tasks += [asyncio.ensure_future(connection.commit())]
            rows = await asyncio.gather(*tasks)
            await held.open()
            return rows, await one(connection, 1), await held.end(), connection.transaction_status

    rows, *ends = asyncio.run(asyncio.wait_for(main(), SECONDS_MAX))
    assert rows == [("",), *((number,) for number in range(20)), None]
    assert ends == [(1,), None, onetrip.TransactionStatus.INTRANS]


def test_statements_of_many_tasks_share_trips(server: dict[str, Any]) -> None:
    async def main() -> int:
        async with await aio.connect(**server, autocommit=True) as connection:
            held = await Held(connection).open()
            before = connection.trips
            await asyncio.gather(*(one(connection, number) for number in range(50)))
            assert await held.end() is None
            return connection.trips - before

    # Each by itself would be fifty.
    assert asyncio.run(main()) <= 5


def test_a_task_that_is_cancelled_leaves_statements_of_others_alone(server: dict[str, Any]) -> None:
    async def main() -> Any:
        async with await aio.connect(**server, autocommit=True) as connection:
            held = await Held(connection).open()
            slow = asyncio.ensure_future(one(connection, 0.5, "SELECT pg_sleep(%s)::text"))
            behind = asyncio.ensure_future(one(connection, 1))
            await asyncio.sleep(0.1)
            behind.cancel()
            return await outcome(behind), await outcome(slow), await outcome(one(connection, 2)), await held.end()

    assert asyncio.run(asyncio.wait_for(main(), SECONDS_MAX)) == ("CancelledError", ("",), (2,), None)


def test_what_failed_in_a_task_s_own_block_is_heard_there(server: dict[str, Any]) -> None:
    async def failing(connection: Any) -> None:
        async with connection.pipeline():
            await connection.execute("SELECT 1 / 0")
            await asyncio.sleep(0.1)

    async def main() -> Any:
        async with await aio.connect(**server, autocommit=True) as connection:
            held = await Held(connection).open()
            task = asyncio.ensure_future(failing(connection))
            await asyncio.sleep(0)
            await held.pipeline.sync()
            return await outcome(task), await outcome(one(connection, 2)), await held.end()

    assert asyncio.run(asyncio.wait_for(main(), SECONDS_MAX)) == ("DivisionByZero", (2,), None)


def test_blocks_of_the_package_s_own_are_not_joined(server: dict[str, Any]) -> None:
    async def main() -> Any:
        async with await aio.connect(**server, autocommit=True) as connection:
            many = connection.cursor()
            values = [(number,) for number in range(2000)]
            ran_many = asyncio.ensure_future(many.executemany("SELECT %s::int", values, returning=True))
            await asyncio.sleep(0)
            rows = await asyncio.gather(*(one(connection, number) for number in range(10)))
            await ran_many
            failed = await outcome(connection.cursor().executemany("SELECT 1 / %s::int", [(1,), (0,)], returning=True))
            return rows, await many.fetchone(), failed

    assert asyncio.run(asyncio.wait_for(main(), SECONDS_MAX)) == (
        [(number,) for number in range(10)],
        (0,),
        onetrip.errors.DivisionByZero.__name__,
    )
