"""The numbers of libpq that programs ask for, by psycopg's name of the module. There is no libpq here."""

from onetrip.adapt import Format
from onetrip.info import ConnStatus, PipelineStatus
from onetrip.session import TransactionStatus

__all__ = ["ConnStatus", "Format", "PipelineStatus", "TransactionStatus"]
