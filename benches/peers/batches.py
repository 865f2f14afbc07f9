"""Batches of small systems compared with CuPy's batched solve on a GPU, and on the CPU with NumPy's and with SciPy one
by one. Times are the smallest of some runs, in milliseconds, from arrays to x and to knowing whether all have converged;
runs that also read the residuals have lines of their own. With `processor`, they are the time of all processors together,
on which other programs of the machine have less influence.

    python benches/peers/batches.py cpu [processor]
    python benches/peers/batches.py gpu
"""

import sys
import time

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg

import residua

on_gpu = sys.argv[1:] == ["gpu"]
clock = time.process_time if "processor" in sys.argv else time.perf_counter
if on_gpu:
    import cupy as cp

    print(cp.cuda.runtime.getDeviceProperties(0)["name"].decode(), "CuPy", cp.__version__)
rng = np.random.default_rng(1)


def there(array):
    return cp.asarray(array) if on_gpu else array


def least(run, times=7):
    run()
    best = float("inf")
    for _ in range(times):
        if on_gpu:
            cp.cuda.Device().synchronize()
        start = clock()
        run()
        if on_gpu:
            cp.cuda.Device().synchronize()
        best = min(best, clock() - start)
    return 1e3 * best


def line(what, ours, again, others, report):
    told = "".join(f"{name} {time:.2f}, {time / again:.1f} times; " for name, time in others)
    print(
        f"{what}: residua {ours:.2f} first, {again:.2f} kept; {told}"
        f"{int(report.converged.sum())} converged, {report.apart} apart, iterations {report.iterations.mean():.0f}",
        flush=True,
    )


def same_bits(solve):
    x = [solve()[0] for _ in range(20)]
    x = [cp.asnumpy(each) for each in x] if on_gpu else x
    return all(np.array_equal(x[0], each) for each in x)


def dense(m, n, dtype=np.float64):
    A, b = rng.standard_normal((m, n, n)).astype(dtype), rng.standard_normal((m, n)).astype(dtype)
    A, b = there(A), there(b)
    batch = residua.Batch(A)
    _, report = batch.solve(b)
    numeric = cp if on_gpu else np
    others = [("CuPy" if on_gpu else "NumPy", least(lambda: numeric.linalg.solve(A, b[:, :, None]), 3))]
    line(
        f"{m} x {n} {np.dtype(dtype).name}",
        least(lambda: residua.solve_batch(A, b)),
        least(lambda: batch.solve(b)),
        others,
        report,
    )
    print(f"   and read: {least(lambda: batch.solve(b)[1].residuals):.2f}")
    if not same_bits(lambda: batch.solve(b)):
        print("   OTHER BITS")


def one_pattern(what, pattern, m, peers, methods=("lu", "bicgstab")):
    pattern.sum_duplicates()
    values = rng.uniform(-1, 1, (m, pattern.nnz))
    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    diagonal = rows == pattern.indices
    sums = np.zeros((m, pattern.shape[0]))
    np.add.at(sums, (slice(None), rows), np.abs(values))
    if "cg" in methods:
        across = sp.csr_array((np.arange(pattern.nnz), pattern.indices, pattern.indptr)).T.tocsr().data
        values = -np.abs(values + values[:, across])
        values[:, diagonal] = 0
        sums = -np.add.reduceat(values, pattern.indptr[:-1], axis=1)
    values[:, diagonal] = (1.001 if "cg" in methods else 0.6) * sums
    b = rng.standard_normal((m, pattern.shape[0]))
    some = [sp.csc_array(sp.csr_array((v, pattern.indices, pattern.indptr))) for v in values[:50]]
    others = []
    if "scipy" in peers:
        start = clock()
        for A, right in zip(some, b):
            scipy.sparse.linalg.spsolve(A, right)
        others.append(("SciPy one by one", 1e3 * (clock() - start) * m / len(some)))
    if "dense" in peers:
        full = np.zeros((m, *pattern.shape))
        full[:, rows, pattern.indices] = values
        full, right = there(full), there(b[:, :, None])
        others.append(("CuPy dense", least(lambda: cp.linalg.solve(full, right), 3)))
    values, b = there(values), there(b)
    for method in methods:
        batch = residua.Batch(pattern, values, method=method)
        _, report = batch.solve(b)
        first = least(lambda: residua.solve_batch(pattern, b, values, method=method), 3)

        def again():
            batch.update(values)
            batch.solve(b)

        line(f"{m} x {pattern.shape[0]}, {what}, {method}", first, least(again, 5), others, report)
        if not same_bits(lambda: batch.solve(b)):
            print("   OTHER BITS")


def attempt(run, *arguments):
    """Runs a case. If it fails, the error is printed, and the other cases still run."""
    try:
        run(*arguments)
    except Exception as error:
        print("FAILED", arguments[0], repr(error)[:600], flush=True)


def tenth(n):
    return sp.csr_array(sp.random_array((n, n), density=0.1, rng=np.random.default_rng(2)) + sp.eye_array(n))


def stencil(a, b):
    def line(n):
        return sp.diags_array([np.ones(n - 1), np.ones(n), np.ones(n - 1)], offsets=[-1, 0, 1])

    return sp.csr_array(sp.kron(line(a), sp.eye_array(b)) + sp.kron(sp.eye_array(a), line(b)))


def chemistry(n):
    """A pattern of chemistry: each species reacts with a few others, and some with many."""
    random = np.random.default_rng(3)
    rows = np.repeat(np.arange(n), 4)
    near = np.clip(rows + random.integers(-12, 13, rows.size), 0, n - 1)
    return sp.csr_array(sp.coo_array((np.ones(rows.size), (rows, near)), shape=(n, n)) + sp.eye_array(n))


attempt(one_pattern, "10 % filled", tenth(64), 1000, ("dense",) if on_gpu else ("scipy",))
for m, n in ((100_000, 16), (10_000, 32), (2000, 256)) if on_gpu else ((100_000, 16), (1000, 64)):
    attempt(dense, m, n)
attempt(dense, 100_000, 4)
attempt(dense, 1000, 64, np.float32)
many = 10_000 if on_gpu else 1000
attempt(one_pattern, "stencil in 2D", stencil(31, 32), many, () if on_gpu else ("scipy",))
attempt(one_pattern, "chemistry", chemistry(992), many, () if on_gpu else ("scipy",))
attempt(one_pattern, "symmetric stencil", stencil(31, 32), many, (), ("lu", "bicgstab", "cg"))
