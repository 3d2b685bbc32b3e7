"""What a table of Arrow takes of memory while it is made: the rows as they came are given back as they become buffers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import onetrip
import pytest

pyarrow = pytest.importorskip("pyarrow")

ROWS = 400_000
QUERY = f"""SELECT n::int8 AS id, n / 7.0::float8 AS share, 'a text of item ' || n AS name, now() AS at
FROM generate_series(1, {ROWS}) n"""

# Peak of the process beyond what it had before, and the bytes of the table, by the kernel's count.
CHILD = """
import json, sys
import onetrip, pyarrow

def kib(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field))

target, query, binary = json.loads(sys.argv[1])
with onetrip.connect(**target) as connection:
    connection.cursor(binary=binary).execute(query + " LIMIT 10").fetch_arrow()
    with open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")
    before = kib("VmRSS")
    table = connection.cursor(binary=binary).execute(query).fetch_arrow()
    print(json.dumps([(kib("VmHWM") - before) * 1024, table.nbytes, table.num_rows]))
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak is the kernel's count")
@pytest.mark.parametrize(("binary", "most"), [(True, 1.9), (False, 2.4)])
def test_a_table_takes_little_more_than_its_rows_as_they_came(
    server: dict[str, Any], binary: bool, most: float
) -> None:
    arguments = json.dumps([server, QUERY, binary])
    said = subprocess.run([sys.executable, "-c", CHILD, arguments], capture_output=True, text=True, check=True)
    peak, size, rows = json.loads(said.stdout)
    assert rows == ROWS
    # The rows as they came are a little more than the table is, and as text half as much again.
    assert peak <= most * size, f"{peak / 2**20:.1f} MiB for a table of {size / 2**20:.1f} MiB"


def test_rows_that_became_arrow_cannot_be_gone_back_to(connection: onetrip.Connection) -> None:
    cursor = connection.execute("SELECT generate_series(1, 5) AS n")
    assert cursor.fetchone() == (1,)
    table = cursor.fetch_arrow()
    assert table.column("n").to_pylist() == [2, 3, 4, 5]
    assert (cursor.fetchall(), cursor.rownumber) == ([], 5)
    with pytest.raises(onetrip.ProgrammingError, match="given out as Arrow"):
        cursor.scroll(0, mode="absolute")


def test_a_long_table_is_in_chunks_and_a_short_one_in_one(connection: onetrip.Connection) -> None:
    cursor = connection.execute("SELECT n, repeat('x', n % 100) AS t FROM generate_series(1, 150000) n")
    table = cursor.fetch_arrow()
    assert [len(chunk) for chunk in table.column("n").chunks] == [65_536, 65_536, 18_928]
    assert table.column("n").to_pylist() == list(range(1, 150_001))
    assert table.column("t").to_pylist() == ["x" * (number % 100) for number in range(1, 150_001)]
    for count in (0, 1):
        one = connection.execute(f"SELECT 1 AS n LIMIT {count}").fetch_arrow()
        assert (one.num_rows, one.column_names) == (count, ["n"])


def test_rows_of_many_pieces_are_read_in_any_order(connection: onetrip.Connection) -> None:
    cursor = connection.execute("SELECT n, repeat('y', 5000 + n % 7) FROM generate_series(0, 2000) n")
    wanted = [(number, "y" * (5000 + number % 7)) for number in range(2001)]
    assert cursor.fetchall() == wanted
    for at in (1990, 3, 211, 0):
        cursor.scroll(at, mode="absolute")
        assert cursor.fetchmany(300) == wanted[at : at + 300]
    wide = connection.execute("SELECT n, repeat('z', n * 1000000) FROM generate_series(0, 5) n")
    assert wide.fetchall() == [(number, "z" * (number * 1_000_000)) for number in range(6)]
