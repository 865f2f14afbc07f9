"""The result of ``splu``: factors for many solves, with the interface of SciPy's object."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.csgraph import connected_components

from . import _device, _matrix, _scipy, _small, _sparse_rhs
from ._factors import Factors
from ._inertia import inertia_of
from ._types import Trans


class LU:
    """Factors of a square matrix A, as ``scipy.sparse.linalg.SuperLU``: the result of :func:`residua.linalg.splu`.

    Solves use residua's factors, with A^T too; if these are not accurate enough for A^T, A^T is factorised as well.
    ``L``, ``U``, ``perm_r``, ``perm_c`` and ``nnz`` are SciPy's: its SuperLU factorises at the first use of one of
    them, which takes as long and as much memory as ``scipy.sparse.linalg.splu``. If A has zeros on the diagonal,
    residua's own factors may have perturbed pivots, which refinement corrects; SuperLU's have none.
    """

    def __init__(self, A: Any, options: dict[str, Any] | None = None) -> None:
        A = _matrix.from_foreign(A)
        A = A if sparse.issparse(A) else np.asarray(A)
        if len(A.shape) != 2 or A.shape[0] != A.shape[1]:
            raise ValueError(f"can only factor square matrices: A has shape {A.shape}")
        self._dtype = _matrix.scalar_type(A.dtype)
        self._options = options or {}
        self._shape = (int(A.shape[0]), int(A.shape[1]))
        small = _small.factorised(A)
        self._small = small
        #: The solve with banded factors, for right-hand sides of the matrix's type.
        self._banded: Any = None
        if isinstance(small, _small.Band) and small.dtype == self._dtype:
            self._banded = small.banded.solve
        self._kept: dict[str, Factors] = {}
        if self._small is None:
            # The caller may change A later, so a copy is kept.
            self._matrix = A.copy()
        if self._shape[0] and (self._small is None or not self._small.is_regular):
            self._factors("N").prove()

    @functools.cached_property
    def _matrix(self) -> Any:
        assert self._small is not None
        return sparse.csc_array(self._small.matrix, dtype=self._dtype)

    def _factors(self, name: str) -> Factors:
        """Factors of A ("N") or A^T ("T")."""
        if name not in self._kept:
            matrix = self._matrix if name == "N" else self._matrix.T
            self._kept[name] = Factors(matrix, self._dtype, falls_back=True)
        return self._kept[name]

    def solve(self, rhs: Any, trans: Trans = "N") -> Any:
        """x of A x = rhs, or of the transposed or conjugate transposed system.

        Parameters
        ----------
        rhs : array or sparse matrix, shape (n,) or (n, k)
            It may be complex for a real A too. If it is sparse, x is sparse (csc).
        trans : "N", "T" or "H"
            Solves A x = rhs, A^T x = rhs or A^H x = rhs.

        Raises
        ------
        ValueError
            If the shape or ``trans`` is invalid.
        NotConverged
            If A is not singular, but x has neither a relative residual of 1e-10 nor a backward error of
            1e-12 (single precision: both 1e-5).
        """
        if type(rhs) is np.ndarray and rhs.ndim == 1:
            # Shortcuts for small systems.
            if self._banded is not None:
                try:
                    x = self._banded(rhs, trans)
                except (TypeError, ValueError):
                    # The vector has another type or gaps, or ``trans`` is another one.
                    x = None
                if x is not None:
                    return x
            elif rhs.dtype == self._dtype and rhs.shape == self._shape[:1]:
                if self._small is None:
                    if trans == "N":
                        return self._factors("N").solve(rhs)
                elif trans in _small.TURNED and self._small.dtype == self._dtype:
                    x = self._small.solve(rhs, trans)
                    if x is not None:
                        return x
        if trans not in _small.TURNED:
            raise ValueError(f"trans must be N, T, or H: {trans!r} was given")
        if sparse.issparse(rhs):
            return self._solve_sparse(rhs, trans)
        b = np.asarray(_device.to_host(rhs))
        if b.ndim not in (1, 2):
            raise ValueError(f"object too deep for desired array: b has {b.ndim} dimensions, but 1 or 2 are needed")
        if b.shape[0] != self._shape[0]:
            n = self._shape[0]
            raise ValueError(f"b is of incompatible size: it has shape {b.shape}, but ({n},) or ({n}, k) is needed")
        return _device.back(rhs, self._solve_array(b, trans))

    def _solve_array(self, b: np.ndarray, trans: str) -> np.ndarray:
        kind = _matrix.scalar_type(b.dtype)
        wide = "c" if "c" in (kind.kind, self._dtype.kind) else "f"
        dtype = np.result_type(self._dtype, np.complex64) if wide == "c" else self._dtype
        if 0 in b.shape:
            return np.zeros(b.shape, dtype)
        if wide != self._dtype.kind:
            parts = (self._solve_array(np.ascontiguousarray(part), trans) for part in (np.real(b), np.imag(b)))
            real, imaginary = parts
            return real + 1j * imaginary
        if self._small is not None:
            x = self._small.solve(b.astype(self._small.dtype, copy=False), trans)
            if x is not None:
                return x.astype(dtype, copy=False)
        if self._dtype.kind == "f" and trans == "H":
            trans = "T"
        if trans == "N":
            return self._factors("N").solve(b)
        symmetry = self._factors("N").symmetry
        if {"T": "symmetric", "H": "hermitian"}[trans] == symmetry or (
            self._dtype.kind == "f" and symmetry != "general"
        ):
            return self._factors("N").solve(b)
        given = b if trans == "T" else b.conj()
        x = self._factors("N").solve_quickly(given, transposed=True)
        if x is None:
            x = self._factors("T").solve(given)
        return x if trans == "T" else x.conj()

    def _solve_sparse(self, b: Any, trans: str) -> Any:
        if b.ndim != 2:
            raise ValueError(f"b has {b.ndim} dimension, but a sparse right-hand side needs 2")
        if b.shape[0] != self._shape[0]:
            raise ValueError(f"b is of incompatible size: it has shape {b.shape}, but ({self._shape[0]}, k) is needed")
        kind = _matrix.scalar_type(b.dtype).kind
        dtype = np.result_type(self._dtype, np.complex64) if kind == "c" else self._dtype
        return _sparse_rhs.solution(b, lambda columns: self._solve_array(columns, trans), dtype)

    @functools.cached_property
    def _superlu(self) -> Any:
        A = sparse.csc_array(self._matrix, dtype=self._dtype, copy=True)
        return _scipy.splu(A, **self._options)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of A."""
        return self._shape

    @property
    def nnz(self) -> int:
        """Entries of SuperLU's factors."""
        return self._superlu.nnz

    @property
    def L(self) -> Any:
        """SuperLU's lower factor with ones on its diagonal, csc: P_r A P_c = L U."""
        return self._superlu.L

    @property
    def U(self) -> Any:
        """SuperLU's upper factor, csc."""
        return self._superlu.U

    @property
    def perm_r(self) -> np.ndarray:
        """SuperLU's permutation of rows: P_r has ones at (perm_r[i], i)."""
        return self._superlu.perm_r

    @property
    def perm_c(self) -> np.ndarray:
        """SuperLU's permutation of columns: P_c has ones at (i, perm_c[i])."""
        return self._superlu.perm_c

    def logdet(self) -> tuple[complex, float]:
        """The sign of A's determinant, a number of magnitude 1, and the logarithm of its magnitude.

        As ``numpy.linalg.slogdet``; from SuperLU's pivots.

        Examples
        --------
        >>> import numpy as np, residua.linalg
        >>> sign, logarithm = residua.linalg.splu(np.array([[0.0, 2.0], [3.0, 1.0]])).logdet()
        >>> print(sign, round(float(logarithm), 4))
        -1.0 1.7918
        """
        pivots = self.U.diagonal()
        sizes = np.abs(pivots)
        sign = np.prod(pivots / sizes) * _parity(self.perm_r) * _parity(self.perm_c)
        return sign, float(np.log(sizes).sum())

    def inertia(self) -> tuple[int, int]:
        """The numbers of positive and of negative eigenvalues of a symmetric or Hermitian A.

        By Sylvester's law from the signs of the pivots of L D L^H. They are returned only if A's eigenvalues are so far
        from zero that rounding errors cannot have changed a sign.

        Raises
        ------
        ValueError
            If A is not Hermitian, or if rounding leaves the inertia open.

        Examples
        --------
        >>> import numpy as np, residua.linalg
        >>> residua.linalg.splu(np.array([[0.0, 2.0], [2.0, 1.0]])).inertia()
        (1, 1)
        """
        return inertia_of(self._matrix, self._factors("N").solve)

    # Some programs test isinstance(lu, SuperLU), a class that cannot be subclassed.
    @property  # type: ignore[misc]
    def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]
        return _scipy.SuperLU

    def __repr__(self) -> str:
        return f"<residua.linalg.LU: {self._shape[0]} x {self._shape[1]}, {self._dtype}>"


def _parity(permutation: np.ndarray) -> int:
    """The sign of a permutation: -1 for each cycle of even length."""
    n = len(permutation)
    graph = sparse.csr_array((np.ones(n), (np.arange(n), permutation)), shape=(n, n))
    cycles = connected_components(graph, directed=False, return_labels=False)
    return 1 if (n - cycles) % 2 == 0 else -1
