"""The types of vectors and matrices that callers may pass."""

import numpy as np
import pytest
import scipy.sparse as sparse
import scipy.sparse.linalg as linalg

import residua
from residua import linalg as ours
from systems import dominant

N = 30
MATRIX = sparse.csr_array(dominant(N))
METHODS = ["cg", "minres", "gmres", "bicgstab", "cgs", "bicg", "qmr", "tfqmr", "lgmres", "gcrotmk"]


def right_hand_sides():
    """The same right-hand side as each type of vector, by name."""
    row_sums = sparse.csr_matrix(MATRIX).sum(axis=1)
    assert isinstance(row_sums, np.matrix)
    flat = np.asarray(row_sums).reshape(-1)
    wide = np.zeros((N, 2))
    wide[:, 0] = flat
    swapped = flat.astype(flat.dtype.newbyteorder())
    return {
        "matrix": row_sums, "column": flat[:, None], "strided": wide[:, 0], "backwards": flat[::-1].copy()[::-1],
        "list": flat.tolist(), "swapped": swapped, "fortran": np.asfortranarray(flat[:, None]),
    }  # fmt: skip


@pytest.mark.parametrize("name", list(right_hand_sides()))
def test_vectors_of_all_kinds(name):
    b = right_hand_sides()[name]
    shape = np.shape(b)
    x, report = residua.Solver(MATRIX).solve(b)
    for each in (x, residua.solve(MATRIX, b), ours.splu(MATRIX).solve(b), residua.factorized(MATRIX)(b)):
        assert type(each) is np.ndarray and each.shape == shape
        np.testing.assert_allclose(each, np.ones(shape), rtol=1e-6)
    assert report.converged
    flat = [residua.spsolve(MATRIX, b), residua.lsmr(MATRIX, b, atol=1e-9, btol=1e-9)[0]]
    flat += [ours.lsqr(MATRIX, b, atol=1e-9, btol=1e-9)[0]]
    flat += [getattr(ours, method)(MATRIX, b, rtol=1e-9)[0] for method in METHODS if method not in ("cg", "minres")]
    for each in flat:
        assert type(each) is np.ndarray and each.shape == (N,)
        np.testing.assert_allclose(each, np.ones(N), rtol=1e-6)


def test_two_columns_of_a_matrix_and_in_fortrans_order():
    b = np.asmatrix(MATRIX @ np.ones((N, 2)))
    for given in (b, np.asfortranarray(np.asarray(b))):
        for x in (residua.solve(MATRIX, given), residua.spsolve(MATRIX, given), ours.splu(MATRIX).solve(given)):
            assert type(x) is np.ndarray and x.shape == (N, 2)
            np.testing.assert_allclose(x, 1, rtol=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", [lambda a: a, lambda a: a.toarray(), linalg.aslinearoperator, lambda a: a.tocoo()])
def test_matrices_of_all_kinds(method, kind):
    a = sparse.csr_array(MATRIX + MATRIX.T)
    b = a @ np.ones(N)
    x, info = getattr(ours, method)(kind(a), b, rtol=1e-9)
    assert info == 0
    assert np.linalg.norm(b - a @ x) <= 1e-9 * np.linalg.norm(b)


@pytest.mark.parametrize("method", ["gmres", "bicgstab", "cgs", "tfqmr", "lgmres", "gcrotmk"])
def test_functions_are_operators(method):
    x, info = getattr(ours, method)(lambda x: MATRIX @ x, MATRIX @ np.ones(N), rtol=1e-9)
    assert info == 0
    np.testing.assert_allclose(x, 1, rtol=1e-6)


@pytest.mark.parametrize("method", ["cgs", "bicg", "qmr", "lgmres", "gcrotmk"])
def test_the_diagonal_helps_scipys_methods(method):
    scale = np.logspace(0, 5, N)
    a = sparse.csr_array(MATRIX * scale[:, None])
    b = a @ np.ones(N)
    x, info = getattr(ours, method)(a, b, rtol=1e-6)
    assert info == 0
    assert np.linalg.norm(b - a @ x) <= 1.001e-6 * np.linalg.norm(b)
    # With a callback, the iteration has the same bits as SciPy's.
    iterates = [], []
    for found, module in zip(iterates, (ours, linalg)):
        getattr(module, method)(a, b, maxiter=3, callback=lambda x: found.append(np.copy(x)))
    np.testing.assert_array_equal(*iterates)


def test_a_sparse_right_hand_side_is_refused_in_words():
    b = sparse.csc_array(np.ones((N, 2)))
    for call in (residua.solve, lambda a, b: residua.Solver(a).solve(b), residua.gmres, ours.lgmres):
        with pytest.raises(TypeError, match="sparse"):
            call(MATRIX, b)


def test_a_triangle():
    lower = sparse.tril(MATRIX, format="csr")
    for a, options in ((lower, {}), (lower.T, {"lower": False}), (lower, {"unit_diagonal": True})):
        for b in (np.ones(N), np.ones((N, 2))):
            expected = linalg.spsolve_triangular(sparse.csc_array(a), b, **options)
            np.testing.assert_allclose(ours.spsolve_triangular(a, b, **options), expected, rtol=1e-12)
            np.testing.assert_allclose(ours.spsolve_triangular(a.toarray(), b, **options), expected, rtol=1e-12)


def test_vectors_that_only_dlpack_describes_and_those_of_arrow():
    class Lent:
        """An array of a package that supports DLPack and nothing else."""

        def __init__(self, values):
            self.values = values

        def __dlpack__(self, **options):
            return self.values.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.values.__dlpack_device__()

    a, b = dominant(N, np.float64), np.ones(N)
    expected = residua.solve(a, b)
    np.testing.assert_array_equal(residua.solve(a, Lent(b)), expected)
    arrow = pytest.importorskip("pyarrow")
    x = residua.solve(a, arrow.array(b))
    assert isinstance(x, arrow.Array)
    np.testing.assert_array_equal(x.to_numpy(), expected)
