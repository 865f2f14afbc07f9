"""Factors of a matrix for many solves: each x is as accurate as a stable factorisation gives, or an error is raised."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import numpy as np
import scipy.sparse as sparse

from . import _matrix, _scipy
from ._errors import NotConverged
from ._log import log
from ._solver import Solver

#: The requested relative residual, by the bytes of a real number. If no x meets it because of rounding, a backward
#: error up to ENOUGH is accepted, which a backward stable factorisation gives.
ASKED = {4: 1e-5, 8: 1e-10}
ENOUGH = {4: 1e-5, 8: 1e-12}

#: After more than this number of quick solves in a row without a result, no more are tried. The first one finds
#: no factors.
MISSES = 3

#: Double precision types for single precision ones, and real types for complex ones.
DOUBLE: dict[str, np.dtype[Any]] = {"float32": np.dtype(np.float64), "complex64": np.dtype(np.complex128)}
REAL: dict[str, np.dtype[Any]] = {"complex64": np.dtype(np.float32), "complex128": np.dtype(np.float64)}


class Singular(RuntimeError):
    """A is singular to working precision."""

    def __init__(self) -> None:
        super().__init__("Factor is exactly singular")


def _is_singular(report: Any) -> bool:
    """Returns whether a square A was shown to be singular."""
    return report.outcome in ("singular", "least_squares")


def _is_good(report: Any, size: int) -> bool:
    """Returns whether x is as accurate as a backward stable factorisation gives."""
    if report.converged:
        return True
    if _is_singular(report):
        return False
    if report.outcome == "precision_limit":
        return True
    return report.backward_error is not None and report.backward_error <= ENOUGH[size]


class Factors:
    """Factors of a square matrix of SciPy or NumPy, which must not change as long as they are used.

    Parameters
    ----------
    dtype : dtype
        The type of all computations; for a real A it is real even if b is complex.
    falls_back : bool
        Whether SciPy's LU is used if A is singular up to rounding. Shift and invert at an eigenvalue needs such
        factors, whose last pivots are rounding errors. Otherwise :class:`Singular` is raised.
    """

    def __init__(self, A: Any, dtype: np.dtype, right_hand_sides: int = 1, *, falls_back: bool = False) -> None:
        self.matrix, self.falls_back, self.count = A, falls_back, max(right_hand_sides, 1)
        if dtype.kind == "c" and A.dtype.kind != "c":
            dtype = REAL[dtype.name]
        self.size = 4 if dtype.name in DOUBLE else 8
        self._misses, self._tried = 0, False
        self.dtype = dtype
        #: None if SciPy's LU solves instead, because A has infinities or NaN. Some programs rely on SciPy's results for
        #: these: an infinite conductance grounds a node, for example.
        self.solver: Solver | None = None
        try:
            self.solver = self._solver(dtype)
        except ValueError:
            if _matrix.is_finite(A):
                raise

    def _solver(self, dtype: np.dtype) -> Solver:
        return Solver(
            self.matrix, "direct", "cpu", rtol=ASKED[self.size], dtype=dtype, right_hand_sides=self.count, _keep=False
        )

    @functools.cached_property
    def superlu(self) -> Any:
        """SciPy's LU of A."""
        return _scipy.splu(sparse.csc_array(self.matrix, dtype=self.dtype, copy=True))

    @property
    def symmetry(self) -> str:
        """The solver's symmetry: "symmetric", "hermitian" or "general"."""
        return "general" if self.solver is None else self.solver.symmetry

    def solve_quickly(self, b: np.ndarray, transposed: bool = False) -> np.ndarray | None:
        """x of A x = b (A^T x = b) by factors of an earlier solve; None if there are none, or x is not accurate."""
        if self.solver is None or b.dtype != self.solver.dtype or self.size != 8 or self._misses > MISSES:
            return None
        x = self.solver._solve_quickly(b, transposed)
        self._misses = 0 if x is not None else self._misses + 1
        return x

    def solve(self, b: np.ndarray) -> np.ndarray:
        """x for b of shape (n,) or (n, k).

        Raises
        ------
        RuntimeError
            If A is singular.
        NotConverged
            If A is not singular, but x is not accurate enough.
        """
        if b.ndim == 2 and b.shape[1] > 1 and not self._tried:
            # The first column leaves factors for all of them.
            with contextlib.suppress(NotConverged):
                self.solve(b[:, 0])
        if self.solver is None:
            return self._by_superlu(b)
        quick = self.solve_quickly(b) if self._tried else None
        if quick is not None:
            return quick
        self._tried = True
        try:
            x, reports = self._attempt(b)
        except ValueError:
            if np.isfinite(b).all():
                raise
            # A column of b that is not finite gets the x that SciPy gives; the other columns are solved as usual.
            if b.ndim == 1:
                return self._by_superlu(b)
            columns = [self.solve(column) for column in np.moveaxis(b, 1, 0)]
            return np.stack(columns, axis=1)
        if all(_is_good(report, self.size) for report in reports):
            return x
        if self.size == 4 and self.solver.dtype == self.dtype:
            # A matrix that is singular to single precision may be regular to double precision.
            self.solver = self._solver(DOUBLE[self.dtype.name])
            x, reports = self._attempt(b)
            if all(_is_good(report, self.size) for report in reports):
                return x
        if not any(_is_singular(report) for report in reports):
            raise NotConverged(x, reports[0] if b.ndim == 1 else reports)
        if not self.falls_back:
            raise Singular
        # If a pivot is exactly zero, SciPy's LU raises the error here.
        self.superlu  # noqa: B018
        self.solver = None
        return self._by_superlu(b)

    def prove(self) -> None:
        """Factorises, and solves once with a vector that is hardly ever in the range of a singular A.

        Raises
        ------
        RuntimeError
            If A is singular.
        """
        try:
            self.solve(np.cos(np.arange(1.0, self.matrix.shape[0] + 1)).astype(self.dtype))
        except NotConverged:
            # Another right-hand side may still be solved, so this proves nothing.
            pass

    def _attempt(self, b: np.ndarray) -> tuple[np.ndarray, list[Any]]:
        assert self.solver is not None
        x, reports = self.solver._solve_host(b, None, None, None)
        log(reports)
        if self.solver.dtype != self.dtype:
            x = x.astype(self.dtype if x.dtype.kind == self.dtype.kind else np.complex64)
        return x, reports if isinstance(reports, list) else [reports]

    def _by_superlu(self, b: np.ndarray) -> np.ndarray:
        if b.dtype.kind == "c" and self.dtype.kind == "f":
            return self._by_superlu(np.real(b)) + 1j * self._by_superlu(np.imag(b))
        return self.superlu.solve(b.astype(self.dtype))
