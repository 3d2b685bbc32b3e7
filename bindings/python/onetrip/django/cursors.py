"""Cursors as Django's engine wants them: with parameters in the statement's text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onetrip
from onetrip._base.cursor import Params, Statement
from onetrip.client_cursor import ClientCursorMixin as Merging
from onetrip.types.numeric import Int2


class ClientCursorMixin(Merging):
    """Writes parameters into the statement's text, and keeps that text."""

    shown: str | None = None

    def _asked(self, statement: Statement, params: Params, how: int) -> tuple[str, Params]:
        asked: tuple[str, Params] = super()._asked(statement, _plain(params), how)  # type: ignore[misc]
        self.shown = asked[0]
        return asked


class ClientCursor(ClientCursorMixin, onetrip.Cursor):
    """A cursor whose statements have no parameters on their way."""


def _plain(params: Params) -> Params:
    """Small numbers as plain ones, whose literals have no type."""
    if isinstance(params, Mapping):
        return {name: int(value) if type(value) is Int2 else value for name, value in params.items()}
    if params is None or isinstance(params, str | bytes):
        return params
    made: list[Any] = [int(value) if type(value) is Int2 else value for value in params]
    return made
