"""An engine for Django: `ENGINE = "onetrip.django"`. It is Django's own for PostgreSQL, with this package in psycopg's
place; psycopg need not be installed. A program with `django.contrib.postgres` lists `"onetrip.django"` before it in
`INSTALLED_APPS`."""

from onetrip.django import _stand_in

_stand_in.install()
