"""Small systems by LAPACK's dense LU: below some hundred unknowns it is faster than any sparse factorisation.

x is handed out only if it is shown to be good; else the caller turns to :mod:`residua._factors`, which finds out why.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sparse
from scipy.linalg import lapack

#: Matrices of at most so many rows are factorised dense; those of at most ``MIDDLE`` rows if at least one entry in
#: ``FILLED`` is stored. On two cores SuperLU is slower than LAPACK there: at 64 rows with three entries a row it takes
#: 44 us and LAPACK 26, at 100 rows that are filled to a tenth 270 and 55.
SMALL, MIDDLE, FILLED = 72, 256, 25

#: The backward error of an x that is handed out, and the reciprocal condition number from which on A is regular beyond
#: doubt. Partial pivoting gives 1e-15 unless factors grow.
BACKWARD, REGULAR = 1e-13, 1e-10

#: The relative residual that will do whatever the condition is: as in :mod:`residua._factors`.
ASKED = 1e-10

#: Norms between these are sums of squares that have neither underflowed nor overflowed.
LEAST, MOST = 1e-140, 1e140

#: LAPACK's routines by type: factorise, solve, condition, norm, equilibration.
ROUTINES = {
    kind: tuple(getattr(lapack, kind + name) for name in ("getrf", "getrs", "gecon", "lange", "geequ")) for kind in "dz"
}

EPS = float(np.finfo(np.float64).eps)

#: ``trans`` of LAPACK by SciPy's names.
TURNED = {"N": 0, "T": 1, "H": 2}


def is_small(A: Any) -> bool:
    """Whether a square matrix of SciPy or NumPy is one for this module."""
    n = A.shape[0]
    return 0 < n <= SMALL or (0 < n <= MIDDLE and (not sparse.issparse(A) or FILLED * A.nnz >= n * n))


class Dense:
    """A small matrix and its LU factors, in double precision.

    Attributes
    ----------
    matrix : numpy.ndarray
        A, in Fortran's order.
    """

    __slots__ = ("_factors", "_norm", "_one_norm", "_pivots", "_regular", "_routines", "matrix")

    def __init__(self, A: Any) -> None:
        dense = A.toarray() if sparse.issparse(A) else A
        kind = np.complex128 if dense.dtype.kind == "c" else np.float64
        self.matrix = np.array(dense, kind, order="F") if dense is A else np.asfortranarray(dense, kind)
        self._routines = ROUTINES["d" if kind is np.float64 else "z"]
        self._factors, self._pivots, info = self._routines[0](self.matrix)
        # An exact zero among the pivots: whether A is singular is for the other module to say.
        self._regular = False if info else None
        flat = self.matrix.reshape(-1, order="F")
        self._norm = math.sqrt(np.vdot(flat, flat).real)

    @property
    def is_regular(self) -> bool:
        """Whether the condition number shows beyond doubt that A is regular."""
        if self._regular is None:
            one_norm = self._routines[3]("1", self.matrix)
            self._regular = self._norm < MOST and self._routines[2](self._factors, one_norm)[0] > REGULAR
        return self._regular

    def solve(self, b: np.ndarray, trans: str = "N") -> np.ndarray | None:
        """x of A x = b (A^T, A^H); None unless A is regular and the backward error of x is that of a stable method.

        b has the type of the factors, and n rows.
        """
        if not self.is_regular:
            return None
        if b.ndim == 1:
            size = math.sqrt(np.vdot(b, b).real)
            if not LEAST < size < MOST:
                return None
            x, residual = self._candidate(b, trans)
            return x if residual <= BACKWARD * (self._norm * math.sqrt(np.vdot(x, x).real) + size) else None
        sizes = _norms(b)
        if not ((sizes > LEAST) & (sizes < MOST)).all():
            return None
        x, residuals = self._candidate(b, trans)
        return x if (residuals <= BACKWARD * (self._norm * _norms(x) + sizes)).all() else None

    def solve_once(self, b: np.ndarray) -> np.ndarray | None:
        """As :meth:`solve` for a vector; a small residual in all rows is enough, and spares the condition number."""
        size = math.sqrt(np.vdot(b, b).real)
        if self._regular is False or not (LEAST < size < MOST and self._norm < MOST):
            return None
        x, residual = self._candidate(b, "N")
        scale = self._norm * math.sqrt(np.vdot(x, x).real) + size
        # The largest entry of a row is its norm up to the root of n; the routine tells the ratio of these, and what
        # follows is the same with rows in units of their own norms.
        n = len(b)
        ratio, info = self._routines[4](self.matrix)[2::3]
        if info == 0 and (residual + (n + 2) * EPS * scale) * math.sqrt(n) <= ASKED * ratio * size:
            return x
        return x if self.is_regular and residual <= BACKWARD * scale else None

    def _candidate(self, b: np.ndarray, trans: str) -> tuple[np.ndarray, Any]:
        """x, and the norm of its residual; of columns, norms. Rounding adds a fifth of ``BACKWARD`` at most."""
        x = self._routines[1](self._factors, self._pivots, b, TURNED[trans])[0]
        matrix = self.matrix if trans == "N" else self.matrix.T if trans == "T" else self.matrix.conj().T
        residual = b - matrix @ x
        return x, math.sqrt(np.vdot(residual, residual).real) if b.ndim == 1 else _norms(residual)


def _norms(columns: np.ndarray) -> np.ndarray:
    """The norms of columns."""
    return np.sqrt(np.square(np.abs(columns)).sum(axis=0))
