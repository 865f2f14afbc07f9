"""cg, minres, gmres, bicgstab and lsmr compared with SciPy's."""

import numpy as np
import pytest
import scipy.sparse as sparse
import scipy.sparse.linalg as linalg

import residua
from systems import DTYPES, dominant, random_vector, residual

METHODS = ["cg", "minres", "gmres", "bicgstab"]


def system(method, dtype=np.float64, n=60):
    a = dominant(n, dtype, symmetric=method in ("cg", "minres"))
    return a, random_vector(n, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", METHODS)
def test_matrices_operators_and_functions(method, dtype):
    a, b = system(method, dtype)
    solve = getattr(residua, method)
    before = a.copy()
    for given in (a, a.toarray(), linalg.aslinearoperator(a), lambda x: a @ x):
        x, info = solve(given, b)
        assert info == 0 and x.dtype == dtype and residual(a, x, b) <= 1.01e-5
    assert abs(a - before).sum() == 0


@pytest.mark.parametrize("method", METHODS)
def test_preconditioners_of_all_kinds(method):
    a, b = system(method)
    solve = getattr(residua, method)
    inverse = 1 / a.diagonal()
    for m in (sparse.diags_array(inverse), np.diag(inverse), linalg.aslinearoperator(sparse.diags_array(inverse)),
              lambda r: inverse * r):  # fmt: skip
        x, info = solve(a, b, rtol=1e-9, M=m)
        assert info == 0 and residual(a, x, b) <= 1e-9
    with pytest.raises(ValueError, match="different shapes"):
        solve(a, b, M=np.eye(3))


@pytest.mark.parametrize("method", ["cg", "bicgstab"])
@pytest.mark.parametrize("with_m", [False, True])
def test_callbacks_see_the_iterates_that_scipy_shows(method, with_m):
    a, b = system(method, n=200)
    m = sparse.diags_array(1 / a.diagonal()) if with_m else None
    ours, theirs = [], []
    x, info = getattr(residua, method)(a, b, rtol=1e-8, M=m, callback=lambda x: ours.append(x.copy()))
    getattr(linalg, method)(a, b, rtol=1e-8, M=m, callback=lambda x: theirs.append(x.copy()))
    assert info == 0 and abs(len(ours) - len(theirs)) <= 1
    for mine, other in zip(ours, theirs):
        np.testing.assert_allclose(mine, other, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(ours[-1], x, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dtype, scale", [(np.float64, 1e200), (np.float64, 1e-200), (np.float32, 1e30)])
def test_callbacks_of_systems_far_from_one(dtype, scale):
    a, b = system("cg", dtype, n=50)
    b = (b * scale).astype(dtype)
    seen = []
    x, info = residua.cg(a, b, callback=lambda x: seen.append(x.copy()))
    assert info == 0 and len(seen) > 2
    np.testing.assert_allclose(seen[-1] / dtype(scale), x / dtype(scale), rtol=1e-4)


def test_callbacks_of_minres_and_gmres_fall_monotonically():
    a, b = system("minres", n=200)
    for solve, kwargs in ((residua.minres, {}), (residua.gmres, dict(callback_type="x", restart=3))):
        norms = []
        x, info = solve(a, b, rtol=1e-8, callback=lambda x: norms.append(np.linalg.norm(b - a @ x)), **kwargs)
        assert info == 0 and len(norms) > 1 and all(u >= v for u, v in zip(norms, norms[1:]))
        np.testing.assert_allclose(norms[-1], np.linalg.norm(b - a @ x), rtol=1e-6, atol=1e-12)


def test_iterates_survive_restarts_of_an_ill_conditioned_solve():
    a = residua.generate("jumping2d", (20, 20), contrast=1e8)
    b = np.ones(a.shape[0])
    seen = []
    x, info = residua.cg(a, b, rtol=1e-10, maxiter=20000, callback=lambda x: seen.append(x.copy()))
    assert np.linalg.norm(seen[-1] - x) <= 1e-6 * np.linalg.norm(x)
    assert (info == 0) == (residual(a, x, b) <= 1e-10)


def test_iterations_that_are_spent():
    a = residua.generate("poisson2d", (40, 40))
    b = np.ones(1600)
    for method in METHODS:
        x, info = getattr(residua, method)(a, b, rtol=1e-12, maxiter=2)
        assert info == 2 and x.shape == (1600,), method
    assert residua.gmres(a, b, rtol=1e-12, maxiter=2, restart=5)[1] == 2


def test_exceptions_of_the_callers_functions_come_through():
    a, b = system("cg")

    def broken(_):
        raise KeyError("mine")

    for call in (
        lambda: residua.cg(broken, b),
        lambda: residua.cg(a, b, M=broken),
        lambda: residua.cg(a, b, callback=broken),
        lambda: residua.gmres(a, b, callback=broken, callback_type="pr_norm"),
    ):
        with pytest.raises(KeyError, match="mine"):
            call()
    with pytest.raises(ValueError, match="59 values, but 60"):
        residua.cg(lambda x: x[1:], b)
    with pytest.raises(TypeError):
        residua.cg(a, b, M=lambda r: 1j * r)


def test_input_that_does_not_fit():
    a, b = system("cg")
    for wrong in (b[1:], np.ones((60, 2)), np.float64(3)):
        with pytest.raises(ValueError):
            residua.cg(a, wrong)
    with pytest.raises(ValueError):
        residua.cg(a, b, x0=b[1:])
    with pytest.raises(TypeError):
        residua.cg(a, b, x0=b + 1j)
    with pytest.raises(ValueError, match="square"):
        residua.cg(np.ones((2, 3)), np.ones(2))
    for kwargs in (dict(rtol=-1), dict(atol=-1), dict(rtol=np.nan)):
        with pytest.raises(ValueError):
            residua.cg(a, b, **kwargs)


def test_an_indefinite_matrix_is_no_success_of_cg():
    a = sparse.diags_array([1.0, -2.0, 3.0, -4.0]).tocsr()
    x, info = residua.cg(a, np.ones(4), rtol=1e-12)
    assert info != 0 or residual(a, x, np.ones(4)) <= 1e-12


@pytest.mark.parametrize("dtype", DTYPES)
def test_least_squares_as_numpy_finds_them(dtype):
    rng = np.random.default_rng(3)
    a = sparse.random_array((80, 30), density=0.2, rng=rng).toarray() + np.eye(80, 30)
    a = (a + (1j * rng.standard_normal(a.shape) * (a != 0) if np.dtype(dtype).kind == "c" else 0)).astype(dtype)
    b = random_vector(80, dtype)
    expected = np.linalg.lstsq(a, b, rcond=None)[0]
    single = np.finfo(dtype).eps > 1e-10
    tight = 1e-5 if single else 1e-12
    for given in (sparse.csr_array(a), a, linalg.aslinearoperator(a)):
        x, istop, itn, normr, normar, norma, conda, normx = residua.lsmr(given, b, atol=tight, btol=tight, maxiter=1000)
        assert istop == 2 and itn > 0 and np.isnan(conda)
        np.testing.assert_allclose(x, expected, rtol=1e-2 if single else 1e-7, atol=1e-3 if single else 1e-8)
        np.testing.assert_allclose(normr, np.linalg.norm(b - a @ x), rtol=1e-3)
        np.testing.assert_allclose(normx, np.linalg.norm(x), rtol=1e-3)


def test_damping_is_scipys():
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((40, 20)), rng.standard_normal(40)
    for given in (a, linalg.aslinearoperator(a)):
        x = residua.lsmr(given, b, damp=0.7, atol=1e-12, btol=1e-12, maxiter=500)[0]
        np.testing.assert_allclose(x, linalg.lsmr(a, b, damp=0.7, atol=1e-14, btol=1e-14)[0], rtol=1e-7, atol=1e-9)


def test_an_operator_without_an_adjoint_is_refused_by_lsmr():
    operator = linalg.LinearOperator((5, 4), matvec=lambda x: np.append(x, 0.0), dtype=float)
    with pytest.raises((ValueError, NotImplementedError)):
        residua.lsmr(operator, np.ones(5))
