"""The cases of benches/solvers.rs with PETSc's CG, with rows distributed over the ranks:
mpirun -n 2 python3 benches/peers/cg_petsc.py [CASE...]   (Debian: python3-petsc4py)"""

import sys
import time

import petsc4py

petsc4py.init([sys.argv[0]])
from petsc4py import PETSc  # noqa: E402  (after init)
import numpy as np  # noqa: E402


def laplacian(size):
    """7 or 5 points in AIJ with the first axis fastest; each rank fills its own rows."""
    n = int(np.prod(size))
    ranks, rank = PETSc.COMM_WORLD.size, PETSc.COMM_WORLD.rank
    first, last = n * rank // ranks, n * (rank + 1) // ranks
    rows = np.arange(first, last, dtype=np.int64)
    columns, valid = [rows], [np.ones(len(rows), bool)]
    stride, rest = 1, rows
    for k in size:
        place = rest % k
        rest = rest // k
        for step, inside in ((-stride, place > 0), (stride, place + 1 < k)):
            columns.append(rows + step)
            valid.append(inside)
        stride *= k
    columns, valid = np.stack(columns, 1), np.stack(valid, 1)
    values = np.full(columns.shape, -1.0)
    values[:, 0] = 2.0 * len(size)
    order = np.argsort(np.where(valid, columns, n), axis=1)
    columns, values, valid = (np.take_along_axis(m, order, 1) for m in (columns, values, valid))
    offsets = np.concatenate([[0], np.cumsum(valid.sum(1))]).astype(PETSc.IntType)
    a = PETSc.Mat().createAIJ(
        ((len(rows), n), (len(rows), n)), csr=(offsets, columns[valid].astype(PETSc.IntType), values[valid])
    )
    a.assemble()
    return a


for case in sys.argv[1:] or ["128x128x128", "512x512", "64x64x64", "100x100"]:
    a = laplacian([int(k) for k in case.split("x")])
    x, b = a.createVecs()
    x.set(1.0)
    a.mult(x, b)
    for preconditioner in ("none", "jacobi"):
        ksp = PETSc.KSP().create()
        ksp.setOperators(a)
        ksp.setType("cg")
        ksp.getPC().setType(preconditioner)
        ksp.setNormType(PETSc.KSP.NormType.UNPRECONDITIONED)
        ksp.setTolerances(rtol=1e-8, atol=0.0, max_it=100000)
        ksp.setUp()
        best = float("inf")
        for _ in range(max(1, min(20, 1_000_000 // b.size))):  # the same number on every rank
            x.set(0.0)
            PETSc.COMM_WORLD.barrier()
            start = time.perf_counter()
            ksp.solve(b, x)
            PETSc.COMM_WORLD.barrier()
            best = min(best, time.perf_counter() - start)
        r = b.duplicate()
        a.mult(x, r)
        r.aypx(-1.0, b)
        count = ksp.getIterationNumber()
        PETSc.Sys.Print(
            f"{case:12} {'petsc ' + preconditioner:14} {count:5} iterations  {best * 1e3:9.3f} ms"
            f"  {best / count * 1e6:9.2f} us/iteration  residual {r.norm() / b.norm():.1e}"
        )
