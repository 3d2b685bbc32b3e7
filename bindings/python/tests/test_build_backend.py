"""What who builds the package is told before anything is compiled."""

import importlib.util
import os
import sys
import types
from pathlib import Path

import pytest

BACKEND = Path(__file__).parents[3] / "scripts/pep517/onetrip_build.py"
HOOKS = ["get_requires_for_build_wheel", "get_requires_for_build_editable"]


@pytest.fixture
def backend(monkeypatch):
    """The backend over a maturin that would download Rust."""
    maturin = types.ModuleType("maturin")
    for name in ["prepare_metadata_for_build_wheel", "prepare_metadata_for_build_editable", "build_sdist"]:
        setattr(maturin, name, None)
    for name in [*HOOKS, "get_requires_for_build_sdist"]:
        setattr(maturin, name, lambda settings=None: ["downloads-rust"])
    monkeypatch.setitem(sys.modules, "maturin", maturin)
    spec = importlib.util.spec_from_file_location("onetrip_build", BACKEND)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def programs(monkeypatch, tmp_path):
    """Programs by their names, the only ones on the PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for variable in ["CC", "LLVM_CONFIG_PATH"]:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("LIBCLANG_PATH", str(tmp_path))

    def add(name: str, script: str) -> None:
        file = tmp_path / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    return add


def refusal(hook) -> str:
    with pytest.raises(SystemExit) as refused:
        hook()
    [line] = str(refused.value).splitlines()
    return line


@pytest.mark.parametrize("hook", HOOKS)
def test_a_missing_compiler_is_named_in_one_line(backend, programs, hook):
    ask = getattr(backend, hook)
    assert "there is no Rust. Install Rust 1.85 or later" in refusal(ask)
    programs("cargo", "echo 'cargo 1.63.0 (fd9c4297c 2022-07-01)'")
    assert "Rust is 1.63. Install Rust 1.85 or later" in refusal(ask)
    programs("cargo", "echo 'cargo 1.85.1'")
    assert "there is no C compiler" in refusal(ask)
    programs("cc", "exit 1")  # without the C library's headers
    assert "libc6-dev" in refusal(ask)
    programs("cc", "exit 0")
    assert ask() == ["downloads-rust"]


def test_a_missing_libclang_is_fetched(backend, programs, monkeypatch):
    monkeypatch.delenv("LIBCLANG_PATH")
    monkeypatch.setattr(backend, "DIRECTORIES", [])
    programs("cargo", "echo 'cargo 1.90.0'")
    programs("cc", "exit 0")
    assert backend.get_requires_for_build_wheel()[1:] == [backend.REQUIREMENT]
    assert os.environ.get("LIBCLANG_PATH") is None
