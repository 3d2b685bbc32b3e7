"""The traffic of a made-up capture in MySQL's packets, which `captures.py` puts into segments.

Layouts: MySQL Internals, "Client/Server Protocol".
"""

from __future__ import annotations

import random
import struct

from traffic import SELECT, TABLES, Traffic

# LONG_PASSWORD, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION, PLUGIN_AUTH, DEPRECATE_EOF: both sides set them.
CAPABILITIES = sum(1 << bit for bit in (0, 9, 13, 15, 19, 24))
AUTOCOMMIT, IN_TRANSACTION = 2, 3
LONG, VARCHAR, DECIMAL, DATETIME = 3, 253, 246, 12
CHANGED_AT = "2026-11-23 12:34:56"
COLUMNS = (("id", LONG), ("customer_id", LONG), ("state", VARCHAR), ("amount", DECIMAL), ("title", VARCHAR), ("changed_at", DATETIME))


def lenenc(value: bytes) -> bytes:
    if len(value) < 251:
        return bytes([len(value)]) + value
    return b"\xfc" + struct.pack("<H", len(value)) + value


def packets(payloads: list[bytes], sequence: int = 1) -> bytes:
    numbered = enumerate(payloads, sequence)
    return b"".join(struct.pack("<I", len(payload))[:3] + bytes([number & 255]) + payload for number, payload in numbered)


def ok(status: int, changed: int = 0, head: int = 0) -> bytes:
    return bytes([head, changed, 0]) + struct.pack("<HH", status, 0)


def column(name: str, kind: int) -> bytes:
    texts = b"".join(lenenc(text) for text in (b"def", b"shop", b"t", b"orders", name.encode(), name.encode()))
    return texts + b"\x0c" + struct.pack("<HIBHBH", 45, 80, kind, 0, 0, 0)


DEFINED = [bytes([len(COLUMNS)]), *(column(name, kind) for name, kind in COLUMNS)]
END = ok(AUTOCOMMIT, head=0xFE)


class Conversation(Traffic):
    """The same in MySQL's packets."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__(dice)
        self.prepared: dict[str, int] = {}
        self.exchanges.append(self.log_in())
        acts = {self.named: 40, self.simple: 25, self.listing: 12}
        self.play(acts | {self.transaction: 10, self.long_value: 3, self.report: 5})
        self.exchanges.append([(True, packets([b"\x01"], 0))])

    def log_in(self) -> list[tuple[bool, bytes]]:
        low, high = struct.pack("<H", CAPABILITIES & 0xFFFF), struct.pack("<H", CAPABILITIES >> 16)
        greeting = b"\x0a10.11.6-MariaDB\0\7\0\0\0challeng\0" + low + b"\x2d\2\0" + high + b"\x15" + bytes(10)
        greeting += b"challenge123\0mysql_native_password\0"
        login = struct.pack("<IIB", CAPABILITIES, 1 << 24, 45) + bytes(23) + b"shop\0\x14" + b"a" * 20 + b"mysql_native_password\0"
        return [(False, packets([greeting], 0)), (True, packets([login], 1)), (False, packets([ok(AUTOCOMMIT)], 2))]

    def turn(self, command: bytes, reply: list[bytes]) -> None:
        self.exchanges.append([(True, packets([command], 0)), (False, packets(reply))])

    def text_row(self, size: int) -> bytes:
        return b"".join(lenenc(value.encode()) for value in self.values(size, CHANGED_AT))

    def binary_row(self) -> bytes:
        number, customer, state, amount, title, _ = self.values(0, CHANGED_AT)
        fixed = struct.pack("<II", int(number), int(customer))
        texts = b"".join(lenenc(text.encode()) for text in (state, amount, title))
        return b"\0" + bytes((len(COLUMNS) + 9) // 8) + fixed + texts + b"\7" + struct.pack("<HBBBBB", 2026, 11, 23, 12, 34, 56)

    def query(self, text: str, count: int, size: int = 0) -> None:
        self.turn(b"\3" + text.encode(), [*DEFINED, *(self.text_row(size) for _ in range(count)), END])

    def done(self, text: str, changed: int, is_open: bool) -> None:
        self.turn(b"\3" + text.encode(), [ok(IN_TRANSACTION if is_open else AUTOCOMMIT, changed)])

    def named(self) -> None:
        table = self.dice.choice(TABLES)
        number = self.prepared.get(table)
        if number is None:
            number = self.prepared[table] = len(self.prepared) + 1
            told = b"\0" + struct.pack("<IHHBH", number, len(COLUMNS), 1, 0, 0)
            self.turn(b"\x16" + f"{SELECT} {table} WHERE id = ?".encode(), [told, column("?", LONG), *DEFINED[1:]])
        run = b"\x17" + struct.pack("<IBI", number, 0, 1) + b"\0\1" + bytes([LONG, 0]) + struct.pack("<I", self.dice.randrange(10**6))
        self.turn(run, [*DEFINED, self.binary_row(), END])
