"""SciPy's own solvers as they were when residua was loaded: code that falls back on one takes it from here, so that
:func:`residua.patch` cannot make it call itself."""

from scipy.sparse.linalg import (
    LinearOperator,
    MatrixRankWarning,
    SuperLU,
    bicg,
    cgs,
    gcrotmk,
    lgmres,
    lsqr,
    qmr,
    spilu,
    splu,
    spsolve_triangular,
    tfqmr,
)

__all__ = [
    "LinearOperator",
    "MatrixRankWarning",
    "SuperLU",
    "bicg",
    "cgs",
    "gcrotmk",
    "lgmres",
    "lsqr",
    "qmr",
    "spilu",
    "splu",
    "spsolve_triangular",
    "tfqmr",
]
