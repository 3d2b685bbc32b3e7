"""The engine `onetrip.django`. Each test is a program of Django in a process of its own: its settings are made once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

HEAD = """
import json, os
import django
from django.conf import settings

address = json.loads(os.environ["ADDRESS"])
settings.configure(
    DATABASES={"default": {
        "ENGINE": "onetrip.django", "NAME": address["dbname"], "HOST": address["host"], "PORT": address["port"],
        "USER": address["user"], "PASSWORD": address["password"], "OPTIONS": OPTIONS,
    }},
    INSTALLED_APPS=APPS, USE_TZ=True, TIME_ZONE="Europe/Berlin", DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()
from django.db import DatabaseError, IntegrityError, ProgrammingError, connection, models, transaction

class Item(models.Model):
    name = models.CharField(max_length=20, unique=True)
    small = models.SmallIntegerField(default=3)
    at = models.DateTimeField(null=True)
    data = models.JSONField(default=dict)

    class Meta:
        app_label = "shop"
        db_table = TABLE

def trips(act):
    before = connection.connection.trips
    act()
    return connection.connection.trips - before

with connection.cursor() as cursor:
    cursor.execute(f"DROP TABLE IF EXISTS {TABLE}")
with connection.schema_editor() as editor:
    editor.create_model(Item)
"""
TAIL = """
with connection.schema_editor() as editor:
    editor.delete_model(Item)
connection.close()
"""


def program(server: dict[str, Any], body: str, options: str = "{}", apps: str = "['onetrip.django']") -> str:
    """What a program prints, in whose surroundings there is no psycopg."""
    names = f"OPTIONS, APPS, TABLE = {options}, {apps}, 'django_{abs(hash(body)) % 10**9}'\n"
    # Whoever imports psycopg fails.
    blocked = "import sys\nsys.modules.update(psycopg=None, psycopg2=None, psycopg_pool=None)\n"
    environment = os.environ | {"ADDRESS": json.dumps(server)}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    command = [sys.executable, "-c", blocked + names + HEAD + body + TAIL]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_savepoints_and_begin_cost_no_trips(server: dict[str, Any]) -> None:
    body = """
def save():
    Item.objects.create(name="a")

def in_a_block():
    with transaction.atomic():
        Item.objects.create(name="b")
        Item.objects.filter(name="b").update(small=5)

def nested():
    with transaction.atomic():
        for number in range(3):
            with transaction.atomic():
                Item.objects.create(name=f"n{number}")

def nothing():
    with transaction.atomic(), transaction.atomic():
        pass

def get_or_create():
    Item.objects.get_or_create(name="c")

def bulk_create():
    Item.objects.bulk_create([Item(name=f"m{number}") for number in range(2000)])

print([trips(act) for act in (save, in_a_block, nested, nothing, get_or_create, bulk_create)])
print(Item.objects.count())
"""
    # INSERT; BEGIN with INSERT, UPDATE, COMMIT; three INSERTs and COMMIT; SELECT, INSERT, COMMIT; one INSERT, COMMIT.
    assert program(server, body) == "[1, 3, 4, 0, 3, 2]\n2006\n"


def test_errors_undo_their_savepoint_alone(server: dict[str, Any]) -> None:
    body = """
with transaction.atomic():
    Item.objects.create(name="kept")
    for wrong in (lambda: Item.objects.create(name="kept"), lambda: connection.cursor().execute("SELEKT")):
        try:
            with transaction.atomic():
                wrong()
        except DatabaseError as error:
            print(type(error).__name__, error.__cause__.sqlstate)
    with transaction.atomic():
        Item.objects.create(name="too")
try:
    with transaction.atomic():
        with transaction.atomic():
            Item.objects.create(name="undone")
        raise ZeroDivisionError
except ZeroDivisionError:
    pass
print(sorted(Item.objects.values_list("name", flat=True)))
"""
    printed = "IntegrityError 23505\nProgrammingError 42601\n['kept', 'too']\n"
    assert program(server, body) == printed


def test_a_release_that_fails_is_heard_at_once(server: dict[str, Any]) -> None:
    body = """
with transaction.atomic():
    try:
        with transaction.atomic():
            Item.objects.create(name="a")
            connection.savepoint_ids.append("12")
    except DatabaseError as error:
        print(error.__cause__.sqlstate, connection.needs_rollback)
    connection.savepoint_ids.clear()
print(Item.objects.count())
"""
    assert program(server, body) == "3B001 True\n0\n"


def test_values_are_as_django_has_them(server: dict[str, Any]) -> None:
    body = """
import datetime
at = datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
Item.objects.create(name="50 % 'x' \\\\", at=at, data={"a": [1, None]}, small=-4)
item = Item.objects.get(name__contains="% '", small__lt=0)
print(item.name, item.at == at, item.at.tzinfo, item.data, item.small)
with connection.cursor() as cursor:
    print(cursor.callproc("abs", [-3]), cursor.fetchone())
print([one.name for one in Item.objects.iterator(chunk_size=1)])
"""
    printed = "50 % 'x' \\ True UTC {'a': [1, None]} -4\n[-3] (3,)\n[\"50 % 'x' \\\\\"]\n"
    assert program(server, body) == printed


def test_logged_statements_are_those_of_django(server: dict[str, Any]) -> None:
    body = """
from django.test.utils import CaptureQueriesContext
with CaptureQueriesContext(connection) as captured:
    with transaction.atomic(), transaction.atomic():
        Item.objects.filter(name="it's").exists()
print([query["sql"].split(" ")[0] for query in captured])
print("'it''s'" in captured[2]["sql"])
"""
    assert program(server, body) == "['BEGIN', 'SAVEPOINT', 'SELECT', 'RELEASE', 'COMMIT']\nTrue\n"


def test_it_binds_at_the_server_where_that_is_asked_for(server: dict[str, Any]) -> None:
    body = """
with transaction.atomic(), transaction.atomic():
    Item.objects.create(name="a")
print(trips(lambda: Item.objects.get(name="a")), [one.name for one in Item.objects.iterator()])
"""
    assert program(server, body, "{'server_side_binding': True}") == "1 ['a']\n"


def test_its_pool_is_ours(server: dict[str, Any]) -> None:
    body = """
pid = connection.connection.backend_pid
connection.close()
Item.objects.create(name="a")
print(connection.connection.backend_pid == pid, type(connection.pool).__module__)
"""
    closing = "\nconnection.close_pool()\n"
    printed = program(server, body + "connection.ensure_connection()\n", "{'pool': {'min_size': 0, 'max_size': 2}}")
    assert printed == "True onetrip.connection_pool\n", closing


def test_types_of_contrib_postgres_work(server: dict[str, Any]) -> None:
    body = """
from django.contrib.postgres.fields import ArrayField, HStoreField, IntegerRangeField
from django.db.backends.postgresql.psycopg_any import NumericRange

class Thing(models.Model):
    tags = ArrayField(models.CharField(max_length=9))
    span = IntegerRangeField()

    class Meta:
        app_label = "shop"

with connection.schema_editor() as editor:
    editor.create_model(Thing)
Thing.objects.create(tags=["a", "b,c"], span=NumericRange(1, 5))
thing = Thing.objects.get(tags__contains=["a"], span__contains=3)
print(thing.tags, thing.span, NumericRange.__module__)
with connection.schema_editor() as editor:
    editor.delete_model(Thing)
"""
    apps = "['onetrip.django', 'django.contrib.postgres']"
    assert program(server, body, apps=apps) == "['a', 'b,c'] [1, 5) onetrip.types.range\n"


def test_it_says_what_to_do_where_psycopg_came_first(server: dict[str, Any]) -> None:
    pytest.importorskip("psycopg")
    code = (
        "import django.db.backends.postgresql.psycopg_any\n"
        "from django.core.exceptions import ImproperlyConfigured\n"
        "try:\n    import onetrip.django.base\n"
        "except ImproperlyConfigured as error:\n    print('first in INSTALLED_APPS' in str(error))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.stdout == "True\n", run.stderr


def test_nothing_of_it_is_left_in_a_process_that_has_psycopg() -> None:
    pytest.importorskip("psycopg")
    code = (
        "import onetrip.django\nimport django.db.backends.postgresql.base as base\nimport psycopg\n"
        "print(psycopg.__name__, base.Database.connect.__module__, psycopg.connect.__module__)\n"
    )
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "django.conf.global_settings"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert run.stdout == "psycopg onetrip.django._stand_in psycopg.connection\n", run.stderr
