"""The numbers of positive and negative eigenvalues of a Hermitian matrix, unless rounding may have changed a sign."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sparse
from scipy.linalg import eigvalsh
from scipy.sparse.linalg import LinearOperator, onenormest

from . import _scipy

#: If pivots leave the inertia open, LAPACK computes the eigenvalues of a matrix with at most this number of rows.
DENSE = 1500

#: An estimate of ||A^-1||_1 is a lower bound, mostly within a factor of 3.
SAFETY = 10.0


def inertia_of(A: Any, solve: Callable[[np.ndarray], np.ndarray]) -> tuple[int, int]:
    """Returns the numbers of positive and of negative eigenvalues. ``solve`` solves A x = b.

    Raises
    ------
    ValueError
        If A is not Hermitian, or if rounding leaves the inertia open.
    """
    A = sparse.csc_array(A)
    A = A.astype(np.complex128 if A.dtype.kind == "c" else np.float64)
    if abs(A - A.conj().T).max() != 0:
        raise ValueError("inertia needs a real symmetric or a Hermitian matrix, but A is neither")
    n = A.shape[0]
    found = _by_pivots(A, solve) if n > 0 else (0, 0)
    if found is None and n <= DENSE:
        found = _by_eigenvalues(A)
    if found is None:
        raise ValueError("the inertia cannot be determined because of rounding: an eigenvalue may be zero")
    return found


def _by_pivots(A: Any, solve: Callable[[np.ndarray], np.ndarray]) -> tuple[int, int] | None:
    """From the pivots of A = L D L^H with diagonal pivots. None if rounding errors may have changed a sign."""
    n = A.shape[0]
    try:
        lu = _scipy.splu(
            A, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
        )  # fmt: skip
    except RuntimeError:
        return None
    if not np.array_equal(lu.perm_r, lu.perm_c):
        return None
    pivots = lu.U.diagonal().real
    # |A - L U| <= n eps |L| |U|. Row sums bound the norm of this, and the norm bounds how far eigenvalues move.
    sums = abs(lu.L) @ (abs(lu.U) @ np.ones(n))
    moved = 4.0 * n * np.finfo(np.float64).eps * sums.max()
    inverse = onenormest(LinearOperator(A.shape, matvec=solve, rmatvec=solve, dtype=A.dtype))
    if not (np.isfinite(moved) and SAFETY * moved * inverse < 1.0):
        return None
    return int((pivots > 0).sum()), int((pivots < 0).sum())


def _by_eigenvalues(A: Any) -> tuple[int, int] | None:
    values = eigvalsh(A.toarray())
    moved = len(values) * np.finfo(np.float64).eps * np.abs(values).max()
    if np.abs(values).min() <= moved:
        return None
    return int((values > 0).sum()), int((values < 0).sum())
