"""Solutions of A x = b that torch differentiates: ``residua.torch.solve``."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from ._solver import Solver, certified

#: The real types of the complex ones.
REAL = {torch.complex64: torch.float32, torch.complex128: torch.float64}


def solve(A: torch.Tensor, b: torch.Tensor, **settings: Any) -> torch.Tensor:
    """The solution of A x = b, certified, with gradients for b and for the values of A.

    The backward pass solves one system with the adjoint of A, to the same tolerance; for a Hermitian A with the solver
    of the forward pass. The gradient of A has A's pattern. Second derivatives raise an error.

    Parameters
    ----------
    A : Tensor, shape (n, n)
        Sparse (COO, CSR or CSC) or dense, real or complex, on the CPU or a GPU.
    b : Tensor, shape (n,) or (n, k)
    **settings
        Those of :class:`residua.Solver`: ``rtol``, ``method``, ``preconditioner``, ...

    Returns
    -------
    x : Tensor, shape like b

    Raises
    ------
    NotConverged
        If the tolerance is not met in the forward or the backward pass.
    ValueError, TypeError
        If the input does not fit.

    Examples
    --------
    >>> import residua, torch
    >>> values = torch.tensor([4.0, 1.0, 3.0], requires_grad=True)
    >>> A = torch.sparse_coo_tensor([[0, 0, 1], [0, 1, 1]], values, (2, 2))
    >>> residua.torch.solve(A, torch.tensor([1.0, 2.0])).sum().backward()
    >>> values.grad
    tensor([-0.0208, -0.1667, -0.1667])
    """
    if A.dim() != 2:
        raise ValueError(f"A has {A.dim()} dimensions, but a matrix with 2 is needed")
    values, indices = _parts(A)
    wide = torch.promote_types(values.dtype, b.dtype)
    if not wide.is_floating_point and not wide.is_complex:
        wide = torch.float64
    return _Solve.apply(
        values.to(wide if values.is_complex() else REAL.get(wide, wide)),
        b.to(wide if b.is_complex() else REAL.get(wide, wide)),
        indices,
        tuple(A.shape),
        settings,
    )


def _parts(A: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The values of A, which torch differentiates, and their positions; a dense matrix is returned as it is."""
    if A.layout == torch.strided:
        return A, None
    if A.layout == torch.sparse_coo:
        A = A.coalesce()
        return A.values(), A.indices()
    if A.layout not in (torch.sparse_csr, torch.sparse_csc):
        raise TypeError(f"A has the layout {A.layout}, but COO, CSR, CSC or a dense matrix is needed")
    by_rows = A.layout == torch.sparse_csr
    offsets, inner = (A.crow_indices(), A.col_indices()) if by_rows else (A.ccol_indices(), A.row_indices())
    outer = torch.repeat_interleave(torch.arange(len(offsets) - 1, device=A.device), offsets.diff())
    inner = inner.to(outer.dtype)
    return A.values(), torch.stack((outer, inner) if by_rows else (inner, outer))


def _matrix(values: torch.Tensor, indices: torch.Tensor | None, shape: tuple[int, ...], adjoint: bool) -> Any:
    """A, or its adjoint."""
    if adjoint:
        values, shape = values.conj().resolve_conj(), shape[::-1]
    if indices is None:
        return (values.T if adjoint else values).cpu().numpy()
    return torch.sparse_coo_tensor(indices.flip(0) if adjoint else indices, values, shape, check_invariants=False)


class _Solve(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        values: torch.Tensor,
        b: torch.Tensor,
        indices: torch.Tensor | None,
        shape: tuple[int, ...],
        settings: Any,
    ) -> torch.Tensor:
        solver = Solver(_matrix(values, indices, shape, False), _keep=False, **settings)
        x = certified(*solver.solve(b.detach()))
        ctx.solver, ctx.indices, ctx.shape, ctx.settings = solver, indices, shape, settings
        ctx.is_real = not b.is_complex()
        ctx.save_for_backward(values, x)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        values, x = ctx.saved_tensors
        gradient = gradient.resolve_conj().contiguous()
        hermitian = ("hermitian",) if values.is_complex() else ("hermitian", "symmetric")
        solver = ctx.solver
        if solver.symmetry not in hermitian:
            solver = Solver(_matrix(values, ctx.indices, ctx.shape, True), _keep=False, **ctx.settings)
        right = certified(*solver.solve(gradient))
        of_values = None
        if ctx.needs_input_grad[0]:
            left, columns = (right[:, None], x[:, None]) if x.dim() == 1 else (right, x)
            if ctx.indices is None:
                of_values = -(left @ columns.conj().T)
            else:
                of_values = -(left[ctx.indices[0]] * columns[ctx.indices[1]].conj()).sum(dim=1)
            of_values = of_values if values.is_complex() else of_values.real
        return of_values, right.real if ctx.is_real else right, None, None, None
