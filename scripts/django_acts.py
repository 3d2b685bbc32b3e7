"""The programs whose round trips `scripts/django-trips` counts. `onetrip run` runs them, and its gateway counts."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable
from typing import Any

COUNTED: dict[str, int] = {}
ENGINE = os.environ["ENGINE"]
IS_OURS = ENGINE == "onetrip.django"


def trips() -> int:
    """Trips for work since the run began."""
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(os.environ["ONETRIP_CONTROL"])
        control.sendall(b"counts\n")
        counts: dict[str, int] = json.loads(control.makefile().readline())
        return counts["trips"]


def count(name: str, act: Callable[[], Any]) -> None:
    """Writes down the trips of an act."""
    before = trips()
    act()
    COUNTED[name] = trips() - before


def database() -> dict[str, Any]:
    """The settings of the database that PG* variables name."""
    env = os.environ
    return {
        "ENGINE": ENGINE, "NAME": env["PGDATABASE"], "HOST": env["PGHOST"], "PORT": env["PGPORT"],
        "USER": env["PGUSER"], "PASSWORD": env["PGPASSWORD"],
    }  # fmt: skip


def acts() -> None:
    """What views do, one by one."""
    import django
    from django.conf import settings

    settings.configure(
        DATABASES={"default": database()},
        INSTALLED_APPS=["onetrip.django"] if IS_OURS else [],
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    )
    django.setup()
    from django.db import IntegrityError, connection, models, transaction

    class Item(models.Model):
        name = models.CharField(max_length=20, unique=True)
        price = models.IntegerField(default=0)

        class Meta:
            app_label = "shop"

    class Special(Item):
        reason = models.CharField(max_length=20)

        class Meta:
            app_label = "shop"

    with connection.schema_editor() as editor:
        editor.create_model(Item)
        editor.create_model(Special)

    def request() -> None:
        with transaction.atomic():
            for item in Item.objects.filter(name__startswith="m")[:5]:
                item.price += 1
                item.save()

    def rows() -> None:
        with transaction.atomic():
            for number in range(20):
                with transaction.atomic():
                    Item.objects.create(name=f"row {number}")

    def nothing() -> None:
        with transaction.atomic(), transaction.atomic():
            pass

    def refused() -> None:
        with transaction.atomic():
            for name in ("new 1", "a", "new 2"):
                try:
                    with transaction.atomic():
                        Item.objects.create(name=name)
                except IntegrityError:
                    pass

    count("`save()` of a new row", lambda: Item.objects.create(name="a"))
    count("`save()` of a row in two tables", lambda: Special.objects.create(name="b", reason="c"))
    count("`get_or_create()` that creates", lambda: Item.objects.get_or_create(name="c"))
    count("`update_or_create()` that updates", lambda: Item.objects.update_or_create(name="c", defaults={"price": 2}))
    many = [Item(name=f"m{number}") for number in range(5000)]
    count("`bulk_create()` of 5,000 rows", lambda: Item.objects.bulk_create(many))
    count("`bulk_update()` of 100 rows", lambda: Item.objects.bulk_update(many[:100], ["price"]))
    count("`delete()` of a row in two tables", lambda: Special.objects.get(name="b").delete())
    count("a request in `atomic()`: a query and 5 updates", request)
    count("20 rows, each in an `atomic()` of its own, in one transaction", rows)
    count("3 rows, of which one is refused, in the same way", refused)
    count("two nested `atomic()` that find nothing to do", nothing)


if __name__ == "__main__":
    {"acts": acts}[sys.argv[1]]()
    with open(os.environ["COUNTED"], "w") as counted:
        json.dump(COUNTED, counted)
