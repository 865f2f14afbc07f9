"""Systems that other packages assemble."""

import numpy as np
import pytest

import residua
from systems import residual


def test_pyamgs_gallery():
    gallery = pytest.importorskip("pyamg.gallery")
    problems = [
        gallery.poisson((40, 40), format="csr"),
        gallery.poisson((20, 20), format="csc"),
        gallery.linear_elasticity((12, 12))[0],  # blocks of 2 by 2
        gallery.stencil_grid(np.array([[0, -1.0, 0], [-1, 4, -1], [0, -1, 0]]), (25, 25), format="dia"),
    ]
    for a in problems:
        b = np.random.default_rng(0).standard_normal(a.shape[0])
        x = residua.solve(a, b, rtol=1e-10)
        assert residual(a, x, b) <= 1e-10
        x, info = residua.cg(a, b)
        assert info == 0 and residual(a, x, b) <= 1e-5


def test_pyamg_as_a_preconditioner():
    pyamg = pytest.importorskip("pyamg")
    a = pyamg.gallery.poisson((100, 100), format="csr")
    b = np.ones(a.shape[0])
    m = pyamg.smoothed_aggregation_solver(a).aspreconditioner()
    count = []
    x, info = residua.cg(a, b, rtol=1e-10, M=m, callback=count.append)
    assert info == 0 and residual(a, x, b) <= 1e-10 and len(count) < 25


def test_scikit_fem():
    skfem = pytest.importorskip("skfem")
    from skfem.models.poisson import laplace, unit_load

    mesh = skfem.MeshTri().refined(5)
    basis = skfem.Basis(mesh, skfem.ElementTriP1())
    a, b = laplace.assemble(basis), unit_load.assemble(basis)
    boundary = basis.get_dofs()
    condensed = skfem.condense(a, b, D=boundary)
    expected = skfem.solve(*condensed)
    x = skfem.solve(*condensed, solver=lambda matrix, right: residua.solve(matrix, right, rtol=1e-12))
    np.testing.assert_allclose(x, expected, rtol=1e-8, atol=1e-12)
    x = skfem.solve(*condensed, solver=residua.spsolve)
    np.testing.assert_allclose(x, expected, rtol=1e-9, atol=1e-13)
