"""SciPy's own tests of its solvers, from the installed package, with residua's functions in their place."""

import importlib.util
import inspect
import pathlib
import re
import sys

import scipy.sparse.linalg

import residua

FOLDER = pathlib.Path(inspect.getfile(scipy.sparse.linalg)).parent


def load(name: str, changes: list[tuple[str, str]], group: str = "_isolve") -> dict:
    """Runs a module of SciPy's tests with its source changed to test residua's functions. Returns its names.

    Every change must apply, so that a release of SciPy with other tests is noticed.
    """
    path = FOLDER / group / "tests" / f"{name}.py"
    text = path.read_text()
    for pattern, replacement in changes:
        text, count = re.subn(pattern, replacement, text, flags=re.MULTILINE | re.DOTALL)
        assert count > 0, f"{path} has no {pattern!r}"
    package = f"scipy.sparse.linalg.{group}.tests"
    spec = importlib.util.spec_from_loader(f"{package}.{name}_by_residua", None)
    module = importlib.util.module_from_spec(spec)
    module.__file__ = str(path)
    module.__package__ = package
    module.residua = residua
    sys.modules[spec.name] = module
    exec(compile(text, str(path), "exec"), module.__dict__)
    return vars(module)
