"""What one connection of MySQL's sends, as programs do: texts and prepared statements, results of one row and of many,
transactions, long values. `captures.py` makes packets of it.

Layouts: MySQL Internals, "Client/Server Protocol".
"""

from __future__ import annotations

import random
import struct

EXCHANGES = 160
# LONG_PASSWORD, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION, PLUGIN_AUTH, DEPRECATE_EOF: both sides set them.
CAPABILITIES = sum(1 << bit for bit in (0, 9, 13, 15, 19, 24))
AUTOCOMMIT, IN_TRANSACTION = 2, 3
LONG, VARCHAR, DECIMAL, DATETIME = 3, 253, 246, 12
COLUMNS = (("id", LONG), ("customer_id", LONG), ("state", VARCHAR), ("amount", DECIMAL), ("title", VARCHAR), ("changed_at", DATETIME))
TABLES = "orders customers invoices payments shipments products suppliers accounts".split()
WORDS = "late blue river stone window paper engine garden silver morning harbour letter copper meadow".split()


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


class Conversation:
    """Lists of (from_client, payload), one for each exchange."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.prepared: dict[str, int] = {}
        self.exchanges: list[list[tuple[bool, bytes]]] = [self.log_in()]
        acts = [self.named, self.simple, self.listing, self.transaction, self.long_value, self.report]
        for _ in range(EXCHANGES):
            self.dice.choices(acts, weights=[40, 25, 12, 10, 3, 5])[0]()
        self.exchanges.append([(True, packets([b"\x01"], 0))])

    def log_in(self) -> list[tuple[bool, bytes]]:
        low, high = struct.pack("<H", CAPABILITIES & 0xFFFF), struct.pack("<H", CAPABILITIES >> 16)
        greeting = b"\x0a10.11.6-MariaDB\0\7\0\0\0challeng\0" + low + b"\x2d\2\0" + high + b"\x15" + bytes(10)
        greeting += b"challenge123\0mysql_native_password\0"
        login = struct.pack("<IIB", CAPABILITIES, 1 << 24, 45) + bytes(23) + b"shop\0\x14" + b"a" * 20 + b"mysql_native_password\0"
        return [(False, packets([greeting], 0)), (True, packets([login], 1)), (False, packets([ok(AUTOCOMMIT)], 2))]

    def turn(self, command: bytes, reply: list[bytes]) -> None:
        self.exchanges.append([(True, packets([command], 0)), (False, packets(reply))])

    def values(self, size: int = 0) -> list[str]:
        dice = self.dice
        title = " ".join(dice.choices(WORDS, k=4)) if not size else "x" * size
        return [
            str(dice.randrange(10**6)), str(dice.randrange(10**5)), dice.choice(["open", "paid", "sent"]),
            f"{dice.randrange(10**5) / 100:.2f}", title, "2026-11-23 12:34:56",
        ]

    def text_rows(self, count: int, size: int = 0) -> list[bytes]:
        return [b"".join(lenenc(value.encode()) for value in self.values(size)) for _ in range(count)]

    def binary_row(self) -> bytes:
        number, customer, state, amount, title, _ = self.values()
        fixed = struct.pack("<II", int(number), int(customer))
        texts = b"".join(lenenc(text.encode()) for text in (state, amount, title))
        return b"\0" + bytes((len(COLUMNS) + 9) // 8) + fixed + texts + b"\7" + struct.pack("<HBBBBB", 2026, 11, 23, 12, 34, 56)

    def query(self, text: str, rows: list[bytes]) -> None:
        self.turn(b"\3" + text.encode(), [*DEFINED, *rows, END])

    def simple(self) -> None:
        table, key = self.dice.choice(TABLES), self.dice.randrange(10**6)
        text = f"SELECT id, customer_id, state, amount, title, changed_at FROM {table} WHERE id = {key} AND state <> 'gone'"
        self.query(text, self.text_rows(1))

    def named(self) -> None:
        table = self.dice.choice(TABLES)
        number = self.prepared.get(table)
        if number is None:
            number = self.prepared[table] = len(self.prepared) + 1
            text = f"SELECT id, customer_id, state, amount, title, changed_at FROM {table} WHERE id = ?"
            told = b"\0" + struct.pack("<IHHBH", number, len(COLUMNS), 1, 0, 0)
            self.turn(b"\x16" + text.encode(), [told, column("?", LONG), *DEFINED[1:]])
        run = b"\x17" + struct.pack("<IBI", number, 0, 1) + b"\0\1" + bytes([LONG, 0]) + struct.pack("<I", self.dice.randrange(10**6))
        self.turn(run, [*DEFINED, self.binary_row(), END])

    def listing(self) -> None:
        table, low = self.dice.choice(TABLES), self.dice.randrange(10**6)
        self.query(f"SELECT * FROM {table} WHERE id BETWEEN {low} AND {low + 50} ORDER BY id", self.text_rows(50))

    def report(self) -> None:
        text = "SELECT " + ", ".join(f"sum(CASE WHEN state = '{word}' THEN amount END) AS {word}" for word in WORDS)
        text += f" FROM orders WHERE changed_at >= '2026-{self.dice.randrange(1, 12):02}-01' GROUP BY customer_id"
        self.query(text, self.text_rows(300))

    def long_value(self) -> None:
        self.query(f"SELECT * FROM invoices WHERE id = {self.dice.randrange(10**6)}", self.text_rows(1, 24_000))

    def transaction(self) -> None:
        key = self.dice.randrange(10**6)
        note = self.dice.choice(WORDS)
        self.turn(b"\3BEGIN", [ok(IN_TRANSACTION)])
        update = f"UPDATE accounts SET amount = amount - {key % 97}.50, changed_at = now() WHERE id = {key}"
        self.turn(b"\3" + update.encode(), [ok(IN_TRANSACTION, 1)])
        insert = f"INSERT INTO payments (account_id, amount, note) VALUES ({key}, {key % 97}.50, 'for {note}')"
        self.turn(b"\3" + insert.encode(), [ok(IN_TRANSACTION, 1)])
        self.turn(b"\3COMMIT", [ok(AUTOCOMMIT)])
