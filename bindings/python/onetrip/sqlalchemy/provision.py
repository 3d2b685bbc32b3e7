"""What SQLAlchemy's testing plugin looks for beside a dialect: databases are made as for its own drivers."""

from sqlalchemy.dialects.postgresql import provision  # noqa: F401
