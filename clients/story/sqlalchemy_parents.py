#!/usr/bin/env python3
"""Parents with two lazy collections, by SQLAlchemy on psycopg 3."""

from __future__ import annotations

from sqlalchemy import ForeignKey, create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship
from story import Story, arguments


class Base(DeclarativeBase):
    """The tables of schema.sql."""


class Toy(Base):
    __tablename__ = "toy"
    id: Mapped[int] = mapped_column(primary_key=True)
    parent_id: Mapped[int] = mapped_column(ForeignKey("parent.id"))
    name: Mapped[str]


class Book(Base):
    __tablename__ = "book"
    id: Mapped[int] = mapped_column(primary_key=True)
    parent_id: Mapped[int] = mapped_column(ForeignKey("parent.id"))
    name: Mapped[str]


class Parent(Base):
    __tablename__ = "parent"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    toys: Mapped[list[Toy]] = relationship()
    books: Mapped[list[Book]] = relationship()


def main() -> None:
    _, count = arguments(("parents",))
    engine = create_engine("postgresql+psycopg://", isolation_level="REPEATABLE READ")
    story = Story()
    with engine.connect() as connection, Session(connection) as session:
        story.begin()
        for parent in session.scalars(select(Parent).order_by(Parent.id)).all()[:count]:
            story.lines.append(f"{parent.id} {parent.name}")
            story.lines += sorted(toy.name for toy in parent.toys)
            story.lines += sorted(book.name for book in parent.books)
        session.commit()
        story.end()
    engine.dispose()
    story.print()


main()
