"""SciPy's direct solvers, by residua's factorisations."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sparse

from . import _device, _matrix, _scipy, _small, _sparse_rhs
from ._factors import Factors, Singular
from ._lu import LU
from ._types import PermcSpec


def _check_options(**options: Any) -> None:
    """Lets SciPy check its options, which residua does not use."""
    if any(value is not None for value in options.values()):
        _scipy.splu(sparse.csc_array(np.ones((1, 1))), **options)


def spsolve(A: Any, b: Any, permc_spec: PermcSpec | None = None, use_umfpack: bool = True) -> Any:
    """Solves A x = b by a factorisation, as ``scipy.sparse.linalg.spsolve``.

    Parameters
    ----------
    A : sparse or dense matrix, shape (n, n)
    b : array or sparse matrix, shape (n,), (n, 1) or (n, k)
    permc_spec : str, optional
        One of SciPy's names; it is checked, but residua chooses the ordering.
    use_umfpack
        Accepted and ignored.

    Returns
    -------
    x : array of b's shape, (n,) for one right-hand side; sparse in A's format (csc or csr) if b is sparse with more
        than one column

    Raises
    ------
    NotConverged
        If x has neither a relative residual of 1e-10 nor a backward error of 1e-12 (single precision: both 1e-5).
    ValueError
        If shapes do not fit.

    Warns
    -----
    scipy.sparse.linalg.MatrixRankWarning
        If A is singular to working precision; x is then NaN.

    Examples
    --------
    >>> import numpy as np, residua
    >>> A = residua.generate("poisson2d", (30, 30))
    >>> x = residua.spsolve(A, np.ones(900))
    >>> bool(np.linalg.norm(A @ x - 1) < 1e-10)
    True
    """
    del use_umfpack
    if permc_spec is not None:
        _check_options(permc_spec=permc_spec)
    if not sparse.issparse(A):
        A = _matrix.from_foreign(A)
        A = A if sparse.issparse(A) else np.asarray(A)
    shape = A.shape
    several, dense = False, b
    if type(b) is not np.ndarray:
        several = sparse.issparse(b) and b.ndim == 2 and b.shape[1] != 1
        dense = b if several else b.toarray() if sparse.issparse(b) else _matrix.to_numpy(b)
    if len(shape) == 2 and (dense.ndim not in (1, 2) or dense.shape[0] != shape[0]):
        raise ValueError(f"matrix - rhs dimension mismatch ({shape} - {dense.shape})")
    if dense.ndim == 2 and dense.shape[1] == 1:
        dense = dense.reshape(-1)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"matrix must be square (has shape {shape})")
    dtype = A.dtype if A.dtype == dense.dtype == np.float64 else _matrix.scalar_type(A.dtype, dense.dtype)
    try:
        x = np.zeros(dense.shape, dtype) if 0 in dense.shape else _solved(A, dense, dtype)
    except Singular:
        warnings.warn("Matrix is exactly singular", _scipy.MatrixRankWarning, stacklevel=2)
        x = np.full(dense.shape, np.nan, dtype)
    if several:
        return (type(A) if sparse.issparse(A) and A.format in ("csc", "csr") else sparse.csc_array)(x)
    return _device.back(b, x)


def _solved(A: Any, b: Any, dtype: np.dtype) -> Any:
    """x for a dense or sparse b: by the factors of a small matrix, and what those leave in doubt by others."""
    small = _small.factorised(A, b.ndim == 1)
    others: Factors | None = None

    def solve(columns: np.ndarray) -> np.ndarray:
        nonlocal others
        x = None if small is None else _by_lapack(small, columns, dtype)
        if x is not None:
            return x
        if others is None:
            others = Factors(A, dtype, b.shape[1] if b.ndim == 2 else 1)
            if b is not columns or not b.any():
                # x = 0 solves the system even if A is singular, so whether A is singular is tested separately.
                others.prove()
        return others.solve(columns)

    if not sparse.issparse(b):
        return solve(b)
    if not b.count_nonzero():
        # Only whether A is singular is open.
        solve(np.zeros(A.shape[0], dtype))
    return _sparse_rhs.solution(b, solve, dtype)


def _by_lapack(factors: _small.Small, b: np.ndarray, dtype: np.dtype) -> np.ndarray | None:
    """x of a small system; None if it is not good enough without refinement."""
    if b.dtype.kind == "c" and factors.dtype.kind == "f":
        parts = [factors.solve(np.ascontiguousarray(part, np.float64)) for part in (np.real(b), np.imag(b))]
        x = None if parts[0] is None or parts[1] is None else parts[0] + 1j * parts[1]
    else:
        b = b.astype(factors.dtype, copy=False)
        x = factors.solve_once(b) if b.ndim == 1 else factors.solve(b)
    return None if x is None else x.astype(dtype, copy=False)


def splu(
    A: Any, permc_spec: PermcSpec | None = None, diag_pivot_thresh: float | None = None, relax: int | None = None,
    panel_size: int | None = None, options: dict[str, Any] | None = None,
) -> LU:  # fmt: skip
    """Factorises A for many solves, as ``scipy.sparse.linalg.splu``.

    Parameters
    ----------
    A : sparse or dense matrix, shape (n, n)
    permc_spec, diag_pivot_thresh, relax, panel_size, options
        SciPy's, for SuperLU's ``L``, ``U`` and permutations; residua's own factors do not use them.

    Returns
    -------
    lu : LU
        With ``solve(rhs, trans)``, ``shape``, ``nnz``, ``L``, ``U``, ``perm_r`` and ``perm_c``.

    Raises
    ------
    RuntimeError
        If A is singular. If it is singular only up to rounding, SciPy's LU solves, as shift and invert at an
        eigenvalue needs it.
    ValueError
        If the matrix is not square, or SciPy rejects an option.

    Examples
    --------
    >>> import numpy as np, residua.linalg
    >>> A = np.array([[4.0, 1.0], [2.0, 3.0]])
    >>> lu = residua.linalg.splu(A)
    >>> np.round(lu.solve(np.array([1.0, 2.0]), trans="T"), 4)
    array([-0.1,  0.7])
    """
    given = {
        "permc_spec": permc_spec, "diag_pivot_thresh": diag_pivot_thresh, "relax": relax, "panel_size": panel_size,
        "options": options,
    }  # fmt: skip
    _check_options(**given)
    return LU(A, given)


def factorized(A: Any) -> Callable[[Any], Any]:
    """Factorises A and returns a function that solves A x = b, as ``scipy.sparse.linalg.factorized``.

    Parameters
    ----------
    A : sparse or dense matrix, shape (n, n)

    Returns
    -------
    solve : callable
        ``x = solve(b)`` for b of shape (n,) or (n, k): the ``solve`` of the object that :func:`residua.linalg.splu`
        returns.

    Raises
    ------
    RuntimeError, ValueError
        As :func:`residua.linalg.splu`.

    Examples
    --------
    >>> import numpy as np, residua
    >>> solve = residua.factorized(np.array([[4.0, 1.0], [1.0, 3.0]]))
    >>> np.round(solve(np.array([1.0, 2.0])), 4)
    array([0.0909, 0.6364])
    """
    return LU(A).solve
