"""SciPy's test_iterative.py, on residua's functions. conftest.py marks tests that fail, with reasons."""

from scipy_own import load

NAMES = "bicg, bicgstab, cg, cgs, gcrotmk, gmres, lgmres, minres, qmr, tfqmr"
IMPORTED = r"_SOLVERS = \[.*?\]"
OURS = f"from residua.linalg import {NAMES}\n_SOLVERS = [{NAMES}]"

_names = load(
    "test_iterative",
    [(IMPORTED, OURS), (r"from scipy.sparse.linalg._dsolve import splu", "from residua.linalg import splu")],
)
globals().update(
    {name: value for name, value in _names.items() if name.startswith(("test_", "Test")) or name in ("solver", "case")}
)
