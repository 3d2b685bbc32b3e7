import os

import django
from django.conf import settings

names = {"NAME": "PGDATABASE", "HOST": "PGHOST", "PORT": "PGPORT", "USER": "PGUSER", "PASSWORD": "PGPASSWORD"}
database = {key: os.environ[variable] for key, variable in names.items()}
settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", **database}})
django.setup()

from django.db import models  # noqa: E402
from sqlalchemy import ForeignKey, create_engine, select  # noqa: E402
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship  # noqa: E402


class Author(models.Model):
    class Meta:
        app_label, db_table = "shop", "author"


class Book(models.Model):
    title = models.TextField()
    author = models.ForeignKey(Author, on_delete=models.CASCADE)

    class Meta:
        app_label, db_table = "shop", "book"


class Base(DeclarativeBase):
    pass


class Writer(Base):
    __tablename__ = "author"
    id: Mapped[int] = mapped_column(primary_key=True)
    works: Mapped[list["Work"]] = relationship()


class Work(Base):
    __tablename__ = "book"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str]
    author_id: Mapped[int] = mapped_column(ForeignKey("author.id"))


def by_django():
    for book in Book.objects.order_by("id")[:20]:
        book.author.id + len(str(book.author))  # OT001 Django


def by_sqlalchemy():
    with Session(create_engine("postgresql+psycopg2://")) as session:
        for writer in session.scalars(select(Writer).order_by(Writer.id)):
            len(writer.works)  # OT001 SQLAlchemy


by_django()
by_sqlalchemy()
