"""cuSPARSE's ILU(0) and triangular solves (SpSV), and CuPy's gmres with its spilu, on the matrices of `ilu_device`.

    python3 benches/peers/ilu_gpu.py CASE...      cases as for `cargo bench --bench ilu_device`

cuSPARSE is called directly, because CuPy has no SpSV. Figures are the fastest of several runs, in milliseconds.
"""

import ctypes
import glob
import sys
import time

import cupy as cp
import cupyx.scipy.sparse as cs
import cupyx.scipy.sparse.linalg as cl
import numpy as np
import scipy.io
import scipy.sparse as sp

for name in ["libcusparse.so.12", "libcusparse.so"] + glob.glob("/usr/local/cuda*/lib64/libcusparse.so*"):
    try:
        lib = ctypes.CDLL(name)
        break
    except OSError:
        continue
I32, I64, F64, BASE0, HOST_MODE = 2, 3, 1, 0, 0
P = ctypes.c_void_p


def call(name, *arguments):
    status = getattr(lib, name)(*arguments)
    if status != 0:
        raise RuntimeError(f"{name}: status {status}")


handle = P()
call("cusparseCreate", ctypes.byref(handle))


def address(array):
    return P(array.data.ptr)


def fastest(run, runs):
    best = float("inf")
    for _ in range(runs):
        cp.cuda.Device().synchronize()
        start = time.perf_counter()
        run()
        cp.cuda.Device().synchronize()
        best = min(best, time.perf_counter() - start)
    return best * 1e3


def ilu0(a):
    """Replaces the values by the factors, with csrilu02."""
    n, nnz = a.shape[0], a.nnz
    descr, info, size = P(), P(), ctypes.c_int()
    call("cusparseCreateMatDescr", ctypes.byref(descr))
    call("cusparseCreateCsrilu02Info", ctypes.byref(info))
    arguments = (handle, n, nnz, descr, address(a.data), address(a.indptr), address(a.indices), info)
    call("cusparseDcsrilu02_bufferSize", *arguments, ctypes.byref(size))
    buffer = cp.empty(size.value, cp.uint8)
    call("cusparseDcsrilu02_analysis", *arguments, 1, address(buffer))
    values = a.data.copy()

    def factorise():
        a.data[:] = values
        call("cusparseDcsrilu02", *arguments, 1, address(buffer))

    return fastest(factorise, 3)


def triangle(a, lower, x, y):
    """(analysis, solve) of one triangle by SpSV."""
    n = a.shape[0]
    matrix, dense_x, dense_y, descr, size = P(), P(), P(), P(), ctypes.c_size_t()
    call(
        "cusparseCreateCsr",
        ctypes.byref(matrix),
        ctypes.c_int64(n),
        ctypes.c_int64(n),
        ctypes.c_int64(a.nnz),
        address(a.indptr),
        address(a.indices),
        address(a.data),
        I32,
        I32,
        BASE0,
        F64,
    )
    for attribute, value in ((0, 0 if lower else 1), (1, 1 if lower else 0)):  # fill mode, diagonal type
        word = ctypes.c_int(value)
        call("cusparseSpMatSetAttribute", matrix, attribute, ctypes.byref(word), ctypes.c_size_t(4))
    call("cusparseCreateDnVec", ctypes.byref(dense_x), ctypes.c_int64(n), address(x), F64)
    call("cusparseCreateDnVec", ctypes.byref(dense_y), ctypes.c_int64(n), address(y), F64)
    call("cusparseSpSV_createDescr", ctypes.byref(descr))
    one = ctypes.c_double(1.0)
    arguments = (handle, 0, ctypes.byref(one), matrix, dense_x, dense_y, F64, 0, descr)
    call("cusparseSpSV_bufferSize", *arguments, ctypes.byref(size))
    buffer = cp.empty(max(size.value, 1), cp.uint8)
    analysis = fastest(lambda: call("cusparseSpSV_analysis", *arguments, address(buffer)), 1)
    return analysis, fastest(lambda: call("cusparseSpSV_solve", *arguments), 20)


def grid(sizes, diffusion=None):
    """5 or 7 points; with a diffusion also a wind of speed 1 along each axis, upwind. Only the pattern matters here."""

    def line(k):
        return sp.diags([-np.ones(k - 1), 2 * np.ones(k), -np.ones(k - 1)], [-1, 0, 1], format="csr")

    total = None
    for axis, k in enumerate(sizes):
        one = line(k)
        if diffusion is not None:
            h = 1 / (k + 1)
            one = diffusion * one + h * sp.diags([-np.ones(k - 1), np.ones(k)], [-1, 0], format="csr")
        parts = [sp.identity(s, format="csr") for s in sizes]
        parts[axis] = one
        term = parts[0]
        for part in parts[1:]:
            term = sp.kron(term, part, format="csr")
        total = term if total is None else total + term
    return total.tocsr()


def read(name):
    words = name.split(":")
    if words[0] == "wind":
        return grid([int(words[1])] * 3, float(words[2]))
    if name.endswith(".mtx"):
        a = scipy.io.mmread(words[-1]).tocsr()
        if words[0] == "windy":
            a = (sp.tril(a) + 0.5 * sp.triu(a, 1)).tocsr()
        return a
    return grid([int(k) for k in name.split("x")])


print(cp.cuda.runtime.getDeviceProperties(0)["name"].decode(), "cuSPARSE", lib._name)
for name in sys.argv[1:]:
    host = read(name)
    host.sort_indices()
    a = cs.csr_matrix(host)
    a.indptr, a.indices = a.indptr.astype(cp.int32), a.indices.astype(cp.int32)
    values = a.data.copy()
    factor = ilu0(a)
    n = a.shape[0]
    x, y = cp.random.rand(n), cp.zeros(n)
    lower, upper = triangle(a, True, x, y), triangle(a, False, x, y)
    print(
        f"{name}: csrilu02 {factor:.2f} ms, SpSV analysis {lower[0]:.2f} + {upper[0]:.2f}, "
        f"solve {lower[1]:.3f} + {upper[1]:.3f} = {lower[1] + upper[1]:.3f}",
        flush=True,
    )
    a.data[:] = values
    if len(name.split(":")) > 1 and n <= 300_000:
        true = cp.random.rand(n) - 0.5
        b = a @ true
        start = time.perf_counter()
        ilu = cl.spilu(a.tocsc(), drop_tol=1e-3, fill_factor=5)
        done = time.perf_counter()
        m = cl.LinearOperator(a.shape, ilu.solve)
        got, info = cl.gmres(a, b, rtol=1e-8, restart=30, maxiter=3000, M=m)
        cp.cuda.Device().synchronize()
        end = time.perf_counter()
        left = float(cp.linalg.norm(b - a @ got) / cp.linalg.norm(b))
        print(
            f"{name}: CuPy spilu {1e3 * (done - start):.1f} ms, gmres {1e3 * (end - done):.1f}, info {info}, {left:.1e}"
        )
