"""Where the command onetrip is, for the scripts that run it."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
_LISTENING = re.compile(r"listening at 127\.0\.0\.1:(\d+)")


def built_onetrip() -> Path:
    """The one that ONETRIP names; if it names none, one is built."""
    built = subprocess.run([REPOSITORY / "scripts/built"], stdout=subprocess.PIPE, text=True, check=True)
    return Path(built.stdout.strip())


def listening_port(gateway: subprocess.Popen[bytes], log: Path, seconds_max: float) -> int | None:
    """Where a gateway listens, as it says in its log; None if it ends, or has not said so in time."""
    deadline = time.monotonic() + seconds_max
    while (found := _LISTENING.search(log.read_text())) is None:
        if gateway.poll() is not None or time.monotonic() > deadline:
            return None
        time.sleep(0.01)
    return int(found[1])
