"""SciPy's test_linsolve.py, on residua's spsolve and factorized."""

from scipy_own import load

OURS = r"\g<0>\nfrom residua import factorized, spsolve\n"
TESTS = ("TestFactorized", "TestLinsolve")

_names = load("test_linsolve", [(r"^import scipy\.sparse$", OURS)], "_dsolve")
globals().update({name: value for name, value in _names.items() if name in TESTS})
