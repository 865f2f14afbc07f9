"""SciPy's iterative solvers, by residua: the same signatures, defaults and meaning.

Each stops when ||b - A x||, computed anew, is at most max(rtol ||b||, atol): SciPy's test or a stricter one.
``DEVIATIONS.md`` in the repository lists what differs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _device, _matrix, _residua
from ._log import log
from ._operator import Operator, preconditioner
from ._solver import Solver
from ._types import Method

#: Larger tolerances, infinity among them, are replaced by this one, since the library takes only finite ones.
LARGEST = 1e300


class System:
    """A x = b, from the arguments of SciPy's functions after checks."""

    def __init__(self, A: Any, b: Any, x0: Any, M: Any, *, square: bool = True) -> None:
        self.given = b
        b = _matrix.to_numpy(b)
        self.operator = Operator(A, b)
        rows, columns = self.operator.shape
        if square and rows != columns:
            raise ValueError(f"expected square matrix, but got shape={(rows, columns)}")
        if b.shape not in ((rows,), (rows, 1)):
            raise ValueError(f"shapes of A {(rows, columns)} and b {b.shape} are incompatible")
        self.dtype = _matrix.scalar_type(self.operator.dtype, _matrix.scalar_type(b.dtype))
        self.b = _matrix.vector("b", b, self.dtype, rows)
        psolve = getattr(A, "psolve", None)
        self.m = preconditioner(psolve if M is None else M, (rows, columns), self.dtype)
        self.x = np.zeros(columns, self.dtype)
        if isinstance(x0, str):
            if x0 != "Mb":
                raise ValueError(f"x0 is {x0!r}, but must be an array or 'Mb'")
            self.x[:] = self.b if self.m is None else self.m(self.b)
        elif x0 is not None:
            x0 = _matrix.to_numpy(x0)
            if not np.can_cast(x0.dtype, self.dtype, "same_kind"):
                raise TypeError(f"x0 has values of type {x0.dtype}, but the system has {self.dtype}")
            self.x[:] = _matrix.vector("x0", x0, self.dtype, columns)

    def answer(self) -> Any:
        """The solution, as the same type of array as b."""
        return _device.back(self.given, self.x)

    def is_finite(self) -> bool:
        """Returns whether A and b are finite; SciPy's methods continue if they are not."""
        return bool(np.isfinite(self.b).all()) and _matrix.is_finite(self.operator.matrix)

    def solve(
        self,
        method: Method,
        rtol: float,
        atol: float,
        maxiter: int | None,
        *,
        restart: int | None = None,
        observer: Callable[..., Any] | None = None,
        callback: Callable[..., Any] | None = None,
        device: str = "auto",
    ) -> Any:
        """Solves, and returns the report; ``self.x`` is the solution. Python functions restrict it to one Krylov
        method."""
        rtol, atol = min(rtol, LARGEST), min(atol, LARGEST)
        if self.operator.stored and self.m is None and observer is None and callback is None and restart is None:
            try:
                solver = Solver(
                    self.operator.matrix, method, device, rtol=rtol, atol=atol, maxiter=maxiter, dtype=self.dtype,
                    row_wise=False, _keep=False,
                )  # fmt: skip
                report = solver._engine.solve(self.b, self.x, False, None)[0]
                log(report)
                return report
            except ValueError as refused:
                if not isinstance(refused, _residua.Unsupported) and self.is_finite():
                    raise
                # The solver refuses some matrices that SciPy takes, such as one that is symmetric only up to rounding.
                # The method by itself takes them too, and its outcome is certified all the same.
                pass
        size = self.operator.shape[1]
        report = _residua.krylov(
            method, self.operator.arguments(self.dtype), self.b, self.x, rtol=rtol, atol=atol, maxiter=maxiter,
            restart=max(1, min(20 if restart is None else restart, size)), m=self.m, observer=observer,
            callback=callback,
        )  # fmt: skip
        log(report)
        return report


def tolerances(name: str, rtol: Any, atol: Any) -> tuple[float, float]:
    """Both tolerances as numbers.

    Raises
    ------
    ValueError
        As in SciPy, if one is not a number of at least 0.
    """
    if atol is None or isinstance(atol, str) or not float(atol) >= 0:
        raise ValueError(f"'{name}' called with invalid 'atol'={atol!r}: it must be a real number of at least 0")
    if not float(rtol) >= 0:
        raise ValueError(f"'{name}' called with invalid 'rtol'={rtol!r}: it must be a real number of at least 0")
    return float(rtol), float(atol)


def info_of(report: Any) -> int:
    """SciPy's ``info``: 0 if converged, > 0 iterations without convergence, < 0 a breakdown or input that is not
    finite."""
    if report.converged:
        return 0
    if report.outcome == "not_finite":
        return -1
    if report.outcome == "breakdown":
        return -10
    return max(report.iterations, 1)


def limit_of(maxiter: Any, default: int) -> int:
    """The maximum number of iterations."""
    return max(int(default if maxiter is None else maxiter), 0)


def _solve(
    name: Method, A: Any, b: Any, x0: Any, rtol: Any, atol: Any, maxiter: Any, M: Any, callback: Any, device: str
) -> tuple[Any, int]:  # fmt: skip
    rtol, atol = tolerances(name, rtol, atol)
    system = System(A, b, x0, M)
    limit = limit_of(maxiter, 10 * system.operator.shape[0])
    report = system.solve(name, rtol, atol, limit, callback=callback, device=device)
    return system.answer(), info_of(report)


def cg(
    A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None, M: Any = None,
    callback: Callable[..., Any] | None = None, device: str = "auto",
) -> tuple[np.ndarray, int]:  # fmt: skip
    """Conjugate gradients, as ``scipy.sparse.linalg.cg``: A symmetric (Hermitian) positive definite.

    Parameters
    ----------
    A : matrix, LinearOperator or function, shape (n, n)
        A function ``A(x)`` gives the product. float32, float64, complex64, complex128; integers become float64.
    b : array, shape (n,) or (n, 1)
        x is of NumPy's result type of A and b.
    x0 : array, shape (n,) or (n, 1), or "Mb", optional
        The start of the iteration; it is not changed.
    rtol, atol : float
        Converged if ||b - A x|| <= max(rtol ||b||, atol), computed anew from x.
    maxiter : int, optional
        Maximum number of iterations. Default 10 n.
    M : matrix, LinearOperator or function, shape (n, n), optional
        An approximation of A^-1. Without it, and without a callback, residua chooses (usually the diagonal).
    callback : callable, optional
        ``callback(xk)`` after each iteration; the iteration is then the textbook's, with M as given.
    device : str
        "auto", "cpu", "cuda" or "cuda:N", if A is stored and neither M nor callback is given.

    Returns
    -------
    x : numpy.ndarray, shape (n,)
    info : int
        0: converged; > 0: iterations without convergence; -1: A, b or x0 is not finite; -10: breakdown.

    Raises
    ------
    ValueError, TypeError
        If shapes, types or tolerances do not fit.

    Examples
    --------
    >>> import numpy as np, residua
    >>> A = residua.generate("poisson2d", (30, 30))
    >>> x, info = residua.cg(A, np.ones(900), rtol=1e-8)
    >>> info
    0
    """
    return _solve("cg", A, b, x0, rtol, atol, maxiter, M, callback, device)


def bicgstab(
    A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, maxiter: int | None = None, M: Any = None,
    callback: Callable[..., Any] | None = None, device: str = "auto",
) -> tuple[np.ndarray, int]:  # fmt: skip
    """BiCGSTAB, as ``scipy.sparse.linalg.bicgstab``: any square A, in little memory.

    Parameters, returns and errors are those of :func:`cg`.

    Examples
    --------
    >>> import numpy as np, residua
    >>> A = residua.generate("convection3d", 10)
    >>> x, info = residua.bicgstab(A, np.ones(A.shape[0]))
    >>> info
    0
    """
    return _solve("bicgstab", A, b, x0, rtol, atol, maxiter, M, callback, device)


def minres(
    A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, shift: float = 0.0, maxiter: int | None = None,
    M: Any = None, callback: Callable[..., Any] | None = None, show: bool = False, check: bool = False,
    device: str = "auto",
) -> tuple[np.ndarray, int]:  # fmt: skip
    """MINRES, as ``scipy.sparse.linalg.minres``: A symmetric (Hermitian), indefinite or singular too.

    Parameters
    ----------
    shift : float
        Solves (A - shift I) x = b.
    maxiter : int, optional
        Maximum number of iterations. Default 5 n.
    show : bool
        Prints how the solve ended.
    check : bool
        Checks by products that A, and M if there is one, are symmetric.

    Other parameters, returns and errors are those of :func:`cg`. The stopping test is ||b - A x|| <= rtol ||b||, which
    is stricter than SciPy's rtol (||A|| ||x|| + ||b||).

    Examples
    --------
    >>> import numpy as np, residua
    >>> x, info = residua.minres(np.diag([1.0, -2.0, 3.0]), np.ones(3), rtol=1e-10)
    >>> np.round(x, 6)
    array([ 1.      , -0.5     ,  0.333333])
    """
    rtol, _ = tolerances("minres", rtol, 0.0)
    system = System(A, b, x0, M)
    operator = system.operator
    if check:
        _check_symmetric(operator.apply, system.b, "non-symmetric matrix")
        if system.m is not None:
            _check_symmetric(system.m, system.b, "non-symmetric preconditioner")
    if system.m is not None and np.vdot(system.b, system.m(system.b)).real < 0:
        raise ValueError("indefinite preconditioner")
    if shift != 0:
        _shift(system, shift)
    limit = limit_of(maxiter, 5 * operator.shape[0])
    report = system.solve("minres", rtol, 0.0, limit, callback=callback, device=device)
    if show:
        print(f"minres: {report!r}")
    return system.answer(), info_of(report)


def _check_symmetric(apply: Callable[..., Any], b: np.ndarray, message: str) -> None:
    y = np.asarray(apply(b)).reshape(-1)
    z = np.asarray(apply(y)).reshape(-1)
    s, t = complex(np.vdot(y, y)), complex(np.vdot(b, z))
    eps = np.finfo(y.dtype).eps
    if abs(s - t) > (abs(s) + eps) * eps ** (1 / 3):
        raise ValueError(message)


def _shift(system: System, shift: float) -> None:
    """Replaces A by A - shift I."""
    operator = system.operator
    if operator.matrix is not None:
        import scipy.sparse as sparse

        matrix = sparse.csr_array(operator.matrix)
        operator.matrix = matrix - shift * sparse.eye_array(matrix.shape[0], dtype=matrix.dtype, format="csr")
        return
    product = operator.product
    operator.product = lambda x: np.asarray(product(x)).reshape(-1) - shift * x


def gmres(
    A: Any, b: Any, x0: Any = None, *, rtol: float = 1e-5, atol: float = 0.0, restart: int | None = None,
    maxiter: int | None = None, M: Any = None, callback: Callable[..., Any] | None = None,
    callback_type: str | None = None, device: str = "auto",
) -> tuple[np.ndarray, int]:  # fmt: skip
    """Restarted GMRES, as ``scipy.sparse.linalg.gmres``: any square A.

    Parameters
    ----------
    restart : int, optional
        Iterations between restarts. Default min(20, n), or residua's choice if neither M nor callback is given.
    maxiter : int, optional
        Maximum number of cycles between restarts; of iterations with a callback of type "legacy". Default 10 n.
    callback_type : "x", "pr_norm" or "legacy"
        The argument of ``callback``: x at each restart; or ||r|| / ||b|| after each iteration, where r is the residual
        itself, since the preconditioner is applied from the right. Default "legacy", with a DeprecationWarning as in
        SciPy.

    Other parameters, returns and errors are those of :func:`cg`. M may change from call to call (flexible GMRES).

    Examples
    --------
    >>> import numpy as np, residua
    >>> A = residua.generate("convection3d", 10)
    >>> x, info = residua.gmres(A, np.ones(A.shape[0]))
    >>> info
    0
    """
    rtol, atol = tolerances("gmres", rtol, atol)
    if callback is not None and callback_type is None:
        warnings.warn(
            "gmres called without specifying `callback_type`. The default value will be changed in a future release. "
            "For compatibility, specify a value for `callback_type` explicitly, e.g., "
            "``gmres(..., callback_type='pr_norm')``, or to retain the old behavior "
            "``gmres(..., callback_type='legacy')``",
            category=DeprecationWarning,
            stacklevel=2,
        )
    kind = "legacy" if callback_type is None else callback_type
    if kind not in ("x", "pr_norm", "legacy"):
        raise ValueError(f"Unknown callback_type: {callback_type!r}")
    system = System(A, b, x0, M)
    n = system.operator.shape[0]
    cycle = max(1, min(20 if restart is None else int(restart), n))
    limit = limit_of(maxiter, 10 * n)
    if callback is None:
        report = system.solve("gmres", rtol, atol, limit * cycle, restart=restart, device=device)
        return system.answer(), _cycles(report, limit, cycle)
    if kind == "x":
        report = system.solve("gmres", rtol, atol, limit * cycle, restart=cycle, callback=callback)
        return system.answer(), _cycles(report, limit, cycle)
    norm = float(np.linalg.norm(system.b))

    def observer(_: int, iteration: int, residual: float) -> bool:
        if iteration > 0:
            callback(np.float64(residual / norm))
        return False

    most = limit if kind == "legacy" else limit * cycle
    report = system.solve("gmres", rtol, atol, most, restart=cycle, observer=observer)
    return system.answer(), info_of(report) if kind == "legacy" else _cycles(report, limit, cycle)


def _cycles(report: Any, limit: int, cycle: int) -> int:
    """``info`` of GMRES: the number of cycles if the iteration limit was reached."""
    return limit if report.outcome == "max_iterations" and report.iterations >= limit * cycle else info_of(report)
