"""The programs in the documentation, the examples in the docstrings, and the stubs."""

import ast
import doctest
import importlib
import pathlib
import re
import subprocess
import sys

import pytest

import residua

FOLDER = pathlib.Path(__file__).resolve().parent.parent
NAMES = ("lu", "solver", "iterative", "least_squares", "direct", "files", "preconditioner")
MODULES = ["residua", "residua.linalg", "residua._patch", *(f"residua._{name}" for name in NAMES)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_the_docstrings(name):
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted > 0 and results.failed == 0


@pytest.mark.parametrize("package", ["torch", "jax"])
def test_examples_of_gradients(package):
    pytest.importorskip(package, exc_type=ImportError)
    results = doctest.testmod(importlib.import_module(f"residua.{package}"))
    assert results.attempted > 0 and results.failed == 0


def test_all_that_is_public_is_documented():
    for name in residua.__all__:
        thing = getattr(residua, name)
        if callable(thing):
            assert thing.__doc__ and len(thing.__doc__) > 40, name


def test_the_first_example_runs():
    done = subprocess.run(
        [sys.executable, str(FOLDER / "examples" / "first.py")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and "converged" in done.stdout, done.stderr


DOCUMENTS = (FOLDER.parent / "docs").glob("*.md")
PAGES = sorted(page for page in DOCUMENTS if "```python\n" in page.read_text())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_programs_of_the_documents_run(page):
    """Runs the blocks marked ``python``, one after the other; blocks marked ``py`` need a GPU or MPI."""
    code = "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
    exec(compile(code, page.name, "exec"), {})


def test_the_stub_names_what_the_compiled_half_has():
    stub = ast.parse((FOLDER / "lib" / "residua" / "_residua.pyi").read_text())
    module = importlib.import_module("residua._residua")
    told = {node.name: node for node in stub.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    real = {name for name in dir(module) if not name.startswith("__")}
    assert set(told) == real
    for name, node in told.items():
        if isinstance(node, ast.ClassDef):
            functions = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
            members = {name for name in functions if not name.startswith("__")}
            own = {each for each in vars(getattr(module, name)) if not each.startswith("__")}
            if name != "Unsupported":
                assert members == own, name
