"""Random ragged systems, compared with NumPy's dense solutions."""

import numpy as np
import scipy.sparse as sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import residua
from systems import DTYPES, FORMATS, residual, rounding, tolerance


@st.composite
def systems(draw):
    """Systems from triplets in any order, with duplicates and rows without other entries than a positive diagonal."""
    n = draw(st.integers(1, 30))
    count = draw(st.integers(0, 5 * n))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dtype = draw(st.sampled_from(DTYPES))
    rows, columns = rng.integers(0, n, count), rng.integers(0, n, count)
    values = rng.standard_normal(count)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal(count)
    weight = np.bincount(rows, np.abs(values), n) + 0.5 + rng.random(n)
    order = rng.permutation(count + n)
    rows = np.concatenate([rows, np.arange(n)])[order]
    columns = np.concatenate([columns, np.arange(n)])[order]
    values = np.concatenate([values, weight * 10.0 ** rng.integers(-2, 3)])[order].astype(dtype)
    index = draw(st.sampled_from([np.int32, np.int64]))
    a = sparse.coo_array((values, (rows.astype(index), columns.astype(index))), shape=(n, n))
    b = rng.standard_normal(n) + (1j * rng.standard_normal(n) if np.dtype(dtype).kind == "c" else 0)
    return a, b.astype(dtype), draw(st.sampled_from(FORMATS)), draw(st.integers(1, 3))


@settings(max_examples=150, deadline=None)
@given(systems())
def test_what_is_called_converged_is(drawn):
    a, b, kind, count = drawn
    dense = a.toarray()
    given_matrix = a if kind == "coo" else a.asformat(kind)
    before = given_matrix.copy()
    solver = residua.Solver(given_matrix)
    x, report = solver.solve(b)
    if report.converged:
        assert residual(dense, x, b) <= tolerance(b.dtype) + rounding(dense, x, b)
    several = np.stack([b * (k + 1) for k in range(count)], axis=1)
    many, reports = solver.solve(several)
    for k, each in enumerate(reports if isinstance(reports, list) else [reports]):
        if each.converged:
            allowed = tolerance(b.dtype) + rounding(dense, many[:, k], several[:, k])
            assert residual(dense, many[:, k], several[:, k]) <= allowed
    assert np.array_equal(given_matrix.data, before.data)


@settings(max_examples=80, deadline=None)
@given(systems())
def test_factorisations_and_new_values(drawn):
    a, b, kind, _ = drawn
    dense = a.toarray()
    x = residua.spsolve(a, b)
    if np.isnan(x).any():
        # A diagonal divided by a hundred no longer dominates its row: a few matrices are singular to double precision.
        assert np.linalg.cond(dense.astype(np.complex128)) > 1e14
        return
    asked = 1e-5 if np.finfo(b.dtype).eps > 1e-10 else 1e-10
    size = np.linalg.norm(dense) * np.linalg.norm(x) / np.linalg.norm(b)
    assert residual(dense, x, b) <= asked * (1 + size)
    solver = residua.Solver(a, updates=True)
    solver.update(a.data * b.dtype.type(3))
    x, report = solver.solve(b)
    if report.converged:
        assert residual(3 * dense, x, b) <= tolerance(b.dtype) + rounding(3 * dense, x, b)


@settings(max_examples=80, deadline=None)
@given(systems(), st.sampled_from(["cg", "minres", "gmres", "bicgstab"]))
def test_methods_never_claim_what_is_not_so(drawn, method):
    a, b, _, _ = drawn
    x, info = getattr(residua, method)(a, b, rtol=tolerance(b.dtype))
    if info == 0:
        assert residual(a.toarray(), x, b) <= tolerance(b.dtype) + rounding(a.toarray(), x, b)
