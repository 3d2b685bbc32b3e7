"""What both kinds of connections share: what transactions are like, and who hears what the server says by itself."""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

from onetrip import adapt, tpc
from onetrip._base import forking
from onetrip.adapt import AdaptersMap
from onetrip.errors import ConnectionClosed, Diagnostic, NotSupportedError, ProgrammingError
from onetrip.rows import Row
from onetrip.tpc import Xid

if TYPE_CHECKING:
    from onetrip.rows import RowFactory

logger = logging.getLogger("onetrip")


class TransactionStatus(enum.IntEnum):
    """Where a session stands; libpq's numbers."""

    IDLE = 0
    ACTIVE = 1
    INTRANS = 2
    INERROR = 3
    UNKNOWN = 4


class IsolationLevel(enum.IntEnum):
    """How far transactions see each other's work."""

    READ_UNCOMMITTED = 1
    READ_COMMITTED = 2
    REPEATABLE_READ = 3
    SERIALIZABLE = 4


class Notify(NamedTuple):
    """Somebody used NOTIFY on a channel that this session listens to."""

    channel: str
    payload: str
    pid: int


# Statements that stay prepared, where nobody says how many.
PREPARED_MAX = 256

NoticeHandler = Callable[[Diagnostic], None]
NotifyHandler = Callable[[Notify], None]


class SessionState(Generic[Row]):
    """The state of a connection that no server keeps."""

    # The pool that has given it out, since when, when a pool has made it, when it is to end, and whether nobody had it before.
    _pool: Any = None
    _taken_at = _made_at = _ends_at = 0.0
    _is_new = False

    def __init__(self, autocommit: bool) -> None:
        self._autocommit = autocommit
        self._transactions: list[Any] = []
        # Whether a statement outside of a transaction begins one.
        self._begins = not autocommit
        # Why it cannot be used, once it has ended.
        self._end = "the connection is closed"
        self._isolation_level: IsolationLevel | None = None
        self._read_only: bool | None = None
        self._deferrable: bool | None = None
        self._notice_handlers: list[NoticeHandler] = []
        self._notify_handlers: list[NotifyHandler] = []
        # Whether anybody wants to hear.
        self._is_heard = False
        # What the program has registered for this connection alone.
        self._adapters: AdaptersMap | None = None
        self._prepare_threshold: int | None = 0
        # The transaction in two phases that is open, and whether it is prepared.
        self._tpc: tuple[Xid, bool] | None = None
        # How many transactions have ended here: a named cursor ends with its own.
        self._transactions_ended = 0
        self.row_factory: RowFactory[Row]
        forking.watch(self)

    def _native_part(self) -> Any:
        """The session or the wire."""
        raise NotImplementedError

    @property
    def autocommit(self) -> bool:
        """Whether each statement is a transaction of its own."""
        return self._autocommit

    @autocommit.setter
    def autocommit(self, on: bool) -> None:
        self._check_idle("autocommit")
        self._autocommit = bool(on)
        self._set_begins()

    @property
    def isolation_level(self) -> IsolationLevel | None:
        """The level of the transactions that this connection begins; None leaves it to the server's default."""
        return self._isolation_level

    @isolation_level.setter
    def isolation_level(self, level: int | None) -> None:
        level = None if level is None else IsolationLevel(level)
        self._check_idle("isolation_level")
        self._isolation_level = level
        self._set_begin_statement()

    @property
    def read_only(self) -> bool | None:
        """Whether its transactions only read; None leaves it to the server's default."""
        return self._read_only

    @read_only.setter
    def read_only(self, on: bool | None) -> None:
        self._check_idle("read_only")
        self._read_only = None if on is None else bool(on)
        self._set_begin_statement()

    @property
    def deferrable(self) -> bool | None:
        """Whether its transactions wait for a snapshot that cannot fail, where they are serializable and only read."""
        return self._deferrable

    @deferrable.setter
    def deferrable(self, on: bool | None) -> None:
        self._check_idle("deferrable")
        self._deferrable = None if on is None else bool(on)
        self._set_begin_statement()

    @property
    def transaction_status(self) -> TransactionStatus:
        """Where the session stood when the server was last ready; ACTIVE while a COPY or the rows of a stream are under
        way. A block of `transaction()` is a transaction before its BEGIN has left."""
        status = TransactionStatus(self._status_now())
        if self._is_busy():
            return TransactionStatus.ACTIVE
        is_due = status == TransactionStatus.IDLE and self._transactions
        return TransactionStatus.INTRANS if is_due else status

    def _status(self) -> int:
        raise NotImplementedError

    def _status_now(self) -> int:
        """The same without a wait."""
        return self._status()

    def _is_busy(self) -> bool:
        """Whether something is under way that has the connection for itself."""
        raise NotImplementedError

    def _in_pipeline(self) -> bool:
        """Whether the block of a pipeline is open."""
        raise NotImplementedError

    @property
    def closed(self) -> bool:
        """Whether the connection has ended."""
        raise NotImplementedError

    def _shown(self) -> str:
        """Where it stands, as representations show it."""
        if self.closed:
            return "[BAD]"
        return f"[{self.transaction_status.name}{', pipeline=ON' if self._in_pipeline() else ''}]"

    def add_notice_handler(self, callback: NoticeHandler) -> None:
        """Calls a function with each notice, when the call ends in which it came."""
        self._notice_handlers.append(callback)
        self._is_heard = True

    def remove_notice_handler(self, callback: NoticeHandler) -> None:
        """Does not call it any more."""
        self._notice_handlers.remove(callback)
        self._is_heard = bool(self._notice_handlers or self._notify_handlers)

    def add_notify_handler(self, callback: NotifyHandler) -> None:
        """Calls a function with each notification, when the call ends in which it came. `notifies` does not have it
        then."""
        self._notify_handlers.append(callback)
        self._is_heard = True

    def remove_notify_handler(self, callback: NotifyHandler) -> None:
        """Does not call it any more."""
        self._notify_handlers.remove(callback)
        self._is_heard = bool(self._notice_handlers or self._notify_handlers)

    def _set_up(self, prepare_threshold: int | None, context: Any, cursor_factory: Any) -> None:
        """Takes what `connect` was told about statements, values and cursors."""
        if prepare_threshold != 0:
            self.prepare_threshold = prepare_threshold
        if context is not None and context.adapters is not adapt.adapters:
            self._adapters = AdaptersMap(context.adapters, self)
            self._adapters._give(self)
        if cursor_factory is not None:
            self.cursor_factory: Any = cursor_factory

    @property
    def adapters(self) -> AdaptersMap:
        """What of values is written and made by the program's own functions, on this connection and by its cursors."""
        if self._adapters is None:
            self._adapters = AdaptersMap(adapt.adapters, self)
        return self._adapters

    @property
    def connection(self) -> Any:
        """Itself: it can stand for a cursor where something is registered."""
        return self

    def register_loader(self, oid: int | str, loader: Any) -> None:
        """Makes values of a type by a function of their text, or a loader, on this connection."""
        self.adapters.register_loader(oid, loader)

    @property
    def prepare_threshold(self) -> int | None:
        """How often a statement runs before it stays prepared: 0 from the beginning, None never."""
        return self._prepare_threshold

    @prepare_threshold.setter
    def prepare_threshold(self, runs: int | None) -> None:
        self._native_part().set_prepare_after(runs)
        self._prepare_threshold = runs

    @property
    def prepared_max(self) -> int:
        """How many statements stay prepared; it is set by `statement_cache` when the connection is opened."""
        return int(self._parameter("statement_cache") or PREPARED_MAX)

    @prepared_max.setter
    def prepared_max(self, count: int | None) -> None:
        raise NotSupportedError("the number of prepared statements cannot be changed: connect with statement_cache=N")

    def _parameter(self, keyword: str) -> str | None:
        """What the connection was told when it was opened."""
        raise NotImplementedError

    @property
    def pgconn(self) -> Any:
        """There is no connection of libpq."""
        raise NotSupportedError("onetrip is not built on libpq: there is no pgconn")

    def xid(self, format_id: int, gtrid: str, bqual: str) -> Xid:
        """Names a transaction in two phases."""
        return Xid.of_parts(format_id, gtrid, bqual)

    def parameter_status(self, name: str) -> str | None:
        """A setting that the server reports, such as "server_version"."""
        value: str | None = self._native_part().setting(name)
        return value

    def notices(self) -> list[Diagnostic]:
        """The notices that came since the last call, and that no handler has heard."""
        return [Diagnostic(dict(fields)) for fields in self._native_part().notices()]

    def _tpc_begins(self, xid: Xid | str) -> str:
        """What begins a transaction in two phases."""
        if self._status() != TransactionStatus.IDLE or self._tpc is not None or self._transactions:
            raise ProgrammingError("tpc_begin() is for the beginning of a transaction: commit or roll back first")
        if self._autocommit:
            raise ProgrammingError("tpc_begin() is not for a connection in autocommit")
        self._tpc = (tpc.named(xid), False)
        return self._begin_statement

    def _tpc_prepares(self) -> str:
        """What prepares it."""
        if self._tpc is None or self._tpc[1]:
            raise ProgrammingError("tpc_prepare() comes after tpc_begin(), once")
        xid = self._tpc[0]
        self._tpc = (xid, True)
        return tpc.command("PREPARE TRANSACTION", xid)

    def _tpc_ends(self, word: str, xid: Xid | str | None) -> str | None:
        """What ends it, or another one that was prepared before; None where it was not prepared, and ends as any."""
        name = f"tpc_{word.lower()}()"
        if xid is None and self._tpc is None:
            raise ProgrammingError(f"{name} without a name is for the transaction that tpc_begin() has begun")
        if xid is not None and self._tpc is not None:
            raise ProgrammingError(f"{name} with a name is not for within a transaction in two phases")
        if self._tpc is not None:
            known, is_prepared = self._tpc
            return tpc.command(f"{word} PREPARED", known) if is_prepared else None
        assert xid is not None
        return tpc.command(f"{word} PREPARED", tpc.named(xid))

    def _check_no_tpc(self, name: str) -> None:
        if self._tpc is not None:
            raise ProgrammingError(
                f"{name} is not for a transaction in two phases: tpc_commit() and tpc_rollback() are"
            )

    def _check_not_prepared(self, name: str) -> None:
        if self._tpc is not None and self._tpc[1]:
            raise ProgrammingError(f"{name} is not for a transaction that is prepared")

    def _heard(self) -> Notify | None:
        """The next notification that is here."""
        raise NotImplementedError

    def _tell_what_came(self) -> None:
        """Tells the handlers what has come, if there are any."""
        if self._is_heard and not self.closed:
            self._tell()

    def _tell(self) -> None:
        """Tells the handlers what has come. What they raise is logged: the call that it came with is not theirs."""
        if self._notice_handlers:
            for notice in self.notices():
                _call(self._notice_handlers, notice)
        if self._notify_handlers:
            while (heard := self._heard()) is not None:
                _call(self._notify_handlers, heard)

    def _check_idle(self, name: str) -> None:
        if self.closed:
            raise ConnectionClosed(self._end)
        if self._status() != TransactionStatus.IDLE or self._transactions:
            raise ProgrammingError(f"{name} cannot change within a transaction: commit or roll back first")

    def _set_begins(self) -> None:
        self._begins = bool(self._transactions) or not self._autocommit

    def _set_begin_statement(self) -> None:
        self._native_part().set_begin(self._begin_statement)

    @property
    def _begin_statement(self) -> str:
        level, words = self._isolation_level, ["BEGIN"]
        if level is not None:
            words.append(f"ISOLATION LEVEL {level.name.replace('_', ' ')}")
        if self._read_only is not None:
            words.append("READ ONLY" if self._read_only else "READ WRITE")
        if self._deferrable is not None:
            words.append("DEFERRABLE" if self._deferrable else "NOT DEFERRABLE")
        return " ".join(words)


def _call(handlers: list[Any], what: Any) -> None:
    for handler in list(handlers):
        try:
            handler(what)
        except Exception:
            logger.exception("a handler of %s failed", type(what).__name__)
