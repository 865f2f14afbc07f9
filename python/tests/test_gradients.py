"""Gradients through solves, compared with finite differences. Skipped if torch or JAX is not installed."""

import numpy as np
import pytest
import scipy.sparse as sparse

import residua
from systems import dominant, random_vector

EXACT = {"method": "direct", "rtol": 1e-12, "device": "cpu"}
KINDS = [(np.float64, np.float64), (np.complex128, np.complex128), (np.float64, np.complex128)]
KINDS += [(np.complex128, np.float64)]


def system(kinds, columns, symmetric=False, n=6):
    a = sparse.coo_array(dominant(n, kinds[0], symmetric=symmetric))
    a.sum_duplicates()
    b = random_vector(n * columns, kinds[1]).reshape(n, columns)
    return a, b if columns > 1 else b.reshape(-1)


# torch


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize(
    ("layout", "symmetric"), [("coo", False), ("coo", True), ("csr", False), ("csc", False), ("dense", False)]
)
def test_torch_gradients_are_finite_differences(kinds, columns, layout, symmetric):
    torch = pytest.importorskip("torch", exc_type=ImportError)
    if layout in ("csr", "csc") and kinds[0] is np.complex128:
        pytest.skip("torch does not differentiate the making of such a matrix")
    a, b = system(kinds, columns, symmetric)
    values = torch.tensor(a.data, requires_grad=True)
    right = torch.tensor(b, requires_grad=True)
    places = torch.tensor(np.stack(a.coords).astype(np.int64))

    def solved(values, right):
        matrix = torch.sparse_coo_tensor(places, values, a.shape)
        if layout == "dense":
            matrix = matrix.to_dense()
        elif layout != "coo":
            numbered = sparse.coo_array((np.arange(a.nnz), a.coords), shape=a.shape).asformat(layout)
            make = torch.sparse_csr_tensor if layout == "csr" else torch.sparse_csc_tensor
            arrays = [torch.tensor(each) for each in (numbered.indptr, numbered.indices, numbered.data)]
            matrix = make(arrays[0], arrays[1], values[arrays[2]], a.shape)
        return residua.torch.solve(matrix, right, **EXACT)

    x = solved(values, right)
    assert type(x) is torch.Tensor and x.shape == right.shape
    np.testing.assert_allclose(a @ x.detach().numpy(), b, atol=1e-10)
    assert torch.autograd.gradcheck(solved, (values, right), eps=1e-6, atol=1e-7, fast_mode=True)


def test_torch_gradient_of_a_sparse_leaf_and_of_iterations():
    torch = pytest.importorskip("torch", exc_type=ImportError)
    a = residua.generate("poisson2d", (30, 30)).tocoo()
    matrix = torch.sparse_coo_tensor(np.stack(a.coords), torch.tensor(a.data), a.shape).requires_grad_()
    b = torch.ones(900, dtype=torch.float64, requires_grad=True)
    x = residua.torch.solve(matrix, b, rtol=1e-10)
    x.sum().backward()
    np.testing.assert_allclose(b.grad, x.detach(), rtol=1e-8)
    gradient = matrix.grad.coalesce()
    rows, columns = gradient.indices().numpy()
    np.testing.assert_allclose(gradient.values(), -(x[rows] * x[columns]).detach(), rtol=1e-8)


def test_torch_second_derivatives_and_bad_input_are_refused_in_words():
    torch = pytest.importorskip("torch", exc_type=ImportError)
    a = torch.tensor([[4.0, 1.0], [0.0, 3.0]], dtype=torch.float64, requires_grad=True)
    b = torch.ones(2, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(residua.torch.solve(a, b).pow(2).sum(), b, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()
    with pytest.raises(ValueError, match="dimensions"):
        residua.torch.solve(torch.ones(2), b)
    with pytest.raises(residua.NotConverged):
        residua.torch.solve(a, b, method="gmres", maxiter=0)


def test_torch_vectors_on_the_cpu_come_back_as_such_and_keep_no_gradient_silently():
    torch = pytest.importorskip("torch", exc_type=ImportError)
    a, b = dominant(30), torch.ones(30, dtype=torch.float64)
    solver = residua.Solver(a)
    solutions = [residua.solve(a, b), solver.solve(b)[0], residua.spsolve(a, b), residua.cg(a + a.T, b)[0]]
    solutions += [residua.linalg.splu(a).solve(b), residua.linalg.lgmres(a, b)[0], residua.linalg.lsqr(a, b)[0]]
    for x in solutions:
        assert type(x) is torch.Tensor and x.dtype == torch.float64
    wanting = b.clone().requires_grad_()
    calls = [lambda: residua.solve(a, wanting), lambda: solver.solve(wanting), lambda: residua.spsolve(a, wanting)]
    calls += [lambda: residua.gmres(a, wanting), lambda: residua.linalg.splu(a).solve(wanting)]
    matrix = torch.eye(30, dtype=torch.float64).to_sparse().requires_grad_()
    for call in [*calls, lambda: residua.solve(matrix, b)]:
        with pytest.raises(TypeError, match="residua.torch.solve"):
            call()
    with torch.no_grad():
        np.testing.assert_allclose(residua.solve(a, wanting), solutions[0])


# JAX


@pytest.fixture
def wide_jax():
    jax = pytest.importorskip("jax", exc_type=ImportError)
    jax.config.update("jax_enable_x64", True)
    yield jax
    jax.config.update("jax_enable_x64", False)


def jax_system(kinds, columns, layout):
    """b, values, and a function that makes a matrix from values."""
    import jax.experimental.sparse as jsparse
    import jax.numpy as jnp

    a, b = system(kinds, columns)
    if layout == "dense":
        return a.toarray(), b, lambda values: values
    if layout == "bcsr":
        a = a.tocsr()
        return (
            a.data,
            b,
            lambda values: jsparse.BCSR((values, jnp.array(a.indices), jnp.array(a.indptr)), shape=a.shape),
        )
    places = np.stack(a.coords, axis=1)
    # Two entries of padding.
    places, values = np.concatenate([places, [a.shape] * 2]), np.concatenate([a.data, [0, 0]])
    return values, b, lambda values: jsparse.BCOO((values, jnp.array(places)), shape=a.shape)


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("layout", ["bcoo", "bcsr", "dense"])
def test_jax_gradients_are_finite_differences(wide_jax, kinds, columns, layout):
    jax = wide_jax
    values, b, matrix = jax_system(kinds, columns, layout)
    weights = random_vector(b.size, np.complex128).reshape(b.shape)

    def measure(values, b):
        return (weights * residua.jax.solve(matrix(values), b, **EXACT)).real.sum()

    expected = measure(values, b)
    for transformed in (jax.grad(measure, (0, 1)), jax.jit(jax.grad(measure, (0, 1)))):
        gradients = transformed(values, b)
        rng = np.random.default_rng(3)
        for k, given in enumerate((values, b)):
            direction = rng.standard_normal(given.shape)
            if given.dtype.kind == "c":
                direction = direction + 1j * rng.standard_normal(given.shape)
            if k == 0 and layout == "bcoo":
                assert (np.asarray(gradients[0])[-2:] == 0).all()
            moved = [values, b]
            ends = []
            for step in (1e-6, -1e-6):
                moved[k] = given + step * direction
                ends.append(measure(*moved))
            slope = (ends[0] - ends[1]) / 2e-6
            # JAX's gradient of a real function of complex numbers is its conjugate.
            np.testing.assert_allclose((np.asarray(gradients[k]) * direction).sum().real, slope, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(jax.jit(measure)(values, b), expected, rtol=1e-12)


def test_jax_second_derivatives_and_bad_input_are_refused_in_words(wide_jax):
    jax = wide_jax
    a, b = np.array([[4.0, 1.0], [0.0, 3.0]]), np.ones(2)

    def measure(b):
        return (residua.jax.solve(a, b) ** 2).sum()

    with pytest.raises(TypeError, match="only first derivatives"):
        jax.jacrev(jax.jacrev(measure))(b)
    with pytest.raises(TypeError, match="forward-mode"):
        jax.hessian(measure)(b)
    with pytest.raises(ValueError, match="are needed"):
        residua.jax.solve(a, np.ones(3))
    batches = jax.vmap(lambda b: residua.jax.solve(a, b))(np.ones((3, 2)))
    np.testing.assert_allclose(batches, np.full((3, 2), [1 / 6, 1 / 3]))


def test_padded_matrices_and_vectors_of_jax():
    jax = pytest.importorskip("jax", exc_type=ImportError)
    from jax.experimental.sparse import BCOO

    padded = BCOO.fromdense(np.array([[4.0, 1.0], [0.0, 3.0]], np.float32), nse=6)
    b = jax.numpy.array([1.0, 2.0], np.float32)
    for x in (residua.solve(padded, b), residua.spsolve(padded, b), residua.Solver(padded).solve(b)[0]):
        assert isinstance(x, jax.Array) and x.dtype == np.float32
        np.testing.assert_allclose(x, [1 / 12, 2 / 3], rtol=1e-5)
