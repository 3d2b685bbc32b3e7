"""A server that is none, in MySQL's place: one process for each session, whose number the greeting has.

`with Stub() as stub: stub.port`. It lets everybody in, and answers `SELECT 'word'`, with `WHERE SLEEP(N) = 0` behind it N seconds
later.
"""

from __future__ import annotations

import os
import re
import socket
import struct
import time

import pgstub

STATEMENT = re.compile(rb"SELECT '(\w+)'([^']*?)(?: FROM DUAL WHERE SLEEP\(([\d.]+)\) = 0)?")
OK, EOF, ERR, QUERY, QUIT = b"\x00", b"\xfe", b"\xff", b"\x03", b"\x01"
# Long password, protocol 4.1, transactions, secure connection, authentication by a plugin.
CAPABILITIES = 0x0001 | 0x0200 | 0x2000 | 0x8000 | 0x80000
STATUS_AUTOCOMMIT = 2
UTF8MB4 = 45


def packet(payload: bytes, number: int) -> bytes:
    return len(payload).to_bytes(3, "little") + bytes([number % 256]) + payload


def short(text: bytes) -> bytes:
    return bytes([len(text)]) + text


def greeting() -> bytes:
    salt = b"12345678abcdefghijkl"
    head = b"\x0a5.7.0-stub\0" + struct.pack("<I", os.getpid()) + salt[:8] + b"\0"
    low, high = CAPABILITIES & 0xFFFF, CAPABILITIES >> 16
    middle = struct.pack("<HBHHB10x", low, UTF8MB4, STATUS_AUTOCOMMIT, high, len(salt) + 1)
    return head + middle + salt[8:] + b"\0mysql_native_password\0"


def column(name: bytes) -> bytes:
    """A column of text."""
    names = short(b"def") + short(b"") * 3 + short(name) + short(b"")
    return names + struct.pack("<BHIBHBH", 12, UTF8MB4, 1024, 253, 0, 0, 0)


def serve(stream: socket.socket) -> None:
    incoming = stream.makefile("rb")

    def next_payload() -> bytes:
        header = incoming.read(4)
        payload = incoming.read(int.from_bytes(header[:3], "little"))
        if len(header) < 4:
            raise EOFError
        return payload

    okay = OK + b"\0\0" + struct.pack("<HH", STATUS_AUTOCOMMIT, 0)
    end = EOF + struct.pack("<HH", 0, STATUS_AUTOCOMMIT)
    stream.sendall(packet(greeting(), 0))
    next_payload()
    stream.sendall(packet(okay, 2))
    while (payload := next_payload())[:1] == QUERY:
        found = STATEMENT.fullmatch(payload[1:])
        if found is None:
            raise EOFError
        time.sleep(float(found[3] or 0))
        columns = [column(b"c%d" % place) for place in range(1 + found[2].count(b","))]
        values = [found[1]] + [b"1"] * (len(columns) - 1)
        payloads = [bytes([len(columns)]), *columns, end, b"".join(map(short, values)), end]
        stream.sendall(b"".join(packet(payload, number) for number, payload in enumerate(payloads, 1)))


class Stub(pgstub.Stub):
    name = "stub"
    program = __file__


if __name__ == "__main__":
    pgstub.main(serve)
