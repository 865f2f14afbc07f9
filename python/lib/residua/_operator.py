"""Operators and preconditioners with products only: SciPy's, or functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import _matrix


class Operator:
    """A in the form that the methods need: its arrays if it is stored, else functions for its products."""

    def __init__(self, a: Any, b: np.ndarray) -> None:
        self.stored = _matrix.is_matrix(a)
        self.adjoint: Callable[..., Any] | None = None
        if self.stored:
            a = _matrix.from_foreign(a)
            self.matrix = a if hasattr(a, "dtype") and hasattr(a, "shape") else np.asarray(a)
            if len(self.matrix.shape) != 2:
                raise ValueError(f"A has shape {self.matrix.shape}, but a matrix with 2 dimensions is needed")
            self.shape = tuple(int(extent) for extent in self.matrix.shape)
            self.dtype = np.dtype(self.matrix.dtype)
            return
        self.matrix = None
        self.product: Callable[..., Any] = a.matvec if hasattr(a, "matvec") else a
        length = b.shape[0] if b.ndim else 0
        self.shape = tuple(int(extent) for extent in getattr(a, "shape", (length, length)))
        if hasattr(a, "rmatvec"):
            self.adjoint = a.rmatvec
        dtype = getattr(a, "dtype", None)
        if dtype is None:
            kind = _matrix.scalar_type(b.dtype)
            dtype = np.asarray(self.product(np.zeros(self.shape[1], kind))).dtype
        self.dtype = np.dtype(dtype)

    def arguments(self, dtype: np.dtype) -> tuple[Any, ...]:
        """The arguments for ``residua._residua.krylov``."""
        if self.matrix is not None:
            return tuple(_matrix.arrays_of(self.matrix, dtype))
        adjoint = None if self.adjoint is None else typed(self.adjoint, dtype)
        return (self.shape, typed(self.product, dtype), adjoint)

    def apply(self, x: np.ndarray) -> np.ndarray:
        """A x."""
        return self.matrix @ x if self.matrix is not None else np.asarray(self.product(x)).reshape(-1)


def typed(function: Callable[..., Any], dtype: np.dtype) -> Callable[..., Any]:
    """Wraps ``function`` such that its result is a flat array of this type.

    Raises
    ------
    TypeError
        If it returns complex values instead of real ones, or no numbers.
    """

    def call(x: np.ndarray) -> np.ndarray:
        result = np.asarray(function(x))
        if not np.can_cast(result.dtype, dtype, "same_kind"):
            raise TypeError(f"an operator returned values of type {result.dtype}, but the solve computes in {dtype}")
        return np.ascontiguousarray(result, dtype=dtype).reshape(-1)

    return call


def preconditioner(m: Any, shape: tuple[int, int], dtype: np.dtype) -> Callable[..., Any] | None:
    """SciPy's argument ``M`` (a matrix, operator or function that approximates A^-1) as a function.

    Raises
    ------
    ValueError
        If it has another shape than A.
    """
    if m is None:
        return None
    if hasattr(m, "shape") and tuple(m.shape) != shape:
        raise ValueError(f"matrix and preconditioner have different shapes: {shape} and {tuple(m.shape)}")
    if _matrix.is_matrix(m):
        m = _matrix.from_foreign(m)
        matrix = m if hasattr(m, "shape") else np.asarray(m)
        return typed(lambda r: matrix @ r, dtype)
    return typed(m.matvec if hasattr(m, "matvec") else m, dtype)
