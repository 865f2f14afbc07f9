"""Solves with right-hand sides of CuPy, torch or JAX on a GPU. If they are on the solver's GPU and have its type,
nothing is copied through the host.

For CuPy and torch, addresses and streams are read from the arrays' own attributes: describing two arrays by DLPack
takes longer than a small solve.
"""

from __future__ import annotations

import math
import sys
from typing import Any

from . import _device, _residua


def solve(solver: Any, ordinal: int | None, b: Any, x0: Any) -> tuple[Any, Any]:
    """Solves with a right-hand side on a GPU; x is an array of the same kind there.

    ``ordinal`` is the GPU of the solver, None for the CPU. If b cannot be used in place, it is copied to the host
    and x is copied back.
    """
    rows, columns = solver.shape
    shape = tuple(b.shape)
    if len(shape) not in (1, 2) or shape[0] != rows:
        raise ValueError(f"b has shape {shape}, but ({rows},) or ({rows}, k) is needed")
    target = (columns, *shape[1:])
    if x0 is not None and tuple(x0.shape) != target:
        raise ValueError(f"x0 has shape {tuple(x0.shape)}, but {target} is needed")
    several = len(shape) == 2 and shape[1] != 1
    way = WAYS.get(_device.package(b))
    solved = None
    if way is not None and ordinal is not None and 0 not in shape:
        solved = way(solver, ordinal, b, x0, target, several)
    if solved is None:
        start = None if x0 is None else _device.to_host(x0)
        x, report = solver._solve_host(_device.to_host(b), start, None, None)
        return _device.back(b, x), report
    x, reports = solved
    return x, reports if several else reports[0]


def _of_cupy(solver: Any, ordinal: int, b: Any, x0: Any, target: tuple[Any, ...], several: bool) -> Any:
    cupy = sys.modules["cupy"]
    if b.dtype != solver.dtype or b.device.id != ordinal:
        return None
    if cupy.cuda.runtime.getDevice() != ordinal:
        with cupy.cuda.Device(ordinal):
            return _of_cupy(solver, ordinal, b, x0, target, several)
    # The solver needs the columns stored one after another.
    given = b if b.flags.f_contiguous else cupy.asfortranarray(b)
    x = cupy.zeros(target, solver.dtype, "F")
    if x0 is not None:
        x[...] = x0
    stream = cupy.cuda.get_current_stream().ptr
    reports = solver._engine.solve_device(
        ordinal, (given.data.ptr, given.size), (x.data.ptr, x.size), several, stream
    )  # fmt: skip
    return x, reports


def _of_torch(solver: Any, ordinal: int, b: Any, x0: Any, target: tuple[Any, ...], several: bool) -> Any:
    torch = sys.modules["torch"]
    if b.dtype is not getattr(torch, solver.dtype.name) or b.device.index != ordinal:
        return None
    given = _device.plain(b)
    given = given.contiguous() if given.dim() == 1 else given.t().contiguous()
    x = torch.zeros(target[::-1], dtype=b.dtype, device=b.device)
    if x0 is not None:
        x.copy_(_device.plain(x0) if x.dim() == 1 else _device.plain(x0).t())
    stream = torch.cuda.current_stream(ordinal).cuda_stream
    reports = solver._engine.solve_device(
        ordinal, (given.data_ptr(), given.numel()), (x.data_ptr(), x.numel()), several, stream
    )  # fmt: skip
    return x if x.dim() == 1 else x.t(), reports


def _of_jax(solver: Any, ordinal: int, b: Any, x0: Any, target: tuple[Any, ...], several: bool) -> Any:
    """Solves for a JAX array. These cannot be written to, so x is made here and exported by DLPack."""
    if b.dtype != solver.dtype or x0 is not None:
        return None
    right = _device.place(b if b.ndim == 1 else b.T.copy())
    packed = right.strides[-1] == right.dtype.itemsize and (
        len(right.shape) == 1 or right.strides[0] == right.shape[1] * right.dtype.itemsize
    )
    if right.device[1] != ordinal or not packed:
        return None
    x = _residua.Lent(ordinal, math.prod(target), solver.dtype.name)
    reports = solver._engine.solve_device(
        ordinal, (right.address, math.prod(right.shape)), (x.address, math.prod(target)), several
    )  # fmt: skip
    # JAX may reuse b's memory once b is released, so the device's work on it must be done by then.
    _residua.wait(ordinal)
    x = sys.modules["jax"].dlpack.from_dlpack(x)
    return x if len(target) == 1 else x.reshape(target[::-1]).T, reports


#: For each package the function that solves. It returns x and reports, or None if the arrays have another type than the
#: solver or are on another GPU.
WAYS = {"cupy": _of_cupy, "torch": _of_torch, "jax": _of_jax, "jaxlib": _of_jax}
