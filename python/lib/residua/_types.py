"""Types for callers: names of options, and settings as a dictionary that a type checker understands."""

from __future__ import annotations

from typing import Any, Literal, Protocol, TypedDict

import numpy as np
from numpy.typing import NDArray

Method = Literal["auto", "cg", "minres", "gmres", "bicgstab", "lsmr", "direct"]
Precision = Literal["double", "mixed", "auto"]
Reorder = Literal["auto", "none", "rcm"]
#: The names of SuperLU's orderings.
PermcSpec = Literal["NATURAL", "MMD_ATA", "MMD_AT_PLUS_A", "COLAMD"]
Trans = Literal["N", "T", "H"]
Symmetry = Literal["general", "symmetric", "hermitian"]


class MethodSettings(TypedDict, total=False):
    """The settings of :class:`residua.Solver` that are neither its tolerance nor its type."""

    method: Method
    device: str
    atol: float | None
    maxiter: int | None
    preconditioner: str
    precision: Precision
    format: str
    reorder: Reorder
    time_limit: float | None
    memory_limit: int | None
    stagnation_window: int | None
    right_hand_sides: int
    updates: bool
    symmetry: Symmetry | None
    coordinates: Any
    near_null_space: Any
    null_space: Any
    row_wise: bool
    condition: bool
    comm: Any


class Settings(MethodSettings, total=False):
    """The settings of :class:`residua.Solver`, for use with ``**``."""

    rtol: float | None


class LinearMap(Protocol):
    """The type of preconditioners: SciPy's ``LinearOperator``."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        ...

    @property
    def dtype(self) -> Any:
        """The type of its numbers."""
        ...

    def matvec(self, x: NDArray[Any]) -> NDArray[Any]:
        """The product with a vector."""
        ...

    def __matmul__(self, x: NDArray[Any], /) -> NDArray[Any]: ...


#: Right-hand sides for which x is an array of NumPy.
Vectors = NDArray[Any] | list[float] | list[complex] | list[list[float]] | np.matrix[Any, Any]
