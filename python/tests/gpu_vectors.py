"""Tests on a machine with an NVIDIA GPU: `python -m pytest python/tests/gpu_vectors.py`. CuPy, torch and JAX are tested
if they are installed. Slow work is queued on a separate stream before each solve."""

import multiprocessing

import numpy as np
import pytest

import residua
from residua import _device, _matrix
from systems import DTYPES, residual, tolerance

GPUS = [device for device in residua.devices() if device["name"].startswith("cuda")]
pytestmark = pytest.mark.skipif(not GPUS, reason="no GPU here")

A = residua.generate("poisson2d", (60, 60))
N = A.shape[0]


def solver(dtype=np.float64, **settings):
    return residua.Solver(A.astype(dtype), device="cuda", **settings)


def test_vectors_of_the_host():
    for dtype in DTYPES:
        # b is not all ones: x would then be so large that rounding it to single precision leaves a residual above the
        # tolerance.
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


def test_jax_where_it_lies(monkeypatch):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    if next(iter(jax.numpy.ones(1).devices())).platform != "gpu":
        pytest.skip("JAX sees no GPU")
    work = jax.numpy.ones((3000, 3000))
    right = np.random.default_rng(0).standard_normal((N, 3))
    with monkeypatch.context() as patch:
        patch.setattr(_device, "to_host", lambda _: pytest.fail("a vector went through the host"))
        solved = []
        for dtype in DTYPES:
            slow = work
            for _ in range(5):
                slow = (slow @ work) * 3e-4
            b = jax.numpy.asarray((A @ right[:, 0]).astype(dtype)) + 0 * slow[0, 0].astype(dtype)
            x, report = solver(dtype).solve(b)
            assert isinstance(x, jax.Array) and next(iter(x.devices())).platform == "gpu" and x.dtype == dtype
            solved.append((dtype, b, x, report, 2 * x))
        several = jax.numpy.asarray(right)
        own = solver(right_hand_sides=3)
        many, reports = own.solve(several)
        kept = [own.solve(several * k)[0] for k in range(1, 30)]  # solutions stay what they are when others come
    for dtype, b, x, report, twice in solved:
        assert report.converged and residual(A, np.asarray(x), np.asarray(b)) <= 1.05 * tolerance(dtype)
        assert np.array_equal(np.asarray(twice), 2 * np.asarray(x))
    assert many.shape == (N, 3) and all(report.converged for report in reports)
    for k in range(3):
        assert residual(A, np.asarray(many)[:, k], right[:, k]) <= 1e-8
    for k, x in enumerate(kept, 1):
        assert residual(A, np.asarray(x)[:, 0], k * right[:, 0]) <= 1e-8
    x, report = own.solve(several[:, 0], x0=jax.numpy.ones(N))  # by way of the host
    assert report.converged and next(iter(x.devices())).platform == "gpu"


def test_what_is_lent_is_freed():
    for taken in (False, True):
        for _ in range(20):
            lent = residua._residua.Lent(0, 1000, "float64")
            assert lent.__dlpack_device__() == (2, 0) and lent.address % 256 == 0
            if taken:
                capsule = lent.__dlpack__(stream=1, max_version=(1, 0))
                with pytest.raises(BufferError, match="exported already"):
                    lent.__dlpack__()
                del capsule
            del lent
    with pytest.raises(TypeError, match="int32"):
        residua._residua.Lent(0, 10, "int32")


@pytest.fixture
def nothing_through_the_host(monkeypatch):
    def refuse(*_):
        raise AssertionError("a matrix went through the host")

    monkeypatch.setattr(_matrix, "arrays_of", refuse)
    monkeypatch.setattr(_matrix, "values_of", refuse)


RIGHT = A @ np.random.default_rng(0).standard_normal(N)


def check_matrix(matrix, ones, values, dtype=np.float64):
    """Solves with a matrix on the GPU, and again with two and three times its values; `values` are its own."""
    own = residua.Solver(matrix, updates=True, rtol=tolerance(dtype))
    assert not own.device.startswith("cpu") and own.shape == A.shape and own.dtype == dtype
    given = ones.get() if hasattr(ones, "get") else np.asarray(ones.cpu() if hasattr(ones, "cpu") else ones)
    for factor in (1, 2, 3):
        if factor > 1:
            own.update(factor * values)
        x, report = own.solve(ones)
        x = x.get() if hasattr(x, "get") else np.asarray(x.cpu() if hasattr(x, "cpu") else x)
        assert report.converged and residual(factor * A, x, given) <= 1.05 * tolerance(dtype)


def test_matrices_of_cupy_where_they_lie(nothing_through_the_host):
    cupy = pytest.importorskip("cupy")
    sparse = pytest.importorskip("cupyx.scipy.sparse")
    for dtype in DTYPES:
        csr = sparse.csr_matrix(A.astype(dtype))
        for matrix in (csr, csr.tocsc(), csr.tocoo()):
            check_matrix(matrix, cupy.asarray(RIGHT.astype(dtype)), matrix.data, dtype)
    # Unsorted rows, and each position given twice.
    coo = A.tocoo()
    order = np.random.default_rng(0).permutation(2 * coo.nnz)
    rows, columns = np.tile(coo.row, 2)[order], np.tile(coo.col, 2)[order]
    halves = np.tile(coo.data, 2)[order] / 2
    twice = sparse.coo_matrix((cupy.asarray(halves), (cupy.asarray(rows), cupy.asarray(columns))), shape=A.shape)
    check_matrix(twice, cupy.ones(N), twice.data)
    wrong = sparse.csr_matrix(A)
    wrong.indices = wrong.indices.copy()
    wrong.indices[5] = N + 3
    with pytest.raises(ValueError, match=f"column {N + 3}"):
        residua.Solver(wrong)
    # Dense arrays and other formats are converted to CSR on the GPU, or copied through the host.
    check_matrix(sparse.dia_matrix(A.todia()), cupy.ones(N), sparse.csr_matrix(A).data)


def test_matrices_of_torch_where_they_lie(nothing_through_the_host):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU")
    ones = torch.ones(N, dtype=torch.float64, device="cuda")
    for kind in (torch.int32, torch.int64):
        csr = torch.sparse_csr_tensor(
            torch.from_numpy(A.indptr).to(kind), torch.from_numpy(A.indices).to(kind), torch.from_numpy(A.data),
            size=A.shape,
        ).cuda()  # fmt: skip
        check_matrix(csr, ones, csr.values())
    coo = csr.to_sparse_coo()
    check_matrix(coo, ones, coo._values())
    # With an odd number of entries, the columns begin at an address that is a multiple of 8 but not of 16.
    places = torch.cat([coo._indices(), torch.zeros((2, 1), dtype=torch.int64, device="cuda")], 1)
    odd = torch.sparse_coo_tensor(places, torch.cat([coo._values(), torch.zeros_like(ones[:1])]), size=A.shape)
    assert places[1].data_ptr() % 16 == 8
    check_matrix(odd, ones, odd._values())
    csc = csr.to_sparse_csc()
    check_matrix(csc, ones, csc.values())
    learnt = csr.values().clone().requires_grad_()
    check_matrix(torch.sparse_csr_tensor(csr.crow_indices(), csr.col_indices(), learnt, size=A.shape), ones, learnt)


def test_matrices_of_jax_where_they_lie(nothing_through_the_host):
    jax = pytest.importorskip("jax")
    sparse = pytest.importorskip("jax.experimental.sparse")
    jax.config.update("jax_enable_x64", True)
    ones = jax.numpy.ones(N, dtype="float64")
    if next(iter(ones.devices())).platform != "gpu":
        pytest.skip("JAX sees no GPU")
    bcsr = sparse.BCSR.from_scipy_sparse(A.tocsr())
    check_matrix(bcsr, ones, bcsr.data)
    bcoo = sparse.BCOO.from_scipy_sparse(A.tocoo())
    check_matrix(bcoo, ones, bcoo.data)


def test_new_values_behind_a_slow_producer(nothing_through_the_host):
    cupy = pytest.importorskip("cupy")
    sparse = pytest.importorskip("cupyx.scipy.sparse")
    matrix = sparse.csr_matrix(A)
    work = cupy.ones((3000, 3000))
    with cupy.cuda.Stream(non_blocking=True):
        own = residua.Solver(matrix, updates=True)
        values, b = cupy.zeros_like(matrix.data), cupy.zeros(N)
        for factor in (2.0, 3.0, 4.0):
            slow = work
            for _ in range(10):
                slow = (slow @ work) * 3e-4
            values[:] = factor * matrix.data + 0 * slow[0, 0]
            b[:] = factor
            own.update(values)
            values[:] = 0  # what was handed over has been read before this is done
            x, report = own.solve(b)
            b[:] = -1
            assert report.converged and residual(A, x.get(), np.ones(N)) <= 1e-8


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
