#!/usr/bin/env python3
"""Django: 25 page views of mixed statements, each with some work of its own between them. On MySQL if MYSQL_HOST is set."""

from __future__ import annotations

import hashlib
import os

import django
from django.conf import settings

POSTGRES = ("postgresql", "PGHOST", "PGPORT", "PGUSER", "PGPASSWORD", "PGDATABASE")
MYSQL = ("mysql", "MYSQL_HOST", "MYSQL_TCP_PORT", "MYSQL_USER", "MYSQL_PWD", "MYSQL_DATABASE")
engine, *variables = MYSQL if "MYSQL_HOST" in os.environ else POSTGRES
place = zip(("HOST", "PORT", "USER", "PASSWORD", "NAME"), variables, strict=True)
settings.configure(
    USE_TZ=True,
    DATABASES={
        "default": {
            "ENGINE": f"django.db.backends.{engine}",
            **{name: os.environ.get(variable, "") for name, variable in place},
        }
    },
)
django.setup()

from django.db import models, transaction  # noqa: E402 (needs the settings)
from django.db.models import Sum  # noqa: E402


class Person(models.Model):
    id = models.IntegerField(primary_key=True)
    name = models.TextField()
    team = models.IntegerField()

    class Meta:
        app_label = "forecast"
        db_table = "people"


class Pay(models.Model):
    person = models.IntegerField(primary_key=True)
    amount = models.IntegerField()

    class Meta:
        app_label = "forecast"
        db_table = "pay"


class Visit(models.Model):
    person = models.IntegerField()
    page = models.TextField()

    class Meta:
        app_label = "forecast"
        db_table = "visits"


def render(text: str) -> str:
    """A template's worth of work: about a millisecond."""
    for _ in range(800):
        text = hashlib.sha256(text.encode()).hexdigest()
    return text


def view(team: int) -> None:
    people = list(Person.objects.filter(team=team).order_by("id")[:8])
    count = Person.objects.filter(team=team).count()
    for person in people:
        paid = Pay.objects.filter(person=person.id).aggregate(total=Sum("amount"))["total"]
        render(f"{person.name} {paid} of {count}")
    with transaction.atomic():
        Visit.objects.create(person=people[0].id, page=f"/team/{team}")
        Person.objects.filter(id=people[0].id).update(name=people[0].name)
    render(str(Visit.objects.filter(person=people[0].id).count()))


for number in range(25):
    view(number % 20)
