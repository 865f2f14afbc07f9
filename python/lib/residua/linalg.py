"""Solvers and factorisations with the names and signatures of ``scipy.sparse.linalg``.

>>> import numpy as np, residua
>>> from residua.linalg import splu
>>> A = residua.generate("convection2d", (30, 30))
>>> lu = splu(A)
>>> bool(np.allclose(A.T @ lu.solve(np.ones(900), trans="T"), 1))
True

=========================================== =====================================================================
spsolve, factorized, splu                   residua's factorisations
cg, minres, gmres, bicgstab, lsmr           residua's iterations
cgs, bicg, qmr, tfqmr, lgmres, gcrotmk      SciPy's iterations; M is A's diagonal if none is given, and "converged"
                                            is computed from the returned x
lsqr, spilu, spsolve_triangular             SciPy's own, for all matrices and vectors that residua accepts
=========================================== =====================================================================

All take matrices and vectors of NumPy, SciPy, CuPy, torch and JAX; x is of b's kind. Arguments that SciPy's functions
lack are keyword-only. ``DEVIATIONS.md`` in the repository lists what differs. The rest of ``scipy.sparse.linalg``
(``LinearOperator``, ``norm``, ``expm``, ``eigsh``, ...) is not here: take it from SciPy, whose functions call these
after :func:`residua.patch`.
"""

from ._direct import factorized, splu, spsolve
from ._iterative import bicgstab, cg, gmres, minres
from ._least_squares import lsmr
from ._lu import LU
from ._others import bicg, cgs, gcrotmk, lgmres, lsqr, qmr, spilu, spsolve_triangular, tfqmr

__all__ = [
    "LU",
    "bicg",
    "bicgstab",
    "cg",
    "cgs",
    "factorized",
    "gcrotmk",
    "gmres",
    "lgmres",
    "lsmr",
    "lsqr",
    "minres",
    "qmr",
    "spilu",
    "splu",
    "spsolve",
    "spsolve_triangular",
    "tfqmr",
]
