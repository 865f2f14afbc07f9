"""Small systems by LAPACK: dense ones with up to a few hundred unknowns, and narrow bands, which it factorises faster
than any sparse factorisation.

x is returned only if it is shown to be accurate; else the caller uses ``residua._factors``, which finds the reason.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sparse
from scipy.linalg import blas, lapack

#: Matrices with at most ``SMALL`` rows are factorised as dense ones; those with at most ``MIDDLE`` rows too, if at
#: least one entry in ``FILLED`` is stored. On two cores SuperLU is slower than LAPACK for these: with 64 rows and three
#: entries per row it takes 44 us and LAPACK 26, with 100 rows of which a tenth is stored 270 and 55. For larger ones,
#: LAPACK's threads may wait a hundred milliseconds for each other if processors are busy.
SMALL, MIDDLE, FILLED = 72, 256, 25

#: The most rows and diagonals of a band. With 400 rows and three diagonals SuperLU takes 155 us, LAPACK 15.
LONG, WIDE = 4096, 24

#: The largest backward error of an x that is returned, and the reciprocal condition number above which A is certainly
#: regular. Partial pivoting gives 1e-15 unless factors grow.
BACKWARD, REGULAR = 1e-13, 1e-10

#: A relative residual up to this is accepted whatever the condition is, as in ``residua._factors``.
ASKED = 1e-10

#: If a norm that was computed from a sum of squares lies between these, the sum has neither underflowed nor overflowed.
LEAST, MOST = 1e-140, 1e140

EPS = float(np.finfo(np.float64).eps)

#: LAPACK's argument ``trans`` for each of the letters that SciPy uses.
TURNED = {"N": 0, "T": 1, "H": 2}

#: LAPACK's routines by type: to factorise, to solve, and for the condition; then norm and equilibration of a dense
#: matrix, or the product of a banded one. Older versions of SciPy have no ``gbcon``.
DENSE: dict[str, list[Any]] = {
    kind: [getattr(lapack, kind + name) for name in ("getrf", "getrs", "gecon", "lange", "geequ")] for kind in "dz"
}
BAND: dict[str, list[Any]] = {
    kind: [getattr(lapack, kind + name, None) for name in ("gbtrf", "gbtrs", "gbcon")] for kind in "dz"
}
BAND["d"].append(blas.dgbmv)
BAND["z"].append(blas.zgbmv)


class Small:
    """A small square matrix and its LU factors, in double precision."""

    __slots__ = ("_norm", "_regular", "_terms", "dtype")

    #: The most entries of a row.
    _terms: int
    #: A, dense or sparse.
    matrix: Any
    #: Whether A is certainly regular; None before that was tested.
    _regular: bool | None
    #: A's Frobenius norm.
    _norm: float
    dtype: np.dtype[Any]

    @property
    def is_regular(self) -> bool:
        """Returns whether A is certainly regular."""
        if self._regular is None:
            self._regular = self._norm < MOST and self._looks_regular()
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
        """As :meth:`solve` for a vector, without the condition number if the residual is small in all rows."""
        size = math.sqrt(np.vdot(b, b).real)
        if self._regular is False or not (LEAST < size < MOST and self._norm < MOST):
            return None
        x, residual = self._candidate(b, "N")
        scale = self._norm * math.sqrt(np.vdot(x, x).real) + size
        if self._is_small_in_all_rows(residual, scale, size):
            return x
        return x if self.is_regular and residual <= BACKWARD * scale else None

    def _is_small_in_all_rows(self, residual: float, scale: float, size: float) -> bool:
        """Returns whether a residual is small compared with b in every row, including the residual's own rounding
        errors.

        A row's norm is its largest entry, or the sum of them, up to the root of their number.
        """
        error = residual + (self._terms + 2) * EPS * scale
        return error * math.sqrt(self._terms) <= ASKED * self._row_ratio() * size

    def _candidate(self, b: np.ndarray, trans: str) -> tuple[np.ndarray, Any]:
        """x, and the norm of its residual (for each column). Rounding errors in it are small compared with
        ``BACKWARD``."""
        turned = TURNED[trans]
        x = self._substitute(b, turned)
        residual = b - self._product(x, turned)
        return x, math.sqrt(np.vdot(residual, residual).real) if b.ndim == 1 else _norms(residual)

    def _substitute(self, b: np.ndarray, trans: int) -> np.ndarray:
        """Solves with the factors."""
        raise NotImplementedError

    def _product(self, x: np.ndarray, trans: int) -> np.ndarray:
        """The product with A, A^T or A^H."""
        raise NotImplementedError

    def _looks_regular(self) -> bool:
        """Returns whether the condition number, or the size of a solution, shows that A is regular."""
        raise NotImplementedError

    def _row_ratio(self) -> float:
        """The smallest row norm divided by the largest."""
        raise NotImplementedError


class Dense(Small):
    """A small matrix and its dense LU factors."""

    __slots__ = ("_factors", "_pivots", "_routines", "matrix")

    def __init__(self, A: Any) -> None:
        dense = A.toarray() if sparse.issparse(A) else A
        kind = np.complex128 if dense.dtype.kind == "c" else np.float64
        self.matrix = np.array(dense, kind, order="F") if dense is A else np.asfortranarray(dense, kind)
        self.dtype, self._terms = self.matrix.dtype, len(self.matrix)
        self._routines = DENSE["d" if kind is np.float64 else "z"]
        self._factors, self._pivots, info = self._routines[0](self.matrix)
        # After a pivot that is exactly zero, ``residua._factors`` decides whether A is singular.
        self._regular = False if info else None
        flat = self.matrix.reshape(-1, order="F")
        self._norm = math.sqrt(np.vdot(flat, flat).real)

    def _substitute(self, b: np.ndarray, trans: int) -> np.ndarray:
        return self._routines[1](self._factors, self._pivots, b, trans)[0]

    def _product(self, x: np.ndarray, trans: int) -> np.ndarray:
        return (self.matrix if trans == 0 else self.matrix.T if trans == 1 else self.matrix.conj().T) @ x

    def _looks_regular(self) -> bool:
        return bool(self._routines[2](self._factors, self._routines[3]("1", self.matrix))[0] > REGULAR)

    def _row_ratio(self) -> float:
        ratio, info = self._routines[4](self.matrix)[2::3]
        return float(ratio) if info == 0 else 0.0


class Band(Small):
    """A matrix of few diagonals, csc or csr, and its banded LU factors.

    Parameters
    ----------
    rows, columns
        The positions of its entries, each once; ``offsets`` are their differences.
    below, above
        The number of diagonals on each side of the main one.
    """

    __slots__ = ("_band", "_columns", "_factors", "_magnitudes", "_pivots", "_routines", "_rows", "_widths")

    def __init__(
        self, A: Any, rows: np.ndarray, columns: np.ndarray, offsets: np.ndarray, below: int, above: int
    ) -> None:
        self._rows, self._columns, self._widths = rows, columns, (below, above)
        kind = np.complex128 if A.dtype.kind == "c" else np.float64
        self.dtype = np.dtype(kind)
        self._terms = below + above + 1
        self._routines = BAND["d" if kind is np.float64 else "z"]
        # In LAPACK's layout each column holds its part of the band, with room above for the fill from pivoting.
        height = 2 * below + above + 1
        self._band = np.zeros((A.shape[0], height), kind)
        self._band.reshape(-1)[columns * height + (offsets + (below + above))] = A.data
        self._factors, self._pivots, info = self._routines[0](self._band.T, below, above)
        self._regular = False if info else None
        self._magnitudes = np.abs(A.data).astype(np.float64, copy=False)
        self._norm = math.sqrt(np.vdot(self._magnitudes, self._magnitudes))

    @property
    def matrix(self) -> Any:
        """A, as a sparse matrix of its diagonals."""
        below, above = self._widths
        n = len(self._band)
        return sparse.dia_array((self._band.T, np.arange(below + above, -below - 1, -1)), shape=(n, n)).tocsc()

    def _substitute(self, b: np.ndarray, trans: int) -> np.ndarray:
        return self._routines[1](self._factors, *self._widths, b, self._pivots, trans=trans)[0]

    def _product(self, x: np.ndarray, trans: int) -> np.ndarray:
        if x.ndim == 2:
            return np.stack([self._product(column, trans) for column in x.T], axis=1)
        below, above = self._widths
        n = len(self._band)
        return self._routines[3](n, n, below, below + above, 1.0, self._band.T, x, trans=trans)

    def _looks_regular(self) -> bool:
        # An estimate of the condition takes ten solves. One solve with a vector that has a part in every direction is
        # enough if its solution is so small that the rounding errors of the residual are below the tolerance.
        b = np.cos(np.arange(1.0, len(self._band) + 1)).astype(self.dtype)
        size = math.sqrt(np.vdot(b, b).real)
        x, residual = self._candidate(b, "N")
        if self._is_small_in_all_rows(residual, self._norm * math.sqrt(np.vdot(x, x).real) + size, size):
            return True
        if self._routines[2] is None:
            return False
        one_norm = np.bincount(self._columns, self._magnitudes).max()
        return bool(self._routines[2](*self._widths, self._factors, self._pivots, one_norm)[0] > REGULAR)

    def _row_ratio(self) -> float:
        sums = np.bincount(self._rows, self._magnitudes, len(self._pivots))
        return float(sums.min() / sums.max()) if sums.max() > 0 else 0.0


def factorised(A: Any) -> Small | None:
    """Factors of a small square matrix of SciPy or NumPy, which may change afterwards; None for any other matrix."""
    n = A.shape[0]
    if not 0 < n <= LONG:
        return None
    entries = n * n if isinstance(A, np.ndarray) else A.nnz
    if n <= SMALL or (n <= MIDDLE and FILLED * entries >= n * n):
        return Dense(A)
    if not n <= entries <= WIDE * n or isinstance(A, np.ndarray):
        return None
    if A.format not in ("csc", "csr"):
        A = A.tocsc()
    if not A.has_canonical_format:
        return None
    starts, inner = A.indptr, A.indices
    outer = np.repeat(np.arange(n, dtype=inner.dtype), starts[1:] - starts[:-1])
    if not len(outer) == len(inner) == len(A.data):
        return None
    rows, columns = (inner, outer) if A.format == "csc" else (outer, inner)
    offsets = rows - columns
    below, above = max(int(offsets.max()), 0), max(-int(offsets.min()), 0)
    return Band(A, rows, columns, offsets, below, above) if below + above < WIDE else None


def _norms(columns: np.ndarray) -> np.ndarray:
    """The norms of columns."""
    return np.sqrt(np.square(np.abs(columns)).sum(axis=0))
