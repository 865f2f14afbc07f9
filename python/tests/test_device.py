"""The parts of the path to a GPU that can be tested without one; tests/gpu_vectors.py tests the others on a GPU."""

import os
import subprocess
import sys

import numpy as np
import pytest

import residua
from residua import _device, _dlpack


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128, np.int32])
def test_dlpack_tells_where_an_array_lies(dtype):
    for array in (
        np.ones(5, dtype),
        np.ones((4, 3), dtype),
        np.asfortranarray(np.ones((4, 3), dtype)),
        np.ones(20, dtype)[4:],
        np.ones((6, 6), dtype)[1:4, ::2],
    ):
        found = _dlpack.place(array, None)
        assert found.address == array.ctypes.data and found.shape == array.shape and found.dtype == dtype
        assert found.strides == array.strides and found.device == (_dlpack.CPU, 0)
        assert _device.is_packed(found) == array.flags.f_contiguous
    assert not _dlpack.is_on_gpu(np.ones(3)) and not _device.is_on_gpu(np.ones(3))


class OldProducer:
    """A producer of the protocol before version 1.0."""

    def __init__(self, array):
        self.array = array
        self.calls = []

    def __dlpack__(self, stream=None):
        self.calls.append(stream)
        return self.array.__dlpack__()


def test_old_producers_are_asked_without_a_version():
    producer = OldProducer(np.arange(4.0))
    found = _dlpack.place(producer, 1)
    assert found.address == producer.array.ctypes.data and producer.calls == [1]


class OnGpu:
    """An array that claims, by the CUDA array interface, to be on a GPU."""

    def __init__(self, **changes):
        self.__cuda_array_interface__ = {
            "shape": (3,), "typestr": "<f8", "data": (0, False), "version": 3, "strides": None, **changes,
        }  # fmt: skip


def test_the_cuda_array_interface_is_read():
    assert _device.is_on_gpu(OnGpu())
    found = _device._by_interface(OnGpu(shape=(3, 2), typestr="<c16"))
    assert found.strides == (32, 16) and found.dtype == np.complex128
    with pytest.raises(ValueError, match="stream 0"):
        _device._by_interface(OnGpu(stream=0))
    with pytest.raises(ValueError, match="masked"):
        _device._by_interface(OnGpu(mask=OnGpu()))


class Cupyx:
    """A matrix with the attributes by which CuPy's matrices are recognised."""

    __module__ = "cupyx.scipy.sparse"

    def __init__(self, a):
        self.format, self.shape = a.format, a.shape
        self.indptr, self.indices, self.data = (OnGpuByDlpack(array) for array in (a.indptr, a.indices, a.data))


class OnGpuByDlpack:
    """An array on the host that claims to be on a GPU, and records the streams that it is asked for."""

    def __init__(self, array):
        self.array, self.ndim, self.asked = array, array.ndim, []

    def __dlpack_device__(self):
        return (_dlpack.CUDA, 0)

    def __dlpack__(self, stream=None, max_version=None):
        self.asked.append(stream)
        return self.array.__dlpack__()


def test_arrays_are_ordered_behind_our_stream(monkeypatch):
    a = Cupyx(residua.generate("poisson2d", (10, 10)).tocsr())
    called = []

    class Engine:
        @staticmethod
        def on_gpu(*arguments):
            called.append(arguments)
            return "engine"

    monkeypatch.setattr(_device._residua, "stream", lambda ordinal: 4711)
    monkeypatch.setattr(_device._residua, "Engine", Engine)
    monkeypatch.setattr(_device, "release", lambda ordinal, array: called.append(("released", ordinal, array)))
    found = _device.engine(a, "cuda", None, True, {"rtol": 1})
    assert found == ("engine", (100, 100), np.float64, 0)
    assert all(array.asked == [4711] for array in (a.indptr, a.indices, a.data))
    ordinal, layout, shape, first, second, values, dtype, keep, settings = called[0]
    assert (ordinal, layout, shape, dtype, keep) == (0, "csr", (100, 100), "float64", True) and settings == {"rtol": 1}
    assert first == (a.indptr.array.ctypes.data, 101, 32) and values[1:] == (460, 64)
    assert called[1] == ("released", 0, a.data)
    # With another device or another type, the matrix is copied through the host.
    for device, dtype in (("cpu", None), ("cuda:1", None), ("cuda", np.dtype(np.float32))):
        assert _device.engine(a, device, dtype, True, {}) is None
    assert _device.sparse(np.eye(3)) is None and _device.sparse(residua.generate("poisson2d", (3, 3))) is None


class Foreign:
    """An array of an unknown package that claims to be on a GPU."""

    def __init__(self, array):
        self.array, self.shape = array, array.shape

    def __dlpack_device__(self):
        return (_dlpack.CUDA, 0)

    def copy_to_host(self):
        return self.array


def test_vectors_of_a_gpu_go_through_the_host_to_a_solver_on_the_cpu():
    a = residua.generate("poisson2d", (10, 10))
    solver = residua.Solver(a, device="cpu")
    x, report = solver.solve(Foreign(np.ones(100)), x0=Foreign(np.ones(100)))
    assert report.converged and np.linalg.norm(1 - a @ x) <= 1e-7
    x, reports = solver.solve(Foreign(np.ones((100, 3))))
    assert x.shape == (100, 3) and all(each.converged for each in reports)
    assert residua.cg(a, Foreign(np.ones(100)))[1] == 0
    for wrong in (np.ones(9), np.ones((100, 2, 2))):
        with pytest.raises(ValueError, match="is needed"):
            solver.solve(Foreign(wrong))
    with pytest.raises(TypeError, match="host"):
        solver.solve(Foreign(np.ones(100)), out=np.ones(100))


def test_the_interpreters_own_compiler_is_found(tmp_path):
    folder = tmp_path / "nvidia" / "cuda_nvrtc" / "lib"
    folder.mkdir(parents=True)
    (folder / "libnvrtc.so.12").write_bytes(b"")
    environment = {name: value for name, value in os.environ.items() if name != "RESIDUA_NVRTC"}
    path = f"import sys; sys.path.insert(0, {str(tmp_path)!r})"
    code = f"{path}; from residua import _device; print(_device.find_compiler())"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(folder)
    solver = tmp_path / "nvidia" / "cu13" / "lib"
    solver.mkdir(parents=True)
    (solver / "libcudss.so.0").write_bytes(b"")
    told = f"{code}; import os; print(os.environ['RESIDUA_CUDSS'])"
    environment.pop("RESIDUA_CUDSS", None)
    done = subprocess.run([sys.executable, "-c", told], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(folder), str(solver)]
    done = subprocess.run(
        [sys.executable, "-c", code], env={**environment, "RESIDUA_NVRTC": "/set"}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "/set"


def test_the_interpreters_own_factorisations_are_found(tmp_path):
    folder = tmp_path / "nvidia" / "cu13" / "lib"
    folder.mkdir(parents=True)
    (folder / "libcudss.so.1").write_bytes(b"")
    environment = {name: value for name, value in os.environ.items() if name != "RESIDUA_CUDSS"}
    path = f"import os, sys; sys.path.insert(0, {str(tmp_path)!r})"
    code = f"{path}; from residua import _device; _device.find_compiler(); print(os.environ['RESIDUA_CUDSS'])"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(folder)


torch = None
try:
    import torch
except ImportError:
    pass


@pytest.mark.skipif(torch is None, reason="torch is not installed")
def test_matrices_of_torch_on_the_host():
    a = residua.generate("poisson2d", (10, 10))
    csr = torch.sparse_csr_tensor(
        torch.from_numpy(a.indptr), torch.from_numpy(a.indices), torch.from_numpy(a.data), size=a.shape
    )
    b = np.ones(100)
    for matrix in (csr, csr.to_sparse_csc(), csr.to_sparse_coo(), csr.to_dense()):
        x = residua.solve(matrix, torch.from_numpy(b), rtol=1e-10)
        assert np.linalg.norm(b - a @ np.asarray(x)) <= 1e-9
