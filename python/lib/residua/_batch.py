"""Thousands of small systems at once, each with its own verdict."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sparse

from . import _device, _matrix, _residua


class BatchReport:
    """What is known of each system's x: arrays of NumPy with an entry per system.

    If all systems on a GPU have converged, their arrays stay there until one is asked for.

    Attributes
    ----------
    all_converged : bool
        Whether every system has converged.
    apart : int
        The number of systems that were solved one by one on the CPU, as the batched methods gave no certain answer.
    """

    def __init__(self, told: Any) -> None:
        self._told = told
        self._arrays: tuple[np.ndarray, ...] | None = None
        self.all_converged: bool = told.all_converged
        self.apart: int = told.apart

    def _array(self, number: int) -> np.ndarray:
        arrays = self._arrays
        if arrays is None:
            arrays = self._arrays = self._told.arrays()
        return arrays[number]

    @property
    def solved(self) -> np.ndarray:
        """Whether x is an answer, be it a least-squares one."""
        return self._array(1)

    @property
    def converged(self) -> np.ndarray:
        """Whether b - A x, computed anew, meets the tolerance."""
        return self._array(0) == 0

    @property
    def residuals(self) -> np.ndarray:
        """||b - A x|| / ||b|| of the returned x; NaN if A or b has infinities or NaN."""
        return self._array(2)

    @property
    def iterations(self) -> np.ndarray:
        """Steps of refinement, or iterations if a system was solved by iteration."""
        return self._array(3)

    @property
    def outcomes(self) -> np.ndarray:
        """A word per system: "converged", "singular", "precision_limit", ... as ``Report.outcome``."""
        return np.array(_residua.Batches.words())[self._array(0)]

    def __len__(self) -> int:
        return self._told.systems

    def __repr__(self) -> str:
        words, counts = np.unique(self.outcomes, return_counts=True)
        told = ", ".join(f"{count} {word}" for word, count in zip(words, counts))
        return f"<BatchReport of {len(self)} systems: {told}>"


class Batch:
    """Many small systems whose values change from solve to solve. What depends only on their pattern is computed once.

    Parameters
    ----------
    A : array, shape (m, n, n); or a CSR matrix, shape (n, n); or a list of sparse matrices
        Dense systems; the pattern of all systems, in canonical format (``A.sum_duplicates()``); or systems of any
        sizes and patterns. Arrays of NumPy, CuPy, torch or JAX.
    values : array, shape (m, A.nnz), optional
        With a pattern, the entries of each system in the order of ``A.data``.
    rtol, atol, row_wise
        As for :class:`Solver`.
    method : str
        "lu": elimination; "bicgstab", or "cg" for Hermitian positive definite systems: iteration, for sparse systems of
        up to 4096 unknowns; "auto": elimination, or iteration if systems of this size and pattern cannot be eliminated.
        Systems that the method leaves uncertain are solved by elimination, and at last one by one on the CPU.
    device : str
        "auto" (the GPU with the memory of the values, else the CPU), "cpu", "cuda" or "cuda:N".

    Examples
    --------
    >>> import numpy as np, residua
    >>> A = np.array([[[4.0, 1.0], [1.0, 3.0]], [[1.0, 2.0], [2.0, 4.0]]])
    >>> x, report = residua.Batch(A).solve(np.array([[5.0, 4.0], [1.0, 1.0]]))
    >>> report.converged.tolist()
    [True, False]
    """

    def __init__(
        self,
        A: Any,
        values: Any = None,
        *,
        rtol: float | None = None,
        atol: float = 0.0,
        row_wise: bool = True,
        method: str = "auto",
        device: str = "auto",
    ) -> None:
        self._goal = (rtol, float(atol), bool(row_wise), method)
        self._device = device
        self._engines: dict[tuple[str, int | None], Any] = {}
        #: For systems of different sizes, the row at which each begins.
        self._starts: np.ndarray | None = None
        self._rows: tuple[np.ndarray, np.ndarray] | None = None
        given: Any
        if isinstance(A, (list, tuple)) and len(A) > 0 and all(map(sparse.issparse, A)):
            given = self._take_list(A, values)
        elif _is_sparse(A):
            given = self._take_pattern(A, values)
        else:
            if values is not None:
                raise ValueError("values can be given only if A is a sparse pattern: dense systems have them in A")
            given = A if hasattr(A, "shape") and hasattr(A, "dtype") else np.asarray(A)
            if len(given.shape) != 3 or given.shape[1] != given.shape[2]:
                raise ValueError(f"A has shape {tuple(given.shape)}, but (m, n, n) is needed")
            self._systems, self._size = int(given.shape[0]), int(given.shape[1])
            self._of_all: tuple[int, ...] = (self._systems, self._size)
            self._shape: tuple[int, ...] = (self._systems, self._size, self._size)
        self.update(given)

    def _take_list(self, matrices: Sequence[Any], values: Any) -> Any:
        rows = [sparse.csr_array(matrix) for matrix in matrices]
        for place, matrix in enumerate(rows):
            if matrix.shape[0] != matrix.shape[1]:
                raise ValueError(f"matrix {place} has shape {matrix.shape}, but square matrices are needed")
            if not matrix.has_canonical_format:
                rows[place] = matrix = matrix.copy()
                matrix.sum_duplicates()
        sizes = np.array([matrix.shape[0] for matrix in rows])
        ends = np.cumsum([matrix.nnz for matrix in rows])
        offsets = [matrix.indptr[1:].astype(np.uint64) + np.uint64(end - matrix.nnz) for matrix, end in zip(rows, ends)]
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint64)
        self._rows = (
            np.concatenate([np.zeros(1, np.uint64), *offsets]),
            np.concatenate([matrix.indices for matrix in rows]).astype(np.uint32),
        )
        self._systems, self._size = len(rows), int(sizes.max())
        self._of_all = (int(self._starts[-1]),)
        self._shape = (int(ends[-1]),)
        return np.concatenate([matrix.data for matrix in rows]) if values is None else values

    def _take_pattern(self, A: Any, values: Any) -> Any:
        pattern = _matrix.from_foreign(A)
        if pattern.format != "csr" or not pattern.has_canonical_format:
            raise ValueError("A must be in CSR with sorted columns: call A = A.tocsr(); A.sum_duplicates()")
        if pattern.shape[0] != pattern.shape[1]:
            raise ValueError(f"A has shape {pattern.shape}, but a square pattern is needed")
        if values is None:
            raise ValueError("A is one pattern, so the values of all systems are needed: values of shape (m, A.nnz)")
        self._rows = (pattern.indptr.astype(np.uint64), pattern.indices.astype(np.uint32))
        if len(values.shape) != 2 or values.shape[1] != pattern.nnz:
            raise ValueError(f"values have shape {tuple(values.shape)}, but (m, {pattern.nnz}) is needed")
        self._systems, self._size = int(values.shape[0]), int(pattern.shape[0])
        self._of_all = (self._systems, self._size)
        self._shape = (self._systems, int(pattern.nnz))
        return values

    def update(self, values: Any) -> None:
        """Sets new values of the same shape. They are read by the next solve, so do not change them before it."""
        if tuple(values.shape) != self._shape:
            raise ValueError(f"values have shape {tuple(values.shape)}, but {self._shape} is needed")
        self._values = values

    def solve(self, b: Any) -> tuple[Any, BatchReport]:
        """Solves all systems, and returns x, an array like b, and the verdicts.

        Parameters
        ----------
        b : array, shape (m, n) or (m, n, k)
            If systems have different sizes, shape (rows of all,) or (rows of all, k).
        """
        if not hasattr(b, "shape") or not hasattr(b, "dtype"):
            b = np.asarray(b)
        shape, needed = tuple(b.shape), self._of_all
        if shape[: len(needed)] != needed or len(shape) > len(needed) + 1:
            told = ", ".join(map(str, needed))
            one = f"({told}{',' if len(needed) == 1 else ''})"
            raise ValueError(f"b has shape {shape}, but {one} or ({told}, k) is needed")
        values = self._values
        dtype = _matrix.scalar_type(_dtype(values), _dtype(b))
        there = _device.is_on_gpu(values)
        if self._device == "auto":
            ordinal = _device.ordinal_of(values) if there else None
        else:
            ordinal = None if self._device == "cpu" else int(self._device.partition(":")[2] or 0)
        engine = self._engine(dtype.name, ordinal)
        if ordinal is not None and there and _device.is_on_gpu(b) and 0 not in shape:
            way = WAYS.get(_device.package(b))
            if way is not None and _device.ordinal_of(values) == _device.ordinal_of(b) == ordinal:
                x, told = way(engine, ordinal, values, b, dtype)
                return x.reshape(shape), BatchReport(told)
        host = [np.ascontiguousarray(_device.to_host(array), dtype) for array in (values, b)]
        x = np.zeros(shape, dtype)
        told = engine.solve(*(array.reshape(-1) for array in host), x.reshape(-1))
        return _device.back(b, x), BatchReport(told)

    def _engine(self, dtype: str, ordinal: int | None) -> Any:
        engine = self._engines.get((dtype, ordinal))
        if engine is None:
            if ordinal is not None:
                _device.find_compiler()
            offsets, columns = self._rows or (None, None)
            engine = _residua.Batches(
                dtype, ordinal, self._systems, self._size, self._starts, offsets, columns, self._goal
            )  # fmt: skip
            self._engines[dtype, ordinal] = engine
        return engine


def solve_batch(A: Any, b: Any, values: Any = None, **settings: Any) -> tuple[Any, BatchReport]:
    """Solves many small systems at once: x, an array like b, and a verdict for each system.

    A system that fails does not affect the others, and raises nothing: look at ``report.converged``. Parameters are
    those of :class:`Batch`; use that class if values change.

    Examples
    --------
    >>> import numpy as np, residua
    >>> A = np.eye(3) + np.arange(1000)[:, None, None] * np.ones((3, 3))
    >>> x, report = residua.solve_batch(A, np.ones((1000, 3)))
    >>> bool(report.converged.all())
    True
    """
    return Batch(A, values, **settings).solve(b)


def _is_sparse(A: Any) -> bool:
    return sparse.issparse(A) or (_device.package(A) == "cupyx" and hasattr(A, "indptr"))


def _dtype(array: Any) -> np.dtype:
    """The name of an array's type in NumPy."""
    return np.dtype(str(array.dtype).rpartition(".")[2])


def _of_cupy(engine: Any, ordinal: int, values: Any, b: Any, dtype: np.dtype) -> tuple[Any, Any]:
    cupy = sys.modules["cupy"]
    with cupy.cuda.Device(ordinal):
        values, b = (cupy.ascontiguousarray(cupy.asarray(array), dtype) for array in (values, b))
        x = cupy.empty_like(b)
        stream = cupy.cuda.get_current_stream().ptr
        told = engine.solve_device(*((array.data.ptr, array.size) for array in (values, b, x)), stream)
    return x, told


def _of_torch(engine: Any, ordinal: int, values: Any, b: Any, dtype: np.dtype) -> tuple[Any, Any]:
    torch = sys.modules["torch"]
    kind = getattr(torch, dtype.name)
    values, b = (_device.plain(torch.as_tensor(array)).to(kind).contiguous() for array in (values, b))
    x = torch.empty_like(b)
    stream = torch.cuda.current_stream(ordinal).cuda_stream
    told = engine.solve_device(*((array.data_ptr(), array.numel()) for array in (values, b, x)), stream)
    return x, told


def _of_jax(engine: Any, ordinal: int, values: Any, b: Any, dtype: np.dtype) -> tuple[Any, Any]:
    """Arrays of JAX cannot be written to, so x is allocated here and passed on by DLPack."""
    jax = sys.modules["jax"]
    values, b = (jax.numpy.asarray(array, dtype).reshape(-1) for array in (values, b))
    places = [_device.place(array) for array in (values, b)]
    x = _residua.Lent(ordinal, b.size, dtype.name)
    told = engine.solve_device(*((place.address, math.prod(place.shape)) for place in places), (x.address, b.size))
    # JAX may reuse the memory of both arrays once they are released.
    _residua.wait(ordinal)
    return jax.dlpack.from_dlpack(x), told


#: The function for each package that b may come from.
WAYS = {"cupy": _of_cupy, "torch": _of_torch, "jax": _of_jax, "jaxlib": _of_jax}
