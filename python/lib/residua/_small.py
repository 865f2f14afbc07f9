"""Small systems: dense ones below some hundred unknowns by LAPACK, and narrow bands by the library's banded LU, which
needs neither an order nor a structure.

x is handed out only if it is shown to be good; else the caller turns to ``residua._factors``, which finds out why.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sparse
from scipy.linalg import lapack

from . import _residua

#: Matrices of at most so many rows are factorised dense; those of at most ``MIDDLE`` rows if at least one entry in
#: ``FILLED`` is stored. On two cores SuperLU is slower than LAPACK there: at 64 rows with three entries a row it takes
#: 44 us and LAPACK 26, at 100 rows that are filled to a tenth 270 and 55. Beyond, LAPACK's threads wait for each other
#: for a hundred milliseconds where processors are busy.
SMALL, MIDDLE, FILLED = 72, 256, 25

#: Bands of at most so many rows and diagonals; and matrices of so few rows that any of them counts as a band, whose
#: factors are reached in one call.
LONG, WIDE, TINY = 4096, 24, 16

#: Types of values that are taken as they are.
TYPES = (np.dtype(np.float64), np.dtype(np.complex128))

#: The backward error of an x that is handed out, and the reciprocal condition number from which on A is regular beyond
#: doubt. Partial pivoting gives 1e-15 unless factors grow.
BACKWARD, REGULAR = 1e-13, 1e-10

#: The relative residual that will do whatever the condition is: as in ``residua._factors``.
ASKED = 1e-10

#: Norms between these are sums of squares that have neither underflowed nor overflowed.
LEAST, MOST = 1e-140, 1e140

EPS = float(np.finfo(np.float64).eps)

#: ``trans`` of LAPACK by SciPy's names.
TURNED = {"N": 0, "T": 1, "H": 2}

#: LAPACK's routines by type: factorise, solve, condition, norm and equilibration.
DENSE: dict[str, list[Any]] = {
    kind: [getattr(lapack, kind + name) for name in ("getrf", "getrs", "gecon", "lange", "geequ")] for kind in "dz"
}


class Small:
    """A small square matrix and its LU factors, in double precision."""

    __slots__ = ("_norm", "_regular", "_terms", "dtype")

    #: Entries of a row at most.
    _terms: int
    #: A, dense or sparse.
    matrix: Any
    #: Whether it is regular beyond doubt; None where that was not looked at yet.
    _regular: bool | None
    #: A's Frobenius norm.
    _norm: float
    dtype: np.dtype[Any]

    @property
    def is_regular(self) -> bool:
        """Whether A is regular beyond doubt."""
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
        """As :meth:`solve` for a vector; a small residual in all rows is enough, and spares the condition number."""
        size = math.sqrt(np.vdot(b, b).real)
        if self._regular is False or not (LEAST < size < MOST and self._norm < MOST):
            return None
        x, residual = self._candidate(b, "N")
        scale = self._norm * math.sqrt(np.vdot(x, x).real) + size
        if self._is_small_in_all_rows(residual, scale, size):
            return x
        return x if self.is_regular and residual <= BACKWARD * scale else None

    def _is_small_in_all_rows(self, residual: float, scale: float, size: float) -> bool:
        """Whether a residual is small beside b, rounding errors of its own included, with rows in any units.

        A row's norm is its largest entry, or the sum of them, up to the root of their number.
        """
        error = residual + (self._terms + 2) * EPS * scale
        return error * math.sqrt(self._terms) <= ASKED * self._row_ratio() * size

    def _candidate(self, b: np.ndarray, trans: str) -> tuple[np.ndarray, Any]:
        """x, and the norm of its residual; of columns, norms. Rounding adds little to ``BACKWARD``."""
        turned = TURNED[trans]
        x = self._substitute(b, turned)
        residual = b - self._product(x, turned)
        return x, math.sqrt(np.vdot(residual, residual).real) if b.ndim == 1 else _norms(residual)

    def _substitute(self, b: np.ndarray, trans: int) -> np.ndarray:
        """x by the factors."""
        raise NotImplementedError

    def _product(self, x: np.ndarray, trans: int) -> np.ndarray:
        """The product with A, A^T or A^H."""
        raise NotImplementedError

    def _looks_regular(self) -> bool:
        """Whether the condition number, or the size of a solution, shows that A is regular."""
        raise NotImplementedError

    def _row_ratio(self) -> float:
        """The norm of the smallest row beside that of the largest."""
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
        # An exact zero among the pivots: whether A is singular is for the other module to say.
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

    __slots__ = ("banded",)

    def __init__(self, banded: _residua.Banded, dtype: np.dtype[Any]) -> None:
        self.banded, self.dtype = banded, dtype

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
        x = np.empty(b.shape, b.dtype, "F")
        for k, column in enumerate(np.asfortranarray(b).T):
            found = self.banded.solve(column, trans)
            if found is None:
                return None
            x[:, k] = found
        return x

    def solve_once(self, b: np.ndarray) -> np.ndarray | None:
        return self.banded.solve_once(np.ascontiguousarray(b))


def factorised(A: Any) -> Small | None:
    """Factors of a square matrix of SciPy or NumPy, which may change afterwards; None where it is none of these."""
    n = A.shape[0]
    if not 0 < n <= LONG:
        return None
    if isinstance(A, np.ndarray):
        return Dense(A) if n <= MIDDLE else None
    entries = A.nnz
    if n <= entries <= WIDE * n or n <= TINY:
        compressed = A if A.format in ("csc", "csr") else A.tocsc()
        values = compressed.data
        if values.dtype not in TYPES:
            values = values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)
        widest = 2 * n if n <= TINY else WIDE
        try:
            banded = _residua.Banded.factorised(
                compressed.format, n, compressed.indptr, compressed.indices, values, widest
            )  # fmt: skip
        except ValueError:
            # What is wrong with it is told by the other module.
            return None
        if banded is not None:
            return Band(banded, values.dtype)
    return Dense(A) if n <= SMALL or (n <= MIDDLE and FILLED * entries >= n * n) else None


def _norms(columns: np.ndarray) -> np.ndarray:
    """The norms of columns."""
    return np.sqrt(np.square(np.abs(columns)).sum(axis=0))
