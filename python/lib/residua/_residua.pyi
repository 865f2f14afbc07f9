"""The compiled half: thin calls of the Rust library. Use the names of `residua`."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__version__: str

class Unsupported(ValueError): ...

class Report:
    @property
    def converged(self) -> bool: ...
    @property
    def solved(self) -> bool: ...
    @property
    def outcome(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def fault_iteration(self) -> int | None: ...
    @property
    def method(self) -> str: ...
    @property
    def preconditioner(self) -> str: ...
    @property
    def precision(self) -> str: ...
    @property
    def iterations(self) -> int: ...
    @property
    def restarts(self) -> int: ...
    @property
    def residual_norm(self) -> float: ...
    @property
    def relative_residual(self) -> float: ...
    @property
    def row_wise_residual(self) -> float | None: ...
    @property
    def condition(self) -> float | None: ...
    @property
    def digits(self) -> float | None: ...
    @property
    def normal_residual(self) -> float | None: ...
    @property
    def singularity(self) -> dict[str, dict[str, float]] | None: ...
    @property
    def backward_error(self) -> float | None: ...
    @property
    def outside_range(self) -> float | None: ...
    @property
    def tolerance(self) -> float: ...
    @property
    def bytes_per_iteration(self) -> int: ...
    @property
    def at_once(self) -> int: ...
    @property
    def seconds(self) -> dict[str, float]: ...
    @property
    def format(self) -> str: ...
    @property
    def stored(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def trail(self) -> dict[str, list[dict[str, Any]]]: ...
    @property
    def history(self) -> NDArray[np.float64]: ...
    def convergence_svg(self) -> str: ...
    # Added by residua._errors.
    def to_dict(self) -> dict[str, Any]: ...
    def _repr_html_(self) -> str: ...

class Engine:
    def __new__(
        cls,
        layout: str,
        shape: tuple[int, int],
        first: NDArray[Any],
        second: NDArray[Any],
        values: NDArray[Any],
        keep: bool,
        settings: dict[str, Any],
    ) -> Engine: ...
    def solve(
        self,
        b: NDArray[Any],
        x: NDArray[Any],
        several: bool = False,
        observer: Callable[[int, int, float], Any] | None = None,
    ) -> list[Report]: ...
    def update_matrix(
        self,
        layout: str,
        shape: tuple[int, int],
        first: NDArray[Any],
        second: NDArray[Any],
        values: NDArray[Any],
    ) -> None: ...
    def update_matrix_gpu(
        self,
        ordinal: int,
        layout: str,
        shape: tuple[int, int],
        first: tuple[int, int, int],
        second: tuple[int, int, int],
        values: tuple[int, int, int],
    ) -> None: ...
    def solve_device(
        self,
        ordinal: int,
        b: tuple[int, int],
        x: tuple[int, int],
        several: bool = False,
        stream: int | None = None,
    ) -> list[Report]: ...
    @staticmethod
    def on_gpu(
        ordinal: int,
        layout: str,
        shape: tuple[int, int],
        first: tuple[int, int, int],
        second: tuple[int, int, int],
        values: tuple[int, int, int],
        dtype: str,
        keep: bool,
        settings: dict[str, Any],
    ) -> Engine: ...
    def update(self, values: NDArray[Any]) -> None: ...
    def update_gpu(self, ordinal: int, values: tuple[int, int, int]) -> None: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def nnz(self) -> int: ...
    @property
    def device(self) -> str: ...
    @property
    def symmetry(self) -> str: ...

class Lent:
    def __new__(cls, ordinal: int, len: int, dtype: str) -> Lent: ...
    @property
    def address(self) -> int: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __dlpack__(self, *, stream: int | None = None, **more: Any) -> Any: ...

class Preconditioner:
    def __new__(
        cls,
        name: str,
        layout: str,
        shape: tuple[int, int],
        first: NDArray[Any],
        second: NDArray[Any],
        values: NDArray[Any],
    ) -> Preconditioner: ...
    def apply(self, r: NDArray[Any], z: NDArray[Any]) -> None: ...

class Spread:
    def __new__(
        cls,
        comm: int,
        layout: str,
        shape: tuple[int, int],
        first: NDArray[Any],
        second: NDArray[Any],
        values: NDArray[Any],
        settings: dict[str, Any],
    ) -> Spread: ...
    def solve(
        self,
        b: NDArray[Any],
        x: NDArray[Any],
        several: bool = False,
        observer: Callable[[int, int, float], Any] | None = None,
    ) -> list[Report]: ...
    @property
    def nnz(self) -> int: ...
    @property
    def device(self) -> str: ...
    @property
    def symmetry(self) -> str: ...

def stream(ordinal: int) -> int: ...
def run_after(ordinal: int, stream: int) -> None: ...
def run_before(ordinal: int, stream: int) -> None: ...
def wait(ordinal: int) -> None: ...
def krylov(
    method: str,
    operator: tuple[Any, ...],
    b: NDArray[Any],
    x: NDArray[Any],
    *,
    rtol: float,
    atol: float = 0.0,
    maxiter: int | None = None,
    restart: int = 20,
    m: Callable[[NDArray[Any]], NDArray[Any]] | None = None,
    observer: Callable[[int, int, float], Any] | None = None,
    callback: Callable[[NDArray[Any]], Any] | None = None,
) -> Report: ...
def read(path: str | os.PathLike[str]) -> tuple[Any, ...]: ...
def write_matrix(
    path: str | os.PathLike[str],
    layout: str,
    shape: tuple[int, int],
    first: NDArray[Any],
    second: NDArray[Any],
    values: NDArray[Any],
    comment: str | None,
    detect_symmetry: bool,
) -> None: ...
def write_dense(
    path: str | os.PathLike[str], shape: tuple[int, int], values: NDArray[Any], comment: str | None
) -> None: ...
def generate(name: str, size: list[int], given: dict[str, Any]) -> tuple[Any, ...]: ...
def models() -> list[tuple[str, str, list[int], list[str]]]: ...
def look(
    layout: str, shape: tuple[int, int], first: NDArray[Any], second: NDArray[Any], values: NDArray[Any]
) -> tuple[dict[str, Any], list[str], list[dict[str, str]]]: ...
def spy(
    layout: str, shape: tuple[int, int], first: NDArray[Any], second: NDArray[Any], values: NDArray[Any], name: str
) -> str: ...
def devices() -> tuple[int, list[dict[str, Any]], dict[str, str]]: ...

class Batches:
    @staticmethod
    def words() -> list[str]: ...
    def __init__(
        self,
        dtype: str,
        ordinal: int | None,
        systems: int,
        size: int,
        starts: NDArray[np.uint64] | None,
        offsets: NDArray[np.uint64] | None,
        columns: NDArray[np.uint32] | None,
        goal: tuple[float | None, float, bool, str],
    ) -> None: ...
    def solve(
        self, values: NDArray[Any], b: NDArray[Any], x: NDArray[Any]
    ) -> tuple[NDArray[np.uint8], NDArray[np.bool_], NDArray[np.float64], NDArray[np.uint32], int]: ...
    def solve_device(
        self, values: tuple[int, int], b: tuple[int, int], x: tuple[int, int], stream: int | None = None
    ) -> tuple[NDArray[np.uint8], NDArray[np.bool_], NDArray[np.float64], NDArray[np.uint32], int]: ...
