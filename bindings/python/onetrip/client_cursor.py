"""What makes a cursor write parameters into the statement's text."""

from onetrip._base.cursor import Merging as ClientCursorMixin
from onetrip.aio.cursor import AsyncClientCursor
from onetrip.cursor import ClientCursor

__all__ = ["AsyncClientCursor", "ClientCursor", "ClientCursorMixin"]
