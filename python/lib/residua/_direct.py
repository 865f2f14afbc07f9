"""SciPy's direct solvers, by residua's factorisations."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.linalg import splu as lu_of_scipy

from . import _device, _matrix
from ._errors import NotConverged
from ._solver import Solver

#: Relative residuals that are asked for, by the bytes of a real number; and backward errors that will do where
#: rounding lets no x meet them: what a backward stable factorisation gives.
ASKED = {4: 1e-5, 8: 1e-10}
ENOUGH = {4: 1e-5, 8: 1e-12}

#: Double precision of single.
SINGLE = {"float32": "float64", "complex64": "complex128"}


def _is_singular(report: Any) -> bool:
    """Whether a square A was shown to be singular."""
    return report.outcome in ("singular", "least_squares")


def _is_good(report: Any, size: int) -> bool:
    """Whether x is what a backward stable factorisation gives."""
    if _is_singular(report):
        return False
    if report.converged or report.outcome == "precision_limit":
        return True
    return report.backward_error is not None and report.backward_error <= ENOUGH[size]


class _Singular(RuntimeError):
    """A is singular to working precision."""


class _Factorised:
    """A factorisation, and its solves."""

    def __init__(
        self, A: Any, dtype: np.dtype | None = None, right_hand_sides: int = 1, falls_back: bool = False
    ) -> None:
        A = _matrix.from_foreign(A)
        shape = np.shape(A)
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ValueError(f"can only factor square matrices: A has shape {shape}")
        own = _matrix.scalar_type(A.dtype if hasattr(A, "dtype") else np.asarray(A).dtype)
        dtype = own if dtype is None else dtype
        if dtype.kind == "c" and own.kind == "f":
            dtype = np.dtype(np.float64 if dtype == np.complex128 else np.float32)
        self.size = np.finfo(dtype).dtype.itemsize
        self.count = max(right_hand_sides, 1)
        # The caller may change A before a solve in double precision is found to be needed.
        self.matrix = A.copy() if self.size == 4 and hasattr(A, "copy") else None
        # Shift and invert at an eigenvalue needs factors of a matrix that is singular up to rounding: SciPy's LU goes
        # on with pivots that are rounding errors.
        self.fallback = sparse.csc_array(A, copy=True) if falls_back else None
        # SciPy's go on with infinities and NaN, which some programs rely on: an infinite conductance grounds a node.
        self.others: Any = None
        if not _matrix.is_finite(A):
            self.others = lu_of_scipy(sparse.csc_array(A))
            return
        self.solver = self._solver(A, dtype)

    def _solver(self, A: Any, dtype: np.dtype) -> Solver:
        return Solver(A, "direct", "cpu", rtol=ASKED[self.size], dtype=dtype, right_hand_sides=self.count, _keep=False)

    def solve(self, b: Any) -> np.ndarray:
        """x, as good as a factorisation can make it.

        Raises
        ------
        RuntimeError
            Where A is singular.
        NotConverged
            Where it is not, and x is not good all the same.
        """
        if self.others is not None:
            return self.others.solve(np.asarray(b))
        size = self.solver.shape[0]
        if np.ndim(b) not in (1, 2) or np.shape(b)[0] != size:
            raise ValueError(f"b is of incompatible size: shape {np.shape(b)}, ({size},) or ({size}, k) is needed")
        b = np.asarray(b)
        finite = np.isfinite(b).all(axis=0)
        if not finite.all():
            # What is not finite comes back as NaN, and the other columns are solved for.
            x = np.full(b.shape, np.nan, np.result_type(b.dtype, self.solver.dtype))
            if b.ndim == 2 and finite.any():
                x[:, finite] = self.solve(b[:, finite])
            return x
        x, reports = self._solve(b)
        if all(_is_good(report, self.size) for report in reports):
            return x
        if self.matrix is not None:
            # Singular to single precision is not singular yet.
            dtype = x.dtype
            self.solver = self._solver(self.matrix, np.dtype(SINGLE[self.solver.dtype.name]))
            self.matrix = None
            x, reports = self._solve(b)
            x = x.astype(dtype)
            if all(_is_good(report, self.size) for report in reports):
                return x
        if any(_is_singular(report) for report in reports):
            if self.fallback is None:
                raise _Singular("Factor is exactly singular")
            # Its error where a pivot is exactly zero is ours.
            self.others = lu_of_scipy(self.fallback)
            return self.others.solve(b)
        raise NotConverged(x, reports)

    def _solve(self, b: Any) -> tuple[np.ndarray, list]:
        x, reports = self.solver._solve_host(b, None, None, None)
        return x, reports if isinstance(reports, list) else [reports]


def spsolve(A: Any, b: Any, permc_spec: str | None = None, use_umfpack: bool = True) -> Any:
    """A factorisation's solution of A x = b, as ``scipy.sparse.linalg.spsolve``.

    Parameters
    ----------
    A : sparse or dense matrix, shape (n, n)
    b : array or sparse matrix, shape (n,), (n, 1) or (n, k)
    permc_spec, use_umfpack
        Taken and not looked at: residua chooses the order.

    Returns
    -------
    x : array of b's shape, (n,) for one right-hand side; sparse where b is sparse with more than one column

    Raises
    ------
    NotConverged
        Where x neither has a relative residual of 1e-10 nor a backward error of 1e-12 (single precision: both 1e-5).
    ValueError
        On shapes that do not fit.

    Warns
    -----
    scipy.sparse.linalg.MatrixRankWarning
        Where A is singular to working precision; x is NaN then.

    Examples
    --------
    >>> import numpy as np, residua
    >>> A = residua.generate("poisson2d", (30, 30))
    >>> x = residua.spsolve(A, np.ones(900))
    >>> bool(np.linalg.norm(A @ x - 1) < 1e-10)
    True
    """
    del permc_spec, use_umfpack
    A = _matrix.from_foreign(A)
    shape = np.shape(A)
    several = sparse.issparse(b) and b.ndim == 2 and b.shape[1] != 1
    dense = b.toarray() if sparse.issparse(b) else _matrix.to_numpy(b)
    if len(shape) == 2 and (dense.ndim not in (1, 2) or dense.shape[0] != shape[0]):
        raise ValueError(f"matrix - rhs dimension mismatch ({shape} - {dense.shape})")
    if dense.ndim == 2 and dense.shape[1] == 1:
        dense = dense.reshape(-1)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"matrix must be square (has shape {shape})")
    own = A.dtype if hasattr(A, "dtype") else np.asarray(A).dtype
    dtype = _matrix.scalar_type(own, _matrix.scalar_type(dense.dtype))
    count = dense.shape[1] if dense.ndim == 2 else 1
    factor = _Factorised(A, dtype, count)
    try:
        x = factor.solve(dense)
    except _Singular:
        from scipy.sparse.linalg import MatrixRankWarning

        warnings.warn("Matrix is exactly singular", MatrixRankWarning, stacklevel=2)
        x = np.full(dense.shape, np.nan, dtype)
    return type(b)(x) if several else _device.back(b, x)


def factorized(A: Any) -> Callable[[Any], np.ndarray]:
    """A function that solves A x = b with a factorisation kept, as ``scipy.sparse.linalg.factorized``.

    Parameters
    ----------
    A : sparse or dense matrix, shape (n, n)

    Returns
    -------
    solve : callable
        ``x = solve(b)`` for b of shape (n,) or (n, k); errors are those of :func:`spsolve`. A is factorised
        at the first call, which raises RuntimeError where A is singular. Where it is so up to rounding only, x is
        that of SciPy's LU, as shift and invert at an eigenvalue needs it.

    Examples
    --------
    >>> import numpy as np, residua
    >>> solve = residua.factorized(np.array([[4.0, 1.0], [1.0, 3.0]]))
    >>> np.round(solve(np.array([1.0, 2.0])), 4)
    array([0.0909, 0.6364])
    """
    return _Factorised(A, falls_back=True).solve
