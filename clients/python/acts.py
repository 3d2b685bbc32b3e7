"""What the act programs share: `PROGRAM ACT` runs one act, `PROGRAM --list` names them."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable, Sequence

Act = Callable[[], None]

# What the seeded tables hold (clients/schema.sql).
AUTHOR_COUNT = 12
BOOKS_PER_AUTHOR = 3
LOOP_COUNT = 10
WALK_ROWS = 50
TABLE_ROWS = 200
WRITE_ROWS = 20
# Rows that the acts of mappers write one by one: enough for each finding.
FEW = 8
ACCOUNT_IDS = (311, 324, 338, 347, 359, 366, 372, 385, 394, 408)
ACCOUNT_IDS += (419, 423, 437, 446, 458, 469, 471, 483, 495, 502)
FILE_IDS = (613, 627, 634)
FILE_CONTENT = b"0123456789" * 30
FILE_PORTION = 100
PAGE_AUTHORS = (112, 140, 175, 203)

# Statements of drivers that write a parameter as %s.
BOOKS_OF = "SELECT title, price FROM books WHERE author_id = %s ORDER BY id"
INSERT_LOG = "INSERT INTO log (message) VALUES (%s)"
UPDATE_ACCOUNT = "UPDATE accounts SET balance = balance + %s WHERE id = %s"

REGISTERED: dict[str, Act] = {}


def act(function: Act) -> Act:
    """Decorator: the function's name is the act's name."""
    return named(function.__name__, function)


def named(name: str, function: Act) -> Act:
    if name in REGISTERED:
        raise ValueError(f"two acts are called {name}")
    REGISTERED[name] = function
    return function


def expect(actual: object, wanted: object) -> None:
    """Fails the act: a wrong answer is not a cheap answer."""
    if actual != wanted:
        raise AssertionError(f"got {actual!r}, wanted {wanted!r}")


def messages(count: int = WRITE_ROWS) -> list[str]:
    return [f"message {number}" for number in range(1, count + 1)]


def unseen(count: int = WRITE_ROWS) -> list[str]:
    """Names that no row has."""
    return [f"unseen {uuid.uuid4()}" for _ in range(count)]


def main(arguments: Sequence[str] | None = None) -> int:
    names = list(sys.argv[1:] if arguments is None else arguments)
    if names == ["--list"]:
        print("\n".join(REGISTERED))
        return 0
    if len(names) != 1 or names[0] not in REGISTERED:
        print(f"usage: {sys.argv[0]} ACT, one of: {' '.join(REGISTERED)}", file=sys.stderr)
        return 2
    REGISTERED[names[0]]()
    return 0
