"""Solutions of A x = b that JAX differentiates, under ``jit`` too: ``residua.jax.solve``."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sparse

from ._solver import solve as _solve_on_host


class _System:
    """The parts that JAX does not trace: the shape of A, and the settings. Two of them are equal only if identical."""

    def __init__(self, shape: tuple[int, int], dense: bool, settings: dict[str, Any]) -> None:
        self.shape, self.dense, self.settings = shape, dense, settings

    def run(self, values: Any, rows: Any, columns: Any, b: Any, transposed: bool) -> np.ndarray:
        """x, on the host."""
        values, b = np.asarray(values), np.asarray(b)
        dtype = np.result_type(values, b)
        if self.dense:
            matrix = values
        else:
            rows, columns = np.asarray(rows), np.asarray(columns)
            # Indices beyond the matrix are padding.
            inside = (rows < self.shape[0]) & (columns < self.shape[1])
            matrix = sparse.coo_array((values[inside], (rows[inside], columns[inside])), shape=self.shape)
        x = _solve_on_host(matrix.T if transposed else matrix, b, **self.settings)
        return np.ascontiguousarray(x, dtype=dtype)


def solve(A: Any, b: Any, **settings: Any) -> jax.Array:
    """The solution of A x = b, certified, with gradients for b and for the values of A.

    It works within ``jit``, ``grad`` and ``vmap``: the solve itself runs as a callback on the host. The backward pass
    solves one system with A^T, to the same tolerance. Second derivatives raise an error.

    Parameters
    ----------
    A : BCOO, BCSR or dense array, shape (n, n)
        Real or complex; the gradient has the pattern of A.
    b : array, shape (n,) or (n, k)
    **settings
        Those of :class:`residua.Solver`: ``rtol``, ``method``, ``preconditioner``, ...

    Returns
    -------
    x : jax.Array, shape like b

    Raises
    ------
    ValueError, TypeError
        If the input does not fit.
    jax.errors.JaxRuntimeError
        If the tolerance is not met, within ``jit``, with the message of NotConverged; outside of ``jit`` either this or
        NotConverged itself.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, residua
    >>> from jax.experimental.sparse import BCOO
    >>> places, b = jnp.array([[0, 0], [0, 1], [1, 1]]), jnp.array([1.0, 2.0])
    >>> def total(values):
    ...     return residua.jax.solve(BCOO((values, places), shape=(2, 2)), b).sum()
    >>> [round(float(value), 4) for value in jax.jit(jax.grad(total))(jnp.array([4.0, 1.0, 3.0]))]
    [-0.0208, -0.1667, -0.1667]
    """
    if len(A.shape) != 2:
        raise ValueError(f"A has {len(A.shape)} dimensions, but a matrix with 2 is needed")
    shape = (int(A.shape[0]), int(A.shape[1]))
    if hasattr(A, "indptr"):
        values, columns = A.data, A.indices
        rows = jnp.searchsorted(A.indptr, jnp.arange(len(columns)), side="right") - 1
    elif hasattr(A, "indices"):
        values, rows, columns = A.data, A.indices[..., 0], A.indices[..., 1]
    else:
        values, rows, columns = jnp.asarray(A), jnp.zeros(0, int), jnp.zeros(0, int)
    dense = not hasattr(A, "indices")
    if not dense and (values.ndim, rows.ndim, columns.ndim) != (1, 1, 1):
        raise ValueError("A has batch or dense dimensions, but a plain sparse matrix is needed")
    b = jnp.asarray(b)
    if b.ndim not in (1, 2) or b.shape[0] != shape[0] or shape[0] != shape[1]:
        raise ValueError(f"A has shape {shape} and b {b.shape}, but (n, n) and (n,) or (n, k) are needed")
    # Both get the wider of the two precisions, and each stays real or complex.
    real = jnp.zeros((), jnp.result_type(values, b, jnp.float32)).real.dtype
    values, b = values.astype(jnp.result_type(values, real)), b.astype(jnp.result_type(b, real))
    return _solve(_System(shape, dense, settings), values, rows, columns, b)


def _call(system: _System, values: Any, rows: Any, columns: Any, b: Any, transposed: bool) -> Any:
    shape: Any = jax.eval_shape(lambda: jnp.zeros(b.shape, jnp.result_type(values, b)))
    run = functools.partial(system.run, transposed=transposed)
    return jax.pure_callback(run, shape, values, rows, columns, b, vmap_method="sequential")


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _solve(system: _System, values: Any, rows: Any, columns: Any, b: Any) -> Any:
    return _call(system, values, rows, columns, b, False)


def _forward(system: _System, values: Any, rows: Any, columns: Any, b: Any) -> tuple[Any, Any]:
    x = _solve(system, values, rows, columns, b)
    return x, (values, rows, columns, b, x)


def _backward(system: _System, kept: Any, gradient: Any) -> tuple[Any, ...]:
    values, rows, columns, b, x = kept
    right = _adjoint(system, values, rows, columns, gradient)
    left, solution = (right[:, None], x[:, None]) if x.ndim == 1 else (right, x)
    if system.dense:
        of_values = -(left @ solution.T)
    else:
        at = {"mode": "fill", "fill_value": 0}
        of_values = -(left.at[rows].get(**at) * solution.at[columns].get(**at)).sum(axis=1)
    return _like(values, of_values), None, None, _like(b, right)


def _like(given: Any, gradient: Any) -> Any:
    """A gradient with the type of its variable."""
    return (gradient if jnp.iscomplexobj(given) else gradient.real).astype(given.dtype)


_solve.defvjp(_forward, _backward)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _adjoint(system: _System, values: Any, rows: Any, columns: Any, b: Any) -> Any:
    return _call(system, values, rows, columns, b, True)


def _refuse(*_: Any) -> Any:
    raise TypeError("residua.jax.solve supports only first derivatives")


_adjoint.defvjp(_refuse, _refuse)
