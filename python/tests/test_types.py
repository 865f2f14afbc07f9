"""The package and uses of it, by mypy and pyright; skipped if these are not installed."""

import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).resolve().parent.parent

#: Each with its options: both are strict about the uses, in which every comment that silences an error is needed.
CHECKERS = {
    "mypy": ["--strict", "--config-file", "pyproject.toml", "lib/residua", "tests/uses_of_types.py"],
    "basedpyright": ["--pythonpath", sys.executable, "--project", "pyproject.toml"],
    "pyright": ["--pythonpath", sys.executable, "--project", "pyproject.toml"],
}


@pytest.mark.parametrize("name", CHECKERS)
def test_the_package_has_types_and_misspelt_uses_are_found(monkeypatch, name):
    program = pathlib.Path(sys.executable).with_name(name)
    if not program.exists():
        pytest.skip(f"{name} is not installed")
    monkeypatch.setenv("MYPYPATH", str(FOLDER / "lib"))
    monkeypatch.setenv("MYPY_CACHE_DIR", "/dev/null")
    told = subprocess.run([str(program), *CHECKERS[name]], cwd=FOLDER, capture_output=True, text=True)
    assert told.returncode == 0, told.stdout + told.stderr
