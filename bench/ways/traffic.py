"""What the programs of a made-up capture say, whatever the protocol: `captures.py` has PostgreSQL's messages for it,
`mysql_traffic.py` MySQL's packets."""

from __future__ import annotations

import random
from collections.abc import Callable

EXCHANGES = 160
TABLES = "orders customers invoices payments shipments products suppliers accounts".split()
WORDS = "late blue river stone window paper engine garden silver morning harbour letter copper meadow".split()
SELECT = "SELECT id, customer_id, state, amount, title, changed_at FROM"


class Traffic:
    """One connection: lists of (from_client, payload), one for each exchange."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.exchanges: list[list[tuple[bool, bytes]]] = []

    def query(self, text: str, count: int, size: int = 0) -> None:
        """Adds a text that has so many rows, with a title of that size."""
        raise NotImplementedError

    def done(self, text: str, changed: int, is_open: bool) -> None:
        """Adds a text without rows; `is_open` if a transaction is open behind it."""
        raise NotImplementedError

    def play(self, acts: dict[Callable[[], None], int]) -> None:
        """Adds exchanges, each act as often as its weight says."""
        for _ in range(EXCHANGES):
            self.dice.choices(list(acts), weights=list(acts.values()))[0]()

    def values(self, size: int, changed_at: str) -> list[str]:
        """Those of a row."""
        dice = self.dice
        title = " ".join(dice.choices(WORDS, k=4)) if not size else "x" * size
        return [
            str(dice.randrange(10**6)), str(dice.randrange(10**5)), dice.choice(["open", "paid", "sent"]),
            f"{dice.randrange(10**5) / 100:.2f}", title, changed_at,
        ]

    def simple(self) -> None:
        table, key = self.dice.choice(TABLES), self.dice.randrange(10**6)
        self.query(f"{SELECT} {table} WHERE id = {key} AND state <> 'gone'", 1)

    def listing(self) -> None:
        table, low = self.dice.choice(TABLES), self.dice.randrange(10**6)
        self.query(f"SELECT * FROM {table} WHERE id BETWEEN {low} AND {low + 50} ORDER BY id", 50)

    def report(self) -> None:
        text = "SELECT " + ", ".join(f"sum(CASE WHEN state = '{word}' THEN amount END) AS {word}" for word in WORDS)
        text += f" FROM orders WHERE changed_at >= '2026-{self.dice.randrange(1, 12):02}-01' GROUP BY customer_id"
        self.query(text, 300)

    def long_value(self) -> None:
        self.query(f"SELECT * FROM invoices WHERE id = {self.dice.randrange(10**6)}", 1, 24_000)

    def transaction(self) -> None:
        key, note = self.dice.randrange(10**6), self.dice.choice(WORDS)
        self.done("BEGIN", 0, True)
        self.done(f"UPDATE accounts SET amount = amount - {key % 97}.50, changed_at = now() WHERE id = {key}", 1, True)
        values = f"({key}, {key % 97}.50, 'for {note}')"
        self.done(f"INSERT INTO payments (account_id, amount, note) VALUES {values}", 1, True)
        self.done("COMMIT", 0, False)
