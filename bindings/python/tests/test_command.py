"""The `onetrip` command as the wheel carries it: without the lab, SQLite and PNG charts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from onetrip import _native

FAILED = 125


def said(command: Path, *arguments: str) -> tuple[int, str]:
    """What a call exits with, and what it says on standard error."""
    done = subprocess.run([command, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    "arguments", [("serve", "shop.db"), ("serve", "--help"), ("lab",), ("lab", "tune", "--table", "item"), ("demo",)]
)
def test_what_the_wheel_lacks_says_so_in_a_line_and_where_it_is(
    command: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    page = ("--html", str(tmp_path / "report.html")) if arguments == ("demo",) else ()
    code, line = said(command, *arguments, *page)
    assert (code, line.count("\n")) == (FAILED, 1)
    assert f"`onetrip {arguments[0]}`" in line and "in this build" in line and "Debian package" in line


def test_a_chart_as_png_is_refused_with_the_way_out(command: Path) -> None:
    code, text = said(command, "report", "run.trace", "--chart", "cost.png")
    assert code == FAILED and "must end in .svg" in text


def test_the_package_holds_no_database_no_renderer_and_no_lab() -> None:
    module = Path(_native.__file__).read_bytes()
    assert b"PostgreSQL" in module, "it is read"
    assert not [part for part in (b"SQLite format 3", b"tiny-skia", b"onetrip_lab") if part in module]


def test_the_rest_is_there(command: Path) -> None:
    done = subprocess.run([command, "--help"], capture_output=True, text=True, timeout=60, check=True)
    names = {line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ") and line.split()}
    assert {"run", "gateway", "analyze", "report", "forecast", "explain", "export", "demo", "ping", "link"} <= names
    assert not {"serve", "lab"} & names
