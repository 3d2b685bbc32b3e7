"""What `scripts/faults` knows of the two protocols: a program's session, and the databases that it meets.

A session is as small as it can be. It sends one statement after the other, each of which gives one word, and sees whether it
has its answer, or how it is told that it is over."""

from __future__ import annotations

import hashlib
import re
import select
import socket
import struct
import time
from collections.abc import Callable
from typing import Self

import mystub
import pgserver
import pgstub
from mysqlserver import MysqlServer

# What is waited for where the bound is not what is tried.
PATIENCE = 30.0
# Long enough that an answer would have come.
A_WHILE = 0.5


class Fault(Exception):
    """Something is not as it must be, whatever the table says."""


class Session:
    """Calls `answered` for each answer that it gets."""

    def __init__(self, port: int, answered: Callable[[], None]) -> None:
        self.answered = answered
        self.stream = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.buffer = b""
        # What the server calls it, and what cancels its statements.
        self.pid = self.key = 0

    def greet(self) -> None:
        """Says what it wants; nothing is waited for."""
        raise NotImplementedError

    def log_in(self) -> Session:
        """Raises EOFError where it is not let in."""
        raise NotImplementedError

    def send(self, text: str) -> None:
        raise NotImplementedError

    def words(self) -> list[bytes]:
        """The answer to the last statement: what its rows have."""
        raise NotImplementedError

    def told(self) -> str:
        """The next thing that is told: `row`, an error's code, or nothing of interest."""
        raise NotImplementedError

    def refusal(self) -> tuple[str, bytes] | None:
        """Behind `greet`: the code and the text of an error, or None where it is let in."""
        raise NotImplementedError

    @staticmethod
    def waiting(word: str, seconds: float) -> str:
        """A statement that gives its word so much later."""
        raise NotImplementedError

    @staticmethod
    def wide(word: str, number: int) -> str:
        """A statement that is told from others by thousands of bytes."""
        raise NotImplementedError

    def exactly(self, length: int) -> bytes:
        while len(self.buffer) < length:
            data = self.stream.recv(1 << 16)
            if not data:
                raise EOFError
            self.buffer += data
        taken, self.buffer = self.buffer[:length], self.buffer[length:]
        return taken

    def answer(self, word: str) -> None:
        """The answer to the last statement; its value must be `word`."""
        if (values := self.words()) != [word.encode()]:
            raise Fault(f"{values!r} instead of {word!r}")
        self.answered()

    def ask(self, word: str) -> None:
        self.send(f"SELECT '{word}'")
        self.answer(word)

    def is_silent(self, seconds: float = A_WHILE) -> bool:
        return not self.buffer and not select.select([self.stream], [], [], seconds)[0]

    def end(self) -> str:
        """How it is told that it is over, after answers that were under way."""
        told = []
        try:
            while True:
                one = self.told()
                if one == "row":
                    told.append("its answer")
                    self.answered()
                elif one:
                    told.append(f"`{one}`")
        except EOFError:
            return ", then ".join(told) or "end of the connection"
        except ConnectionResetError:
            return ", then ".join(told) or "reset"


def fields_of(error: bytes) -> dict[bytes, str]:
    return {field[:1]: field[1:].decode() for field in error.split(b"\0") if field}


class PostgresSession(Session):
    # What neither side may send.
    nonsense = b"\xff" * 64

    def garbled(self) -> str:
        """Behind nonsense of the server's: what the program is told."""
        return self.end()

    def greet(self) -> None:
        parameters = b"user\0onetrip\0database\0postgres\0\0"
        self.stream.sendall(struct.pack(">II", len(parameters) + 8, 3 << 16) + parameters)

    def log_in(self) -> Session:
        self.greet()
        for tag, body in self.until_ready():
            if tag == b"K":
                self.pid, self.key = struct.unpack(">II", body[:8])
        return self

    def send(self, text: str) -> None:
        self.stream.sendall(pgstub.message(b"Q", text.encode() + b"\0"))

    def words(self) -> list[bytes]:
        return [body[6:] for tag, body in self.until_ready() if tag == b"D"]

    def told(self) -> str:
        tag, body = self.next()
        if tag == b"E":
            return fields_of(body)[b"C"]
        return "row" if tag == b"D" else ""

    def refusal(self) -> tuple[str, bytes] | None:
        tag, body = self.next()
        if tag == b"E":
            return fields_of(body)[b"C"], body
        self.until_ready()
        return None

    @staticmethod
    def waiting(word: str, seconds: float) -> str:
        return f"SELECT '{word}' FROM pg_sleep({seconds:g})"

    @staticmethod
    def wide(word: str, number: int) -> str:
        return f'SELECT \'{word}\' AS "c{number}_{"x" * 4000}"'

    def next(self) -> tuple[bytes, bytes]:
        tag, length = struct.unpack(">cI", self.exactly(5))
        return tag, self.exactly(length - 4)

    def until_ready(self) -> list[tuple[bytes, bytes]]:
        seen = []
        while not seen or seen[-1][0] != b"Z":
            seen.append(self.next())
        return seen


class MysqlSession(Session):
    # A packet whose number is not its turn's. (A header of ones would begin a packet of 16 MiB.)
    nonsense = mystub.packet(b"nonsense", 99)

    def garbled(self) -> str:
        if self.exactly(len(self.nonsense)) != self.nonsense:
            raise Fault("it got other bytes than the server sent")
        self.stream.close()
        return "what the server sent"

    user, password = b"onetrip", b"onetrip-secret"

    def greet(self) -> None:
        """The server speaks first."""

    def log_in(self) -> Session:
        if (refused := self.refusal()) is not None:
            raise EOFError(refused)
        return self

    def refusal(self) -> tuple[str, bytes] | None:
        greeting = self.next()
        if greeting[:1] == mystub.ERR:
            return code_of(greeting), greeting
        version_end = greeting.index(b"\0", 1)
        (self.pid,) = struct.unpack_from("<I", greeting, version_end + 1)
        salt = greeting[version_end + 5 : version_end + 13]
        salt += greeting[version_end + 13 + 19 :][:12]
        once = hashlib.sha1(self.password).digest()
        twice = hashlib.sha1(salt + hashlib.sha1(once).digest()).digest()
        proof = bytes(one ^ other for one, other in zip(once, twice, strict=True))
        answer = struct.pack("<IIB23x", mystub.CAPABILITIES, 1 << 24, 45) + self.user + b"\0" + bytes([len(proof)]) + proof
        self.put(answer + b"mysql_native_password\0", 1)
        told = self.next()
        return (code_of(told), told) if told[:1] == mystub.ERR else None

    def put(self, payload: bytes, number: int = 0) -> None:
        self.stream.sendall(mystub.packet(payload, number))

    def send(self, text: str) -> None:
        self.put(mystub.QUERY + text.encode())

    def next(self) -> bytes:
        header = self.exactly(4)
        return self.exactly(int.from_bytes(header[:3], "little"))

    def words(self) -> list[bytes]:
        first = self.next()
        if first[:1] in (mystub.ERR, mystub.OK):
            raise Fault(f"{first!r} instead of rows")
        for _ in range(first[0] + 1):
            self.next()  # the columns, and what ends them
        rows = []
        while not is_end(row := self.next()):
            rows.append(row[1 : 1 + row[0]])
        return rows

    def told(self) -> str:
        payload = self.next()
        if payload[:1] == mystub.ERR:
            return code_of(payload)
        return "row" if re.fullmatch(rb".\w+", payload) and payload[0] == len(payload) - 1 else ""

    @staticmethod
    def waiting(word: str, seconds: float) -> str:
        return f"SELECT '{word}' FROM DUAL WHERE SLEEP({seconds:g}) = 0"

    @staticmethod
    def wide(word: str, number: int) -> str:
        columns = ", ".join(f"1 AS c{number}_{place}_{'x' * 240}" for place in range(16))
        return f"SELECT '{word}' AS c, {columns}"


def code_of(error: bytes) -> str:
    return str(struct.unpack_from("<H", error, 1)[0])


def is_end(payload: bytes) -> bool:
    return payload[:1] == mystub.EOF and len(payload) < 9


# --- Databases.


class Database:
    """What a trial is made with. Where nothing else is said, each session has a process of its own."""

    name: str
    port: int
    session: type[Session]
    # What a server says that has no room for another session.
    too_many: str

    def url(self, port: int, settings: str) -> str:
        raise NotImplementedError

    def process_of(self, session: Session) -> int:
        """What serves a session."""
        return session.pid

    def serves_others(self) -> bool:
        """Whether others are served while a session's process stands still."""
        return True

    def comes_back(self) -> None:
        """Waits until it serves again, after a process was killed."""


class OfPostgres(Database):
    session = PostgresSession
    too_many = "53300"

    def url(self, port: int, settings: str) -> str:
        return f"postgres://onetrip@127.0.0.1:{port}/postgres?sslmode=disable{settings}"


class OfMysql(Database):
    session = MysqlSession
    too_many = "1040"

    def url(self, port: int, settings: str) -> str:
        return f"mysql://onetrip@127.0.0.1:{port}/?sslmode=disable{settings}"


class PostgresStub(pgstub.Stub, OfPostgres):
    pass


class MysqlStub(mystub.Stub, OfMysql):
    pass


class PostgreSQL(OfPostgres):
    name = "PostgreSQL"

    def __enter__(self) -> Self:
        self.server = pgserver.PgServer(auth="trust")
        self.port = self.server.__enter__().port
        return self

    def __exit__(self, *_: object) -> None:
        self.server.__exit__()

    def comes_back(self) -> None:
        time.sleep(A_WHILE)  # it ends all sessions, and starts again


class MariaDB(OfMysql):
    """One process for all."""

    name = "MariaDB"

    def __enter__(self) -> Self:
        self.server = MysqlServer("mariadb")
        self.port = self.server.__enter__().port
        return self

    def __exit__(self, *_: object) -> None:
        self.server.__exit__()

    def process_of(self, session: Session) -> int:
        assert self.server.process is not None
        return self.server.process.pid

    def serves_others(self) -> bool:
        return False

    def comes_back(self) -> None:
        assert self.server.process is not None
        self.server.process.wait()
        if not self.server.try_start(self.port):
            raise Fault(f"MariaDB does not start again: {self.server.log_text()}")
