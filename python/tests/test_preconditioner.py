"""Preconditioners by themselves, in SciPy's methods."""

import numpy as np
import pytest
import scipy.sparse.linalg as linalg

import residua
from systems import DTYPES, residual


def iterations(method, a, b, m, **more):
    count = []
    x, info = method(a, b, M=m, callback=lambda _: count.append(0), **more)
    assert info == 0
    return x, len(count)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["jacobi", "fsai", "ilu", "amg"])
def test_conjugate_gradients_of_scipy_take_them(name, dtype):
    a = residua.generate("jumping2d", 40, contrast=1e3).astype(dtype)
    b = (a @ np.random.default_rng(0).standard_normal(a.shape[0])).astype(dtype)
    m = getattr(residua, name)(a)
    assert m.shape == a.shape and m.dtype == dtype
    rtol = 1e-4 if np.finfo(dtype).eps > 1e-10 else 1e-8
    x, count = iterations(linalg.cg, a, b, m, rtol=rtol)
    _, plain = iterations(linalg.cg, a, b, None, rtol=rtol)
    assert residual(a, x, b) <= 2 * rtol and count < plain
    # m must be Hermitian and positive definite, which is checked with one pair of vectors.
    u, v = np.random.default_rng(1).standard_normal((2, a.shape[0]))
    left, right = np.vdot(u, m @ v.astype(dtype)), np.vdot(m @ u.astype(dtype), v)
    assert abs(left - right) <= 1e-3 * abs(left) + 1e-4 and np.vdot(u, m @ u.astype(dtype)).real > 0


@pytest.mark.parametrize("m", [residua.jacobi, residua.ilu, lambda a: residua.ilu(a, fill=5, digits=3), residua.amg])
def test_gmres_of_scipy_takes_them(m):
    a = residua.generate("convection2d", (40, 40))
    b = a @ np.random.default_rng(0).standard_normal(1600)
    x, info = linalg.gmres(a, b, M=m(a), rtol=1e-8, restart=40)
    assert info == 0 and residual(a, x, b) <= 1e-7


def test_the_diagonal_and_its_blocks():
    a = np.array([[4.0, 1, 0, 0], [1, 5, 0, 0], [0, 0, 2, 1], [0, 0, 1, 3]])
    r = np.array([1.0, -2, 3, 4])
    assert np.allclose(residua.jacobi(a) @ r, r / np.diag(a))
    assert np.allclose(residua.jacobi(a, block=2) @ r, np.linalg.solve(a, r))
    assert np.allclose(residua.jacobi(a) @ (r + 1j * r), (r + 1j * r) / np.diag(a))
    # If a Hermitian matrix is indefinite, M has the magnitudes of its diagonal, so that minres can use it.
    assert np.allclose(residua.jacobi(np.diag([1.0, -2, 3])) @ np.ones(3), [1, 0.5, 1 / 3])


def test_what_they_do_not_take():
    with pytest.raises(ValueError):
        residua.jacobi(np.ones((2, 3)))
    with pytest.raises(ValueError, match="positive definite|diagonal"):
        residua.fsai(np.diag([1.0, -2, 3]))
    with pytest.raises(TypeError):
        residua.ilu(lambda x: x)
    with pytest.raises(ValueError, match="no_such"):
        residua.amg(np.eye(3), no_such=1)


def test_a_solver_is_one_too():
    a = residua.generate("poisson2d", (30, 30))
    for method in (linalg.cg, linalg.gmres):
        x, info = method(a, np.ones(900), M=residua.Solver(a, method="direct").as_preconditioner(), rtol=1e-10)
        assert info == 0 and residual(a, x, np.ones(900)) <= 1e-9
