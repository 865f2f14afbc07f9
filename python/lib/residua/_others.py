"""SciPy's own methods, for all types of arrays that residua accepts, with residua's preconditioner.

Convergence is checked with the residual b - A x of the returned x. If the residual of SciPy's recurrence has drifted
away from it, the method is restarted from x.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sparse

from . import _device, _matrix, _scipy
from ._operator import Operator, typed
from ._preconditioner import jacobi
from ._types import PermcSpec

#: SciPy's methods that stop by the residual of x itself, not by an estimate of it.
CERTIFIED = (_scipy.lgmres, _scipy.gcrotmk)

#: How often a method is started again from an x whose residual is larger than the method's estimate.
REPEATS = 3

#: A residual above the requested one is attributed to rounding if it exceeds it by at most this factor.
ROUNDING = 1 + 1e-3


def _system(A: Any, b: Any) -> tuple[Any, np.ndarray, Operator]:
    """A and b in the form for SciPy's functions, and A in the form for residua."""
    array = np.asarray(_matrix.to_numpy(b))
    operator = Operator(A, array)
    if operator.stored:
        return operator.matrix, array, operator
    if hasattr(A, "matvec"):
        return A, array, operator
    dtype = operator.dtype
    return _scipy.LinearOperator(operator.shape, matvec=typed(operator.product, dtype), dtype=dtype), array, operator


def _diagonal(operator: Operator, b: np.ndarray) -> Any:
    """The inverse of A's diagonal as an operator; None if it does not exist or all its entries are equal."""
    matrix = operator.matrix
    if matrix is None or matrix.shape[0] != matrix.shape[1] or b.shape[0] != matrix.shape[0]:
        return None
    diagonal = matrix.diagonal()
    if not diagonal.all() or (diagonal == diagonal[:1]).all() or not _matrix.is_finite(matrix):
        return None
    try:
        m = jacobi(matrix)
    except ValueError:
        return None
    inverse = m.matvec(np.ones(len(diagonal), m.dtype))
    return _scipy.LinearOperator(
        m.shape, matvec=lambda r: inverse * r.reshape(-1), rmatvec=lambda r: inverse.conj() * r.reshape(-1),
        dtype=m.dtype,
    )  # fmt: skip


def _residual(A: Any, x: np.ndarray, b: np.ndarray) -> float:
    product = A @ x if sparse.issparse(A) or isinstance(A, np.ndarray) else np.asarray(A.matvec(x)).reshape(-1)
    return float(np.linalg.norm(b.reshape(-1) - product))


def _certified(
    method: Callable[..., Any], A: Any, b: np.ndarray, x0: Any, rtol: float, atol: float, **settings: Any
) -> tuple[np.ndarray, int]:
    """A method's x, with an ``info`` of 0 only if the residual of x itself meets the tolerance."""
    x, info = method(A, b, x0, rtol=rtol, atol=atol, **settings)
    for _ in range(REPEATS):
        if (
            info != 0
            or method in CERTIFIED
            or _residual(A, x, b) <= max(rtol * float(np.linalg.norm(b)), atol) * ROUNDING
        ):
            return x, info
        x, info = method(A, b, x, rtol=rtol, atol=atol, **settings)
    return x, info or REPEATS


def solve(
    method: Callable[..., Any], A: Any, b: Any, x0: Any, rtol: float, atol: float, M: Any,
    callback: Callable[..., Any] | None, preconditioners: tuple[str, ...] = ("M",), **settings: Any,
) -> tuple[Any, int]:  # fmt: skip
    """Runs one of SciPy's methods, and returns x and ``info``.

    Without a preconditioner and a callback, A's diagonal is used. If the method does not converge with it, it starts
    again without it, as SciPy's function would. ``preconditioners`` are the names of the method's preconditioner
    arguments.
    """
    matrix, array, operator = _system(A, b)
    x0 = x0 if x0 is None or isinstance(x0, str) else np.asarray(_matrix.to_numpy(x0))
    foreign = tuple(None if m is None else _matrix.from_foreign(m) for m in (M if isinstance(M, tuple) else (M,)))
    given = dict(zip(preconditioners, foreign))
    choices = [given]
    # SciPy's TFQMR stops by the residuals of the system without M, so M makes it no faster.
    takes = method is not _scipy.tfqmr
    if takes and callback is None and x0 is None and all(m is None for m in foreign) and not hasattr(A, "psolve"):
        diagonal = _diagonal(operator, array)
        if diagonal is not None:
            choices.insert(0, {**given, preconditioners[0]: diagonal})
    x, info = np.empty(0), -1
    for choice in choices:
        x, info = _certified(method, matrix, array, x0, rtol, atol, callback=callback, **choice, **settings)
        if info == 0:
            break
    return _device.back(b, x), info


def cgs(
    A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None, M: Any = None,
    callback: Callable[..., Any] | None = None,
) -> tuple[np.ndarray, int]:  # fmt: skip
    """Conjugate gradients squared: ``scipy.sparse.linalg.cgs``, preconditioned by A's diagonal if M is None.

    Parameters, returns and errors are those of :func:`residua.cg`, except that ``M`` must not change from call to call.
    """
    return solve(_scipy.cgs, A, b, x0, rtol, atol, M, callback, maxiter=maxiter)


def bicg(
    A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None, M: Any = None,
    callback: Callable[..., Any] | None = None,
) -> tuple[np.ndarray, int]:  # fmt: skip
    """Biconjugate gradients: ``scipy.sparse.linalg.bicg``, preconditioned by A's diagonal if M is None.

    As :func:`residua.linalg.cgs`; operators, A and M, need ``rmatvec``.
    """
    return solve(_scipy.bicg, A, b, x0, rtol, atol, M, callback, maxiter=maxiter)


def qmr(
    A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None,
    M1: Any = None, M2: Any = None, callback: Callable[..., Any] | None = None,
) -> tuple[np.ndarray, int]:  # fmt: skip
    """Quasi-minimal residuals: ``scipy.sparse.linalg.qmr``, preconditioned by A's diagonal if M1 and M2 are None.

    As :func:`residua.linalg.cgs`; operators need ``rmatvec``. M1 and M2 are preconditioners on the left and right.
    """
    if M1 is None and M2 is None and not hasattr(A, "psolve"):
        return solve(_qmr, A, b, x0, rtol, atol, None, callback, maxiter=maxiter)
    return solve(_scipy.qmr, A, b, x0, rtol, atol, (M1, M2), callback, ("M1", "M2"), maxiter=maxiter)


def _qmr(A: Any, b: np.ndarray, x0: Any, *, M: Any, **settings: Any) -> tuple[np.ndarray, int]:
    """QMR with one preconditioner, on the left; SciPy's needs two or none."""
    if M is None:
        return _scipy.qmr(A, b, x0, **settings)
    same = _scipy.LinearOperator(M.shape, matvec=lambda r: r, rmatvec=lambda r: r, dtype=M.dtype)
    return _scipy.qmr(A, b, x0, M1=M, M2=same, **settings)


def tfqmr(
    A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None, M: Any = None,
    callback: Callable[..., Any] | None = None, show: bool = False,
) -> tuple[np.ndarray, int]:  # fmt: skip
    """Transpose-free QMR: ``scipy.sparse.linalg.tfqmr``.

    As :func:`residua.linalg.cgs`, but without a default preconditioner; ``show`` prints how it converges.
    """
    return solve(_scipy.tfqmr, A, b, x0, rtol, atol, M, callback, maxiter=maxiter, show=show)


def lgmres(
    A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: int = 1000, M: Any = None,
    callback: Callable[..., Any] | None = None, inner_m: int = 30, outer_k: int = 3, outer_v: list[Any] | None = None,
    store_outer_Av: bool = True, prepend_outer_v: bool = False,
) -> tuple[np.ndarray, int]:  # fmt: skip
    """LGMRES: ``scipy.sparse.linalg.lgmres``, preconditioned by A's diagonal if M is None.

    As :func:`residua.linalg.cgs`; other parameters are SciPy's. With ``outer_v`` there is no default preconditioner.
    """
    settings: dict[str, Any] = {"maxiter": maxiter, "inner_m": inner_m, "outer_k": outer_k}
    settings |= {"outer_v": outer_v, "store_outer_Av": store_outer_Av, "prepend_outer_v": prepend_outer_v}
    if outer_v is not None and M is None:
        A, b = _system(A, b)[:2]
        return _scipy.lgmres(A, b, x0, rtol=rtol, atol=atol, callback=callback, **settings)
    return solve(_scipy.lgmres, A, b, x0, rtol, atol, M, callback, **settings)


def gcrotmk(
    A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: int = 1000, M: Any = None,
    callback: Callable[..., Any] | None = None, m: int = 20, k: int | None = None, CU: list[Any] | None = None,
    discard_C: bool = False, truncate: str = "oldest",
) -> tuple[np.ndarray, int]:  # fmt: skip
    """GCROT(m, k): ``scipy.sparse.linalg.gcrotmk``, preconditioned by A's diagonal if M is None.

    As :func:`residua.linalg.cgs`; other parameters are SciPy's. With ``CU`` there is no default preconditioner.
    """
    settings: dict[str, Any] = {"maxiter": maxiter, "m": m, "k": k, "CU": CU}
    settings |= {"discard_C": discard_C, "truncate": truncate}
    if CU is not None and M is None:
        A, b = _system(A, b)[:2]
        return _scipy.gcrotmk(A, b, x0, rtol=rtol, atol=atol, callback=callback, **settings)
    return solve(_scipy.gcrotmk, A, b, x0, rtol, atol, M, callback, **settings)


def lsqr(
    A: Any, b: Any, damp: float = 0.0, atol: float = 1e-6, btol: float = 1e-6, conlim: float = 1e8,
    iter_lim: int | None = None, show: bool = False, calc_var: bool = False, x0: Any = None,
) -> tuple[Any, int, int, float, float, float, float, float, float, np.ndarray]:  # fmt: skip
    """LSQR: ``scipy.sparse.linalg.lsqr`` itself, which estimates the condition and variances that residua's
    :func:`residua.lsmr` does not.
    """
    matrix, array, _ = _system(A, b)
    x0 = None if x0 is None else np.asarray(_matrix.to_numpy(x0))
    x, *told = _scipy.lsqr(matrix, array, damp, atol, btol, conlim, iter_lim, show, calc_var, x0)
    return (_device.back(b, x), *told)


def spilu(
    A: Any, drop_tol: float | None = None, fill_factor: float | None = None, drop_rule: Any = None,
    permc_spec: PermcSpec | None = None, diag_pivot_thresh: float | None = None, relax: int | None = None,
    panel_size: int | None = None, options: dict[str, Any] | None = None,
) -> Any:  # fmt: skip
    """An incomplete LU: ``scipy.sparse.linalg.spilu`` itself, which has thresholds that residua's :func:`residua.ilu`
    lacks.

    Returns
    -------
    scipy.sparse.linalg.SuperLU
    """
    A = sparse.csc_array(_matrix.from_foreign(A), copy=True)
    return _scipy.spilu(
        A, drop_tol, fill_factor, drop_rule, permc_spec, diag_pivot_thresh, relax, panel_size, options
    )  # fmt: skip


def spsolve_triangular(
    A: Any, b: Any, lower: bool = True, overwrite_A: bool = False, overwrite_b: bool = False,
    unit_diagonal: bool = False,
) -> Any:  # fmt: skip
    """Substitution with a triangular A: ``scipy.sparse.linalg.spsolve_triangular`` itself.

    :func:`residua.spsolve` detects by itself that A is triangular, and checks its x.
    """
    A = _matrix.from_foreign(A)
    array = b if isinstance(b, np.ndarray) else np.asarray(_matrix.to_numpy(b))
    A = A if sparse.issparse(A) and A.format in ("csc", "csr") else sparse.csc_array(A)
    return _device.back(b, _scipy.spsolve_triangular(A, array, lower, overwrite_A, overwrite_b, unit_diagonal))
