"""Tells `onetrip run` which line of the program sends each statement.

The calls of psycopg2, psycopg and asyncpg that may wait for the database are wrapped. What is told goes over a
socket of its own: between client and database nothing changes. A line is one fact, and numbers are this connection's own:

    site NUMBER ["app.py:12 in main", ...]   the program's frames, the innermost first
    open CONNECTION BEGUN ENDED SITE         a connection was opened, by a line or by none ("-"); times are nanoseconds of
                                             CLOCK_MONOTONIC
    call CONNECTION BEGUN ENDED SITE         a call that may have waited for the database

Whatever fails here ends the telling, not the program.
"""

import functools
import importlib.abc
import itertools
import json
import os
import socket
import sys
import sysconfig
import threading
import weakref
from time import monotonic_ns

VARIABLE = "ONETRIP_CALLS"
# Frames of one site, and bytes of its text.
FRAMES_MAX = 5
FRAME_BYTES_MAX = 200
# What is not yet told goes out after so many lines, or so long after the last time.
LINES_MAX = 64
QUIET_NS = 50_000_000
# Frames looked at for one of the program's.
DEPTH_MAX = 200


class Teller:
    """The socket, and what waits to be told."""

    def __init__(self, path):
        self.path = path
        self.lock = threading.Lock()
        self.begin()

    def begin(self):
        """Begins anew, as a forked child has to."""
        self.lines, self.told_at, self.sites, self.failed = [], 0, {}, False
        self.socket = None

    def forked(self):
        self.lock = threading.Lock()
        self.begin()

    def tell(self, kind, connection, begun, site):
        ended = monotonic_ns()
        with self.lock:
            if self.failed or (site is None and kind != "open"):
                return
            number = "-" if site is None else self.sites.get(site)
            if number is None:
                number = self.sites[site] = len(self.sites)
                self.lines.append(f"site {number} {json.dumps(list(map(shown, site)))}\n")
            self.lines.append(f"{kind} {connection} {begun} {ended} {number}\n")
            if len(self.lines) >= LINES_MAX or ended - self.told_at > QUIET_NS:
                self.told_at = ended
                self.flush()

    def flush(self):
        lines, self.lines = self.lines, []
        try:
            if self.socket is None:
                self.socket = socket.socket(socket.AF_UNIX)
                self.socket.settimeout(1)
                self.socket.connect(self.path)
            self.socket.sendall("".join(lines).encode(errors="replace"))
        except OSError:
            self.failed = True

    def end(self):
        with self.lock:
            if self.lines and not self.failed:
                self.flush()


teller = None
counter = itertools.count()
# Of connections that cannot carry a number themselves.
numbers = weakref.WeakKeyDictionary()


def number_of(connection):
    """The connection's number; none if it was opened before."""
    number = getattr(connection, "_onetrip_number", None)
    if number is None:
        number = numbers.get(connection)
    return number


def number(connection):
    """Gives the connection a number."""
    given = next(counter)
    try:
        connection._onetrip_number = given
    except AttributeError:
        numbers[connection] = given
    return given


LIBRARY = tuple(
    os.path.realpath(path) + os.sep for name in ("stdlib", "platstdlib") if (path := sysconfig.get_paths().get(name))
)
HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
INSTALLED = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
# Between a program and its driver.
BETWEEN = set(
    "aiopg alembic asyncpg databases django flask_sqlalchemy gino greenlet onetrip peewee piccolo playhouse pony psycopg "
    "psycopg2 psycopg_pool records sqlalchemy sqlmodel tortoise".split()
)
# Typed code is the program's if it runs as `__main__`: libraries make code of strings, too.
OWN, INSTALLED_CODE, TYPED, NEVER = "own", "installed", "typed", "never"


@functools.lru_cache(maxsize=65536)
def origin_of(code):
    """Whether code is the program's own, an installed package's, or of the libraries that lead to the driver."""
    path = code.co_filename
    if path.startswith(("<", HERE)):
        return TYPED if path in ("<string>", "<stdin>") else NEVER
    for mark in INSTALLED:
        _, found, rest = path.partition(mark)
        if found:
            package = rest.split(os.sep)[0].partition(".")[0]
            return NEVER if package in BETWEEN else INSTALLED_CODE
    return NEVER if os.path.realpath(path).startswith(LIBRARY) else OWN


def site_of(frame):
    """The program's frames from `frame` on, as code and line: its own where there are any, else those of the packages it uses."""
    own, installed = [], []
    for _ in range(DEPTH_MAX):
        if frame is None:
            break
        origin = origin_of(frame.f_code)
        if origin is OWN or (origin is TYPED and frame.f_globals.get("__name__") == "__main__"):
            own.append((frame.f_code, frame.f_lineno))
            if len(own) == FRAMES_MAX:
                break
        elif origin is INSTALLED_CODE and len(installed) < FRAMES_MAX:
            installed.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return tuple(own or installed) or None


def shown(place):
    code, line = place
    path = code.co_filename
    try:
        relative = os.path.relpath(path)
        path = relative if not relative.startswith("..") else path
    except (OSError, ValueError):
        pass
    name = getattr(code, "co_qualname", code.co_name)
    where = f"{path}:{line}" if name == "<module>" else f"{path}:{line} in {name.replace('<locals>.', '')}"
    return where[-FRAME_BYTES_MAX:]


def called(connection, begun, site):
    number = number_of(connection)
    if number is not None:
        teller.tell("call", number, begun, site)


def wrapped(function, connection_of):
    """A blocking method that tells of itself."""

    @functools.wraps(function)
    def call(self, *arguments, **named):
        begun, site = monotonic_ns(), site_of(sys._getframe(1))
        try:
            return function(self, *arguments, **named)
        finally:
            called(connection_of(self), begun, site)

    return call


def wrapped_async(function, connection_of):
    """The same of a coroutine function. When it begins, all that wait for it are on the stack."""

    @functools.wraps(function)
    async def call(self, *arguments, **named):
        begun, site = monotonic_ns(), site_of(sys._getframe(1))
        try:
            return await function(self, *arguments, **named)
        finally:
            called(connection_of(self), begun, site)

    return call


def opening(connect):
    """A blocking function that opens a connection, and tells of it."""

    @functools.wraps(connect)
    def call(*arguments, **named):
        begun, site = monotonic_ns(), site_of(sys._getframe(1))
        connection = connect(*arguments, **named)
        teller.tell("open", number(connection), begun, site)
        return connection

    return call


def opening_async(connect):
    """The same of a coroutine function."""

    @functools.wraps(connect)
    async def call(*arguments, **named):
        begun, site = monotonic_ns(), site_of(sys._getframe(1))
        connection = await connect(*arguments, **named)
        teller.tell("open", number(connection), begun, site)
        return connection

    return call


def wrap(owner, names, connection_of, wrapper=wrapped):
    for name in names:
        function = owner.__dict__.get(name)
        if callable(function):
            setattr(owner, name, wrapper(function, connection_of))


def itself(connection):
    return connection


def of_psycopg2(module):
    """psycopg2's classes are of C: connections and cursors are of classes made from those that were asked for."""
    extensions = sys.modules["psycopg2.extensions"]
    plain_connection, plain_cursor = extensions.connection, extensions.cursor

    def of_cursor(cursor):
        return cursor.connection

    @functools.cache
    def traced_cursor(base, is_named):
        names = "execute executemany callproc copy_expert copy_from copy_to".split()
        if is_named:
            names += "fetchone fetchmany fetchall scroll close __next__".split()
        methods = {name: wrapped(getattr(base, name), of_cursor) for name in names}
        return type(base.__name__, (base,), {"__module__": base.__module__, "__doc__": base.__doc__, **methods})

    @functools.cache
    def traced_connection(base):
        def cursor(self, *arguments, **named):
            wanted = named.get("cursor_factory") or (arguments[1] if len(arguments) > 1 else None)
            if wanted is None and base.cursor is plain_connection.cursor:
                wanted = self.cursor_factory or plain_cursor
            is_named = (named.get("name") or (arguments[0] if arguments else None)) is not None
            if not isinstance(wanted, type):
                made = super(traced, self).cursor(*arguments, **named)  # it knows itself which class it makes
                try:
                    made.__class__ = traced_cursor(type(made), is_named)
                except TypeError:  # a class of C
                    pass
                return made
            if len(arguments) > 1:
                arguments = (arguments[0], *arguments[2:])
            named["cursor_factory"] = traced_cursor(wanted, is_named)
            return super(traced, self).cursor(*arguments, **named)

        names = "commit rollback set_session lobject poll tpc_begin tpc_prepare tpc_commit tpc_rollback".split()
        methods = {name: wrapped(getattr(base, name), itself) for name in names}
        methods["cursor"] = functools.wraps(base.cursor)(cursor)
        attributes = {"__module__": base.__module__, "__doc__": base.__doc__, **methods}
        traced = type(base.__name__, (base,), attributes)
        return traced

    connect = opening(module.connect)

    @functools.wraps(connect)
    def traced_connect(dsn=None, connection_factory=None, cursor_factory=None, **named):
        wanted = connection_factory or plain_connection
        if isinstance(wanted, type):
            connection_factory = traced_connection(wanted)
        return connect(dsn, connection_factory, cursor_factory, **named)

    module.connect = traced_connect


def of_psycopg(module):
    """All that psycopg 3 sends goes by `wait`."""
    ways = [(module.Connection, wrapped, opening), (module.AsyncConnection, wrapped_async, opening_async)]
    for connection, wrapper, opens in ways:
        wrap(connection, ["wait"], itself, wrapper)
        connection.connect = classmethod(opens(connection.connect.__func__))
    module.connect = module.Connection.connect


def of_asyncpg(module):
    """asyncpg's `Connection`, and what belongs to one."""
    from asyncpg import connect_utils, connection, cursor, prepared_stmt

    methods = "execute executemany fetch fetchmany fetchval fetchrow prepare reset reload_schema_state".split()
    methods += [name for name in vars(connection.Connection) if name.startswith(("copy_", "_copy_"))]
    wrap(connection.Connection, methods, itself, wrapped_async)
    methods = "fetch fetchval fetchrow fetchmany executemany explain".split()
    wrap(prepared_stmt.PreparedStatement, methods, lambda statement: statement._connection, wrapped_async)
    wrap(cursor.Cursor, "fetch fetchrow forward _init".split(), lambda it: it._connection, wrapped_async)
    wrap(cursor.CursorIterator, ["__anext__"], lambda it: it._connection, wrapped_async)
    connect_utils._connect = opening_async(connect_utils._connect)


PATCHES = {"psycopg2": of_psycopg2, "psycopg": of_psycopg, "asyncpg": of_asyncpg}


class Finder(importlib.abc.MetaPathFinder):
    """Wraps a driver's calls when it has been imported."""

    def find_spec(self, name, path=None, target=None):
        patch = PATCHES.get(name)
        if patch is None:
            return None
        others = (finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec"))
        spec = next((spec for finder in others if (spec := finder.find_spec(name, path, target))), None)
        if spec is None or not hasattr(spec.loader, "exec_module"):
            return spec
        execute = spec.loader.exec_module

        def execute_and_patch(module):
            execute(module)
            try:
                patch(module)
            except Exception:  # another version than is known here
                pass

        try:
            spec.loader.exec_module = execute_and_patch
        except AttributeError:
            pass
        return spec


def install():
    """Begins to tell, if `onetrip run` listens."""
    global teller
    path = os.environ.get(VARIABLE)
    if not path or teller is not None:
        return
    teller = Teller(path)
    sys.meta_path.insert(0, Finder())
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=teller.forked)
    import atexit

    atexit.register(teller.end)
