"""Preconditioners as operators for the ``M`` of SciPy's methods."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _matrix, _residua
from ._types import LinearMap


def _operator(name: str, A: Any) -> LinearMap:
    from scipy.sparse.linalg import LinearOperator

    if not _matrix.is_matrix(A):
        raise TypeError(f"a preconditioner needs a stored matrix, but A is of type {type(A).__name__}")
    arrays = _matrix.arrays_of(A)
    m = _residua.Preconditioner(name, *arrays)
    dtype = arrays.values.dtype

    def apply(r: np.ndarray) -> np.ndarray:
        r = np.asarray(r)
        if r.dtype.kind == "c" and dtype.kind == "f":
            return apply(np.real(r)) + 1j * apply(np.imag(r))
        r = np.ascontiguousarray(r.reshape(-1), dtype=dtype)
        z = np.empty_like(r)
        m.apply(r, z)
        return z

    return LinearOperator(arrays.shape, matvec=apply, dtype=dtype)


def jacobi(A: Any, block: int | str = 1) -> LinearMap:
    """The inverse of A's diagonal, or of its diagonal blocks.

    For a Hermitian A that is not definite, the magnitudes of the diagonal are inverted, as ``minres`` needs it.

    Parameters
    ----------
    A : sparse or dense matrix, shape (n, n)
        As for :class:`Solver`.
    block : int or "auto"
        Rows per block; with "auto", a block has consecutive rows with the same columns, like the unknowns of a point.

    Returns
    -------
    scipy.sparse.linalg.LinearOperator, shape (n, n)
        For the ``M`` of SciPy's and residua's methods, on the CPU. It is Hermitian positive definite if A is.

    Raises
    ------
    ValueError
        If the matrix is not square, or has no such preconditioner.

    Examples
    --------
    >>> import numpy as np, residua, scipy.sparse.linalg
    >>> A = residua.generate("poisson2d", (30, 30))
    >>> x, info = scipy.sparse.linalg.cg(A, np.ones(900), M=residua.jacobi(A))
    >>> info
    0
    """
    if block == 1:
        return _operator("jacobi", A)
    return _operator("block-jacobi" if block == "auto" else f"block-jacobi:{int(block)}", A)


def fsai(A: Any) -> LinearMap:
    """A factorised sparse approximate inverse G^H G on the lower pattern of a Hermitian positive definite A.

    Parameters, returns and errors are those of :func:`jacobi`.

    Examples
    --------
    >>> import numpy as np, residua, scipy.sparse.linalg
    >>> A = residua.generate("poisson2d", (30, 30))
    >>> x, info = scipy.sparse.linalg.cg(A, np.ones(900), M=residua.fsai(A))
    >>> info
    0
    """
    return _operator("fsai", A)


def ilu(A: Any, fill: int | None = None, digits: int | None = None) -> LinearMap:
    """An incomplete factorisation L U: on the pattern of A, or with the largest entries of the fill.

    Parameters
    ----------
    A : sparse or dense matrix, shape (n, n)
    fill : int, optional
        Entries of the factors, as a multiple of A's. If this or ``digits`` is given, small entries of the fill are
        dropped and rows are matched first (ILUT); M is then not Hermitian.
    digits : int, optional
        Entries below 10^-digits of their row's norm are dropped.

    Returns and errors are those of :func:`jacobi`.

    Examples
    --------
    >>> import numpy as np, residua, scipy.sparse.linalg
    >>> A = residua.generate("convection2d", (30, 30))
    >>> x, info = scipy.sparse.linalg.gmres(A, np.ones(900), M=residua.ilu(A))
    >>> info
    0
    """
    given = [f"{name}={int(value)}" for name, value in (("fill", fill), ("digits", digits)) if value is not None]
    return _operator(f"ilut:{','.join(given)}" if given else "ilu", A)


def amg(A: Any, **options: Any) -> LinearMap:
    """One cycle of algebraic multigrid, by smoothed aggregation; on a grid of points, by coarser grids.

    Parameters
    ----------
    A : sparse or dense matrix, shape (n, n)
    **options
        Those of ``preconditioner="amg:..."``: ``steps``, ``unknowns``, ``smoothing``, ``precision``, ...

    Returns and errors are those of :func:`jacobi`.

    Examples
    --------
    >>> import numpy as np, residua, scipy.sparse.linalg
    >>> A = residua.generate("poisson2d", (100, 100))
    >>> x, info = scipy.sparse.linalg.cg(A, np.ones(10_000), M=residua.amg(A))
    >>> info
    0
    """
    given = ",".join(f"{name}={value}" for name, value in options.items())
    return _operator(f"amg:{given}" if given else "amg", A)
