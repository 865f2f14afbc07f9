"""The solver and its short form."""

from __future__ import annotations

import functools
import html
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, Unpack, overload

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from . import _device, _matrix, _residua, _vectors
from ._errors import NotConverged, PrecisionWarning
from ._log import log
from ._types import LinearMap, Method, MethodSettings, Precision, Reorder, Symmetry, Trans, Vectors

#: The type of a right-hand side that is an array of another package. x has the same type.
Kind = TypeVar("Kind")


def _rows(what: str, given: Any) -> Any:
    """The length of an array's rows, and its numbers row by row; words and None are returned as they are."""
    if given is None or isinstance(given, str):
        return given
    array = _matrix.to_numpy(given)
    array = array.reshape(-1, 1) if array.ndim == 1 else array
    if array.ndim != 2:
        raise ValueError(f"{what} has {array.ndim} dimensions, but 2 are needed")
    if np.iscomplexobj(array):
        raise TypeError(f"{what} is complex, but real numbers are needed")
    return array.shape[1], np.ascontiguousarray(array, dtype=np.float64).reshape(-1)


def _conjugate(given: Any) -> Any:
    """The conjugate, as the same type of array."""
    if not hasattr(given, "conj"):
        return np.conj(np.asarray(given))
    turned = given.conj()
    return turned.resolve_conj() if hasattr(turned, "resolve_conj") else turned


class Solver:
    """Solves A x = b for one matrix and many right-hand sides.

    It owns a copy of the matrix in a suitable format, its preconditioner and the memory of its methods, on the
    CPU or on a GPU. Several threads may use one solver: they take turns. Different solvers run in parallel.

    Parameters
    ----------
    A : sparse or dense matrix, shape (m, n)
        SciPy's sparse matrices and arrays in any format, with int32 or int64 indices; two-dimensional arrays; sparse
        matrices of CuPy, torch and JAX, which stay on their GPU. float32, float64, complex64 or
        complex128; integers and booleans become float64. With m != n, "auto" and "lsmr" find least-squares solutions,
        whose report is ``solved``, not ``converged``. A is read and never changed.
    method : str
        "auto", "cg", "minres", "gmres", "bicgstab", "lsmr" or "direct".
    device : str
        "auto" (the GPU with the memory of a sparse A, else the first GPU if there is one and the system is worth
        starting it), "cpu", "cuda" or "cuda:N".
    rtol, atol : float, optional
        Converged if ||b - A x|| <= max(rtol ||b||, atol). Defaults: rtol 1e-8, in single precision 1e-5; atol 0.
    maxiter : int, optional
        Maximum number of iterations of a solve, over all methods that it tries. Default 10 n, at least 1000, at most
        100 000.
    preconditioner : str
        "auto", "none", "jacobi", "block-jacobi[:ROWS]", "fsai", "chebyshev[:STEPS]", "chebyshev-single[:STEPS]", "ilu",
        "ilut[:fill=N,digits=N]" or "amg[:OPTION=VALUE,...]" (multigrid).
    precision : str
        "double" (that of A), "mixed" (iterate in half of it and refine) or "auto".
    format, reorder : str
        Storage format ("auto", "csr", "sell", ...) and order of the unknowns ("auto", "none", "rcm").
    time_limit : float, optional
        Maximum time of a solve in seconds, with setups and factorisations.
    memory_limit : int, optional
        Maximum bytes of a factorisation; by default seven eighths of the free memory.
    stagnation_window : int, optional
        Iterations without a new smallest residual after which a method counts as stagnated.
    right_hand_sides : int
        How many are expected: a setup that pays for many solves may not pay for one.
    updates : bool
        Whether :meth:`update` will be called: the matrix is then stored such that its values can be replaced.
    symmetry : str, optional
        "symmetric" or "hermitian" if that is known, which saves the check.
    coordinates : array, shape (points, dimensions), optional
        The points of the mesh that the unknowns belong to, for multigrid; if each point has as many unknowns as
        dimensions, coarse levels represent the rigid body modes exactly.
    near_null_space : array, shape (n, k), optional
        Vectors v with A v near zero away from boundaries, for multigrid.
    null_space : "constants" or array, shape (n, k), optional
        Vectors v with A v = 0, or "constants" for those on each component of A's graph. b is made consistent (the
        report's ``outside_range`` says by how much), and x is the solution of least norm.
    row_wise : bool
        Whether convergence also requires the tolerance for the residual with each row divided by its norm, so that
        large rows (other units, penalties) do not hide errors in small ones. False requires only the norm of b - A x.
    condition : bool
        Whether the report of a factorisation has the condition number and the digits of x that can be trusted, for
        some ten more solves with the factors.
    dtype : dtype, optional
        The type of all computations; A's by default.
    comm : mpi4py.MPI.Comm, optional
        The processes of this communicator solve one square system together, on the CPU. Each gives rows of A that
        follow those of the process before it, shape (own rows, n), with global column numbers; ``b`` and
        ``x`` are the entries of these rows. All processes make the solver, with the same settings, and all call
        :meth:`solve`. Rows stay on their process unless the unknowns are renumbered, or ``method="direct"`` is named.

    Raises
    ------
    ValueError
        On a matrix that is inconsistent, or a setting out of its domain.
    Unsupported
        A ValueError: if the requested method or preconditioner does not apply to the matrix.
    TypeError
        If values are not numbers, or have more than double precision.
    RuntimeError
        If the requested GPU is not available.

    Examples
    --------
    >>> import numpy as np, residua
    >>> A = residua.generate("poisson2d", (30, 30))
    >>> solver = residua.Solver(A, rtol=1e-10)
    >>> x, report = solver.solve(np.ones(900))
    >>> report.converged
    True
    """

    def __init__(
        self,
        A: Any,
        method: Method = "auto",
        device: str = "auto",
        *,
        rtol: float | None = None,
        atol: float | None = None,
        maxiter: int | None = None,
        preconditioner: str = "auto",
        precision: Precision = "double",
        format: str = "auto",
        reorder: Reorder = "auto",
        time_limit: float | None = None,
        memory_limit: int | None = None,
        stagnation_window: int | None = None,
        right_hand_sides: int = 1,
        updates: bool = False,
        symmetry: Symmetry | None = None,
        coordinates: Any = None,
        near_null_space: Any = None,
        null_space: Any = None,
        row_wise: bool = True,
        condition: bool = False,
        dtype: Any = None,
        comm: Any = None,
        _keep: bool = True,
    ) -> None:
        if not _matrix.is_matrix(A):
            raise TypeError(
                f"Solver needs a stored matrix, but A is of type {type(A).__name__}: pass operators and functions to "
                "residua.cg, minres, gmres, bicgstab or lsmr"
            )
        dtype = None if dtype is None else _matrix.scalar_type(dtype)
        settings = dict(
            method=method, device=device, rtol=rtol, atol=atol, maxiter=maxiter, preconditioner=preconditioner,
            precision=precision, format=format, reorder=reorder, time_limit=time_limit,
            memory_limit=memory_limit,
            stagnation_window=stagnation_window, right_hand_sides=right_hand_sides, updates=updates, symmetry=symmetry,
            coordinates=_rows("coordinates", coordinates),
            near_null_space=_rows("near_null_space", near_null_space), null_space=_rows("null_space", null_space),
            row_wise=row_wise, condition=condition,
        )  # fmt: skip
        self._engine: Any
        self._device = device
        self._report: Any = None
        if device != "cpu":
            _device.find_compiler()
        lying = None if comm is not None else _device.engine(A, device, dtype, _keep, settings)
        if lying is not None:
            self._engine, self._shape, self._dtype, ordinal = lying
            self._device = f"cuda:{ordinal}"
            return
        arrays = _matrix.arrays_of(A, dtype)
        self._shape = arrays.shape
        if comm is not None:
            self._engine = _residua.Spread(comm.py2f(), *arrays, settings)
            # b and x have as many entries as this process has rows, so the shape is square here.
            self._shape = (arrays.shape[0], arrays.shape[0])
        else:
            self._engine = _residua.Engine(*arrays, _keep, settings)
        self._dtype = arrays.values.dtype

    @functools.cached_property
    def _ordinal(self) -> int | None:
        """The number of the solver's GPU; None on the CPU."""
        if self._engine.device.startswith("cpu"):
            return None
        return int(self._device.partition(":")[2] or 0)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of A; with ``comm`` the lengths of b and x on this process."""
        return self._shape

    @property
    def dtype(self) -> np.dtype:
        """The type of all computations."""
        return self._dtype

    @property
    def nnz(self) -> int:
        """Number of stored entries of the matrix."""
        return self._engine.nnz

    @property
    def device(self) -> str:
        """The device, in words."""
        return self._engine.device

    @property
    def symmetry(self) -> str:
        """ "symmetric", "hermitian" or "general"."""
        return self._engine.symmetry

    @property
    def report(self) -> Any:
        """How the last solve of this object ended: a :class:`Report`, a list of them, or None before the first."""
        return self._report

    @overload
    def solve(
        self,
        b: Vectors,
        x0: Any = None,
        out: NDArray[Any] | None = None,
        *,
        trans: Trans = "N",
        callback: Callable[[int, int, float], Any] | None = None,
    ) -> tuple[NDArray[Any], Any]: ...
    @overload
    def solve(self, b: Kind, x0: Any = None, *, trans: Trans = "N") -> tuple[Kind, Any]: ...
    def solve(
        self,
        b: Any,
        x0: Any = None,
        out: NDArray[Any] | None = None,
        *,
        trans: Trans = "N",
        callback: Callable[[int, int, float], Any] | None = None,
    ) -> tuple[Any, Any]:
        """Solves A x = b, or the transposed system.

        Parameters
        ----------
        b : array, shape (m,), (m, 1) or (m, k)
            One right-hand side, or one per column. An array on the solver's GPU (of CuPy, torch or JAX) is
            read there. Values are cast to the solver's type; complex ones for a solver of real type are
            solved as two right-hand sides.
        x0 : array, shape like x, optional
            The start of the iteration; zero by default.
        out : numpy.ndarray, shape and type of x, optional
            Takes the solution. It may be x0.
        trans : "N", "T" or "H"
            Solves A x = b, A^T x = b or A^H x = b. Unless A is symmetric or Hermitian, the first such solve sets up a
            second solver, of A^T, which is kept until :meth:`update`.
        callback : callable, optional
            ``callback(right_hand_side, iteration, residual_norm)`` after each iteration; True ends the solve.

        Returns
        -------
        x : array, shape (n,), (n, 1) or (n, k)
            The solution; if b is on the GPU, an array of the same kind there.
        report : Report, or list of Report if b has shape (m, k) with k other than 1
            How it ended. A solve that does not converge raises nothing here: see ``report.converged``.

        Raises
        ------
        ValueError
            If a shape does not fit.
        TypeError
            If a type does not fit.
        KeyboardInterrupt
            On Ctrl-C, at most 50 ms later during iterations, at most a third of a second later during a setup or
            a factorisation.

        Examples
        --------
        >>> import numpy as np, residua
        >>> solver = residua.Solver(np.array([[4.0, 1.0], [1.0, 3.0]]))
        >>> x, report = solver.solve([1.0, 2.0])
        >>> np.round(x, 4)
        array([0.0909, 0.6364])
        """
        if trans != "N":
            return self._solve_transposed(b, x0, out, trans, callback)
        if _matrix.is_on_gpu(b):
            if callback is not None or out is not None:
                raise TypeError("out and callback work only with vectors on the host, but b is on a GPU")
            x, report = _vectors.solve(self, self._ordinal, b, x0)
        else:
            x, report = self._solve_host(b, x0, out, callback)
            x = _device.back(b, x) if out is None else x
        self._report = report
        log(report)
        return x, report

    def _solve_host(self, b: Any, x0: Any, out: Any, callback: Any) -> tuple[Any, Any]:
        rows, columns = self._shape
        b = _matrix.to_numpy(b)
        if b.shape == (rows,) and b.dtype == self._dtype and x0 is None and out is None:
            # A shortcut for small systems.
            x = np.zeros(columns, self._dtype)
            return x, self._engine.solve(np.ascontiguousarray(b), x, False, callback)[0]
        if b.ndim not in (1, 2) or b.shape[0] != rows:
            raise ValueError(f"b has shape {b.shape}, but ({rows},) or ({rows}, k) is needed")
        shape = (columns, *b.shape[1:])
        kind = _matrix.scalar_type(b.dtype)
        if x0 is not None:
            x0 = _matrix.to_numpy(x0)
            if x0.shape != shape:
                raise ValueError(f"x0 has shape {x0.shape}, but {shape} is needed")
            kind = _matrix.scalar_type(b.dtype, x0.dtype)
        if kind.kind == "c" and self._dtype.kind == "f":
            return self._solve_parts(b, x0, out, callback)
        if out is not None:
            if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != self._dtype:
                raise ValueError(f"out must be an array of shape {shape} and type {self._dtype}")
            if not out.flags.writeable:
                raise ValueError("out is read-only")
        several = b.ndim == 2 and b.shape[1] != 1
        # The columns are stored one after another in a new array, because a solve must not write to the caller's x0.
        x = np.zeros(shape, self._dtype, order="F")
        if x0 is not None:
            x[...] = x0
        flat_b = np.asfortranarray(b, dtype=self._dtype).reshape(-1, order="F")
        flat_x = x.reshape(-1, order="F")
        if several and b.shape[1] == 0:
            reports: Any = []
        else:
            reports = self._engine.solve(flat_b, flat_x, several, callback)
        if out is not None:
            out[...] = x
            x = out
        return x, reports if several else reports[0]

    def _solve_quickly(self, b: np.ndarray, transposed: bool) -> np.ndarray | None:
        """x by the factors of an earlier solve, without a report. None if there are none, or x is not accurate. b has
        A's type."""
        if b.ndim == 1:
            x = np.empty(b.shape, self._dtype)
            return x if self._engine.solve_quickly(np.ascontiguousarray(b), x, transposed) else None
        x, (flat, by_rows) = np.empty(b.shape, self._dtype, "F"), _matrix.flat(b)
        return x if self._engine.solve_quickly(flat, x.reshape(-1, order="F"), transposed, by_rows) else None

    @functools.cached_property
    def _turned(self) -> Solver:
        """The solver of the transposed matrix, until values change."""
        if not hasattr(self._engine, "transposed"):
            raise NotImplementedError("a solver with comm cannot solve with the transposed matrix")
        turned = object.__new__(Solver)
        turned._engine = self._engine.transposed()
        turned._device, turned._report, turned._dtype = self._device, None, self._dtype
        turned._shape = (self._shape[1], self._shape[0])
        return turned

    def _solve_transposed(self, b: Any, x0: Any, out: Any, trans: str, callback: Any) -> tuple[Any, Any]:
        """A^T x = b ("T") or A^H x = b ("H"): by this solver if A, or its conjugate, is that matrix."""
        if trans not in ("T", "H"):
            raise ValueError(f"trans must be N, T, or H: {trans!r} was given")
        is_real = self._dtype.kind == "f"
        symmetry = self.symmetry if hasattr(self._engine, "symmetry") else "general"
        same = {"symmetric": "T", "hermitian": "H"}.get(symmetry)
        solver = self if same is not None else self._turned
        if is_real or same == trans or (same is None and trans == "T"):
            x, report = solver.solve(b, x0, out, callback=callback)
        else:
            # conj(A) x = b if A conj(x) = conj(b).
            b, x0 = _conjugate(b), None if x0 is None else _conjugate(x0)
            x, report = solver.solve(b, x0, out, callback=callback)
            x = _conjugate(x) if out is None else np.conjugate(out, out=out)
        self._report = report
        return x, report

    def _solve_parts(self, b: Any, x0: Any, out: Any, callback: Any) -> tuple[Any, Any]:
        """Solves for the real and imaginary parts of complex right-hand sides of a real matrix."""
        rows, columns = self._shape
        count = b.shape[1] if b.ndim == 2 else 1
        flat = b.reshape(rows, count)
        parts = np.concatenate([flat.real, flat.imag], axis=1)
        start = None
        if x0 is not None:
            start = x0.reshape(columns, count)
            start = np.concatenate([start.real, start.imag], axis=1)
        x, reports = self._solve_host(parts, start, None, callback)
        result = (x[:, :count] + 1j * x[:, count:]).reshape((columns, *b.shape[1:]))
        if out is not None:
            if out.shape != result.shape or out.dtype != result.dtype:
                raise ValueError(f"out must be an array of shape {result.shape} and type {result.dtype}")
            out[...] = result
            result = out
        return result, reports

    def update(self, values: Any) -> None:
        """Replaces the values of the matrix; the pattern stays.

        Parameters
        ----------
        values : sparse or dense matrix, or array
            A matrix with A's pattern, in any format and order (duplicates add up), or the ``data`` of
            A alone with other values, in A's order of entries (with duplicates as A had them). For the dia format: a
            matrix. An array on the solver's GPU is read there.

        Raises
        ------
        ValueError
            If the pattern differs (the message names the first entry that only one of both has), or the
            number of values; the solver is then unchanged.
        NotImplementedError
            If the solver was made with ``comm``.

        Examples
        --------
        >>> import numpy as np, residua
        >>> A = residua.generate("poisson2d", (30, 30))
        >>> solver = residua.Solver(A, updates=True)
        >>> solver.update(2 * A.data)
        >>> solver.solve(np.ones(900))[1].converged
        True
        """
        if not hasattr(self._engine, "update"):
            raise NotImplementedError("a solver with comm cannot take new values: make a new solver")
        self.__dict__.pop("_turned", None)
        if _device.update(self, self._ordinal, values):
            return
        values = _matrix.from_foreign(values)
        if sparse.issparse(values) or np.shape(values) == self._shape:
            values = values if sparse.issparse(values) else np.asarray(values)
            _matrix.check_kind(values.dtype, self._dtype)
            self._engine.update_matrix(*_matrix.arrays_of(values, self._dtype))
        else:
            self._engine.update(_matrix.values_of(values, self._dtype))

    def as_preconditioner(self) -> LinearMap:
        """An operator that applies an approximation of A^-1: one solve to this solver's tolerance.

        Returns
        -------
        scipy.sparse.linalg.LinearOperator, shape (n, n)
            For the ``M`` of SciPy's and residua's methods. A solve that ends early gives its last iterate. A tolerance
            such as 0.1 makes it a preconditioner that changes from call to call: for ``gmres``, which is flexible
            here, not in SciPy; ``method="direct"`` is always the same operator.

        Examples
        --------
        >>> import numpy as np, residua, scipy.sparse.linalg
        >>> A = residua.generate("poisson2d", (30, 30))
        >>> M = residua.Solver(A, method="direct").as_preconditioner()
        >>> x, info = scipy.sparse.linalg.cg(A, np.ones(900), M=M)
        >>> info
        0
        """
        from scipy.sparse.linalg import LinearOperator

        if self._shape[0] != self._shape[1]:
            raise ValueError(f"a preconditioner needs a square matrix, but A is {self._shape[0]} x {self._shape[1]}")

        def apply(r: np.ndarray) -> np.ndarray:
            return self._solve_host(r, None, None, None)[0]

        def apply_adjoint(r: np.ndarray) -> np.ndarray:
            return self.solve(r, trans="H")[0]

        return LinearOperator(
            self._shape, matvec=apply, matmat=apply, rmatvec=apply_adjoint, rmatmat=apply_adjoint, dtype=self._dtype
        )

    def _repr_html_(self) -> str:
        """A description for notebooks: the matrix, and the outcome of the last solve."""
        rows, columns = self._shape
        table = {
            "matrix": f"{rows} x {columns}, {self.nnz} entries, {self.symmetry}",
            "type": str(self._dtype),
            "device": self.device,
        }
        lines = [f"<tr><th>{name}</th><td>{html.escape(value)}</td></tr>" for name, value in table.items()]
        last = self._report if isinstance(self._report, list) else [self._report]
        # For several right-hand sides, the report of the first that has not converged is shown, if there is one.
        shown = next((each for each in last if each and not each.converged), last[0] if last else None)
        page = "" if shown is None else shown._repr_html_()
        return f"<div><table>{''.join(lines)}</table>{page}</div>"

    def __repr__(self) -> str:
        rows, columns = self._shape
        return f"<residua.Solver: {rows} x {columns}, {self.nnz} entries of {self._dtype}, on {self.device}>"


@overload
def solve(
    A: Any, b: Vectors, rtol: float | None = None, *, x0: Any = None, **settings: Unpack[MethodSettings]
) -> NDArray[Any]: ...
@overload
def solve(
    A: Any, b: Kind, rtol: float | None = None, *, x0: Any = None, **settings: Unpack[MethodSettings]
) -> Kind: ...
def solve(A: Any, b: Any, rtol: float | None = None, *, x0: Any = None, **settings: Unpack[MethodSettings]) -> Any:
    """The solution of A x = b, certified.

    Parameters
    ----------
    A : sparse or dense matrix, shape (n, n)
        As for :class:`Solver`.
    b : array, shape (n,), (n, 1) or (n, k)
        One right-hand side, or one per column. The type of x is NumPy's result type of A and b. An array on a
        GPU stays there, and the solve uses A's type, unless ``device`` says otherwise.
    rtol : float, optional
        ||b - A x|| <= rtol ||b||, computed anew from x, for each right-hand side, and the same with rows divided by
        their own norms. Default 1e-8, in single precision 1e-5.
    x0 : array, shape like x, optional
        The start of the iteration.
    **settings
        Those of :class:`Solver`: ``method``, ``device``, ``atol``, ``maxiter``, ``preconditioner``, ...

    Returns
    -------
    x : array, shape (n,), (n, 1) or (n, k)

    Raises
    ------
    NotConverged
        If the tolerance is not met; ``x`` and ``report`` of the exception hold the best result.
    ValueError, TypeError
        If the input does not fit, or has infinities or NaN.

    Warns
    -----
    PrecisionWarning
        If A is so ill-conditioned that no x in this precision meets the tolerance; x is the best one, with at least
        one correct digit.

    Examples
    --------
    >>> import numpy as np, residua
    >>> A = residua.generate("poisson2d", (30, 30))
    >>> b = np.ones(900)
    >>> x = residua.solve(A, b)
    >>> bool(np.linalg.norm(b - A @ x) <= 1e-8 * np.linalg.norm(b))
    True
    """
    dtype, given = None, b
    if _matrix.is_on_gpu(b):
        settings.setdefault("device", f"cuda:{_device.ordinal_of(b)}")
    else:
        A, b = _matrix.from_foreign(A), _matrix.to_numpy(b)
        own = A.dtype if hasattr(A, "dtype") else np.asarray(A).dtype
        dtype = _matrix.scalar_type(own, b.dtype)
        if dtype.kind == "c" and _matrix.scalar_type(own).kind == "f":
            # A real matrix stays real: the parts of b are two right-hand sides.
            dtype = np.dtype(np.float64 if dtype == np.complex128 else np.float32)
        if b.ndim == 2:
            settings.setdefault("right_hand_sides", max(b.shape[1], 1))
    solver = Solver(A, rtol=rtol, dtype=dtype, _keep=False, **settings)
    x, report = solver.solve(b, x0)
    return certified(_device.back(given, x), report)


def certified(x: Any, report: Any) -> Any:
    """x if it meets the tolerance, or is as accurate as the precision allows; otherwise raises NotConverged."""
    reports = report if isinstance(report, list) else [report]
    if not all(each.converged or (each.solved and each.outcome == "precision_limit") for each in reports):
        raise NotConverged(x, report)
    limited = next((each for each in reports if not each.converged), None)
    if limited is not None:
        warnings.warn(
            f"{limited.message}: relative residual {limited.relative_residual:.1e}, condition number about "
            f"{limited.condition or float('nan'):.1e}",
            PrecisionWarning,
            stacklevel=3,
        )
    return x
