"""Uses that mypy and pyright accept, and misspelt ones that they do not: each `type: ignore` is needed."""
# pyright: reportUnnecessaryTypeIgnoreComment=true

from collections.abc import Callable
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import residua
from residua.linalg import LU, cg, lsqr, splu


class Mesh:
    """A vector of another package."""


def solutions(A: Any, b: NDArray[np.float64], other: Mesh) -> None:
    assert_type(residua.solve(A, b), NDArray[Any])
    print(residua.solve(A, [1.0, 2.0], 1e-10, method="cg", device="cuda:1") + 1.0)
    assert_type(residua.solve(A, other), Mesh)
    settings: residua.Settings = {"rtol": 1e-10, "method": "minres", "preconditioner": "amg", "maxiter": 100}
    print(residua.solve(A, b, **settings) + 1.0)
    solver = residua.Solver(A, "direct", "cpu", updates=True, reorder="rcm")
    x, report = solver.solve(b, callback=lambda k, iteration, norm: iteration > 3)
    assert_type(x, NDArray[Any])
    print(report.converged, solver.shape[0], solver.nnz, solver)
    assert_type(solver.solve(other)[0], Mesh)


def misspelt(A: Any, b: NDArray[np.float64]) -> None:
    residua.solve(A, b, metod="cg")  # type: ignore[call-overload]
    residua.solve(A, b, method="cgs")  # type: ignore[call-overload]
    residua.solve(A, b, maxiter="many")  # type: ignore[call-overload]
    residua.Solver(A, precision="single")  # type: ignore[arg-type]
    residua.Solver(A, max_iter=3)  # type: ignore[call-arg]
    settings: residua.Settings = {"rtol": 1e-10, "precondition": "amg"}  # type: ignore[typeddict-unknown-key]
    print(settings)
    splu(A, permc_spec="COLAMB")  # type: ignore[arg-type]
    splu(A).solve(b, "X")  # type: ignore[arg-type]


def scipys(A: Any, b: NDArray[np.float64]) -> None:
    x, info = cg(A, b, M=residua.jacobi(A))
    assert_type(info, int)
    assert_type(splu(A), LU)
    assert_type(splu(A).shape, tuple[int, int])
    solve: Callable[[Any], Any] = residua.factorized(A)
    with residua.patch("splu") as patched:
        patched.undo()
    print(x, solve(b), residua.ilu(A, fill=2).matvec(b), residua.amg(A) @ b, lsqr(A, b)[2] + 1)
    print(residua.generate("poisson2d", (3, 3)).shape, residua.info(A), residua.devices()[0]["name"])
