"""Batches on a GPU, for a machine that has one: `python tests/gpu_batches.py [PART ...]`. Every x is checked on the CPU
in more than double precision, and verdicts must equal those of the CPU.
"""

import sys
from fractions import Fraction

import cupy as cp
import numpy as np
import scipy.sparse as sp

import residua

faults = []


def fault(what):
    faults.append(what)
    print("FAULT", what, flush=True)


def check(name, A, b, x, report, tolerance):
    """Systems reported as converged meet the tolerance, in norm and row by row."""
    wide = np.clongdouble if A.dtype.kind == "c" else np.longdouble
    b, x = (cp.asnumpy(each).reshape(len(A), A.shape[1], -1) for each in (b, x))
    for s in np.flatnonzero(report.converged)[:300]:
        with np.errstate(over="ignore"):
            rows = np.sqrt((np.abs(A[s].astype(wide)) ** 2).sum(axis=1))[:, None]
        r = b[s].astype(wide) - A[s].astype(wide) @ x[s].astype(wide)
        for scale in (1, rows):
            of_r, of_b = (np.sqrt((np.abs(each / scale) ** 2).sum(axis=0)) for each in (r, b[s].astype(wide)))
            if not (of_r <= tolerance * of_b).all():
                fault(f"{name}: system {s} is not solved")


def systems(m, n, k, dtype, kind):
    rng = np.random.default_rng(m + n)
    A, b = rng.standard_normal((m, n, n)), rng.standard_normal((m, n, k))
    if np.dtype(dtype).kind == "c":
        A, b = A + 1j * rng.standard_normal(A.shape), b + 1j * rng.standard_normal(b.shape)
    if kind == "hurt":
        A[::7, 0] = A[::7, -1]
        A[1::7, 0, 0] = np.nan
        b[2::7, 0, 0] = np.inf
        if np.finfo(dtype).eps < 1e-10:
            A[3::7] *= 1e200
            A[4::7] *= 1e-200
    return A.astype(dtype), b.astype(dtype)


def dense():
    """Dense systems of every type and of ragged sizes, some of them singular or not finite."""
    for dtype in (np.float64, np.float32, np.complex128, np.complex64):
        for n in (1, 3, 4, 8, 13, 16, 32, 33, 64, 90, 150, 256):
            for kind in ("plain", "hurt") if n > 1 else ("plain",):
                m = 40 if n > 100 else 140
                A, b = systems(m, n, 2, dtype, kind)
                batch = residua.Batch(cp.asarray(A))
                x, report = batch.solve(cp.asarray(b))
                name = f"{np.dtype(dtype).name} {n} {kind}"
                check(name, A, b, x, report, 1e-5 if np.finfo(dtype).eps > 1e-10 else 1e-8)
                _, here = residua.solve_batch(A, b)
                other = np.flatnonzero(here.converged != report.converged)
                if len(other) > (0.05 * m if np.finfo(dtype).eps > 1e-10 else 0):
                    fault(f"{name}: {report} on the GPU, {here} here, first {other[:5]}")
                again, _ = batch.solve(cp.asarray(b))
                part, _ = residua.solve_batch(cp.asarray(A[3:]), cp.asarray(b[3:]))
                if not (
                    cp.asnumpy(x).tobytes() == cp.asnumpy(again).tobytes()
                    and cp.asnumpy(x[3:]).tobytes() == cp.asnumpy(part).tobytes()
                ):
                    fault(f"{name}: other bits")


def sparse():
    """Sparse patterns."""
    for side in (6, 20, 31):
        n = side * side
        line = sp.diags_array([np.ones(side - 1), np.ones(side), np.ones(side - 1)], offsets=[-1, 0, 1])
        pattern = sp.csr_array(sp.kron(line, sp.eye_array(side)) + sp.kron(sp.eye_array(side), line))
        pattern.sum_duplicates()
        rng = np.random.default_rng(side)
        for dtype in (np.float64, np.float32, np.complex128):
            values = rng.uniform(-1, 1, (50, pattern.nnz)).astype(dtype)
            values[:, np.repeat(np.arange(n), np.diff(pattern.indptr)) == pattern.indices] += 4
            values[7, : pattern.indptr[1]] = 0
            values[9, 3] = np.nan
            if dtype != np.float32:
                values[11] *= 1e-200
            b = rng.standard_normal((50, n)).astype(dtype)
            dense = np.stack([sp.csr_array((v, pattern.indices, pattern.indptr)).toarray() for v in values])
            # Of these the symmetric part alone is positive definite.
            across = values[:, sp.csr_array((np.arange(pattern.nnz), pattern.indices, pattern.indptr)).T.tocsr().data]
            for method in ("auto", "bicgstab", "cg"):
                if method == "cg":
                    values = (values + across.conj()) / 2
                    dense = (dense + dense.conj().transpose(0, 2, 1)) / 2
                x, report = residua.solve_batch(pattern, cp.asarray(b), cp.asarray(values), method=method)
                name = f"pattern of {n}, {np.dtype(dtype).name}, {method}"
                check(name, dense, b, x, report, 1e-5 if dtype == np.float32 else 1e-8)
                # With an empty row the symmetric part is indefinite but not singular: conjugate gradients may solve it.
                solved = report.converged.sum()
                if not (solved == 48 and report.apart == 2 or method == "cg" and solved == 49 and report.apart <= 2):
                    fault(f"{name}: {report}, {report.apart} apart")
                part, _ = residua.solve_batch(pattern, cp.asarray(b[12:]), cp.asarray(values[12:]), method=method)
                if cp.asnumpy(part).tobytes() != cp.asnumpy(x[12:]).tobytes():
                    fault(f"{name}: other bits")
            if n < 100:
                matrices = [sp.csr_array((v, pattern.indices, pattern.indptr)) for v in values]
                flat, of_each = residua.solve_batch(matrices, b.ravel(), device="cuda")
                if not np.array_equal(of_each.converged, report.converged):
                    fault(f"{name}, each its own: {of_each}")


def is_exactly_solved(a, b, x, tolerance):
    """The verdict in rational arithmetic, in norm and row by row."""
    rows, right, found = [[Fraction(v) for v in row] for row in a], [Fraction(v) for v in b], [Fraction(v) for v in x]
    r = [right[i] - sum(v * y for v, y in zip(row, found, strict=True)) for i, row in enumerate(rows)]
    squares = [sum(v * v for v in row) for row in rows]
    scaled = [sum(v * v / s for v, s in zip(vector, squares, strict=True) if s) for vector in (r, right)]
    limit = Fraction(tolerance) ** 2
    return sum(v * v for v in r) <= limit * sum(v * v for v in right) and scaled[0] <= limit * scaled[1]


def many():
    """A hundred thousand systems: no verdict is false, and bits are the same in 20 runs and beside other systems."""
    for n in (3, 8, 16):
        m = 100_000 // 3
        rng = np.random.default_rng(n)
        A, b = rng.standard_normal((m, n, n)), rng.standard_normal((m, n))
        A[::1000, 0] = A[::1000, -1]
        whole = rng.integers(-1, 2, (m, n, n)) if n == 3 else None
        if whole is not None:
            A[1::50] = whole[1::50]
        A[2::10] *= 1e200
        A[3::10] *= 1e-200
        b[4::10] *= 1e200
        A[5::10] *= 2.0 ** rng.integers(-60, 60, (len(A[5::10]), n, 1))
        batch = residua.Batch(cp.asarray(A))
        x, report = batch.solve(cp.asarray(b))
        here, converged = cp.asnumpy(x), report.converged
        with np.errstate(over="ignore"):
            wide, right = A.astype(np.longdouble), b.astype(np.longdouble)
            rows = np.sqrt((wide**2).sum(axis=2))
            r = right - (wide * here[:, None, :]).sum(axis=2)
            for scale in (1, np.where(rows > 0, rows, 1)):
                of_r, of_b = (np.sqrt(((each / scale) ** 2).sum(axis=1)) for each in (r, right))
                # Where terms cancel, these sums are too inexact.
                for s in np.flatnonzero(converged & ~(of_r <= 1e-8 * of_b)):
                    if not is_exactly_solved(A[s], b[s], here[s], 1e-8):
                        fault(f"{m} of {n}: system {s} is not solved")
        words = report.outcomes
        exact = np.round(np.linalg.det(A[1::50])) if n == 3 else []
        for s, of in zip(range(1, m, 50), exact):
            if (words[s] == "converged") != (of != 0) or (words[s] in ("singular", "least_squares")) != (of == 0):
                fault(f"{m} of {n}: system {s} with determinant {of} is {words[s]}")
        regular = np.ones(m, bool)
        regular[::1000] = regular[1::50] = False
        # Rows that are far larger than b: even rounding the exact x leaves large residuals.
        regular[5::10] = False
        if not converged[regular].all():
            fault(f"{m} of {n}: regular ones that have not converged: {np.unique(words[regular], return_counts=True)}")
        print(f"{m} of {n}: {converged.sum()} converged, {report.apart} apart, {(~converged).sum()} not", flush=True)
        on_gpu = [cp.asarray(each) for each in (A, b)]
        bits = {cp.asnumpy(batch.solve(on_gpu[1])[0]).tobytes() for _ in range(20)}
        part, _ = residua.solve_batch(on_gpu[0][7:1111], on_gpu[1][7:1111])
        if bits != {here.tobytes()} or cp.asnumpy(part).tobytes() != here[7:1111].tobytes():
            fault(f"{m} of {n}: other bits")


def rest():
    """Verdicts stay those of their own solve, and arrays of other packages are taken."""
    # Verdicts that are kept are those of their solve.
    A, b = systems(500, 6, 1, np.float64, "plain")
    batch = residua.Batch(cp.asarray(A + 9 * np.eye(6)))
    kept = [batch.solve(cp.asarray(b * 10.0**k))[1] for k in range(4)]
    again = [batch.solve(cp.asarray(b * 10.0**k))[1] for k in range(4)]
    if not all(np.array_equal(one.residuals, other.residuals) for one, other in zip(kept, again, strict=True)):
        fault("verdicts of another solve")

    # Arrays of other packages.
    A, b = systems(30, 20, 1, np.float64, "plain")
    expected, _ = residua.solve_batch(A, b[:, :, 0])
    for name in ("torch", "jax"):
        try:
            package = __import__(name)
        except ImportError:
            print("without", name)
            continue
        if name == "torch":
            given = [package.as_tensor(each, device="cuda") for each in (A, b[:, :, 0])]
            x, report = residua.solve_batch(*given)
            x = x.cpu().numpy()
        else:
            package.config.update("jax_enable_x64", True)
            x, report = residua.solve_batch(package.numpy.asarray(A), package.numpy.asarray(b[:, :, 0]))
            x = np.asarray(x)
        if not (report.converged.all() and np.allclose(x, expected, rtol=1e-8)):
            fault(f"{name}: {report}")


PARTS = {"dense": dense, "sparse": sparse, "many": many, "rest": rest}
for name in sys.argv[1:] or PARTS:
    PARTS[name]()
print(f"{len(faults)} faults")
sys.exit(bool(faults))
