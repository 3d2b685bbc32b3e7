"""Loaders that leave values as text."""

from __future__ import annotations

from typing import Any

from onetrip.adapt import Format, Loader


class TextLoader(Loader):
    """Leaves a value as its text."""

    def load(self, data: Any) -> str:
        """The text."""
        return bytes(data).decode()


class TextBinaryLoader(TextLoader):
    """Leaves the binary form of a type of text as text."""

    format = Format.BINARY


__all__ = ["TextBinaryLoader", "TextLoader"]
