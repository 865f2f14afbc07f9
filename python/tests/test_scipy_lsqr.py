"""SciPy's test_lsqr.py, on residua's lsqr."""

from scipy_own import load

_names = load("test_lsqr", [(r"from scipy.sparse.linalg import lsqr", "from residua.linalg import lsqr")])
globals().update({name: value for name, value in _names.items() if name.startswith("test_")})
