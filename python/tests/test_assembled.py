"""Systems that scikit-fem and pyamg assemble: residua's solutions agree with those of SciPy's direct solver."""

import numpy as np
import pytest
import scipy.sparse as sparse
from scipy.sparse.linalg import spsolve

import residua
from systems import residual


def agrees(a, b):
    """residua's solutions by ``solve`` and by a factorisation agree with that of SciPy's factorisation."""
    a = sparse.csr_array(a)
    expected = spsolve(a.tocsc(), b)
    scale = np.linalg.norm(expected)
    iterative = residua.solve(a, b, rtol=1e-11)
    assert residual(a, iterative, b) <= 1e-11
    assert np.linalg.norm(iterative - expected) <= 1e-6 * scale
    assert np.linalg.norm(residua.spsolve(a, b) - expected) <= 1e-9 * scale


def test_elasticity_of_scikit_fem():
    skfem = pytest.importorskip("skfem")
    from skfem.models.elasticity import lame_parameters, linear_elasticity

    mesh = skfem.MeshTri().refined(4)
    basis = skfem.Basis(mesh, skfem.ElementVector(skfem.ElementTriP2()))
    a = linear_elasticity(*lame_parameters(1e3, 0.3)).assemble(basis)
    b = skfem.LinearForm(lambda v, w: -v[1]).assemble(basis)
    agrees(*skfem.condense(a, b, D=basis.get_dofs(lambda x: x[0] == 0), expand=False))


def test_convection_of_scikit_fem():
    """An unsymmetric matrix."""
    skfem = pytest.importorskip("skfem")
    from skfem.helpers import dot, grad

    basis = skfem.Basis(skfem.MeshQuad().refined(5), skfem.ElementQuad1())
    form = skfem.BilinearForm(lambda u, v, w: dot(grad(u), grad(v)) + (20 * grad(u)[0] + 5 * grad(u)[1]) * v)
    b = skfem.LinearForm(lambda v, w: w.x[0] * v).assemble(basis)
    a = form.assemble(basis)
    assert abs(a - a.T).max() > 1e-3
    agrees(*skfem.condense(a, b, D=basis.get_dofs(), expand=False))


def test_stokes_of_scikit_fem():
    """Velocity and pressure, one pressure pinned: indefinite, with zeros on the diagonal."""
    skfem = pytest.importorskip("skfem")
    from skfem.helpers import ddot, div, grad

    mesh = skfem.MeshTri().refined(3)
    velocity = skfem.Basis(mesh, skfem.ElementVector(skfem.ElementTriP2()), intorder=4)
    pressure = velocity.with_element(skfem.ElementTriP1())
    stiffness = skfem.BilinearForm(lambda u, v, w: ddot(grad(u), grad(v))).assemble(velocity)
    divergence = skfem.BilinearForm(lambda u, q, w: -div(u) * q).assemble(velocity, pressure)
    a = sparse.block_array([[stiffness, divergence.T], [divergence, None]], format="csr")
    b = np.zeros(a.shape[0])
    b[: velocity.N] = skfem.LinearForm(lambda v, w: w.x[1] * v[0]).assemble(velocity)
    fixed = np.append(velocity.get_dofs().all(), velocity.N)
    free = np.setdiff1d(np.arange(len(b)), fixed)
    agrees(a[free][:, free], b[free])


@pytest.mark.parametrize("name", ["poisson", "elasticity", "diffusion"])
def test_gallery_of_pyamg(name):
    gallery = pytest.importorskip("pyamg.gallery")
    if name == "poisson":
        a = gallery.poisson((15, 15, 15))
    elif name == "elasticity":
        a = gallery.linear_elasticity((20, 20))[0]
    else:
        stencil = gallery.diffusion_stencil_2d(epsilon=1e-3, theta=np.pi / 6, type="FE")
        a = gallery.stencil_grid(stencil, (40, 40))
    agrees(a, np.random.default_rng(4).standard_normal(a.shape[0]))
