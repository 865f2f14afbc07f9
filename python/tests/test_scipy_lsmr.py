"""SciPy's test_lsmr.py, on residua's lsmr."""

from scipy_own import load

_names = load("test_lsmr", [(r"from scipy.sparse.linalg import lsmr", "from residua import lsmr")])
globals().update({name: value for name, value in _names.items() if name.startswith("Test")})
