"""SciPy's test_minres.py, on residua's minres."""

from scipy_own import load

_names = load("test_minres", [(r"from scipy.sparse.linalg._isolve import minres", "from residua import minres")])
globals().update({name: value for name, value in _names.items() if name.startswith("test_")})
