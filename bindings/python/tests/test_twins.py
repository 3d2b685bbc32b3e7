"""The two kinds of connections are twins. Where both wait for the same, the file for asyncio is the source, and the
blocking one is made from it:

UPDATE_TWINS=1 scripts/test-python bindings/python/tests/test_twins.py
"""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import onetrip
import pytest
from onetrip import aio, connection, connection_pool, copying, cursor, lob, pipeline, pool, server_cursor, transaction

PACKAGE = Path(__file__).parents[1] / "onetrip"
# What is made; the other files of the two are what waits.
FILES = ("adding.py", "calls.py", "connection_pool.py", "cursor.py", "lob.py", "server_cursor.py", "transaction.py")
# A line that blocking programs do not need, and one that only they do.
AWAITING_ONLY = "# Awaiting only"
BLOCKING_ONLY = "# Blocking only: "
# What is written otherwise, in this order.
WORDS = (
    (r", for asyncio\.\"\"\"", '."""'),
    (r"\bonetrip\.aio\b", "onetrip"),
    (r"(?<!\w)\(await ([\w.]+\([^()]*\))\)", r"\1"),
    (r"\bawait ", ""),
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\b__a(enter|exit|iter|next)__", r"__\1__"),
    (r"\bStopAsyncIteration\b", "StopIteration"),
    (r"\bimport AsyncIterator, Awaitable\b", "import Iterator"),
    (r"\bAwaitable\[(\w+)\]", r"\1"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\bAsync([A-Z]\w*)", r"\1"),
)
MODULES = (connection, connection_pool, copying, cursor, lob, pipeline, pool, server_cursor, transaction)


def blocking_of(name: str, source: str) -> str:
    """The blocking file that a file for asyncio makes."""
    text = "".join(line for line in source.splitlines(keepends=True) if AWAITING_ONLY not in line)
    text = text.replace(BLOCKING_ONLY, "")
    for pattern, words in WORDS:
        text = re.sub(pattern, words, text)
    return f"# Made from aio/{name} by tests/test_twins.py: change that one.\n{text}"


def squeezed(text: str) -> str:
    """What a formatter leaves alone: it moves lines and names of imports, and with them commas and brackets."""
    imports = re.compile(r"^ *(?:from [\w.]+ )?import (?:\([^)]*\)|.*)\n|^__all__ = .*\n", re.MULTILINE)
    names = sorted(name for found in imports.findall(text) for name in re.findall(r"[\w.]+", found))
    return re.sub(r"[\s,()]", "", imports.sub("", text)) + " ".join(names)


@pytest.mark.parametrize("name", FILES)
def test_a_blocking_file_is_what_the_one_for_asyncio_says(name: str) -> None:
    made = blocking_of(name, (PACKAGE / "aio" / name).read_text())
    path = PACKAGE / name
    if "UPDATE_TWINS" in os.environ:
        path.write_text(made)
        ruff = shutil.which("ruff") or str(Path(sys.executable).with_name("ruff"))
        for order in (["check", "--quiet", "--select=I,RUF022", "--preview", "--fix"], ["format", "--quiet"]):
            subprocess.run([ruff, *order, path], check=True)
    assert squeezed(path.read_text()) == squeezed(made), (
        f"onetrip/{name} is not what onetrip/aio/{name} makes: change that one, then "
        "UPDATE_TWINS=1 scripts/test-python bindings/python/tests/test_twins.py"
    )


def test_words_become_those_of_programs_that_wait() -> None:
    source = '''"""Cursors, for asyncio."""
from onetrip.aio.cursor import AsyncCursor

class AsyncThing:
    async def __anext__(self) -> AsyncIterator[Row]:
        # Awaiting only: a task may be cancelled.
        # Blocking only: self.check()
        rows = (await self._some(1)).many(2)
        async with self.lock() as lock:
            raise StopAsyncIteration
'''
    assert (
        blocking_of("thing.py", source).split("\n", 1)[1]
        == '''"""Cursors."""
from onetrip.cursor import Cursor

class Thing:
    def __next__(self) -> Iterator[Row]:
        self.check()
        rows = self._some(1).many(2)
        with self.lock() as lock:
            raise StopIteration
'''
    )


def twins() -> dict[str, tuple[Any, Any]]:
    """Classes and functions of the package that have a twin for asyncio, by the blocking one's name."""
    found: dict[str, tuple[Any, Any]] = {"connect": (onetrip.connect, aio.connect)}
    for name in aio.__all__:
        if name.startswith("Async"):
            plain = name.removeprefix("Async")
            (blocking,) = {getattr(module, plain) for module in MODULES if hasattr(module, plain)}
            found[plain] = (blocking, getattr(aio, name))
    return found


def parameters(call: Any) -> list[str]:
    """The names of a call's parameters, with what they are if nobody gives them."""
    return [f"{one.name}={one.default}" for one in inspect.signature(call).parameters.values()]


def differences() -> set[str]:
    """What one of two twins has and the other lacks, and calls that take other arguments."""
    found: set[str] = set()
    for name, (blocking, awaiting) in twins().items():
        if inspect.isfunction(blocking):
            pairs = [(name, blocking, awaiting)]
        else:
            own, others = ({one for one in dir(kind) if not one.startswith("_")} for kind in (blocking, awaiting))
            found.update(f"blocking {name}.{one}" for one in own - others)
            found.update(f"asyncio {name}.{one}" for one in others - own)
            pairs = [(f"{name}.{one}", getattr(blocking, one), getattr(awaiting, one)) for one in own & others]
            pairs.append((name, blocking.__init__, awaiting.__init__))
        for call, mine, other in pairs:
            if inspect.isroutine(mine) and parameters(mine) != parameters(other):
                found.add(f"arguments {call}")
    return found


def test_a_public_call_of_one_is_one_of_the_other_or_has_a_reason() -> None:
    tomllib = pytest.importorskip("tomllib")
    entries = tomllib.loads((Path(__file__).parent / "twins.toml").read_text())["only"]
    reasons = {f"{entry['side']} {entry['call']}": entry["why"] for entry in entries}
    assert len(reasons) == len(entries) and all(len(why) > 10 for why in reasons.values())
    found = differences()
    assert len(twins()) >= 13 and "blocking Connection.set_timeout" in found, "twins are found"
    assert not found - set(reasons), "give both, or a reason in twins.toml"
    assert not set(reasons) - found, "twins.toml has reasons for what is not so"
