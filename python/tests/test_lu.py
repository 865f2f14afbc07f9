"""splu, and the object that it returns."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sparse
import scipy.sparse.linalg as linalg

import residua
from residua import _small
from residua.linalg import LU, splu
from systems import DTYPES, dominant, random_vector

#: Numbers of unknowns for which a dense LU, a banded one and a sparse factorisation are used.
SIZES = (30, 300, 900)


def system(n, dtype):
    """A matrix of n rows that is factorised dense, as a band, or by residua's sparse factorisation."""
    if n == 30:
        return dominant(n, dtype)
    if n == 900:
        return sparse.block_diag([dominant(90, dtype)] * 10, format="csr")
    diagonals = [random_vector(n - abs(offset), dtype, 3 + offset) + 6 * (offset == 0) for offset in (-2, -1, 0, 3)]
    return sparse.diags_array(diagonals, offsets=(-2, -1, 0, 3)).tocsr().astype(dtype)


def turned(a, trans):
    return {"N": a, "T": a.T, "H": a.conj().T}[trans]


def test_each_size_has_a_factorisation_of_its_own():
    kinds = [type(_small.factorised(system(n, np.float64))) for n in SIZES]
    assert kinds == [_small.Dense, _small.Band, type(None)]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("trans", ["N", "T", "H"])
def test_solves_with_the_matrix_and_both_transposes(n, dtype, trans):
    a = system(n, dtype)
    lu = splu(a)
    tolerance = 1e-3 if np.finfo(dtype).eps > 1e-10 else 1e-9
    for shape in [(n,), (n, 1), (n, 4)]:
        b = random_vector(np.prod(shape), dtype).reshape(shape)
        for given in (b, np.asfortranarray(b)):
            x = lu.solve(given, trans)
            assert x.dtype == dtype and x.shape == shape
            np.testing.assert_allclose(turned(a, trans) @ x, b, rtol=tolerance, atol=tolerance)
    right = sparse.random_array((n, 70), density=0.05, rng=3).astype(dtype)
    x = lu.solve(right, trans=trans)
    assert isinstance(x, sparse.csc_array) and x.dtype == dtype
    np.testing.assert_allclose((turned(a, trans) @ x).toarray(), right.toarray(), atol=tolerance)


@pytest.mark.parametrize("n", SIZES)
def test_complex_right_hand_sides_of_a_real_matrix(n):
    a, b = system(n, np.float64), random_vector(n, np.complex128)
    for trans in "NTH":
        np.testing.assert_allclose(turned(a, trans) @ splu(a).solve(b, trans), b, atol=1e-9)


def test_symmetric_and_hermitian_matrices_are_factorised_once():
    a = system(900, np.complex128)
    for matrix in (a + a.T, a + a.conj().T, a.real + a.real.T):
        lu = splu(matrix)
        b = random_vector(900, matrix.dtype)
        for trans in "NTH":
            np.testing.assert_allclose(turned(matrix, trans) @ lu.solve(b, trans), b, atol=1e-8)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("permc_spec", [None, "NATURAL", "MMD_AT_PLUS_A"])
def test_factors_and_permutations_multiply_to_the_matrix(n, permc_spec):
    a = system(n, np.float64)
    lu = splu(a, permc_spec=permc_spec)
    rows = sparse.csc_array((np.ones(n), (lu.perm_r, np.arange(n))))
    columns = sparse.csc_array((np.ones(n), (np.arange(n), lu.perm_c)))
    np.testing.assert_allclose((rows @ a @ columns).toarray(), (lu.L @ lu.U).toarray(), atol=1e-12)
    assert lu.shape == (n, n)
    assert lu.nnz == linalg.splu(a.tocsc(), permc_spec=permc_spec).nnz


@pytest.mark.parametrize("n", SIZES)
def test_the_caller_may_change_the_matrix(n):
    a, b = system(n, np.float64), np.ones(n)
    kept = a.copy()
    lu = splu(a)
    a.data[:] = 7.0
    for trans in "NT":
        np.testing.assert_allclose(turned(kept, trans) @ lu.solve(b, trans), b, atol=1e-9)
    np.testing.assert_array_equal(lu.U.toarray(), linalg.splu(kept.tocsc()).U.toarray())


@pytest.mark.parametrize("n", SIZES)
def test_exactly_singular_matrices_raise_at_once(n):
    a = system(n, np.float64).tolil()
    a[:, [3]] = 0.0
    for matrix in (a.tocsc(), a.toarray()):
        with pytest.raises(RuntimeError, match="Factor is exactly singular"):
            splu(matrix)
        with pytest.raises(RuntimeError, match="Factor is exactly singular"):
            residua.factorized(matrix)


@pytest.mark.parametrize(
    "refused",
    [
        {"permc_spec": "COLAMB"},
        {"options": {"Foo": 1}},
        {"options": {"ColPerm": "none"}},
    ],
)
def test_options_are_refused_as_scipy_does(refused):
    a = sparse.eye_array(4, format="csc")
    with pytest.raises((TypeError, ValueError)) as theirs:
        linalg.splu(a, **refused)
    with pytest.raises(theirs.type) as ours:
        splu(a, **refused)
    assert str(ours.value) == str(theirs.value)
    if "permc_spec" in refused:
        with pytest.raises(theirs.type, match="ColPerm"):
            residua.spsolve(a, np.ones(4), permc_spec="COLAMB")


def test_shapes_and_names_that_do_not_fit():
    lu = splu(system(30, np.float64))
    for wrong in (np.ones(29), np.ones((29, 2)), sparse.csc_array(np.ones((29, 2)))):
        with pytest.raises(ValueError, match="is of incompatible size"):
            lu.solve(wrong)
    with pytest.raises(ValueError, match="object too deep"):
        lu.solve(np.ones((30, 2, 2)))
    with pytest.raises(ValueError, match="trans must be N, T, or H"):
        lu.solve(np.ones(30), "X")
    with pytest.raises(ValueError, match="square"):
        splu(np.ones((3, 4)))


def test_it_passes_for_scipys_object():
    lu = splu(np.eye(3))
    assert isinstance(lu, linalg.SuperLU) and isinstance(lu, LU)


@pytest.mark.parametrize("n", SIZES)
def test_what_is_not_finite_goes_through_as_with_scipy(n):
    a = system(n, np.float64).tocsc()
    b = random_vector(2 * n, np.float64).reshape(n, 2)
    b[4, 1] = np.nan
    expected = linalg.splu(a).solve(b)
    x = splu(a).solve(b)
    assert (np.isnan(x) == np.isnan(expected)).all()
    np.testing.assert_allclose(x, expected, rtol=1e-8)
    np.testing.assert_allclose(residua.spsolve(a, b[:, 1]), linalg.spsolve(a, b[:, 1]), rtol=1e-8)
    a = a.tolil()
    a[2, 2] = np.inf
    a = a.tocsc()
    expected = linalg.splu(a).solve(b[:, 0])
    for x in (splu(a).solve(b[:, 0]), residua.spsolve(a, b[:, 0]), residua.factorized(a)(b[:, 0])):
        np.testing.assert_allclose(x, expected, rtol=1e-8)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_no_unknowns(dtype):
    a = sparse.csc_array((0, 0))
    for shape in [(0,), (0, 3)]:
        b = np.zeros(shape, dtype)
        for x in (splu(a).solve(b), residua.factorized(a)(b), residua.spsolve(a, b), residua.solve(a, b)):
            assert x.shape == shape and x.dtype == dtype
    x, info = residua.cg(a, np.zeros(0, dtype))
    assert info == 0 and x.shape == (0,) and x.dtype == dtype


@pytest.mark.parametrize("permc_spec", [None, "NATURAL"])
@pytest.mark.parametrize("kind", ["csc", "csr", "coo", "dok"])
@pytest.mark.parametrize("right", ["csc", "csr", "coo", "dok"])
def test_sparse_right_hand_sides_give_what_scipy_gives(kind, right, permc_spec):
    a, b = system(30, np.float64).asformat(kind), sparse.random_array((30, 5), density=0.3, rng=1).asformat(right)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sparse.SparseEfficiencyWarning)
        expected = linalg.spsolve(a, b, permc_spec=permc_spec)
    x = residua.spsolve(a, b, permc_spec=permc_spec)
    assert type(x) is type(expected)
    np.testing.assert_allclose(x.toarray(), expected.toarray(), atol=1e-10)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", SIZES)
def test_empty_and_equal_columns_are_solved_once_and_leave_gaps(n, dtype, monkeypatch):
    a, b = system(n, dtype), sparse.random_array((n, 40), density=0.1, rng=2, format="lil").astype(dtype)
    b[:, [0, 7, 39]] = 0.0
    for column in (3, 11, 38):
        b[:, [column]] = b[:, [1]]
    b = b.tocsc()
    b.data[b.indptr[5] : b.indptr[6]] = 0.0  # stored, and zero
    tolerance = 1e-3 if np.finfo(dtype).eps > 1e-10 else 1e-9
    lu, given = splu(a), []
    dense = lu._solve_array
    monkeypatch.setattr(
        lu, "_solve_array", lambda columns, trans: given.append(columns.shape[1]) or dense(columns, trans)
    )
    for x in (lu.solve(b), residua.spsolve(a, b)):
        assert x.shape == b.shape and x.dtype == dtype and x.data.all()
        assert not np.diff(x.tocsc().indptr)[[0, 5, 7, 39]].any()
        np.testing.assert_allclose((a @ x).toarray(), b.toarray(), atol=tolerance)
    columns = b.toarray().T
    assert sum(given) == len(np.unique(columns[columns.any(axis=1)], axis=0)) <= 40 - 4 - 3
    nothing = sparse.csc_array((n, 5), dtype=dtype)
    for x in (lu.solve(nothing), residua.spsolve(a, nothing)):
        assert x.shape == (n, 5) and x.nnz == 0 and x.dtype == dtype


def test_a_singular_matrix_and_a_sparse_right_hand_side_are_nan_with_a_warning():
    a = sparse.csc_array(np.diag([1.0, 2.0, 0.0]))
    for b in (sparse.csc_array(np.eye(3)), sparse.csc_array((3, 2))):
        with pytest.warns(linalg.MatrixRankWarning):
            assert np.isnan(residua.spsolve(a, b).toarray()).all()


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", (*SIZES, 400))
def test_many_right_hand_sides_are_solved_as_each_alone(n, order, dtype):
    grid = residua.generate("convection2d", (20, 20)).astype(dtype)
    a = (grid if n == 400 else system(n, dtype)).tocsc()
    lu, solve = splu(a), residua.factorized(a)
    for count in (2, 3, 8, 13, 100):
        b = random_vector(n * count, dtype).reshape((n, count), order=order)
        b[:, count // 2] = 0.0
        for trans in "NTH":
            x = lu.solve(b, trans)
            assert x.shape == b.shape and not x[:, count // 2].any()
            np.testing.assert_allclose(turned(a, trans) @ x, b, atol=1e-9)
            for k in (0, count - 1):
                np.testing.assert_allclose(x[:, k], lu.solve(b[:, k].copy(), trans), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(a @ solve(b), b, atol=1e-9)
        np.testing.assert_allclose(a @ residua.spsolve(a, b), b, atol=1e-9)
    b[5, 3] = np.nan
    x = lu.solve(b)
    assert np.isnan(x[:, 3]).any() and np.isfinite(np.delete(x, 3, axis=1)).all()


@pytest.mark.parametrize("kind", ["csc", "csr", "coo", "dia"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_bands_are_solved_in_all_formats(kind, dtype):
    a, b = system(300, dtype).asformat(kind), random_vector(300, dtype)
    x = residua.spsolve(a, b)
    assert x.dtype == dtype
    tolerance = 1e-3 if np.finfo(dtype).eps > 1e-10 else 1e-9
    np.testing.assert_allclose(a @ x, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("scale", [1e-200, 1e-15, 1.0, 1e200])
@pytest.mark.parametrize("n", (30, 300))
def test_small_systems_of_all_magnitudes(n, scale):
    a, b = system(n, np.float64), random_vector(n, np.float64)
    expected = linalg.spsolve(a.tocsc(), b)
    np.testing.assert_allclose(residua.spsolve(a * scale, b) * scale, expected, rtol=1e-8)
    np.testing.assert_allclose(splu(a * scale).solve(b) * scale, expected, rtol=1e-8)
    np.testing.assert_allclose(splu(a).solve(b * scale), expected * scale, rtol=1e-8)
    assert not residua.spsolve(a, np.zeros(n)).any() and not splu(a).solve(np.zeros(n)).any()


@pytest.mark.parametrize("n", (30, 300))
def test_small_singular_systems_are_found_out(n):
    a = system(n, np.float64).tolil()
    a[5] = 2 * a[6] if n == 30 else 0 * a[6]
    b = random_vector(n, np.float64)
    with pytest.warns(linalg.MatrixRankWarning):
        assert np.isnan(residua.spsolve(a.tocsr(), b)).all()


def test_rows_of_other_units_are_looked_at_each():
    # In a norm over all rows, the second row would be negligible compared with the first.
    a, b = np.array([[1e12, 0.0], [1.0, 1.0]]), np.array([1e12, 3.0])
    np.testing.assert_allclose(residua.spsolve(a, b), [1, 2], rtol=1e-12)
    np.testing.assert_allclose(splu(a).solve(b), [1, 2], rtol=1e-12)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_logdet_is_that_of_the_dense_matrix(n, dtype):
    a = system(n, dtype)
    sign, logarithm = splu(a).logdet()
    expected = np.linalg.slogdet(a.toarray())
    np.testing.assert_allclose(sign, expected[0], atol=1e-9)
    np.testing.assert_allclose(logarithm, expected[1], rtol=1e-10)
    # The sign of a permutation is included.
    order = np.random.default_rng(n).permutation(n)
    turned_sign, same = splu(a[order]).logdet()
    np.testing.assert_allclose(turned_sign / sign, np.round(np.linalg.det(np.eye(n)[order])), atol=1e-9)
    np.testing.assert_allclose(same, logarithm, rtol=1e-10)


def test_inertia_counts_signs_of_eigenvalues_or_says_that_rounding_leaves_them_open():
    grid = residua.generate("poisson2d", (20, 20)).tocsc()
    assert splu(grid).inertia() == (400, 0) and splu(-grid).inertia() == (0, 400)
    for shift in (0.7, 2.3, 3.9001):
        values = np.linalg.eigvalsh(grid.toarray()) - shift
        assert splu(grid - shift * sparse.eye_array(400)).inertia() == ((values > 0).sum(), (values < 0).sum())
    hermitian = sparse.csc_array(np.array([[1.0, 2j], [-2j, 1.0]]))
    assert splu(hermitian).inertia() == (1, 1)
    with pytest.raises(ValueError, match="symmetric or a Hermitian"):
        splu(system(300, np.float64)).inertia()
    # An eigenvalue that is zero up to rounding.
    near = np.diag([1.0, -1.0, 1e-18]) + 0.0
    turn, _ = np.linalg.qr(np.arange(9.0).reshape(3, 3) + np.eye(3))
    near = turn @ near @ turn.T
    with pytest.raises((ValueError, RuntimeError)):
        splu((near + near.T) / 2).inertia()


def test_factors_that_are_kept_serve_both_transposes():
    a = residua.generate("convection2d", (40, 40)).tocsc()
    lu = splu(a)
    for trans in "NTH":
        b = random_vector(3 * 1600, np.float64).reshape(1600, 3)
        x = lu.solve(b, trans)
        assert np.linalg.norm(turned(a, trans) @ x - b) <= 1e-10 * np.linalg.norm(b)
    assert list(lu._kept) == ["N"]


@pytest.mark.parametrize("n", [1, 5, 16, 17, 40])
def test_small_matrices_of_any_pattern_and_what_a_band_cannot_do(n):
    rng = np.random.default_rng(n)
    for dtype in DTYPES:
        a = sparse.csr_array((random_vector(n * n, dtype).reshape(n, n) + n * np.eye(n)).astype(dtype))
        b = random_vector(n, dtype)
        tolerance = 1e-3 if np.finfo(dtype).eps > 1e-10 else 1e-10
        for trans in "NTH":
            x = splu(a).solve(b, trans)
            assert x.dtype == dtype
            np.testing.assert_allclose(turned(a, trans) @ x, b, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(a @ residua.spsolve(a, b), b, rtol=tolerance, atol=tolerance)
    # Vectors with gaps, vectors of other types, and invalid ones.
    a = sparse.csc_array(rng.random((n, n)) + n * np.eye(n))
    lu, wide = splu(a), rng.random((n, 2))
    np.testing.assert_allclose(a @ lu.solve(wide[:, 0]), wide[:, 0], rtol=1e-10)
    np.testing.assert_allclose(a @ lu.solve(np.arange(n)), np.arange(n), rtol=1e-10, atol=1e-10)
    with pytest.raises(ValueError, match="incompatible size"):
        lu.solve(np.ones(n + 1))
    with pytest.raises(ValueError, match="trans"):
        lu.solve(np.ones(n), "X")


def test_duplicates_and_entries_in_any_order_add_up_in_a_band():
    a = sparse.csr_array((np.array([1.0, 3.0, 1.0, 2.0, 5.0]), np.array([1, 0, 1, 0, 1]), np.array([0, 3, 5])))
    for given in (a, a.tocsc()):
        np.testing.assert_allclose(residua.spsolve(given, np.array([1.0, 2.0])), np.linalg.solve(a.toarray(), [1, 2]))
    damaged = sparse.csr_array((np.ones(2), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 2))
    damaged.indices[1] = 9
    with pytest.raises(ValueError):
        residua.spsolve(damaged, np.ones(2))
