"""Which of Django's modules get this package where they import psycopg.

Django's engine for PostgreSQL imports psycopg by name. Its modules run with an `__import__` of their own, so that
nothing else in the process sees another psycopg than it has installed."""

from __future__ import annotations

import builtins
import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

_ENGINE = "django.db.backends.postgresql"
# Those of Django's modules that name psycopg.
MODULES = frozenset(
    (
        f"{_ENGINE}.base",
        f"{_ENGINE}.operations",
        f"{_ENGINE}.psycopg_any",
        "django.contrib.postgres.signals",
        "django.contrib.gis.db.backends.postgis.base",
        "django.contrib.gis.db.backends.postgis.adapter",
    )
)
# Django looks at the version for the interface that it can use.
INTERFACE = "3.2.0"


class _Psycopg(types.ModuleType):
    """The package by psycopg's name. What Django asks for has psycopg's names here too."""

    __version__ = INTERFACE

    @staticmethod
    def connect(conninfo: str = "", **keywords: Any) -> Any:
        """Connects, by connections of the engine's own."""
        from onetrip.django.connection import Connection

        return Connection.connect(conninfo, **keywords)

    @property
    def client_cursor(self) -> types.ModuleType:
        """Where the engine's own cursors are."""
        return importlib.import_module("onetrip.django.cursors")

    @property
    def ClientCursor(self) -> Any:  # noqa: N802 (psycopg's name)
        """Cursors whose statements have no parameters on their way."""
        return self.client_cursor.ClientCursor

    def __getattr__(self, name: str) -> Any:
        found = getattr(sys.modules["onetrip"], name, None)
        if found is None:
            found = importlib.import_module(f"onetrip.{name}")
        return found


def _named(name: str) -> types.ModuleType:
    """What stands for psycopg, or for one of its modules."""
    if name == "psycopg":
        return _PSYCOPG
    if name == "psycopg_pool":
        return importlib.import_module("onetrip.connection_pool")
    return importlib.import_module("onetrip" + name.removeprefix("psycopg"))


def _import(
    name: str,
    globals: Mapping[str, object] | None = None,
    locals: Mapping[str, object] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> types.ModuleType:
    """As `__import__`, but for psycopg and its pool."""
    if level or name.partition(".")[0] not in ("psycopg", "psycopg_pool"):
        return builtins.__import__(name, globals, locals, fromlist or (), level)
    module = _named(name)
    if not fromlist:
        return module if name == "psycopg_pool" else _PSYCOPG
    for part in fromlist:
        if module is not _PSYCOPG and not hasattr(module, part):
            importlib.import_module(f"{module.__name__}.{part}")
    return module


class _Loader(importlib.machinery.SourceFileLoader):
    def exec_module(self, module: types.ModuleType) -> None:
        """Runs the module with an `__import__` that knows what stands for psycopg."""
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": _import}
        super().exec_module(module)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Where one of the modules is."""
        if fullname not in MODULES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


_PSYCOPG = _Psycopg("psycopg")


def install() -> None:
    """From now on Django's modules get this package in psycopg's place."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def strangers() -> list[str]:
    """The modules that have been imported before, and have psycopg itself."""
    return sorted(
        name
        for name in MODULES & sys.modules.keys()
        if not isinstance(getattr(sys.modules[name].__spec__, "loader", None), _Loader)
    )
