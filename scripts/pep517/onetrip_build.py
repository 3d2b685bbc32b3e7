"""The build backend of pyproject.toml: maturin, with a libclang from PyPI where the system has none.

It says in one line what else is missing, before anything is fetched or compiled.

pg_query's build script reads a C header by bindgen, and that needs libclang. Debian has it as libclang-dev; who
installs the sdist by pip has perhaps no right to install packages.
"""

import glob
import importlib.util
import os
import re
import shlex
import shutil
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
# As in Cargo.toml.
RUST_MIN = (1, 85)
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
    _check_compilers()
    return maturin.get_requires_for_build_wheel(config_settings) + _requirements()


def get_requires_for_build_editable(config_settings: Any = None) -> list[str]:
    _check_compilers()
    return maturin.get_requires_for_build_editable(config_settings) + _requirements()


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    _find_libclang()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    _find_libclang()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


def _requirements() -> list[str]:
    return [] if _has_libclang() else [REQUIREMENT]


def _check_compilers() -> None:
    """Ends the build where one is missing. Maturin would download Rust, and miss the C compiler minutes later."""
    version = _rust_version()
    if version is None or version < RUST_MIN:
        found = "there is no Rust" if version is None else f"Rust is {version[0]}.{version[1]}"
        raise SystemExit(
            f"onetrip cannot be built: {found}. Install Rust {RUST_MIN[0]}.{RUST_MIN[1]} or later "
            "(Debian 12: cargo-web rustc-web; elsewhere: rustup), with cargo on the PATH."
        )
    if not _compiles_c():
        raise SystemExit(
            "onetrip cannot be built: there is no C compiler with the C library's headers. Install one "
            "(Debian: gcc libc6-dev), or name it by CC."
        )


def _rust_version() -> tuple[int, int] | None:
    if shutil.which("cargo") is None:
        return None
    said = subprocess.run(["cargo", "--version"], capture_output=True, text=True).stdout
    found = re.search(r"(\d+)\.(\d+)", said)
    return (int(found[1]), int(found[2])) if found else None


def _c_compiler() -> list[str]:
    return shlex.split(os.environ.get("CC", "cc"))


def _compiles_c() -> bool:
    command = [*_c_compiler(), "-x", "c", "-fsyntax-only", "-"]
    try:
        return subprocess.run(command, input=b"#include <stdio.h>\n", capture_output=True).returncode == 0
    except OSError:
        return False


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
    said = subprocess.run([*_c_compiler(), "-print-file-name=include"], capture_output=True, text=True, check=True)
    arguments = [f"-I{shlex.quote(said.stdout.strip())}", os.environ.get("BINDGEN_EXTRA_CLANG_ARGS", "")]
    os.environ["BINDGEN_EXTRA_CLANG_ARGS"] = " ".join(argument for argument in arguments if argument)
