"""SciPy's ``lsmr``, by residua."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.linalg import LinearOperator

from . import _matrix
from ._iterative import System, limit_of
from ._operator import Operator, typed


def lsmr(
    A: Any, b: Any, damp: float = 0.0, atol: float = 1e-6, btol: float = 1e-6, conlim: float = 1e8,
    maxiter: int | None = None, show: bool = False, x0: Any = None, *, device: str = "auto",
) -> tuple[np.ndarray, int, int, float, float, float, float, float]:  # fmt: skip
    """LSMR, as ``scipy.sparse.linalg.lsmr``: the x with the smallest ||b - A x||, A of any shape.

    Parameters
    ----------
    A : matrix or LinearOperator with rmatvec, shape (m, n)
    b : array, shape (m,) or (m, 1)
    damp : float
        Minimises ||b - A x||^2 + damp^2 ||x||^2.
    atol, btol : float
        Stops if ||r|| <= btol ||b|| or ||A^H r|| <= atol ||A|| ||r||, both computed anew: at least as
        strict as SciPy's tests.
    conlim : float
        Ignored: the condition of A is not estimated.
    maxiter : int, optional
        Maximum number of iterations. Default min(m, n).
    show : bool
        Prints how the solve ended.
    x0 : array, shape (n,), optional

    Returns
    -------
    x, istop, itn, normr, normar, norma, conda, normx
        As SciPy's. istop: 0 x = 0 solves, 1 converged, 2 least-squares solution, 7 maxiter reached, 8 ended otherwise.
        norma is the Frobenius norm of the stored matrix (with damp), NaN for an operator; conda is NaN.

    Examples
    --------
    >>> import numpy as np, residua
    >>> A = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> np.round(residua.lsmr(A, np.array([1.0, 2.0, 4.0]), atol=1e-10)[0], 6)
    array([1., 3.])
    """
    del conlim
    b = np.atleast_1d(_matrix.to_numpy(b))
    if x0 is not None and np.iscomplexobj(x0) and not np.iscomplexobj(b):
        b = b.astype(np.result_type(b, np.complex64 if b.dtype == np.float32 else np.complex128))
    if damp != 0:
        A, b = _damped(A, b, damp)
    system = System(A, b, x0, None, square=False)
    rows, columns = system.operator.shape
    eps = float(np.finfo(system.dtype).eps)
    # A least-squares solution has ||A^H r|| <= 0.01 rtol ||A|| ||r||.
    rtol = max(min(float(btol), 100 * float(atol)), 2 * eps)
    if not system.b.any():
        norma = _frobenius(system.operator)
        return np.zeros(columns, system.dtype), 0, 0, 0.0, 0.0, norma, float("nan"), 0.0
    default = min(rows, columns) if damp == 0 else min(rows - columns, columns)
    report = system.solve("lsmr", rtol, 0.0, limit_of(maxiter, default), device=device)
    stop = {"converged": 1, "least_squares": 2, "max_iterations": 7}.get(report.outcome, 8)
    x = system.x
    residual = system.b - np.asarray(system.operator.apply(x)).reshape(-1)
    if system.operator.matrix is not None:
        gradient = system.operator.matrix.conj().T @ residual
    else:
        assert system.operator.adjoint is not None
        gradient = typed(system.operator.adjoint, system.dtype)(residual)
    if show:
        print(f"lsmr: {report!r}")
    norms = [float(np.linalg.norm(v)) for v in (residual, gradient, x)]
    norma = _frobenius(system.operator)
    return x, stop, report.iterations, norms[0], norms[1], norma, float("nan"), norms[2]


def _damped(A: Any, b: np.ndarray, damp: float) -> tuple[Any, np.ndarray]:
    """[A; damp I] and [b; 0]."""
    below = np.zeros(A.shape[1], dtype=b.dtype)
    right = np.concatenate([b.reshape(-1), below])
    if _matrix.is_matrix(A):
        A = sparse.csr_array(_matrix.from_foreign(A))
        return sparse.vstack([A, damp * sparse.eye_array(A.shape[1], dtype=A.dtype)], format="csr"), right
    rows = A.shape[0]

    def product(x: np.ndarray) -> np.ndarray:
        return np.concatenate([np.asarray(A.matvec(x)).reshape(-1), damp * x])

    def adjoint(y: np.ndarray) -> np.ndarray:
        return np.asarray(A.rmatvec(y[:rows])).reshape(-1) + damp * y[rows:]

    shape = (rows + A.shape[1], A.shape[1])
    return LinearOperator(shape, matvec=product, rmatvec=adjoint, dtype=A.dtype), right


def _frobenius(operator: Operator) -> float:
    if operator.matrix is None:
        return float("nan")
    return float(np.linalg.norm(_matrix.arrays_of(operator.matrix).values))
