"""Where a connection leads and how it stands."""

from __future__ import annotations

import codecs
import datetime as dt
import enum
import logging
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from onetrip.errors import NotSupportedError
from onetrip.session import TransactionStatus

logger = logging.getLogger("onetrip")

if TYPE_CHECKING:
    from onetrip.session import SessionState

# PostgreSQL's names of encodings for which Python has others.
_CODECS = {"SQL_ASCII": "ascii", "EUC_CN": "gb2312", "UHC": "cp949", "KOI8R": "koi8-r", "KOI8U": "koi8-u"}

# Zones that somebody was warned of.
_UNKNOWN_ZONES: set[str] = set()


def codec_of(encoding: str) -> str:
    """Python's name of an encoding of the server's."""
    try:
        return codecs.lookup(_CODECS.get(encoding, encoding.replace("WIN", "cp"))).name
    except LookupError:
        raise NotSupportedError(f"Python has no codec for client_encoding {encoding}: set another one") from None


class ConnStatus(enum.IntEnum):
    """Whether a connection can be used; libpq's numbers."""

    OK = 0
    BAD = 1


class PipelineStatus(enum.IntEnum):
    """Whether the block of a pipeline is open; libpq's numbers."""

    OFF = 0
    ON = 1


class ConnectionInfo:
    """What is known of a connection without asking the server."""

    def __init__(self, connection: SessionState[Any], target: dict[str, str]) -> None:
        self._connection = connection
        # The address is no keyword: connection text that has it would not look the name up.
        self._target = {name: value for name, value in target.items() if name not in ("password", "address")}
        self._password, self._address = target.get("password", ""), target.get("address", "")

    @property
    def vendor(self) -> str:
        """Whose server it is."""
        return "PostgreSQL"

    @property
    def host(self) -> str:
        """Name of the server, or directory of its socket."""
        return self._target.get("host", "")

    @property
    def hostaddr(self) -> str:
        """Its address: the one that was given, or to which the name has led."""
        return self._target.get("hostaddr") or self._address

    @property
    def port(self) -> int:
        """Its port."""
        return int(self._target["port"])

    @property
    def dbname(self) -> str:
        """The database."""
        return self._target.get("dbname", "")

    @property
    def user(self) -> str:
        """The role that has logged in."""
        return self._target.get("user", "")

    @property
    def password(self) -> str:
        """The password that it was given; empty where that is in the password file."""
        return self._password

    @property
    def options(self) -> str:
        """The server's options."""
        return self._target.get("options", "")

    @property
    def dsn(self) -> str:
        """All of this as connection text, without the password."""
        return " ".join(f"{name}={_quoted(value)}" for name, value in self._target.items())

    def get_parameters(self) -> dict[str, str]:
        """All of this by keyword."""
        return dict(self._target)

    def parameter_status(self, param_name: str) -> str | None:
        """A setting that the server reports."""
        return self._connection.parameter_status(param_name)

    @property
    def status(self) -> ConnStatus:
        """Whether the connection can be used."""
        closed: Any = self._connection
        return ConnStatus.BAD if closed.closed else ConnStatus.OK

    @property
    def transaction_status(self) -> TransactionStatus:
        """Where the session stands."""
        return self._connection.transaction_status

    @property
    def pipeline_status(self) -> PipelineStatus:
        """Whether the block of a pipeline is open."""
        connection: Any = self._connection
        return PipelineStatus.ON if connection._in_pipeline() else PipelineStatus.OFF

    @property
    def backend_pid(self) -> int:
        """Process id of the server's side."""
        connection: Any = self._connection
        return connection.backend_pid or 0

    @property
    def server_version(self) -> int:
        """The server's version as a number: 150004 is 15.4."""
        text = (self.parameter_status("server_version") or "0").split()[0]
        parts = [int("".join(filter(str.isdigit, part)) or 0) for part in text.split(".")]
        if parts[0] >= 10:
            return parts[0] * 10_000 + (parts[1] if len(parts) > 1 else 0)
        major, minor, patch = (*parts, 0, 0)[:3]
        return major * 10_000 + minor * 100 + patch

    @property
    def encoding(self) -> str:
        """The session's encoding, by Python's name."""
        return codec_of(self.parameter_status("client_encoding") or "UTF8")

    @property
    def timezone(self) -> Any:
        """The session's time zone; UTC where Python does not know it."""
        name = self.parameter_status("TimeZone") or "UTC"
        try:
            return ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            if name not in _UNKNOWN_ZONES:
                _UNKNOWN_ZONES.add(name)
                logger.warning("Python does not know the session's time zone %r: UTC is taken for it", name)
            return dt.timezone.utc

    @property
    def error_message(self) -> str:
        """Nothing: errors are raised."""
        return ""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.dsn}>"


def _quoted(value: str) -> str:
    if value and not any(sign in value for sign in " '\\"):
        return value
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
