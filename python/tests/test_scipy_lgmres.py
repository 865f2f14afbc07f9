"""SciPy's test_lgmres.py, on residua's lgmres, gmres and splu."""

from scipy_own import load

OURS = [
    (r"from scipy.sparse.linalg._isolve import", "from residua.linalg import"),
    (r"from scipy.sparse.linalg import splu", "from residua.linalg import splu"),
]

_names = load("test_lgmres", OURS)
globals().update({name: value for name, value in _names.items() if name.startswith("Test")})
