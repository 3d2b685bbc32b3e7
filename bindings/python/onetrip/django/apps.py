"""The application, which does nothing but be imported before `django.contrib.postgres`."""

from django.apps import AppConfig


class OnetripConfig(AppConfig):
    """Lets the modules of Django that follow have this package in psycopg's place."""

    name = "onetrip.django"
    label = "onetrip"
    verbose_name = "onetrip"
