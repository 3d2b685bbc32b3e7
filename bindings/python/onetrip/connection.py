"""The connection of DB-API 2.0."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from onetrip import _native
from onetrip._base import forking
from onetrip._base.connection import OutputSource, pairs
from onetrip._base.lob import word
from onetrip.calls import Calls
from onetrip.copying import Copy
from onetrip.cursor import By, Cursor, Params
from onetrip.errors import CancellationTimeout, ConnectionClosed, Error, ProgrammingError
from onetrip.pipeline import OnError, Pipeline
from onetrip.rows import Row
from onetrip.session import Notify, TransactionStatus

if TYPE_CHECKING:
    from typing_extensions import Self

    from onetrip._base.lob import Prefetch
    from onetrip.rows import RowFactory


class Connection(Calls[Row]):
    """A session with a server. Unless `autocommit` is on, the first statement begins a transaction: BEGIN travels
    with it and costs no trip."""

    def __init__(
        self, session: _native.Session, *, autocommit: bool = False, row_factory: RowFactory[Row] | None = None
    ) -> None:
        super().__init__(autocommit, session.target(), row_factory)
        self._native: _native.Session | None = session
        self._copy: Copy | None = None
        # Whether rows of `Cursor.stream` are under way.
        self._streams = False
        # The thread that has begun one of these, and may not use the connection otherwise. Other threads wait.
        self._holder = 0
        # How much of others' DDL it has heard of: for whoever counts that.
        self.schema_version = 0

    @classmethod
    def connect(
        cls,
        conninfo: str = "",
        *,
        autocommit: bool = False,
        prepare_threshold: int | None = 0,
        context: Any = None,
        row_factory: RowFactory[Row] | None = None,
        cursor_factory: type[Cursor[Row]] | None = None,
        **keywords: Any,
    ) -> Self:
        """Connects, as `onetrip.connect`. `context` has the adapters that the connection begins with."""
        session = _native.Session.connect(conninfo, pairs(keywords))
        connection = cls(session, autocommit=autocommit, row_factory=row_factory)
        connection._set_up(prepare_threshold, context, cursor_factory)
        return connection

    def pipeline(self, on_error: OnError = "abort") -> Pipeline:
        """A block of operations that travel together. After an error, with "abort" those behind it do not run; with
        "continue" they do, and those before it hold."""
        self._usable()
        return Pipeline(self, on_error)

    def _pipeline_alone(self) -> Pipeline:
        """A block of our own, for whose end other threads wait."""
        block = Pipeline(self, "abort")
        block._is_alone = True
        return block

    def cancel(self) -> None:
        """Interrupts what another thread runs on this connection."""
        self._check_not_prepared("cancel()")
        if self._native is not None:
            self._native.cancel()

    def cancel_safe(self, *, timeout: float = 30.0) -> None:
        """As `cancel`. The request is given up when it has taken so long."""
        self._check_not_prepared("cancel_safe()")
        if self._native is not None and not self._native.cancel(timeout):
            raise CancellationTimeout("the server did not take the request to cancel in time")

    def collect_output(self, source: OutputSource = "dbms_output") -> bool:
        """From now on, what statements print into the session's buffer comes along with the answer of the call that
        printed it: orafce's "dbms_output", or the "functions" of `onetrip serve`. False where there is no buffer."""
        self._check_alone()
        return self._usable().collect_output(source)

    def notifies(self, timeout: float | None = None, *, stop_after: int | None = None) -> Iterator[Notify]:
        """The notifications that have come, and those that come until `timeout` seconds have passed: for ever without
        it, and 0 does not wait. After `stop_after` of them, those are the last that have come by then."""
        deadline = None if timeout is None else time.monotonic() + timeout
        count = 0
        while True:
            session = self._usable()
            left = _WAIT if deadline is None else max(deadline - time.monotonic(), 0.0)
            is_enough = stop_after is not None and count >= stop_after
            heard = session.notification(0.0 if is_enough else min(left, _WAIT))
            if heard is not None:
                count += 1
                yield Notify(*heard)
            elif is_enough or (deadline is not None and time.monotonic() >= deadline):
                return

    def set_timeout(self, seconds: float | None) -> None:
        """Longest wait of a call: then the server is asked to cancel, which raises `errors.QueryCanceled`."""
        self._usable().set_timeout(seconds)

    def fileno(self) -> int:
        """The number of the socket, to wait for notifications by means of the program's own: then ask `notifies`."""
        return self._native_part().fileno()

    @property
    def broken(self) -> bool:
        """Whether the connection was lost, rather than closed by the program."""
        return self._native is not None and self._native.closed

    @property
    def closed(self) -> bool:
        """Whether the connection has ended."""
        return self._native is None or self._native.closed

    def close(self) -> None:
        """Ends the session; an open transaction is rolled back by the server. With `close_returns` of a pool, gives the
        connection back."""
        if self._pool is not None and self._pool.close_returns:
            self._pool.putconn(self)
        elif self._native is not None:
            session, self._native, self._is_closed = self._native, None, True
            session.close()

    def _leave_to_parent(self) -> None:
        """This is a child process: the session is its parent's."""
        if self._native is not None:
            forking.LEFT.append(self._native)
            self._native, self._pool, self._is_closed, self._end = None, None, True, forking.FORKED

    def _usable(self) -> _native.Session:
        if self._holder and self._holder == threading.get_ident():
            if self._copy is not None:
                raise ProgrammingError("a COPY is under way: end its block first")
            raise ProgrammingError("the rows of stream() are under way: take all of them, or close it first")
        return self._native_part()

    def _native_part(self) -> _native.Session:
        """The session, for what sends nothing or belongs to a COPY."""
        if self._native is None:
            raise ConnectionClosed(self._end)
        return self._native

    def _own_block(self) -> Pipeline | None:
        block: Pipeline | None = self._block
        return block

    def _check_alone(self) -> None:
        self._usable()
        if self._block is not None:
            raise ProgrammingError("a pipeline is open, and this cannot be part of it: end its block first")

    def _status(self) -> int:
        return self._native.status if self._native else TransactionStatus.UNKNOWN

    def _status_now(self) -> int:
        return self._native.status_now if self._native else TransactionStatus.UNKNOWN

    def _is_busy(self) -> bool:
        return self._streams or (self._copy is not None and not self._copy._state.is_over)

    def _heard(self) -> Notify | None:
        heard = self._native_part().heard()
        return None if heard is None else Notify(*heard)

    def _in_pipeline(self) -> bool:
        return self._block is not None

    def _run(self, statement: str, params: Params, begins: bool, how: int = 0) -> list[_native.Answer]:
        session = self._usable()
        if self._block is not None:
            self._check_alone()
        if not self._is_heard:
            return session.run(statement, params, begins, how)
        try:
            return session.run(statement, params, begins, how)
        finally:
            # The handlers hear what came with the answer.
            self._tell_what_came()

    def _run_many(
        self, statement: str, rows: Iterable[Any], by: By, how: int, returning: bool
    ) -> tuple[int, list[_native.Answer], str | None]:
        """Runs a statement once for each of the rows: how many they changed, the results where they are wanted, and what the
        server says of the last."""
        count, answers, tag = self._usable().run_many(statement, rows, self._begins, returning, by, how)
        return count, answers if returning else [], tag

    def _begin_rows(self, statement: str, params: Params, how: int) -> None:
        """Runs a statement whose rows `_next_rows` takes by the piece."""
        self._check_alone()
        # Other threads wait from here on.
        self._usable().begin_rows(statement, params, self._begins, how)
        self._streams, self._holder = True, threading.get_ident()

    def _next_rows(self) -> tuple[_native.Answer, bool]:
        """The next of them, and whether they are the last."""
        return self._native_part().next_rows()

    def _end_rows(self, is_over: bool) -> None:
        """No more of them are wanted."""
        self._streams, self._holder = False, 0
        session = self._native
        if session is None:
            return
        if not is_over and not session.closed:
            with contextlib.suppress(Error):
                session.cancel()
            with contextlib.suppress(Error):
                session.leave_rows()
        session.release()
        self._tell_what_came()

    def _prefetch(self, natives: list[_native.Lob], prefetch: Prefetch | None) -> None:
        self._check_alone()
        self._usable().prefetch(natives, word(prefetch), self._begins)

    def _read_lob(self, native: _native.Lob, most: int) -> Any:
        """So many bytes or characters of a large value, or all that are left."""
        return self._usable().read_lob(native, most, self._begins)


# Longer waits are cut, so that signals and other threads have their turn; in seconds.
_WAIT = 0.5


def connect(
    conninfo: str = "",
    *,
    autocommit: bool = False,
    prepare_threshold: int | None = 0,
    context: Any = None,
    row_factory: RowFactory[Row] | None = None,
    cursor_factory: type[Cursor[Row]] | None = None,
    **keywords: Any,
) -> Connection[Row]:
    """Connects by a URL or libpq's keywords, as text or as arguments; PG* variables say what these leave open.

    Three keywords are onetrip's own: `pipelining` ("on", "off"), `statement_cache` (how many stay prepared) and
    `lob_prefetch` (what comes along of large values: -1 nothing, 0 the length, n bytes or characters, or "auto")."""
    return Connection.connect(
        conninfo,
        autocommit=autocommit,
        prepare_threshold=prepare_threshold,
        context=context,
        row_factory=row_factory,
        cursor_factory=cursor_factory,
        **keywords,
    )
