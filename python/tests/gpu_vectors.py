"""Tests on a machine with an NVIDIA GPU: `python -m pytest python/tests/gpu_vectors.py`. CuPy, torch and JAX each where
they are installed. A slow producer is queued on a stream of its own before each solve."""

import multiprocessing

import numpy as np
import pytest

import residua
from systems import DTYPES, residual, tolerance

GPUS = [device for device in residua.devices() if device["name"].startswith("cuda")]
pytestmark = pytest.mark.skipif(not GPUS, reason="no GPU here")

A = residua.generate("poisson2d", (60, 60))
N = A.shape[0]


def solver(dtype=np.float64, **settings):
    return residua.Solver(A.astype(dtype), device="cuda", **settings)


def test_vectors_of_the_host():
    for dtype in DTYPES:
        # Ones ask for an x so large that its rounding to single precision alone leaves more than the tolerance.
        b = (A @ np.random.default_rng(0).standard_normal(N)).astype(dtype)
        x, report = solver(dtype).solve(b)
        assert report.converged and residual(A, x, b) <= 1.05 * tolerance(dtype)
        assert not report.device.startswith("cpu")
    several = np.random.default_rng(0).standard_normal((N, 5))
    x, reports = solver(right_hand_sides=5).solve(several)
    assert all(report.converged for report in reports)
    assert residua.cg(A, np.ones(N), device="cuda")[1] == 0


def test_new_values():
    own = solver(updates=True)
    for factor in (1.0, 2.0, 3.0):
        own.update(factor * A.data)
        x, report = own.solve(np.ones(N))
        assert report.converged and residual(factor * A, x, np.ones(N)) <= 1e-8


def test_torch_on_streams_of_its_own():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    own = solver()
    work = torch.ones((3000, 3000), device="cuda")
    for number in range(5):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            slow = work
            for _ in range(10):
                slow = (slow @ work) * 3e-4
            b = torch.full((N,), float(number + 1), device="cuda", dtype=torch.float64) + 0 * slow[0, 0]
            x, report = own.solve(b)
            y = 2 * x
        stream.synchronize()
        assert isinstance(x, torch.Tensor) and x.device == b.device and report.converged
        assert residual(A, x.cpu().numpy(), np.full(N, number + 1.0)) <= 1e-8
        assert np.array_equal(y.cpu().numpy(), 2 * x.cpu().numpy())


def test_torch_shapes_and_types():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    types = {np.float32: torch.float32, np.float64: torch.float64, np.complex64: torch.complex64,
             np.complex128: torch.complex128}  # fmt: skip
    for dtype, kind in types.items():
        b = torch.tensor(A @ np.random.default_rng(0).standard_normal(N), dtype=kind, device="cuda")
        x, report = solver(dtype).solve(b)
        assert x.dtype == kind and report.converged
        assert residual(A, x.cpu().numpy(), b.cpu().numpy()) <= 1.05 * tolerance(dtype)
    several = torch.rand((N, 4), dtype=torch.float64, device="cuda")
    kept = several.clone()
    x, reports = solver(right_hand_sides=4).solve(several, x0=torch.ones_like(several))
    assert x.shape == (N, 4) and len(reports) == 4 and torch.equal(several, kept)
    for k in range(4):
        assert residual(A, x[:, k].cpu().numpy(), several[:, k].cpu().numpy()) <= 1e-8
    strided = torch.rand(2 * N, dtype=torch.float64, device="cuda")[::2]
    x, report = solver().solve(strided)
    assert report.converged and residual(A, x.cpu().numpy(), strided.cpu().numpy()) <= 1e-8
    wanted = torch.ones(N, dtype=torch.float64, device="cuda", requires_grad=True)
    assert solver().solve(wanted)[1].converged
    mixed = torch.ones(N, dtype=torch.float32, device="cuda")  # through the host: another type than the solver's
    x, report = solver().solve(mixed)
    assert x.is_cuda and report.converged
    conjugate = torch.ones(N, dtype=torch.complex128, device="cuda").conj()
    assert solver(np.complex128).solve(conjugate)[1].converged


def test_torch_matrices_and_short_forms():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    a = torch.sparse_csr_tensor(
        torch.from_numpy(A.indptr), torch.from_numpy(A.indices), torch.from_numpy(A.data), size=A.shape
    ).cuda()
    b = torch.ones(N, dtype=torch.float64, device="cuda")
    x = residua.solve(a, b, rtol=1e-10)
    assert x.is_cuda and residual(A, x.cpu().numpy(), np.ones(N)) <= 1e-10
    x, info = residua.cg(a, b)
    assert x.is_cuda and info == 0


def test_cupy_on_streams_of_its_own():
    cupy = pytest.importorskip("cupy")
    sparse = pytest.importorskip("cupyx.scipy.sparse")
    own = solver()
    work = cupy.ones((3000, 3000))
    for stream in (cupy.cuda.Stream.null, cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream.ptds):
        with stream:
            slow = work
            for _ in range(5):
                slow = (slow @ work) * 3e-4
            b = cupy.full(N, 2.0) + 0 * slow[0, 0]
            x, report = own.solve(b)
            assert isinstance(x, cupy.ndarray) and report.converged
            assert residual(A, x.get(), np.full(N, 2.0)) <= 1e-8
    several = cupy.random.random((N, 3))
    x, reports = solver(right_hand_sides=3).solve(several)
    for k in range(3):
        assert residual(A, x[:, k].get(), several[:, k].get()) <= 1e-8
    a = sparse.csr_matrix(A)
    x = residua.solve(a, cupy.ones(N))
    assert isinstance(x, cupy.ndarray) and residual(A, x.get(), np.ones(N)) <= 1e-8


def test_jax_through_the_host():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    b = jax.numpy.ones(N, dtype="float64")
    if next(iter(b.devices())).platform != "gpu":
        pytest.skip("JAX sees no GPU")
    x, report = solver().solve(b)
    assert isinstance(x, jax.Array) and next(iter(x.devices())).platform == "gpu" and report.converged
    assert residual(A, np.asarray(x), np.ones(N)) <= 1e-8


def in_child(connection, own):
    try:
        if own is None:
            residua.Solver(A, device="cuda")
        else:
            own.solve(np.ones(N))
        connection.send("no error")
    except RuntimeError as error:
        connection.send(str(error))
    x, report = residua.Solver(A, device="cpu").solve(np.ones(N))
    connection.send(report.converged)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("kept", [True, False])
def test_children_of_fork_get_an_error_for_the_gpu_and_the_cpu(kept):
    own = solver()
    own.solve(np.ones(N))
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe()
    child = fork.Process(target=in_child, args=(there, own if kept else None))
    child.start()
    assert here.poll(60), "the child hangs"
    assert "fork" in here.recv()
    assert here.poll(60) and here.recv() is True
    child.join(20)
    assert child.exitcode == 0
    assert own.solve(np.ones(N))[1].converged
