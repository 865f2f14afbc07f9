"""Converts the caller's matrices and vectors to arrays for the compiled half. Nothing of the caller's is changed."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sparse

from ._device import is_on_gpu, refuse_gradient, to_host

__all__ = [
    "Arrays",
    "arrays_of",
    "check_kind",
    "from_foreign",
    "is_finite",
    "is_matrix",
    "is_on_gpu",
    "scalar_type",
    "to_numpy",
    "values_of",
    "vector",
]

#: An array of any package as one of NumPy.
to_numpy = to_host

TYPES = (np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.complex64), np.dtype(np.complex128))
INDICES = (np.dtype(np.int32), np.dtype(np.int64))


class Arrays(NamedTuple):
    """A matrix in the form for ``residua._residua``: ``first`` holds offsets (csr, csc) or rows (coo)."""

    layout: str
    shape: tuple[int, int]
    first: np.ndarray
    second: np.ndarray
    values: np.ndarray


def scalar_type(*dtypes: Any) -> np.dtype:
    """The type in which a system of these types is solved: NumPy's result type, float64 for integers and booleans.

    Raises
    ------
    TypeError
        For types that are not numeric, and for those with more than double precision, which would be rounded.
    """
    result = np.result_type(*dtypes)
    if result in TYPES:
        return result.newbyteorder("=")
    if result.kind in "biu":
        return np.dtype(np.float64)
    if result == np.float16:
        return np.dtype(np.float32)
    raise TypeError(
        f"values of type {result} are not supported: use float32, float64, complex64, complex128 or integers"
        + (" (cast them to double precision if its rounding is acceptable)" if result.kind in "fc" else "")
    )


def _indices(array: np.ndarray) -> np.ndarray:
    array = np.ascontiguousarray(array)
    return array if array.dtype in INDICES else array.astype(np.int64)


def _flat(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    return np.ascontiguousarray(array, dtype=dtype).reshape(-1)


def from_foreign(a: Any) -> Any:
    """Copies a sparse matrix of CuPy (cupyx), torch or JAX to the host, as SciPy's; returns anything else as it is."""
    if sparse.issparse(a) or isinstance(a, np.ndarray):
        return a
    package = type(a).__module__.partition(".")[0]
    if package in ("cupyx", "cupy") and hasattr(a, "get"):
        return a.get()
    if package == "torch" and "torch" in sys.modules:
        refuse_gradient(a)
        layout = str(a.layout)
        if layout in ("torch.sparse_csr", "torch.sparse_csc"):
            csr = layout.endswith("csr")
            first = to_numpy(a.crow_indices() if csr else a.ccol_indices())
            second = to_numpy(a.col_indices() if csr else a.row_indices())
            kind = sparse.csr_array if csr else sparse.csc_array
            return kind((to_numpy(a.values()), second, first), shape=tuple(a.shape))
        if layout == "torch.sparse_coo":
            places = to_numpy(a._indices())
            return sparse.coo_array((to_numpy(a._values()), (places[0], places[1])), shape=tuple(a.shape))
        return to_numpy(a)
    if package in ("jax", "jaxlib"):
        if hasattr(a, "indptr") and hasattr(a, "indices"):
            arrays = (np.asarray(a.data), np.asarray(a.indices), np.asarray(a.indptr))
            return sparse.csr_array(arrays, shape=tuple(a.shape))
        if hasattr(a, "indices") and hasattr(a, "data"):
            places, values = np.asarray(a.indices), np.asarray(a.data)
            # Indices that are equal to the shape are padding.
            inside = (places < np.array(a.shape)).all(axis=1)
            if not inside.all():
                places, values = places[inside], values[inside]
            return sparse.coo_array((values, (places[:, 0], places[:, 1])), shape=tuple(a.shape))
    return a


def is_matrix(a: Any) -> bool:
    """Returns whether ``a`` is a stored matrix, not an operator with products only."""
    if sparse.issparse(a) or isinstance(a, np.ndarray):
        return True
    if hasattr(a, "matvec") or callable(a):
        return False
    return hasattr(a, "__array__") or isinstance(a, (list, tuple)) or is_on_gpu(a) or hasattr(a, "todense")


def is_finite(a: Any) -> bool:
    """Returns whether a matrix on the host is finite; True for one on a GPU, which the solver checks."""
    if is_on_gpu(a):
        return True
    values: Any = getattr(a, "data", None) if sparse.issparse(a) else np.asarray(a)
    if sparse.issparse(a) and (values is None or values.dtype == object):
        values = sparse.coo_array(a).data
    return values.dtype.kind not in "fc" or bool(np.isfinite(values).all())


def _blocks(a: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the entries of a bsr matrix, in the order of its data."""
    high, wide = a.blocksize
    block_rows = np.repeat(np.arange(len(a.indptr) - 1, dtype=np.int64), np.diff(a.indptr))
    rows = block_rows[:, None, None] * high + np.arange(high)[None, :, None] + np.zeros((1, 1, wide), dtype=np.int64)
    columns = (
        a.indices.astype(np.int64)[:, None, None] * wide
        + np.arange(wide)[None, None, :]
        + np.zeros((1, high, 1), dtype=np.int64)
    )
    return rows.reshape(-1), columns.reshape(-1)


def _inside(a: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The entries of stored diagonals that are inside of the matrix, and their rows and columns."""
    rows, columns = a.shape
    column = np.arange(a.data.shape[1], dtype=np.int64)[None, :]
    row = column - np.asarray(a.offsets, dtype=np.int64)[:, None]
    inside = (row >= 0) & (row < rows) & (column < columns)
    return inside, row[inside], np.broadcast_to(column, inside.shape)[inside]


def arrays_of(a: Any, dtype: Any = None) -> Arrays:
    """The arrays of a matrix: SciPy's sparse ones in any format, dense ones, those of CuPy, torch and JAX."""
    a = from_foreign(a)
    if not sparse.issparse(a):
        a = np.asarray(a)
        if a.ndim != 2:
            raise ValueError(f"A has {a.ndim} dimension{'' if a.ndim == 1 else 's'}, but a matrix with 2 is needed")
    elif a.ndim != 2:
        raise ValueError(f"A has {a.ndim} dimension, but a matrix with 2 is needed")
    dtype = scalar_type(a.dtype) if dtype is None else dtype
    shape = (int(a.shape[0]), int(a.shape[1]))
    if isinstance(a, np.ndarray):
        rows, columns = np.nonzero(a)
        first = np.zeros(shape[0] + 1, dtype=np.int64)
        np.cumsum(np.bincount(rows, minlength=shape[0]), out=first[1:])
        return Arrays("csr", shape, first, _indices(columns), _flat(a[rows, columns], dtype))
    if a.format in ("csr", "csc"):
        used = int(a.indptr[-1]) if len(a.indptr) else 0
        return Arrays(a.format, shape, _indices(a.indptr), _indices(a.indices[:used]), _flat(a.data[:used], dtype))
    if a.format == "bsr":
        used = int(a.indptr[-1])
        if a.data.shape[0] != used:
            a = type(a)((a.data[:used], a.indices[:used], a.indptr), shape=a.shape)
        return Arrays("coo", shape, *_blocks(a), _flat(a.data, dtype))
    if a.format == "dia":
        inside, rows, columns = _inside(a)
        return Arrays("coo", shape, rows, columns, _flat(a.data[inside], dtype))
    if a.format != "coo":
        a = a.tocoo()
    rows, columns = a.coords if hasattr(a, "coords") else (a.row, a.col)
    rows, columns = _indices(rows), _indices(columns)
    if rows.dtype != columns.dtype:
        rows, columns = rows.astype(np.int64), columns.astype(np.int64)
    return Arrays("coo", shape, rows, columns, _flat(a.data, dtype))


def values_of(values: Any, dtype: np.dtype) -> np.ndarray:
    """New values of a matrix in the order of its data, in the form for the compiled half."""
    values = to_numpy(values)
    check_kind(values.dtype, dtype)
    return _flat(values, dtype)


def check_kind(given: Any, dtype: np.dtype) -> None:
    """Raises an error if a conversion would drop an imaginary part."""
    if not np.can_cast(given, dtype, "same_kind"):
        raise TypeError(f"values of type {given} do not fit into a solver of {dtype}")


def vector(what: str, value: Any, dtype: np.dtype, length: int) -> np.ndarray:
    """A contiguous vector of this length, from shape ``(n,)`` or ``(n, 1)``, as SciPy's functions accept it."""
    array = to_numpy(value)
    if array.shape not in ((length,), (length, 1)):
        raise ValueError(f"{what} has shape {array.shape}, but ({length},) or ({length}, 1) is needed")
    return _flat(array, dtype)


def flat(columns: np.ndarray) -> tuple[np.ndarray, bool]:
    """The numbers of a matrix, and whether they are given row by row or column by column: as they are stored, if they
    are contiguous."""
    if columns.flags.c_contiguous:
        return columns.reshape(-1), True
    return np.asfortranarray(columns).reshape(-1, order="F"), False
