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


def project(apps: list[str], urls: str, **more: Any) -> None:
    """Sets Django up with an application."""
    import django
    from django.conf import settings

    settings.configure(
        DATABASES={"default": database()},
        INSTALLED_APPS=(["onetrip.django"] if IS_OURS else []) + apps,
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        SECRET_KEY="counted",
        ALLOWED_HOSTS=["*"],
        ROOT_URLCONF=urls,
        STATIC_URL="/static/",
        MEDIA_ROOT=os.environ["SCRATCH"],
        USE_TZ=True,
        **more,
    )
    django.setup()


CONTRIB = [
    f"django.contrib.{name}" for name in ("admin", "auth", "contenttypes", "sessions", "messages", "staticfiles")
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
PROCESSORS = [
    "django.template.context_processors.request",
    "django.contrib.auth.context_processors.auth",
    "django.contrib.messages.context_processors.messages",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {"context_processors": PROCESSORS},
    }
]


def wagtail() -> None:
    """An editor's work in Wagtail."""
    names = "contrib.forms contrib.redirects embeds sites users snippets documents images search admin".split()
    project(
        [f"wagtail.{name}" for name in names] + ["wagtail", "modelcluster", "taggit", *CONTRIB],
        "wagtail.admin.urls",
        MIDDLEWARE=MIDDLEWARE,
        TEMPLATES=TEMPLATES,
        WAGTAIL_SITE_NAME="counted",
        WAGTAILADMIN_BASE_URL="http://localhost",
        LOGIN_URL="/login/",
    )
    from django.contrib.auth import get_user_model
    from django.core.management import call_command
    from wagtail.models import Page

    count("`migrate` of an empty database", lambda: call_command("migrate", verbosity=0))
    user = get_user_model().objects.create_superuser("ann", "ann@example.org", "secret")
    root = Page.objects.get(depth=2)

    def pages() -> None:
        for number in range(10):
            page = root.add_child(instance=Page(title=f"page {number}"))
            page.save_revision(user=user).publish()

    def edits() -> None:
        for page in root.get_children():
            page.title += "!"
            page.save_revision(user=user).publish()

    def moves() -> None:
        first, *others = root.get_children()
        for page in others:
            Page.objects.get(pk=page.pk).move(Page.objects.get(pk=first.pk), pos="last-child", user=user)

    count("10 pages are made and published", pages)
    count("10 pages are edited and published", edits)
    count("9 pages are moved", moves)
    count("a page is copied with the 9 under it", lambda: root.get_children()[0].copy(recursive=True, user=user))
    count("these are deleted", lambda: root.get_children().last().delete())


def oscar() -> None:
    """A customer's work in Oscar."""
    import oscar.defaults

    names = """analytics checkout address shipping catalogue catalogue.reviews communication partner basket payment offer
    order customer search voucher wishlists dashboard dashboard.reports dashboard.users dashboard.orders
    dashboard.catalogue dashboard.offers dashboard.partners dashboard.pages dashboard.ranges dashboard.reviews
    dashboard.vouchers dashboard.communications dashboard.shipping""".split()
    known = {name: getattr(oscar.defaults, name) for name in dir(oscar.defaults) if name.startswith("OSCAR_")}
    project(
        [*CONTRIB, "django.contrib.sites", "django.contrib.flatpages", "oscar.config.Shop"]
        + [f"oscar.apps.{name}.apps.{label(name)}Config" for name in names]
        + ["widget_tweaks", "haystack", "treebeard", "sorl.thumbnail", "django_tables2"],
        "oscar.urls",
        MIDDLEWARE=[*MIDDLEWARE, "oscar.apps.basket.middleware.BasketMiddleware"],
        TEMPLATES=TEMPLATES,
        SITE_ID=1,
        HAYSTACK_CONNECTIONS={"default": {"ENGINE": "haystack.backends.simple_backend.SimpleEngine"}},
        **known,
    )
    from django.core.management import call_command

    count("`migrate` of an empty database", lambda: call_command("migrate", verbosity=0))
    from oscar.core.loading import get_class
    from oscar.test.factories import BasketFactory, ProductFactory, create_order

    products: list[Any] = []
    count("20 products are made", lambda: products.extend(ProductFactory.create_batch(20)))
    strategy = get_class("partner.strategy", "Default")()

    def orders() -> None:
        for number in range(10):
            basket = BasketFactory()
            basket.strategy = strategy
            for product in products[number : number + 3]:
                basket.add_product(product)
            create_order(number=str(1000 + number), basket=basket)

    count("10 baskets of 3 products are filled and ordered", orders)


def label(name: str) -> str:
    """The word by which Oscar names an application's class."""
    if name.startswith("dashboard."):
        return name.partition(".")[2].capitalize() + "Dashboard"
    special = {"catalogue.reviews": "CatalogueReviews"}
    return special.get(name, name.capitalize())


if __name__ == "__main__":
    {"acts": acts, "wagtail": wagtail, "oscar": oscar}[sys.argv[1]]()
    with open(os.environ["COUNTED"], "w") as counted:
        json.dump(COUNTED, counted)
