"""What programs ask psycopg about its libpq."""

from __future__ import annotations

from onetrip.errors import NotSupportedError

__all__ = ["Capabilities", "capabilities"]


def _answer(can: bool, name: str, check: bool) -> bool:
    if check and not can:
        raise NotSupportedError(f"the feature {name!r} is not available: there is no libpq")
    return can


class Capabilities:
    """Whether the client can do what psycopg can with some versions of libpq. What needs no libpq is there."""

    def has_cancel_safe(self, check: bool = False) -> bool:
        """Whether `cancel_safe()` is there."""
        return _answer(True, "Connection.cancel_safe()", check)

    def has_hostaddr(self, check: bool = False) -> bool:
        """Whether `info.hostaddr` is there."""
        return _answer(True, "Connection.info.hostaddr", check)

    def has_pipeline(self, check: bool = False) -> bool:
        """Whether `pipeline()` is there."""
        return _answer(True, "Connection.pipeline()", check)

    def has_stream_chunked(self, check: bool = False) -> bool:
        """Whether `stream()` takes a size."""
        return _answer(True, "Cursor.stream() with size > 1", check)

    def has_encrypt_password(self, check: bool = False) -> bool:
        """Never: it is a function of libpq's."""
        return _answer(False, "pq.PGconn.encrypt_password()", check)

    def has_full_protocol_version(self, check: bool = False) -> bool:
        """Never: it is a function of libpq's."""
        return _answer(False, "pq.PGconn.full_protocol_version()", check)

    def has_set_trace_flags(self, check: bool = False) -> bool:
        """Never: it is a function of libpq's."""
        return _answer(False, "PGconn.set_trace_flags()", check)

    def has_used_gssapi(self, check: bool = False) -> bool:
        """Never: there is no GSSAPI."""
        return _answer(False, "PGconn.used_gssapi", check)


capabilities = Capabilities()
