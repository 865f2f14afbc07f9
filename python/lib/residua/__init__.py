"""residua: sparse linear systems A x = b on the CPU and on NVIDIA GPUs, each solution with its certified residual.

>>> import numpy as np, residua
>>> A = residua.generate("poisson2d", (100, 100))
>>> x = residua.solve(A, np.ones(10_000))

=============================================== =================================================================
:func:`solve`                                   x, or :class:`NotConverged`
:class:`Solver`                                 one matrix, many right-hand sides, new values
:func:`solve_batch`, :class:`Batch`             thousands of small systems, each with a verdict
:func:`cg`, :func:`minres`, :func:`gmres`       as in ``scipy.sparse.linalg``
:func:`bicgstab`, :func:`lsmr`                  likewise
:func:`spsolve`, :func:`factorized`             likewise
:mod:`residua.linalg`                           these and all others that solve or factorise: splu, lgmres, ...
:func:`patch`                                   puts them into ``scipy.sparse.linalg``, for unchanged programs
residua.torch.solve, residua.jax.solve          x with gradients for b and the values of A
jacobi, fsai, ilu, amg                          preconditioners for ``M``
:func:`read`, :func:`write`, :func:`generate`   Matrix Market files, model problems
:func:`info`, :func:`devices`                   the analysis of a matrix, the list of devices
=============================================== =================================================================
"""

import importlib
from typing import Any

from . import linalg
from ._batch import Batch, BatchReport, solve_batch
from ._direct import factorized, spsolve
from ._errors import NotConverged, PrecisionWarning
from ._files import Info, devices, generate, info, models, read, write
from ._iterative import bicgstab, cg, gmres, minres
from ._least_squares import lsmr
from ._patch import patch
from ._preconditioner import amg, fsai, ilu, jacobi
from ._residua import Report, Unsupported, __version__
from ._solver import Solver, solve
from ._types import Settings

__all__ = [
    "Batch",
    "BatchReport",
    "Info",
    "NotConverged",
    "PrecisionWarning",
    "Report",
    "Settings",
    "Solver",
    "Unsupported",
    "__version__",
    "amg",
    "bicgstab",
    "cg",
    "devices",
    "factorized",
    "fsai",
    "generate",
    "gmres",
    "ilu",
    "info",
    "jacobi",
    "linalg",
    "lsmr",
    "minres",
    "models",
    "patch",
    "read",
    "solve",
    "solve_batch",
    "spsolve",
    "write",
]


def __getattr__(name: str) -> Any:
    # They import the packages of the same names.
    if name in ("jax", "torch"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
