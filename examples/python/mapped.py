"""SQLAlchemy by an engine URL: the server is named by PG* variables here."""

from sqlalchemy import create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column


class Base(DeclarativeBase):
    pass


class Item(Base):
    __tablename__ = "mapped_item"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]


engine = create_engine("postgresql+onetrip://")
Base.metadata.create_all(engine)
with Session(engine) as session:
    session.add_all([Item(name=name) for name in ("nail", "screw", "bolt")])
    session.commit()
    print(session.scalars(select(Item.name).order_by(Item.name)).all())
Base.metadata.drop_all(engine)
