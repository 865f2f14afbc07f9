"""spsolve and factorized compared with SciPy's."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sparse
import scipy.sparse.linalg as linalg

import residua
from systems import DTYPES, FORMATS, dominant, random_vector


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", FORMATS)
def test_solutions_are_scipys(dtype, kind):
    a = dominant(50, dtype).asformat(kind)
    b = random_vector(50, dtype)
    expected = linalg.spsolve(a.tocsc(), b)
    x = residua.spsolve(a, b)
    assert x.dtype == dtype and x.shape == (50,)
    np.testing.assert_allclose(x, expected, rtol=1e-3 if np.finfo(dtype).eps > 1e-10 else 1e-9, atol=1e-5)
    solve = residua.factorized(a)
    np.testing.assert_array_equal(solve(b), x)


def test_shapes_of_right_hand_sides():
    a = dominant(20)
    b = np.random.default_rng(0).standard_normal((20, 3))
    x = residua.spsolve(a, b)
    np.testing.assert_allclose(x, linalg.spsolve(a.tocsc(), b), rtol=1e-9)
    assert residua.spsolve(a, b[:, :1]).shape == (20,)
    right = sparse.csc_array(b)
    result = residua.spsolve(a, right)
    assert type(result) is type(linalg.spsolve(a, right))
    np.testing.assert_allclose(result.toarray(), x, rtol=1e-9)
    with pytest.raises(ValueError, match="mismatch"):
        residua.spsolve(a, np.ones(19))
    with pytest.raises(ValueError, match="square"):
        residua.spsolve(np.ones((2, 3)), np.ones(2))


def test_real_matrices_with_complex_right_hand_sides():
    a, b = dominant(20), random_vector(20, np.complex128)
    np.testing.assert_allclose(residua.spsolve(a, b), linalg.spsolve(a.tocsc(), b), rtol=1e-9)


@pytest.mark.parametrize("a", [np.diag([1.0, 2.0, 0.0]), np.array([[1.0, 2.0], [2.0, 4.0]]), np.zeros((2, 2))])
def test_singular_matrices_warn_and_give_nan(a):
    b = np.arange(1.0, len(a) + 1)
    b[-1] = 7.0
    with pytest.warns(linalg.MatrixRankWarning):
        x = residua.spsolve(sparse.csr_array(a), b)
    assert np.isnan(x).all()
    with pytest.raises(RuntimeError, match="singular"):
        residua.factorized(sparse.csr_array(a))(b)


def test_a_badly_scaled_matrix_is_solved_without_a_warning():
    scale = np.logspace(-6, 6, 40)
    a = sparse.csr_array(dominant(40) * scale[:, None])
    b = random_vector(40, np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = residua.spsolve(a, b)
    error = np.linalg.norm(b - a @ x) / (sparse.linalg.norm(a) * np.linalg.norm(x) + np.linalg.norm(b))
    assert error <= 1e-14


def test_factors_of_a_matrix_that_is_singular_up_to_rounding_are_those_of_scipy():
    rng = np.random.default_rng(5)
    conductances = rng.uniform(0.1, 1.0, 59)
    a = sparse.diags_array([-conductances, -conductances], offsets=[-1, 1]).tocsr()
    a = (a + sparse.diags_array(-np.asarray(a.sum(axis=1)).ravel())).tocsc()
    b = rng.standard_normal(60)
    np.testing.assert_array_equal(residua.factorized(a)(b), linalg.factorized(a)(b))
