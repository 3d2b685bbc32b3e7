"""Connection text: its options, and text made of options."""

from __future__ import annotations

from onetrip import _native
from onetrip.info import _quoted

__all__ = ["conninfo_to_dict", "make_conninfo"]


def conninfo_to_dict(conninfo: str = "", **kwargs: str | int | None) -> dict[str, str | int | None]:
    """The options of connection text, by their keywords. Keywords that are given and not None come before the text's."""
    options: dict[str, str | int | None] = dict(_native.conninfo_options(conninfo))
    return options | {name: value for name, value in kwargs.items() if value is not None}


def make_conninfo(conninfo: str = "", **kwargs: str | int | None) -> str:
    """Connection text with more options. Text alone is only checked. Raises `ProgrammingError` for text that cannot be
    read, and for options that there are not."""
    if not kwargs:
        _native.conninfo_options(conninfo)
        return str(conninfo)
    made = " ".join(f"{name}={_quoted(str(value))}" for name, value in conninfo_to_dict(conninfo, **kwargs).items())
    _native.conninfo_options(made)
    return made
