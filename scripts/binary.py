"""Where the command onetrip is, for the scripts that run it."""

from __future__ import annotations

import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent


def built_onetrip() -> Path:
    """The one that ONETRIP names; if it names none, one is built."""
    built = subprocess.run([REPOSITORY / "scripts/built"], stdout=subprocess.PIPE, text=True, check=True)
    return Path(built.stdout.strip())
