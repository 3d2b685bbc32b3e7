"""`onetrip run` puts this directory first in PYTHONPATH: Python imports this file at its start, and then the program's own."""

import os
import sys

try:
    import onetrip_call_sites

    onetrip_call_sites.install()
except Exception:  # a program runs as without it, whatever is wrong here, and on whichever Python
    pass


def _run_next():
    """Imports the `sitecustomize` that there would be without this one."""
    here = os.path.dirname(os.path.abspath(__file__))
    own, path = sys.modules.pop("sitecustomize", None), list(sys.path)
    sys.path[:] = [place for place in path if os.path.abspath(place or ".") != here]
    try:
        import sitecustomize  # noqa: F401
    except ImportError as error:
        if getattr(error, "name", None) != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = own
    finally:
        sys.path[:] = path


_run_next()
