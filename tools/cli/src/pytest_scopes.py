"""Books each test's round trips on its name. `onetrip run` puts this file beside its socket and names it in
PYTEST_PLUGINS; the plugin of the package `onetrip` does the same and more, and goes before."""

import os
import socket

import pytest


def _tell(line):
    try:
        with socket.socket(socket.AF_UNIX) as control:
            control.settimeout(5)
            control.connect(os.environ["ONETRIP_CONTROL"])
            control.sendall(line.encode(errors="replace")[:1000] + b"\n")
            control.recv(1000)  # from here on it holds
    except (OSError, KeyError):
        pass  # nobody counts any more


class Scopes:
    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        _tell("test " + " ".join(item.nodeid.split()))
        try:
            yield
        finally:
            _tell("test")


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    # Tests of several workers run at once: what they share is nobody's own.
    if "PYTEST_XDIST_WORKER" not in os.environ and not config.pluginmanager.hasplugin("onetrip-trips"):
        config.pluginmanager.register(Scopes(), "onetrip-scopes")
