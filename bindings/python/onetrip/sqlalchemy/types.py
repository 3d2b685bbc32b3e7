"""SQLAlchemy's types, as onetrip takes and gives their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import types as sqltypes
from sqlalchemy.dialects.postgresql import BIT, CITEXT, INTERVAL, JSON, JSONB, REGCONFIG
from sqlalchemy.dialects.postgresql._psycopg_common import _PGDialect_common_psycopg
from sqlalchemy.dialects.postgresql.json import JSONPathType
from sqlalchemy.dialects.postgresql.ranges import AbstractMultiRange, AbstractSingleRange

from onetrip.adapt import Json, Jsonb
from onetrip.sqlalchemy.ranges import ManyRanges, OneRange

Processor = Callable[[Any], Any]


class _Cast:
    """The parameter is written with a cast: the server need not guess, and a statement is prepared once whatever sizes
    its numbers have."""

    render_bind_cast = True


class _String(_Cast, sqltypes.String):
    pass


class _RegConfig(_Cast, REGCONFIG):
    pass


class _Integer(_Cast, sqltypes.Integer):
    pass


class _SmallInteger(_Cast, sqltypes.SmallInteger):
    pass


class _BigInteger(_Cast, sqltypes.BigInteger):
    pass


class _Boolean(_Cast, sqltypes.Boolean):
    pass


class _Date(_Cast, sqltypes.Date):
    pass


class _Time(_Cast, sqltypes.Time):
    pass


class _Timestamp(_Cast, sqltypes.DateTime):
    pass


class _Interval(_Cast, INTERVAL):
    pass


class _IntIndex(_Cast, sqltypes.JSON.JSONIntIndexType):
    __visit_name__ = "json_int_index"


class _StrIndex(_Cast, sqltypes.JSON.JSONStrIndexType):
    __visit_name__ = "json_str_index"


class _Json(JSON):
    def bind_processor(self, dialect: Any) -> Processor:
        return self._make_bind_processor(None, _wrapped(Json, dialect))  # type: ignore[no-any-return]


class _Jsonb(JSONB):
    def bind_processor(self, dialect: Any) -> Processor:
        return self._make_bind_processor(None, _wrapped(Jsonb, dialect))  # type: ignore[no-any-return]


class _JsonPath(JSONPathType):
    pass


def _wrapped(kind: type[Json], dialect: Any) -> Processor:
    return lambda value: kind(value, dialect._json_serializer)


COLSPECS = {
    **_PGDialect_common_psycopg.colspecs,
    AbstractSingleRange: OneRange,
    AbstractMultiRange: ManyRanges,
    BIT: BIT,
    CITEXT: CITEXT,
    REGCONFIG: _RegConfig,
    JSON: _Json,
    JSONB: _Jsonb,
    INTERVAL: _Interval,
    sqltypes.String: _String,
    sqltypes.JSON: _Json,
    sqltypes.JSON.JSONPathType: _JsonPath,
    sqltypes.JSON.JSONIntIndexType: _IntIndex,
    sqltypes.JSON.JSONStrIndexType: _StrIndex,
    sqltypes.Interval: _Interval,
    sqltypes.Date: _Date,
    sqltypes.DateTime: _Timestamp,
    sqltypes.Time: _Time,
    sqltypes.Integer: _Integer,
    sqltypes.SmallInteger: _SmallInteger,
    sqltypes.BigInteger: _BigInteger,
    sqltypes.Boolean: _Boolean,
}
