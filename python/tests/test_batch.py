"""Batches of small systems: dense and sparse, types, verdicts, and arrays of other packages."""

import numpy as np
import pytest
import scipy.sparse as sp

import residua


def systems(m, n, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((m, n, n)), rng.standard_normal((m, n))
    if np.dtype(dtype).kind == "c":
        A, b = A + 1j * rng.standard_normal((m, n, n)), b + 1j * rng.standard_normal((m, n))
    return A.astype(dtype), b.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("n", [1, 5, 33])
def test_dense(n, dtype):
    A, b = systems(40, n, dtype)
    A += 3 * np.eye(n, dtype=dtype)
    x, report = residua.solve_batch(A, b)
    assert x.dtype == dtype and x.shape == b.shape
    residual = np.linalg.norm(b - np.einsum("mij,mj->mi", A.astype(complex), x), axis=1) / np.linalg.norm(b, axis=1)
    tolerance = 1e-5 if np.finfo(dtype).eps > 1e-10 else 1e-8
    assert (residual[report.converged] <= tolerance).all() and report.solved.all()
    assert np.allclose(report.residuals, residual, rtol=0.01, atol=1e-13)


def test_several_right_hand_sides():
    A, _ = systems(7, 6)
    B = np.random.default_rng(1).standard_normal((7, 6, 3))
    x, report = residua.solve_batch(A, B)
    assert report.converged.all() and np.allclose(A @ x, B, atol=1e-7)
    alone, _ = residua.solve_batch(A, np.ascontiguousarray(B[:, :, 1]))
    assert np.array_equal(alone, x[:, :, 1])


def test_failures_do_not_touch_others():
    A, b = systems(60, 8)
    good, _ = residua.solve_batch(A, b)
    A[3, 2] = A[3, 5]
    A[10, 0, 0] = np.nan
    b[20, 1] = np.inf
    A[30] *= 1e200
    A[31] *= 1e-200
    x, report = residua.solve_batch(A, b)
    assert report.outcomes[[10, 20]].tolist() == ["not_finite", "not_finite"] and np.isnan(x[[10, 20]]).all()
    assert report.outcomes[3] in ("least_squares", "singular") and not report.converged[3]
    others = np.setdiff1d(np.arange(60), [3, 10, 20])
    assert report.converged[others].all() and report.apart >= 3
    same = np.setdiff1d(others, [30, 31])
    assert np.array_equal(x[same], good[same])
    assert np.allclose(x[30], good[30] / 1e200) and np.allclose(x[31] / 1e200, good[31])


def test_one_pattern_and_each_its_own():
    rng = np.random.default_rng(2)
    pattern = sp.csr_array(sp.random_array((15, 15), density=0.2, rng=rng) + sp.eye_array(15))
    pattern.sum_duplicates()
    values = rng.standard_normal((30, pattern.nnz))
    b = rng.standard_normal((30, 15))
    batch = residua.Batch(pattern, values)
    x, report = batch.solve(b)
    dense = np.stack([sp.csr_array((v, pattern.indices, pattern.indptr)).toarray() for v in values])
    expected, dense_report = residua.solve_batch(dense, b)
    assert np.array_equal(report.outcomes, dense_report.outcomes)
    assert np.allclose(x, expected, rtol=1e-6)
    assert report.all_converged == report.converged.all() and len(report) == 30
    batch.update(2 * values)
    half, _ = batch.solve(b)
    assert np.allclose(half, x / 2, rtol=1e-12)
    matrices = [sp.csr_array((v, pattern.indices, pattern.indptr)) for v in values] + [sp.eye_array(2) * 4.0]
    flat, report = residua.solve_batch(matrices, np.concatenate([b.ravel(), [1.0, 2.0]]))
    assert np.allclose(flat[:-2].reshape(30, 15), x) and flat[-2:].tolist() == [0.25, 0.5] and len(report) == 31


@pytest.mark.parametrize("method", ["auto", "lu", "bicgstab", "cg"])
def test_methods(method):
    n, m, rng = 60, 30, np.random.default_rng(4)
    ones = np.ones(n)
    lines = [ones[:-7], ones[:-1], ones, ones[:-1], ones[:-7]]
    pattern = sp.csr_array(sp.diags_array(lines, offsets=[-7, -1, 0, 1, 7]))
    values = rng.uniform(-1, 1, (m, pattern.nnz))
    if method == "cg":
        for own in values:
            own[:] = (A := sp.csr_array((own, pattern.indices, pattern.indptr))).data + A.T.tocsr().data
        values /= 2
    rows = np.repeat(np.arange(n), np.diff(pattern.indptr))
    values[:, rows == pattern.indices] += 4
    values[3, rows == 5] = 0
    b = rng.standard_normal((m, n))
    x, report = residua.solve_batch(pattern, b, values, method=method)
    assert report.converged.sum() == m - 1 and not report.converged[3]
    for s in np.flatnonzero(report.converged):
        A = sp.csr_array((values[s], pattern.indices, pattern.indptr))
        assert np.linalg.norm(b[s] - A @ x[s]) <= 1e-8 * np.linalg.norm(b[s])
    # Elimination meets the tolerance without refinement; BiCGSTAB needs several iterations.
    assert (np.delete(report.iterations, 3).min() > 1) == (method in ("bicgstab", "cg"))
    assert not report.all_converged
    with pytest.raises(ValueError, match="bicgstab"):
        residua.solve_batch(pattern, b, values, method="qr")


def test_what_is_no_batch_is_refused():
    A, b = systems(3, 4)
    with pytest.raises(ValueError, match="m, n, n"):
        residua.solve_batch(A[0], b)
    with pytest.raises(ValueError, match="b has shape"):
        residua.solve_batch(A, b[:2])
    with pytest.raises(ValueError, match="values of all systems"):
        residua.solve_batch(sp.eye_array(3).tocsr(), b)
    with pytest.raises(ValueError, match="CSR"):
        residua.solve_batch(sp.eye_array(4).tocoo(), b, np.ones((3, 4)))
    with pytest.raises(ValueError):
        residua.solve_batch(A, b, rtol=float("nan"))
