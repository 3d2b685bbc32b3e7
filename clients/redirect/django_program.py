"""Django with its database in the settings: argv is HOST PORT."""

import sys

import django
from django.conf import settings

settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": sys.argv[1],
            "PORT": sys.argv[2],
            "NAME": "postgres",
            "USER": "onetrip",
            "PASSWORD": "onetrip-secret",
        }
    }
)
django.setup()

from django.db import connection  # noqa: E402

with connection.cursor() as cursor:
    cursor.execute("SELECT 41 + 1")
    print(cursor.fetchone()[0])
