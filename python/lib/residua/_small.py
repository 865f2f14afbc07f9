"""Small systems: dense ones below some hundred unknowns by LAPACK, and narrow bands by the library's banded LU, which
needs neither an ordering nor a symbolic analysis.

x is returned only if it is shown to be accurate; else the caller uses ``residua._factors``, which finds the reason.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sparse
from scipy.linalg import lapack

from . import _matrix, _residua

#: Matrices with at most ``SMALL`` rows are factorised as dense ones; those with at most ``MIDDLE`` rows too, if at
#: least one entry in ``FILLED`` is stored. On two cores SuperLU is slower than LAPACK for these: with 64 rows and three
#: entries per row it takes 44 us and LAPACK 26, with 100 rows of which a tenth is stored 270 and 55. For larger ones,
#: LAPACK's threads may wait a hundred milliseconds for each other if processors are busy.
SMALL, MIDDLE, FILLED = 72, 256, 25

#: Bands of at most this many rows. They have fewer diagonals than the first number in any case; of a third of the rows
#: and the next two, fewer than the smaller: if the factors are kept, and if they are for one solve. Any matrix of at
#: most the last number of rows counts as a band, whose factors are reached in one call.
#: SuperLU's factors of a grid of 24^2 points (49 diagonals) take 0.7 ms, and those of the band 0.12; another right-hand
#: side takes 24 us with either. For 44^2 points (89 diagonals) it is 3.0 and 1.1 ms, but 91 and 130 us.
LONG, NARROW, WIDE, WIDEST, TINY = 4096, 24, 52, 96, 16

#: From so many right-hand sides on, sparse factors are faster than those of a band that is not narrow: 100 of 400
#: unknowns take 0.3 and 1.2 ms.
MANY = 8

#: Types of values that are taken as they are.
TYPES = (np.dtype(np.float64), np.dtype(np.complex128))

#: The largest backward error of an x that is returned, and the reciprocal condition number above which A is certainly
#: regular. Partial pivoting gives 1e-15 unless factors grow.
BACKWARD, REGULAR = 1e-13, 1e-10

#: A relative residual up to this is accepted whatever the condition is, as in ``residua._factors``.
ASKED = 1e-10

#: If a norm that was computed from a sum of squares lies between these, the sum has neither underflowed nor overflowed.
LEAST, MOST = 1e-140, 1e140

EPS = float(np.finfo(np.float64).eps)

#: LAPACK's argument ``trans`` for each of SciPy's letters.
TURNED = {"N": 0, "T": 1, "H": 2}

#: LAPACK's routines by type: to factorise, to solve, and for the condition; then norm and equilibration of a dense
#: matrix, or the product of a banded one. Older versions of SciPy have no ``gbcon``.
DENSE: dict[str, list[Any]] = {
    kind: [getattr(lapack, kind + name) for name in ("getrf", "getrs", "gecon", "lange", "geequ")] for kind in "dz"
}


class Small:
    """A small square matrix and its LU factors, in double precision."""

    __slots__ = ("_norm", "_regular", "_terms", "dtype")

    #: The maximum number of entries in a row.
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
        if not (((sizes > LEAST) & (sizes < MOST)) | ~b.any(axis=0)).all():
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

        The norm of a row may be its largest entry or the sum of its entries. Both are within a factor of the root of
        their number of the 2-norm.
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
    """A matrix of few diagonals and its banded LU factors, of the compiled library."""

    __slots__ = ("_is_wide", "banded")

    def __init__(self, banded: _residua.Banded, dtype: np.dtype[Any], is_wide: bool) -> None:
        self.banded, self.dtype, self._is_wide = banded, dtype, is_wide

    @property
    def is_regular(self) -> bool:
        return self.banded.is_regular

    @property
    def matrix(self) -> Any:
        """A, as a sparse matrix."""
        (below, above), values = self.banded.diagonals()
        values = values.reshape(-1, below + above + 1)
        return sparse.dia_array((values.T, np.arange(above, -below - 1, -1)), shape=(len(values),) * 2).tocsc()

    def solve(self, b: np.ndarray, trans: str = "N") -> np.ndarray | None:
        if b.ndim == 1:
            return self.banded.solve(np.ascontiguousarray(b), trans)
        if self._is_wide and b.shape[1] >= MANY:
            return None
        x, (flat, by_rows) = np.empty(b.shape, b.dtype, "F"), _matrix.flat(b)
        return x if self.banded.solve_many(flat, x.reshape(-1, order="F"), trans, by_rows) else None

    def solve_once(self, b: np.ndarray) -> np.ndarray | None:
        return self.banded.solve_once(np.ascontiguousarray(b))


def factorised(A: Any, once: bool = False) -> Small | None:
    """Factors of a small square matrix of SciPy or NumPy, which may change afterwards; None for any other matrix.

    ``once`` says that they are for one solve.
    """
    n = A.shape[0]
    if not 0 < n <= LONG:
        return None
    if isinstance(A, np.ndarray):
        return Dense(A) if n <= MIDDLE else None
    entries = A.nnz
    wide = min(WIDEST if once else WIDE, max(NARROW, n // 3))
    if n <= entries <= wide * n or n <= TINY:
        compressed = A if A.format in ("csc", "csr") else A.tocsc()
        values = compressed.data
        if values.dtype not in TYPES:
            values = values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)
        arrays = (compressed.indptr, compressed.indices, values)
        for widest in (2 * n if n <= TINY else NARROW, wide):
            try:
                banded = _residua.Banded.factorised(compressed.format, n, *arrays, widest)
            except ValueError:
                # The caller's factorisation finds and reports what is wrong.
                return None
            if banded is not None:
                return Band(banded, values.dtype, widest > NARROW and n > TINY)
            if wide <= NARROW:
                break
    return Dense(A) if n <= SMALL or (n <= MIDDLE and FILLED * entries >= n * n) else None


def _norms(columns: np.ndarray) -> np.ndarray:
    """The norms of columns."""
    return np.sqrt(np.square(np.abs(columns)).sum(axis=0))
