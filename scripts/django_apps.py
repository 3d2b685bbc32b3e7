"""The settings, the data and the requests of the applications whose round trips `scripts/django-apps` counts. The
applications themselves are checkouts that nobody has changed."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

ENGINE, SCRATCH = os.environ["ENGINE"], os.environ["SCRATCH"]

if os.environ["APP"] == "healthchecks":
    os.environ |= {"DEBUG": "False", "SECRET_KEY": "counted", "DB": "postgres"}
    from hc.settings import *  # noqa: F403

    COMPRESS_ENABLED = False
else:
    os.environ |= {"SECRET_KEY": "counted"}
    from bakerydemo.settings.base import *  # noqa: F403

    MEDIA_ROOT = os.path.join(SCRATCH, "media")
    TEMPLATES[0]["DIRS"] = [os.path.join(PROJECT_DIR, "templates")]  # noqa: F405
    SECRET_KEY = "counted"
    WAGTAILADMIN_BASE_URL = "http://testserver"

DEBUG = False
ALLOWED_HOSTS = ["*"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}
DATABASES: dict[str, Any] = {
    "default": {
        "ENGINE": ENGINE, "NAME": os.environ["PGDATABASE"], "HOST": os.environ["PGHOST"], "PORT": os.environ["PGPORT"],
        "USER": os.environ["PGUSER"], "PASSWORD": os.environ["PGPASSWORD"],
    }
}  # fmt: skip
if ENGINE == "onetrip.django":
    INSTALLED_APPS = ["onetrip.django", *INSTALLED_APPS]  # noqa: F405

COUNTED: dict[str, tuple[int, int]] = {}


class Counting:
    """A client whose requests are counted by their names."""

    def __init__(self) -> None:
        from django.test import Client

        self.client = Client()

    def request(self, method: str, path: str, name: str, *args: Any, **keywords: Any) -> Any:
        from django_acts import trips

        before = trips()
        answer = getattr(self.client, method)(path, *args, **keywords)
        answer.getvalue()
        COUNTED[f"{method.upper()} {name}"] = (answer.status_code, trips() - before)
        return answer

    def get(self, path: str, name: str, **keywords: Any) -> Any:
        return self.request("get", path, name, **keywords)

    def post(self, path: str, name: str, *args: Any, **keywords: Any) -> Any:
        return self.request("post", path, name, *args, **keywords)


def prepare() -> None:
    """Makes the tables and what is in them."""
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    if os.environ["APP"] == "bakerydemo":
        call_command("load_initial_data", verbosity=0)
        from django.contrib.auth.models import User

        admin = User.objects.get(username="admin")
        admin.set_password("password")
        admin.save()
        return
    from django.contrib.auth.models import User
    from hc.accounts.models import Profile, Project
    from hc.api.models import Channel, Check

    alice = User(username="alice", email="alice@example.org")
    alice.set_password("password")
    alice.save()
    Profile.objects.create(user=alice)
    project = Project.objects.create(owner=alice, name="Counted", api_key="X" * 32, ping_key="p" * 22)
    channel = Channel.objects.create(
        project=project, kind="email", value=json.dumps({"value": "a@b.c", "up": True, "down": True})
    )
    for number in range(10):
        channel.checks.add(Check.objects.create(project=project, name=f"check {number}", slug=f"check-{number}"))


def healthchecks(counting: Counting) -> None:
    """What a user of healthchecks and the programs that it watches do."""
    from hc.accounts.models import Project
    from hc.api.models import Check

    project = Project.objects.get()
    first, second = Check.objects.order_by("id")[:2]
    login = {"email": "alice@example.org", "password": "password", "action": "login"}
    counting.post("/accounts/login/", "/accounts/login/", login)
    counting.get("/", "/")
    counting.get(f"/projects/{project.code}/checks/", "/projects/…/checks/")
    added = {
        "name": "added", "slug": "added", "tags": "new", "kind": "simple", "timeout": "120", "grace": "60",
        "schedule": "* * * * *", "tz": "UTC", "desc": "",
    }  # fmt: skip
    counting.post(f"/projects/{project.code}/checks/add/", "/projects/…/checks/add/", added)
    counting.get(f"/ping/{first.code}", "/ping/…")
    counting.get(f"/ping/{first.code}", "/ping/… again")
    counting.get(f"/ping/{first.code}/fail", "/ping/…/fail")
    counting.get(f"/ping/{project.ping_key}/{second.slug}/start", "/ping/…/start, by slug")
    counting.get(f"/checks/{first.code}/details/", "/checks/…/details/")
    counting.get(f"/checks/{first.code}/log/", "/checks/…/log/")
    counting.post(
        f"/checks/{first.code}/timeout/", "/checks/…/timeout/", {"kind": "simple", "timeout": "3600", "grace": "60"}
    )
    counting.post(f"/checks/{first.code}/pause/", "/checks/…/pause/")
    counting.post(f"/checks/{first.code}/resume/", "/checks/…/resume/")
    key = {"HTTP_X_API_KEY": project.api_key}
    counting.get("/api/v3/checks/", "/api/v3/checks/", **key)
    asked = {"name": "by api", "timeout": 60, "channels": "*"}
    counting.post("/api/v3/checks/", "/api/v3/checks/", asked, content_type="application/json", **key)
    counting.get("/api/v3/metrics/", "/api/v3/metrics/", **key)
    counting.post(f"/checks/{second.code}/remove/", "/checks/…/remove/")
    counting.post("/accounts/logout/", "/accounts/logout/")


def bakerydemo(counting: Counting) -> None:
    """What a visitor and an editor of Wagtail's demo do."""
    from wagtail.models import Page

    bread = Page.objects.get(slug="bread-circuses")
    blog = Page.objects.get(slug="blog")
    counting.get("/", "/")
    counting.get("/breads/", "/breads/")
    counting.get("/breads/anpan/", "/breads/anpan/")
    counting.get("/blog/", "/blog/")
    counting.get("/blog/bread-circuses/", "/blog/bread-circuses/")
    counting.get("/search/?q=bread", "/search/?q=bread")
    counting.get("/api/v2/pages/", "/api/v2/pages/")
    counting.post("/admin/login/", "/admin/login/", {"username": "admin", "password": "password"})
    counting.get("/admin/", "/admin/")
    counting.get(f"/admin/pages/{blog.id}/", "/admin/pages/…/")
    counting.get(f"/admin/pages/{bread.id}/edit/", "/admin/pages/…/edit/")
    copied = {
        "new_title": "A copy", "new_slug": "a-copy", "new_parent_page": str(blog.id), "publish_copies": "on", "alias": "",
    }  # fmt: skip
    counting.post(f"/admin/pages/{bread.id}/copy/", "/admin/pages/…/copy/", copied)
    copy = Page.objects.get(slug="a-copy")
    counting.get("/blog/a-copy/", "/blog/a-copy/")
    counting.post(f"/admin/pages/{copy.id}/unpublish/", "/admin/pages/…/unpublish/")
    counting.post(f"/admin/pages/{copy.id}/delete/", "/admin/pages/…/delete/")
    counting.post("/admin/logout/", "/admin/logout/")


def main() -> None:
    import django

    django.setup()
    if sys.argv[1] == "prepare":
        prepare()
    else:
        from django.db import connection

        connection.ensure_connection()
        {"healthchecks": healthchecks, "bakerydemo": bakerydemo}[os.environ["APP"]](Counting())
    with open(os.environ["COUNTED"], "w") as counted:
        json.dump(COUNTED, counted)


if __name__ == "__main__":
    main()
