"""Sparse matrix-vector products of MKL (inspector-executor interface, called directly) and SciPy.

    python benches/peers/products.py [poisson:160 box:100 elastic:50 ...] [--threads 2] [--seconds 1.5]

Needs numpy, scipy and mkl (libmkl_rt). Prints one line per package: best and median time, GB/s on compulsory bytes
(matrix with 32-bit indices once, x once, y once), and the copy bandwidth of this machine (bytes read plus bytes
written).
"""

import argparse
import ctypes
import glob
import os
import sys
import threading
import time

import numpy as np
import scipy.sparse as sp


def poisson3d(n):
    """7-point stencil on n^3 points."""
    one = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(n, n), format="csr")
    eye = sp.identity(n, format="csr")
    plane = sp.kron(one, eye, format="csr") + sp.kron(eye, one, format="csr")
    a = sp.kron(eye, plane, format="csr") + sp.kron(one, sp.identity(n * n, format="csr"), format="csr")
    return a


def box(n):
    """27-point stencil on n^3 points."""
    band = sp.diags([1.0, 1.0, 1.0], [-1, 0, 1], shape=(n, n), format="csr")
    return (27.0 * sp.identity(n**3, format="csr") - sp.kron(sp.kron(band, band), band, format="csr")).tocsr()


def elastic(n):
    """The pattern of trilinear elasticity on n^3 elements: 27 neighbours, blocks of 3 x 3."""
    return sp.kron(box(n + 1), np.full((3, 3), 0.5), format="csr")


MATRICES = {"poisson": poisson3d, "box": box, "elastic": elastic}


def timed(body, seconds):
    body()
    times, start = [], time.perf_counter()
    while time.perf_counter() - start < seconds or len(times) < 5:
        t = time.perf_counter()
        body()
        times.append(time.perf_counter() - t)
    return min(times), float(np.median(times))


def copy_bandwidth(threads, seconds):
    """GB/s, read plus written, of `threads` threads that copy 512 MB."""
    n = 1 << 26
    a, b = np.ones(n), np.zeros(n)
    bounds = np.linspace(0, n, threads + 1).astype(int)

    def body():
        parts = [threading.Thread(target=np.copyto, args=(b[i:j], a[i:j])) for i, j in zip(bounds[:-1], bounds[1:])]
        [t.start() for t in parts]
        [t.join() for t in parts]

    return 16e-9 * n / timed(body, seconds)[1]


class MatrixDescription(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("mode", ctypes.c_int), ("diag", ctypes.c_int)]


def mkl_library():
    places = [os.environ.get("MKL_RT", ""), os.path.join(sys.prefix, "lib", "libmkl_rt.so*")]
    for place in places:
        for path in sorted(glob.glob(place)):
            return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL("libmkl_rt.so")


class Mkl:
    def __init__(self, a, optimize):
        self.lib = mkl_library()
        self.a = a
        self.handle = ctypes.c_void_p()
        self.description = MatrixDescription(20, 0, 0)  # SPARSE_MATRIX_TYPE_GENERAL
        pointer = lambda v: v.ctypes.data_as(ctypes.c_void_p)
        starts = a.indptr
        real = a.data.dtype == np.float64
        create = self.lib.mkl_sparse_d_create_csr if real else self.lib.mkl_sparse_s_create_csr
        self.mv = self.lib.mkl_sparse_d_mv if real else self.lib.mkl_sparse_s_mv
        self.scalar = ctypes.c_double if real else ctypes.c_float
        status = create(
            ctypes.byref(self.handle),
            0,
            ctypes.c_int(a.shape[0]),
            ctypes.c_int(a.shape[1]),
            pointer(starts),
            ctypes.c_void_p(starts.ctypes.data + 4),
            pointer(a.indices),
            pointer(a.data),
        )
        assert status == 0, f"create: {status}"
        if optimize:
            status = self.lib.mkl_sparse_set_mv_hint(self.handle, 10, self.description, ctypes.c_int(1000))
            assert status == 0, f"hint: {status}"
            status = self.lib.mkl_sparse_optimize(self.handle)
            assert status == 0, f"optimize: {status}"

    def __call__(self, x, y):
        status = self.mv(
            10,
            self.scalar(1.0),
            self.handle,
            self.description,
            x.ctypes.data_as(ctypes.c_void_p),
            self.scalar(0.0),
            y.ctypes.data_as(ctypes.c_void_p),
        )
        assert status == 0, f"mv: {status}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("matrices", nargs="*", default=["poisson:160", "elastic:50"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--single", action="store_true", help="values in f32")
    options = parser.parse_args()
    os.environ["MKL_NUM_THREADS"] = str(options.threads)
    copy = copy_bandwidth(options.threads, options.seconds)
    print(f"copy {copy:.1f} GB/s ({options.threads} threads)")
    for name in options.matrices:
        kind, size = name.split(":")
        a = MATRICES[kind](int(size)).tocsr()
        a.sort_indices()
        if options.single:
            a = a.astype(np.float32)
        x = (np.arange(a.shape[1]) % 100).astype(a.dtype)
        y = np.zeros(a.shape[0], a.dtype)
        width = a.dtype.itemsize
        compulsory = a.nnz * (4 + width) + 4 * (a.shape[0] + 1) + width * sum(a.shape)
        expected = a @ x
        for label, make in [
            ("mkl", lambda: Mkl(a, False)),
            ("mkl, optimized", lambda: Mkl(a, True)),
            ("scipy", lambda: None),
        ]:
            product = make()
            if product is None:
                best, median = timed(lambda: a @ x, options.seconds)
            else:
                best, median = timed(lambda: product(x, y), options.seconds)
                assert np.allclose(y, expected, rtol=1e-4)
            print(
                f"{name:>12} {a.dtype} {a.nnz} nonzeros  {label:<15} best {best * 1e3:7.2f} ms  "
                f"median {median * 1e3:7.2f} ms  {compulsory / median * 1e-9:5.1f} GB/s  {compulsory / median * 1e-9 / copy:.2f} of copy"
            )


if __name__ == "__main__":
    main()
