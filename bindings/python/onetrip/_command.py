"""The `onetrip` command, as the wheel installs it."""

from __future__ import annotations

import signal
import sys

from onetrip import _native


def main() -> int:
    """Does what the command line says; what to exit with."""
    # Signals are the command's affair, as they are the program's elsewhere.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _native.command(sys.argv)
