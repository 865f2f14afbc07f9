"""SciPy's test_linsolve.py, on residua's functions. conftest.py marks tests that fail, with reasons."""

from scipy_own import load

OURS = r"\g<0>\nfrom residua.linalg import factorized, spilu, splu, spsolve, spsolve_triangular\n"
TESTS = ("TestFactorized", "TestLinsolve", "TestSplu", "TestSpsolveTriangular")

_names = load("test_linsolve", [(r"^import scipy\.sparse$", OURS)], "_dsolve")
globals().update({name: value for name, value in _names.items() if name in TESTS})
