#!/usr/bin/env python3
"""One act of Django's object-relational mapper over psycopg 3; `django_acts.py mysql ACT` is over mysqlclient."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable
from functools import partial

import django
from acts import (
    ACCOUNT_IDS,
    AUTHOR_COUNT,
    BOOKS_PER_AUTHOR,
    LOOP_COUNT,
    PAGE_AUTHORS,
    TABLE_ROWS,
    WALK_ROWS,
    expect,
    main,
    messages,
    named,
    unseen,
)
from django.conf import settings

IS_MYSQL = sys.argv[1:2] == ["mysql"]
# Django's backend, and the variables of host, port, user, password and database.
BACKEND, *VARIABLES = (
    ("mysql", "MYSQL_HOST", "MYSQL_TCP_PORT", "MYSQL_USER", "MYSQL_PWD", "MYSQL_DATABASE")
    if IS_MYSQL
    else ("postgresql", "PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGDATABASE")
)

settings.configure(
    USE_TZ=True,
    DATABASES={
        "default": {
            "ENGINE": f"django.db.backends.{BACKEND}",
        }
        | {
            name: os.environ.get(variable, "")
            for name, variable in zip(("HOST", "PORT", "USER", "PASSWORD", "NAME"), VARIABLES, strict=True)
        }
    },
)
django.setup()

from django.db import connection, models, transaction  # noqa: E402 (needs the settings)


class Author(models.Model):
    id = models.IntegerField(primary_key=True)
    name = models.TextField()

    class Meta:
        app_label = "acts"
        db_table = "authors"


class Book(models.Model):
    id = models.IntegerField(primary_key=True)
    author = models.ForeignKey(Author, models.CASCADE, related_name="books")
    title = models.TextField()
    price = models.DecimalField(max_digits=8, decimal_places=2)

    class Meta:
        app_label = "acts"
        db_table = "books"


class Item(models.Model):
    id = models.IntegerField(primary_key=True)
    v = models.TextField()

    class Meta:
        app_label = "acts"
        db_table = "t"


class Log(models.Model):
    id = models.BigAutoField(primary_key=True)
    message = models.TextField()

    class Meta:
        app_label = "acts"
        db_table = "log"


class Account(models.Model):
    id = models.IntegerField(primary_key=True)
    balance = models.IntegerField()

    class Meta:
        app_label = "acts"
        db_table = "accounts"


class Tag(models.Model):
    id = models.BigAutoField(primary_key=True)
    name = models.TextField(unique=True)

    class Meta:
        app_label = "acts"
        db_table = "tags"


class Link(models.Model):
    id = models.IntegerField(primary_key=True)
    next = models.IntegerField()

    class Meta:
        app_label = "acts"
        db_table = "links"


def act(function, name: str | None = None):
    """Decorator: closes the connection afterwards, as the end of a request does."""

    def run() -> None:
        try:
            function()
        finally:
            connection.close()

    named(name or function.__name__, run)
    return function


def act_of(is_its: bool) -> Callable:
    """Decorator: an act of one of the two databases only."""
    return act if is_its else lambda function: function


def value_is_right(number: int) -> None:
    expect(Item.objects.get(id=number).v, f"value {number}")


# ---- what the driver spends


@act
def connect() -> None:
    connection.ensure_connection()


@act_of(not IS_MYSQL)
def connect_set_timezone() -> None:
    """Where Django's time zone is not the server's, it is set on connecting."""
    connection.settings_dict["TIME_ZONE"] = "Europe/Paris"
    connection.ensure_connection()


def selects(count: int) -> None:
    for number in range(1, count + 1):
        value_is_right(number)


def transaction_of(count: int) -> None:
    with transaction.atomic():
        selects(count)


for count in (1, 2, 6):
    act(partial(selects, count), f"select_{count}")
for count in (1, 2):
    act(partial(transaction_of, count), f"txn_{count}")


@act
def nested_txn() -> None:
    with transaction.atomic(), transaction.atomic():
        value_is_right(1)


@act
def health_check() -> None:
    """What CONN_HEALTH_CHECKS adds to the first query of a request that reuses a connection."""
    value_is_right(1)
    connection.settings_dict["CONN_HEALTH_CHECKS"] = True
    connection.health_check_enabled = True
    connection.health_check_done = False
    value_is_right(2)


@act
def update_obj() -> None:
    account = Account.objects.get(id=311)
    account.balance += 1
    account.save()


@act
def get_or_create_miss() -> None:
    _, is_new = Log.objects.get_or_create(message=f"unseen {uuid.uuid4()}")
    expect(is_new, True)


def walk(chunk_size: int, row_count: int) -> None:
    rows = Item.objects.filter(id__lte=row_count).order_by("id")
    expect(sum(1 for _ in rows.iterator(chunk_size)), row_count)


if not IS_MYSQL:
    act(partial(walk, 10, WALK_ROWS), "cursor_50_by_10")


@act
def n_plus_one_10() -> None:
    for author in Author.objects.order_by("id")[:LOOP_COUNT]:
        expect(len(author.books.all()), BOOKS_PER_AUTHOR)


# ---- findings: what a program does badly, and the same done well


def list_books(authors: models.QuerySet[Author]) -> None:
    books = [book for author in authors for book in author.books.all()]
    expect(len(books), AUTHOR_COUNT * BOOKS_PER_AUTHOR)


act(lambda: list_books(Author.objects.order_by("id")), "bad_OT001")
act(lambda: list_books(Author.objects.order_by("id").prefetch_related("books")), "fixed_OT001")


@act
def bad_OT002() -> None:
    with transaction.atomic():
        for text in messages():
            Log.objects.create(message=text)


@act
def bad_OT002_update() -> None:
    with transaction.atomic():
        for account_id in ACCOUNT_IDS:
            Account.objects.filter(id=account_id).update(balance=models.F("balance") + 1)


@act
def fixed_OT002() -> None:
    Log.objects.bulk_create(Log(message=text) for text in messages())


@act
def fixed_OT002_update() -> None:
    Account.objects.filter(id__in=ACCOUNT_IDS).update(balance=models.F("balance") + 1)


@act
def bad_OT003() -> None:
    for text in messages():
        Log.objects.create(message=text)


act(fixed_OT002, "fixed_OT003")
if not IS_MYSQL:
    act(partial(walk, 10, TABLE_ROWS), "bad_OT004")
    act(partial(walk, 1000, TABLE_ROWS), "fixed_OT004")


def repeat(count: int) -> None:
    with transaction.atomic():
        for _ in range(count):
            expect(Author.objects.get(id=140).name, "author 140")


act(partial(repeat, 10), "bad_OT005")
act(partial(repeat, 1), "fixed_OT005")


@act
def bad_OT006() -> None:
    """What ATOMIC_REQUESTS does to ten small requests."""
    for number in range(1, 11):
        with transaction.atomic():
            value_is_right(number * 7)


def ten_requests() -> None:
    for number in range(1, 11):
        value_is_right(number * 7)


act(ten_requests, "fixed_OT006")
act(ten_requests, "fixed_OT008")


@act
def bad_OT008() -> None:
    """CONN_MAX_AGE = 0, the default: every request connects."""
    for number in range(1, 11):
        value_is_right(number * 7)
        connection.close()


@act
def bad_OT009() -> None:
    for account_id in ACCOUNT_IDS[:12]:
        expect(Account.objects.get(id=account_id).id, account_id)


@act
def fixed_OT009() -> None:
    expect(len(Account.objects.in_bulk(ACCOUNT_IDS[:12])), 12)


def count_authors(health_checks: bool) -> None:
    """Ten requests that reuse their connection, with CONN_HEALTH_CHECKS or without."""
    connection.settings_dict["CONN_HEALTH_CHECKS"] = health_checks
    connection.ensure_connection()
    for _ in range(10):
        connection.health_check_enabled = health_checks
        connection.health_check_done = False  # as close_if_unusable_or_obsolete() does
        expect(Author.objects.count(), AUTHOR_COUNT)


act(partial(count_authors, True), "bad_OT011")
act(partial(count_authors, False), "fixed_OT011")


@act
def bad_OT012() -> None:
    for author_id in PAGE_AUTHORS:
        books = Book.objects.filter(author_id=author_id)
        expect(Author.objects.get(id=author_id).id, author_id)
        expect(len(books), BOOKS_PER_AUTHOR)
        expect(books.aggregate(models.Max("price")) is not None, True)


@act
def fixed_OT012() -> None:
    """One query: each book brings its author, and the dearest is found among them."""
    for author_id in PAGE_AUTHORS:
        books = list(Book.objects.filter(author_id=author_id).select_related("author"))
        expect(len(books), BOOKS_PER_AUTHOR)
        expect(max(book.price for book in books) > 0, True)


@act
def bad_OT013() -> None:
    with transaction.atomic():
        for account_id in ACCOUNT_IDS:
            account = Account.objects.select_for_update().get(id=account_id)
            account.balance += 1
            account.save()


@act
def fixed_OT013() -> None:
    with transaction.atomic():
        for account_id in ACCOUNT_IDS:
            Account.objects.filter(id=account_id).update(balance=models.F("balance") + 1)


@act
def bad_OT015() -> None:
    with transaction.atomic():
        for name in unseen():
            _, is_new = Tag.objects.get_or_create(name=name)
            expect(is_new, True)


@act
def fixed_OT015() -> None:
    tags = [Tag(name=name) for name in unseen()]
    Tag.objects.bulk_create(tags, ignore_conflicts=True)


# ---- what only MySQL has

# Leaves out the driver's switching autocommit off and on, and Django's level: the server's stays.
LEAN = {"autocommit": True, "isolation_level": None}


def with_options(options: dict[str, object], work: Callable[[], None]) -> Callable[[], None]:
    """Runs it with these settings, as if they stood in DATABASES."""

    def run() -> None:
        connection.settings_dict["OPTIONS"] = options
        work()

    return run


def reconnect() -> None:
    """A process asks for the server's version once; the other settings go with each connection."""
    for _ in range(2):
        connection.ensure_connection()
        connection.close()


def isolate() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")


def isolated_requests(before: Callable[[], None]) -> None:
    for _ in range(10):
        before()
        expect(Author.objects.count(), AUTHOR_COUNT)


def upsert() -> None:
    """MySQL takes any unique key for the conflict's: unique_fields must be left out."""
    tags = [Tag(name=name) for name in unseen()]
    Tag.objects.bulk_create(tags, update_conflicts=True, update_fields=["name"])


def chain() -> None:
    """Each answer names the next question."""
    number = 713
    for _ in range(10):
        number = Link.objects.get(id=number).next
    expect(number, 713)


def two_of_each() -> None:
    """Too few to be a loop."""
    for author_id in PAGE_AUTHORS[:2]:
        expect(len(Book.objects.filter(author_id=author_id)), BOOKS_PER_AUTHOR)


if IS_MYSQL:
    for name, options in (
        ("connect_autocommit", {"autocommit": True}),
        ("connect_no_isolation", {"isolation_level": None}),
        ("connect_lean", LEAN),
        ("connect_init_command", {"init_command": "SET sql_mode = 'TRADITIONAL'"}),
    ):
        act(with_options(options, connection.ensure_connection), name)
    act(reconnect)
    act(partial(isolated_requests, isolate), "bad_OT011_set")
    repeatable = {"isolation_level": "repeatable read"}
    act(with_options(repeatable, partial(isolated_requests, lambda: None)), "fixed_OT011_set")
    act(with_options(LEAN, bad_OT008), "bad_OT008_lean")
    act(upsert, "fixed_OT015_update")
    act(chain, "trap_chain")
    act(two_of_each, "trap_two_of_each")
    # Portions of iterator() are those of a server's cursor elsewhere. Here they are read from one answer.
    act(partial(walk, 10, TABLE_ROWS), "trap_iterator")


if __name__ == "__main__":
    sys.exit(main(sys.argv[2:] if IS_MYSQL else None))
