"""The types, by mypy; skipped if it is not installed."""

import os
import pathlib

import pytest

FOLDER = pathlib.Path(__file__).resolve().parent.parent


def test_mypy_accepts_the_uses_and_finds_those_that_are_misspelt(monkeypatch, tmp_path):
    api = pytest.importorskip("mypy.api", exc_type=ImportError)
    monkeypatch.setenv("MYPYPATH", os.fspath(FOLDER / "lib"))
    told, errors, status = api.run(
        ["--config-file", str(FOLDER / "pyproject.toml"), "--cache-dir", str(tmp_path),
         str(FOLDER / "tests" / "uses_of_types.py")]
    )  # fmt: skip
    assert status == 0, told + errors
