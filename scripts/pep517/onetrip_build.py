"""The build backend of pyproject.toml: maturin, with a libclang from PyPI where the system has none.

pg_query's build script reads a C header by bindgen, and that needs libclang. Debian has it as libclang-dev; who
installs the sdist by pip has perhaps no right to install packages.
"""

import glob
import importlib.util
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import maturin
from maturin import build_sdist, get_requires_for_build_sdist

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

prepare_metadata_for_build_wheel = maturin.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = maturin.prepare_metadata_for_build_editable

REQUIREMENT = "libclang==18.1.1"
# Where bindgen looks by itself, besides LIBCLANG_PATH and what llvm-config says.
DIRECTORIES = [
    "/usr/local/llvm*/lib*",
    "/usr/local/lib*",
    "/usr/local/lib*/*",
    "/usr/local/lib*/*/*",
    "/usr/lib*",
    "/usr/lib*/*",
    "/usr/lib*/*/*",
]
# Not libclang-cpp, which has no C interface.
NAMES = ["libclang.so", "libclang-[0-9]*.so", "libclang.so.*", "libclang-[0-9]*.so.*"]


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    return maturin.get_requires_for_build_wheel(config_settings) + _requirements()


def get_requires_for_build_editable(config_settings: Any = None) -> list[str]:
    return maturin.get_requires_for_build_editable(config_settings) + _requirements()


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    _find_libclang()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    _find_libclang()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def _requirements() -> list[str]:
    return [] if _has_libclang() else [REQUIREMENT]


def _has_libclang() -> bool:
    if os.environ.get("LIBCLANG_PATH"):
        return True
    directories = [*DIRECTORIES, *_llvm_directory()]
    return any(glob.glob(f"{directory}/{name}") for directory in directories for name in NAMES)


def _llvm_directory() -> list[str]:
    command = os.environ.get("LLVM_CONFIG_PATH", "llvm-config")
    try:
        said = subprocess.run([command, "--libdir"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return []
    return [glob.escape(said.stdout.strip())]


def _find_libclang() -> None:
    """Sets what bindgen needs to find the wheel's library, if that is the one to use."""
    if _has_libclang():
        return
    clang = importlib.util.find_spec("clang")
    places = [Path(place) / "native" for place in clang.submodule_search_locations or []] if clang else []
    native = next((place for place in places if (place / "libclang.so").exists()), None)
    if native is None:
        raise SystemExit(
            "onetrip cannot be built: there is no libclang. Install it (Debian: libclang-dev), "
            f"or '{REQUIREMENT}' by pip, or name its directory by LIBCLANG_PATH."
        )
    os.environ["LIBCLANG_PATH"] = str(native)
    # The wheel has no headers of its own; the compiler's do.
    compiler = shlex.split(os.environ.get("CC", "cc"))
    try:
        said = subprocess.run([*compiler, "-print-file-name=include"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(
            f"onetrip cannot be built: there is no C compiler ({error}). Install one (Debian: gcc libc6-dev), "
            "or name it by CC."
        ) from error
    arguments = [f"-I{shlex.quote(said.stdout.strip())}", os.environ.get("BINDGEN_EXTRA_CLANG_ARGS", "")]
    os.environ["BINDGEN_EXTRA_CLANG_ARGS"] = " ".join(argument for argument in arguments if argument)
