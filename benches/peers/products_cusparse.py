"""cuSPARSE's products through ctypes: CSR (both algorithms), COO, SELL and SpMM.

    python3 benches/peers/products_cusparse.py MATRIX.mtx[.gz] [COPIES]     times all but SpMM with a matrix from a file

The measurements of `residua bench MATRIX.mtx --device cuda` with cuSPARSE: medians of replays of captured graphs,
vectors of ones. Needs CuPy and SciPy.
"""

import ctypes, sys

import numpy as np

from kernels_gpu import F, cp
from products_kernels import pad_columns, to_sell


class Cusparse:
    F = {"f32": 0, "f64": 1}

    def __init__(self):
        for name in (
            "libcusparse.so.12",
            "libcusparse.so.13",
            "libcusparse.so",
            "/usr/local/cuda/lib64/libcusparse.so",
        ):
            try:
                self.lib = ctypes.CDLL(name)
                break
            except OSError:
                continue
        self.handle = ctypes.c_void_p()
        self.ok(self.lib.cusparseCreate(ctypes.byref(self.handle)))
        self.kept = []

    def ok(self, code):
        if code:
            raise RuntimeError(f"cusparse {code}")

    def on(self, stream):
        self.ok(self.lib.cusparseSetStream(self.handle, ctypes.c_void_p(stream.ptr)))

    def vec(self, x, t):
        d = ctypes.c_void_p()
        self.ok(
            self.lib.cusparseCreateDnVec(
                ctypes.byref(d), ctypes.c_int64(x.size), ctypes.c_void_p(x.data.ptr), self.F[t]
            )
        )
        return d

    def scalars(self, t):
        c = ctypes.c_float if t == "f32" else ctypes.c_double
        return ctypes.byref(c(1)), ctypes.byref(c(0))

    def csr(self, a, t):
        d, p = ctypes.c_void_p(), lambda v: ctypes.c_void_p(v.data.ptr)
        n = ctypes.c_int64
        self.ok(
            self.lib.cusparseCreateCsr(
                ctypes.byref(d),
                n(a.rows),
                n(a.columns),
                n(a.nnz),
                p(a.offsets),
                p(a.indices),
                p(a.values[t]),
                2,
                2,
                0,
                self.F[t],
            )
        )
        return d

    def products(self, a, t, x, y):
        """(name, function) for each algorithm."""
        p, n = lambda v: ctypes.c_void_p(v.data.ptr), ctypes.c_int64
        for name, algorithm in (("csr1", 2), ("csr2", 3)):
            yield name, self.product(self.csr(a, t), algorithm, t, x, y)
        rows = (
            cp.searchsorted(a.offsets.astype(np.int64), cp.arange(a.nnz, dtype=np.int64), side="right").astype(np.int32)
            - 1
        )
        d = ctypes.c_void_p()
        self.ok(
            self.lib.cusparseCreateCoo(
                ctypes.byref(d),
                n(a.rows),
                n(a.columns),
                n(a.nnz),
                p(rows),
                p(a.indices),
                p(a.values[t]),
                2,
                0,
                self.F[t],
            )
        )
        yield "coo1", self.product(d, 1, t, x, y, keep=rows)
        del rows
        cp.get_default_memory_pool().free_all_blocks()
        s = to_sell(a, t, 32)
        if s is not None:
            offsets, lengths, columns, values = s
            d = ctypes.c_void_p()
            offsets, columns = offsets.astype(np.int32), columns.view(np.int32)
            pad_columns(a, offsets, columns, 32)
            self.ok(
                self.lib.cusparseCreateSlicedEll(
                    ctypes.byref(d),
                    n(a.rows),
                    n(a.columns),
                    n(a.nnz),
                    n(values.size),
                    n(32),
                    p(offsets),
                    p(columns),
                    p(values),
                    2,
                    2,
                    0,
                    self.F[t],
                )
            )
            yield "sell32", self.product(d, 5, t, x, y, keep=(offsets, columns, values))

    def product(self, d, algorithm, t, x, y, keep=None):
        one, zero = self.scalars(t)
        dx, dy, size = self.vec(x, t), self.vec(y, t), ctypes.c_size_t()
        # The arrays were made on another stream, and the library reads them at once.
        cp.cuda.Device().synchronize()
        args = (self.handle, 0, one, d, dx, zero, dy, self.F[t], algorithm)
        self.ok(self.lib.cusparseSpMV_bufferSize(*args, ctypes.byref(size)))
        buffer = cp.empty(max(size.value, 1), np.uint8)
        b = ctypes.c_void_p(buffer.data.ptr)
        self.lib.cusparseSpMV_preprocess(*args, b)

        def run(_keep=(keep, buffer)):
            self.ok(self.lib.cusparseSpMV(*args, b))

        return run

    def block_products(self, a, t, x, y, columns):
        """SpMM with row-major and column-major blocks, by each algorithm."""
        n = ctypes.c_int64
        one, zero = self.scalars(t)
        for order_name, order in (("rows", 2), ("columns", 1)):
            lx, ly = (columns, columns) if order == 2 else (a.columns, a.rows)
            dx, dy = ctypes.c_void_p(), ctypes.c_void_p()
            self.ok(
                self.lib.cusparseCreateDnMat(
                    ctypes.byref(dx), n(a.columns), n(columns), n(lx), ctypes.c_void_p(x.data.ptr), self.F[t], order
                )
            )
            self.ok(
                self.lib.cusparseCreateDnMat(
                    ctypes.byref(dy), n(a.rows), n(columns), n(ly), ctypes.c_void_p(y.data.ptr), self.F[t], order
                )
            )
            for name, algorithm in (("1", 4), ("2", 6), ("3", 12)):
                d = self.csr(a, t)
                args, size = (self.handle, 0, 0, one, d, dx, zero, dy, self.F[t], algorithm), ctypes.c_size_t()
                try:
                    self.ok(self.lib.cusparseSpMM_bufferSize(*args, ctypes.byref(size)))
                    buffer = cp.empty(max(size.value, 1), np.uint8)
                    b = ctypes.c_void_p(buffer.data.ptr)
                    self.lib.cusparseSpMM_preprocess(*args, b)
                    self.ok(self.lib.cusparseSpMM(*args, b))
                except RuntimeError:
                    continue

                def run(args=args, b=b, keep=buffer):
                    self.ok(self.lib.cusparseSpMM(*args, b))

                yield f"spmm-{order_name}-alg{name}", run


def main():
    """Times each algorithm with a matrix from a file, repeated along the diagonal."""
    import scipy.io, scipy.sparse

    from products_gpu import copy_speed, timed
    from products_matrices import Matrix

    a = scipy.io.mmread(sys.argv[1]).tocsr()
    a = scipy.sparse.kron(scipy.sparse.identity(int(sys.argv[2])), a, format="csr") if len(sys.argv) > 2 else a
    a.sort_indices()
    stream, peer = cp.cuda.Stream(non_blocking=True), Cusparse()
    peer.on(stream)
    m = Matrix(sys.argv[1], *a.shape, *(cp.asarray(part) for part in (a.indptr, a.indices, a.data.astype(np.float64))))
    print(f"{m.name}: {m.rows} x {m.columns}, {m.nnz} nonzeros; copy {copy_speed(stream):.0f} GB/s; microseconds")
    for t in Cusparse.F:
        x, y = cp.ones(m.columns, F[t]), cp.zeros(m.rows, F[t])
        print(t, *(f"{name} {timed(run, stream) * 1e3:.2f}" for name, run in peer.products(m, t, x, y)), flush=True)


if __name__ == "__main__":
    main()
