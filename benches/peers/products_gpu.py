"""Checks and times the products of kernels/ on one GPU without any Rust, beside cuSPARSE in the same process.

    python3 benches/peers/products_gpu.py check            every kernel against compensated sums on ragged shapes
    python3 benches/peers/products_gpu.py bench [CASE ...]  beside cuSPARSE's CSR (both algorithms), COO and SELL-32
    python3 benches/peers/products_gpu.py blocks [CASE ...] several vectors at once beside SpMM
    python3 benches/peers/products_gpu.py tune [CASE ...]   sweeps the constants

Needs CuPy. Matrices are made on the GPU. Each time is the median of replays of a captured graph (of 20 products where one takes
under 50 us), so that neither side pays for Python; shares are of the copy bandwidth measured first.
"""
import argparse, ctypes, os, subprocess, sys, time, traceback

import numpy as np

from kernels_gpu import *

TYPES = ["f64", "f32"]
F = {"f32": np.float32, "f64": np.float64}


# ---- matrices ----------------------------------------------------------------------------------------------------------
class Matrix:
    def __init__(self, name, rows, columns, offsets, indices, values=None):
        self.name, self.rows, self.columns = name, rows, columns
        self.offsets, self.indices = offsets.astype(np.uint32), indices.astype(np.uint32)
        self.nnz = indices.size
        if values is None:
            values = cp.random.default_rng(3).random(self.nnz) + 0.5
        self.values = {"f64": values, "f32": values.astype(np.float32)}
        self.lengths = self.offsets[1:] - self.offsets[:-1] if rows else cp.zeros(0, np.uint32)

    def shape(self, group=32):
        """Longest row, and nonzeros of the fullest group of rows."""
        if not self.rows:
            return 0, 0
        at = cp.minimum(cp.arange(0, self.rows + group, group), self.rows)
        o = self.offsets[at].astype(np.int64)
        return int(self.lengths.max()), int((o[1:] - o[:-1]).max())

    def bytes(self, value, vector):
        return self.nnz * (SIZE[value] + 4) + (self.rows + 1) * 4 + (self.rows + self.columns) * SIZE[vector]


def stencil(name, nx, ny, nz, box):
    n = nx * ny * nz
    i = cp.arange(n, dtype=np.int32)
    X, Y, Z = i % nx, i // nx % ny, i // (nx * ny)
    steps = [(dx, dy, dz) for dz in (-1, 0, 1) for dy in (-1, 0, 1) for dx in (-1, 0, 1)]
    steps = [s for s in steps if (nz > 1 or s[2] == 0) and (box or sum(map(abs, s)) <= 1)]
    inside, cols = cp.empty((n, len(steps)), bool), cp.empty((n, len(steps)), np.int32)
    for k, (dx, dy, dz) in enumerate(steps):
        inside[:, k] = (X + dx >= 0) & (X + dx < nx) & (Y + dy >= 0) & (Y + dy < ny) & (Z + dz >= 0) & (Z + dz < nz)
        cols[:, k] = i + dx + dy * nx + dz * nx * ny
    counts = inside.sum(axis=1)
    offsets = cp.concatenate([cp.zeros(1, np.int64), cp.cumsum(counts)])
    return Matrix(name, n, n, offsets, cols[inside])


def from_keys(name, n, keys):
    keys = cp.unique(keys)
    rows, cols = keys // n, keys % n
    offsets = cp.concatenate([cp.zeros(1, np.int64), cp.cumsum(cp.bincount(rows.astype(np.int64), minlength=n))])
    return Matrix(name, n, n, offsets, cols)


def rmat(scale, factor):
    n = 1 << scale
    rng = cp.random.default_rng(7)
    r, c = cp.zeros(n * factor, np.uint64), cp.zeros(n * factor, np.uint64)
    for _ in range(scale):
        u = rng.random(n * factor, dtype=np.float32)
        r = r * 2 + (u >= 0.76)
        c = c * 2 + (((u >= 0.57) & (u < 0.76)) | (u >= 0.95))
    return from_keys(f"rmat{scale}x{factor}", n, r.astype(np.uint64) * n + c.astype(np.uint64))


def random16(n):
    c = cp.sort(cp.random.default_rng(11).integers(0, n, (n, 16)), axis=1)
    return Matrix(f"random{n}x16", n, n, cp.arange(n + 1, dtype=np.int64) * 16, c.ravel())


def elasticity(side):
    a = stencil("", side, side, side, True)
    lengths = cp.repeat(a.lengths.astype(np.int64) * 3, 3)
    offsets = cp.concatenate([cp.zeros(1, np.int64), cp.cumsum(lengths)])
    # Row 3 i + d has the columns 3 j + 0, 1, 2 for each j of row i.
    e = cp.arange(int(offsets[-1]), dtype=np.int64)
    row = cp.searchsorted(offsets, e, side="right") - 1
    within = e - offsets[row]
    j = a.indices[(a.offsets[row // 3].astype(np.int64) + within // 3)].astype(np.int64)
    return Matrix(f"elasticity{side}^3", 3 * a.rows, 3 * a.rows, offsets, 3 * j + within % 3)


def with_lengths(name, columns, lengths, seed):
    lengths = np.minimum(np.asarray(lengths, np.int64), columns)
    rng = np.random.default_rng(seed)
    pieces = [np.sort(rng.choice(columns, l, replace=False)) if l < 2000 else np.arange(l) for l in lengths]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Matrix(name, len(lengths), columns, cp.asarray(offsets), cp.asarray(np.concatenate(pieces + [np.zeros(0, np.int64)]).astype(np.int64)))


def by_diagonals(name, rows, columns, distances):
    """Every fifth entry is missing."""
    lines = [[i + d for d in distances if 0 <= i + d < columns and (4 * i + d) % 5 != 4] for i in range(rows)]
    offsets = np.concatenate([[0], np.cumsum([len(line) for line in lines])]).astype(np.int64)
    return Matrix(name, rows, columns, cp.asarray(offsets), cp.asarray(np.concatenate(lines).astype(np.int64)))


def arrow(n):
    """Diagonal, first column and first row full."""
    i = cp.arange(1, n, dtype=np.int64)
    cols = cp.concatenate([cp.arange(n, dtype=np.int64), cp.stack([0 * i, i], axis=1).ravel()])
    return Matrix(f"arrow{n}", n, n, cp.concatenate([cp.zeros(1, np.int64), n + 2 * cp.arange(n, dtype=np.int64)]), cols)


def one_long(n, long):
    """Three a row, and one row of `long` in the middle."""
    i = cp.arange(n, dtype=np.int64)
    lengths = cp.full(n, 3, np.int64)
    lengths[n // 2] = long
    offsets = cp.concatenate([cp.zeros(1, np.int64), cp.cumsum(lengths)])
    short = cp.clip(cp.stack([i - 1, i, i + 1], axis=1), 0, n - 1)
    before, behind = short[: n // 2].ravel(), short[n // 2 + 1 :].ravel()
    return Matrix(f"one row of {long}", n, n, offsets, cp.concatenate([before, cp.arange(long) * (n // long), behind]))


CASES = {
    "5pt": lambda: stencil("5-point 4096^2", 4096, 4096, 1, False),
    "7pt": lambda: stencil("7-point 256^3", 256, 256, 256, False),
    "9pt": lambda: stencil("9-point 3000^2", 3000, 3000, 1, True),
    "27pt": lambda: stencil("27-point 160^3", 160, 160, 160, True),
    "elast": lambda: elasticity(64),
    "rmat": lambda: rmat(21, 16),
    "random": lambda: random16(2_000_000),
    "arrow": lambda: arrow(1_000_000),
    "long": lambda: one_long(2_000_000, 1_000_000),
    "1e4": lambda: stencil("5-point 45^2", 45, 45, 1, False),
    "1e5": lambda: stencil("5-point 142^2", 142, 142, 1, False),
    "1e6": lambda: stencil("5-point 447^2", 447, 447, 1, False),
    "1e6r": lambda: rmat(16, 16),
}


def ragged():
    rng = np.random.default_rng(1)
    giant = rng.integers(0, 4, 700)
    giant[311] = 700
    yield with_lengths("597 x 43", 43, rng.integers(0, 9, 597), 1)
    yield with_lengths("43 x 597", 597, rng.integers(0, 90, 43), 2)
    holes = rng.integers(0, 12, 1000)
    holes[::3] = 0
    yield with_lengths("empty rows and columns", 1000, holes, 3)
    yield with_lengths("one row", 800, [300], 4)
    yield with_lengths("one column", 1, [1, 0, 1, 1] * 50, 5)
    yield with_lengths("one giant row", 700, giant, 6)
    yield with_lengths("rows of several tiles", 40_000, [3] * 900 + [30_000] + [5] * 77 + [9_000, 40_000] + [2] * 3001 + [20_000, 0, 0], 7)
    yield with_lengths("power law", 2500, [2000 // (i + 1) for i in range(2500)][::-1], 8)
    yield by_diagonals("597 x 43 by diagonals", 597, 43, [-590, -300, -41, -2, 0, 1, 42])
    yield by_diagonals("43 x 597 by diagonals", 43, 597, [-42, -1, 0, 7, 300, 580, 596])
    yield by_diagonals("a grid with holes", 2001, 2001, [-300, -40, -1, 0, 1, 40, 300])
    yield with_lengths("no nonzeros", 7, [0] * 5000, 10)
    yield with_lengths("no rows", 7, [], 11)
    yield with_lengths("even lengths", 5000, [16] * 5000, 12)


# ---- cuSPARSE ------------------------------------------------------------------------------------------------------------
class Cusparse:
    F = {"f32": 0, "f64": 1}

    def __init__(self):
        for name in ("libcusparse.so.12", "libcusparse.so.13", "libcusparse.so", "/usr/local/cuda/lib64/libcusparse.so"):
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
        self.ok(self.lib.cusparseCreateDnVec(ctypes.byref(d), ctypes.c_int64(x.size), ctypes.c_void_p(x.data.ptr), self.F[t]))
        return d

    def scalars(self, t):
        c = ctypes.c_float if t == "f32" else ctypes.c_double
        return ctypes.byref(c(1)), ctypes.byref(c(0))

    def csr(self, a, t):
        d, p = ctypes.c_void_p(), lambda v: ctypes.c_void_p(v.data.ptr)
        n = ctypes.c_int64
        self.ok(self.lib.cusparseCreateCsr(ctypes.byref(d), n(a.rows), n(a.columns), n(a.nnz), p(a.offsets), p(a.indices), p(a.values[t]), 2, 2, 0, self.F[t]))
        return d

    def products(self, a, t, x, y):
        """(name, function) of each algorithm."""
        p, n = lambda v: ctypes.c_void_p(v.data.ptr), ctypes.c_int64
        for name, algorithm in (("csr1", 2), ("csr2", 3)):
            yield name, self.product(self.csr(a, t), algorithm, t, x, y)
        rows = cp.searchsorted(a.offsets.astype(np.int64), cp.arange(a.nnz, dtype=np.int64), side="right").astype(np.int32) - 1
        d = ctypes.c_void_p()
        self.ok(self.lib.cusparseCreateCoo(ctypes.byref(d), n(a.rows), n(a.columns), n(a.nnz), p(rows), p(a.indices), p(a.values[t]), 2, 0, self.F[t]))
        yield "coo1", self.product(d, 1, t, x, y, keep=rows)
        del rows
        cp.get_default_memory_pool().free_all_blocks()
        s = to_sell(a, t, 32)
        if s is not None:
            offsets, lengths, columns, values = s
            d = ctypes.c_void_p()
            offsets, columns = offsets.astype(np.int32), columns.view(np.int32)
            pad_columns(a, offsets, columns, 32)
            self.ok(self.lib.cusparseCreateSlicedEll(ctypes.byref(d), n(a.rows), n(a.columns), n(a.nnz), n(values.size), n(32), p(offsets), p(columns), p(values), 2, 2, 0, self.F[t]))
            yield "sell32", self.product(d, 5, t, x, y, keep=(offsets, columns, values))

    def product(self, d, algorithm, t, x, y, keep=None):
        one, zero = self.scalars(t)
        dx, dy, size = self.vec(x, t), self.vec(y, t), ctypes.c_size_t()
        # What was made before lies in another stream, and the library looks at it now.
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
        """SpMM with row-major and column-major blocks, each algorithm."""
        n = ctypes.c_int64
        one, zero = self.scalars(t)
        for order_name, order in (("rows", 2), ("columns", 1)):
            lx, ly = (columns, columns) if order == 2 else (a.columns, a.rows)
            dx, dy = ctypes.c_void_p(), ctypes.c_void_p()
            self.ok(self.lib.cusparseCreateDnMat(ctypes.byref(dx), n(a.columns), n(columns), n(lx), ctypes.c_void_p(x.data.ptr), self.F[t], order))
            self.ok(self.lib.cusparseCreateDnMat(ctypes.byref(dy), n(a.rows), n(columns), n(ly), ctypes.c_void_p(y.data.ptr), self.F[t], order))
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


# ---- formats ---------------------------------------------------------------------------------------------------------------
FILL = cp.RawKernel(r"""
extern "C" __global__ void fill(long long rows, int height, const unsigned* offsets, const unsigned* columns, const VALUE* values,
                                const unsigned* sections, const unsigned* order, unsigned* out_columns, VALUE* out_values) {
    for (long long p = blockIdx.x * (long long)blockDim.x + threadIdx.x; p < rows; p += gridDim.x * (long long)blockDim.x) {
        long long r = order ? order[p] : p;
        for (unsigned k = offsets[r], i = 0; k < offsets[r + 1]; k++, i++) {
            unsigned long long at = sections[p / height] + (unsigned long long)i * height + p % height;
            out_columns[at] = columns[k];
            out_values[at] = values[k];
        }
    }
}""".replace("VALUE", "double"), "fill") if cp else None
FILL32 = cp.RawKernel(FILL.code.replace("double", "float"), "fill") if cp else None
PAD = cp.RawKernel(r"""
extern "C" __global__ void pad(long long rows, int height, const int* sections, const unsigned* offsets, const unsigned* order, int* columns) {
    for (long long p = blockIdx.x * (long long)blockDim.x + threadIdx.x; p < rows; p += gridDim.x * (long long)blockDim.x) {
        long long r = order ? order[p] : p;
        int width = (sections[p / height + 1] - sections[p / height]) / height;
        for (int i = offsets[r + 1] - offsets[r]; i < width; i++) columns[sections[p / height] + (long long)i * height + p % height] = -1;
    }
}""", "pad") if cp else None


def pad_columns(a, sections, columns, height, order=None):
    """Padding is told by the column -1, in our SELL and in cuSPARSE's."""
    PAD((4096,), (256,), (np.int64(a.rows), np.int32(height), sections, a.offsets, U(0) if order is None else order, columns))


def to_sell(a, t, height, order=None):
    """offsets, lengths, columns, values; None where it would pad three times over."""
    sections = ceil(a.rows, height)
    if not sections:
        return None
    lengths = a.lengths if order is None else a.lengths[order]
    padded = cp.zeros(sections * height, np.int64)
    padded[: a.rows] = lengths
    widths = padded.reshape(sections, height).max(axis=1)
    offsets = cp.concatenate([cp.zeros(1, np.int64), cp.cumsum(widths * height)])
    total = int(offsets[-1])
    if total > 4 * a.nnz + 4096 or total >= 1 << 31:
        return None
    columns, values = cp.zeros(total, np.uint32), cp.zeros(total, F[t])
    (FILL if t == "f64" else FILL32)((4096,), (256,), (np.int64(a.rows), np.int32(height), a.offsets, a.indices, a.values[t], offsets.astype(np.uint32), U(0) if order is None else order, columns, values))
    return offsets.astype(np.uint32), lengths.astype(np.uint32), columns, values


# ---- the products ----------------------------------------------------------------------------------------------------------
def scalar(t, v):
    return F[t](v)


NULL = U(0)
# Whether kernels may ask for the matrix before the launch ahead of them ends: here no launch writes it.
SETTLED = U32(1)


class Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_int), ("rest", ctypes.c_char * 60)]


class Launch(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint) for n in ("gx", "gy", "gz", "bx", "by", "bz", "shared")] + [("stream", ctypes.c_void_p), ("attributes", ctypes.c_void_p), ("count", ctypes.c_uint)]


def early(f, grid, block, args, shared=0):
    """A launch that starts while the one before it ends, as the library's: the kernel waits by itself."""
    types = {np.uint64: ctypes.c_uint64, np.uint32: ctypes.c_uint32, np.float64: ctypes.c_double, np.float32: ctypes.c_float}
    cell = lambda a: (ctypes.c_uint32 * len(a))(*a) if type(a) is tuple else types[type(a)](a.item()) if type(a) in types else ctypes.c_uint64(a.data.ptr)
    cells = [cell(a) for a in args]
    pointers = (ctypes.c_void_p * len(cells))(*[ctypes.addressof(c) for c in cells])
    attribute, launch = Attribute(6, 0, 1, b""), ctypes.CDLL("libcuda.so.1").cuLaunchKernelEx

    def run(_keep=(cells, args)):
        config = Launch(grid, 1, 1, block, 1, 1, shared, cp.cuda.get_current_stream().ptr, ctypes.addressof(attribute), 1)
        code = launch(ctypes.byref(config), ctypes.c_void_p(f.kernel.ptr), pointers, None)
        if code:
            raise RuntimeError(f"launch: {code}")

    return run


def stream_constants(a, t, v, lanes=None, unroll=None, threads=None, **c):
    mean = max(1.0, a.nnz / max(1, a.rows))
    short = SIZE[v] == 4
    odd = short and a.rows and int(a.lengths.max()) % 2
    if lanes is None:
        lanes = 1
        while lanes < 32 and mean / lanes > (28 if odd else 14):
            lanes *= 2
    brief = not odd and mean <= 4
    usual = 9 if odd else 4 if brief or short and lanes == 1 and mean > 6 else 8
    return dict(SCALAR=t, STORED=v, OFFSET="u32", LANES=lanes, UNROLL=unroll or usual, THREADS=threads or (128 if short or brief else 256), IN_BULK=int(odd)) | c


def csr_stream(a, t, v, x, y, alpha=1, beta=0, dot=None, capacity=None, **c):
    k = stream_constants(a, t, v, **c)
    rows_a_tile = k["THREADS"] // k["LANES"]
    if capacity is None:
        _, busiest = a.shape()
        capacity = ceil(max(1, rows_a_tile // 32) * busiest + 4, 16) * 16 if rows_a_tile >= 32 else ceil(busiest + 4, 16) * 16
        capacity = min(capacity, 8192)
    shared = capacity * (4 + SIZE[v])
    tiles = ceil(a.rows, rows_a_tile)
    if dot is None:
        f = kernel("csr_stream.cu", "csr_stream", shared, **k)
        return tiles and early(f, tiles, k["THREADS"], (U(a.rows), U(a.nnz), a.offsets, a.indices, a.values[v], scalar(t, alpha), x, scalar(t, beta), y, U32(capacity), U32(0)), shared) or (lambda: None)
    f = kernel("csr_stream.cu", "csr_stream_dot", shared, **k)
    return summed(t, tiles, dot, lambda partials, finished: f((tiles,), (k["THREADS"],), (U(a.rows), U(a.nnz), a.offsets, a.indices, a.values[v], scalar(t, 1), x, y, U32(capacity), dot, partials, finished), shared_mem=shared))


def summed(t, tiles, dot, product):
    """A product whose blocks leave sums: joined by the last block where they are few, else by a second launch."""
    partials, finished = cp.zeros(tiles + 4096, F[t]), cp.zeros(1, np.uint32)
    if tiles <= FEW:
        return lambda: product(partials, finished)
    join = kernel("vector.cu", "sum", SCALAR=t, THREADS=256, UNROLL=4, SUM_THREADS=512, SUM_UNROLL=4, MAX_PARTIALS=4096)
    grid = min(528, ceil(tiles, 512 * 4 * 16 // SIZE[t]))

    def run():
        product(partials, NULL)
        join((grid,), (512,), (partials, U(tiles), dot, partials[tiles:], finished))

    return run


FEW = 1024


BALANCED = [dict(THREADS=t, ITEMS=i, UNROLL=u, SLACK=s, MIN_BLOCKS=b, AHEAD=h) for t, i, u, s, b, h in ((128, 5, 5, 128, 12, 1), (256, 8, 3, 256, 8, 0), (256, 10, 5, 256, 8, 0), (256, 4, 4, 256, 6, 0))]


def scattered(a):
    """Whether x is read all over the vector: lines of 16 columns in windows of 4096 nonzeros."""
    windows, lines = min(64, a.nnz // 4096), cp.zeros(1, np.uint64)
    kernel("column_spread.cu", "column_spread", THREADS=256, WINDOW=4096, LINE=16)((windows,), (256,), (U(a.nnz), a.indices, lines))
    return int(lines[0]) > 800 * windows


def balanced_class(a, t, v):
    """As the library's policy has it."""
    if a.nnz < 1 << 22 and not (a.nnz // 4 < a.rows and a.nnz >= 4096):
        return BALANCED[0]
    if scattered(a):
        return BALANCED[3]
    return BALANCED[2] | (dict(MIN_BLOCKS=6) if t != v else {}) if SIZE[v] == 4 else BALANCED[1]


def csr_balanced(a, t, v, x, y, alpha=1, beta=0, **c):
    k = dict(SCALAR=t, STORED=v, OFFSET="u32") | balanced_class(a, t, v) | c
    f = kernel("csr_balanced.cu", "csr_balanced", **k)
    tile = k["THREADS"] * k["ITEMS"]
    tiles = ceil(a.rows + a.nnz, tile)
    starts, posts = cp.zeros(2 * (tiles + 1), np.uint64), cp.zeros(tiles * SIZE[t] // 4 + 1, np.uint64)
    find = kernel("row_shape.cu", "tile_starts", OFFSET="u32", THREADS=256, TILE=tile, SLACK=k["SLACK"])
    find((ceil(tiles + 1, 256),), (256,), (U(a.rows), U(a.nnz), a.offsets, starts))
    return tiles and early(f, tiles, k["THREADS"], (starts, a.offsets, a.indices, a.values[v], scalar(t, alpha), x, scalar(t, beta), y, U32(0), posts, SETTLED)) or (lambda: None)


def bins(a, each, threads):
    """Parts of rows and where each kind of them ends, as src/backend/cuda/product/bins.rs has them."""
    lengths, offsets = cp.asnumpy(a.lengths).astype(np.int64), cp.asnumpy(a.offsets).astype(np.int64)
    parts, ends, below = [], [], -1
    for row in np.nonzero(lengths > 32 * each)[0]:
        begin, length, since = offsets[row], lengths[row], len(parts)
        size = ceil(int(length), ceil(int(length), threads * each))
        parts += [(begin + i, begin + min(i + size, length), row, since) for i in range(0, length, size)]
        parts[-1] = (*parts[-1][:3], since | 1 << 31)
    arrays, ends, warps = [np.array(parts, np.uint32).reshape(-1, 4)], [len(parts)], 0
    for i in range(6):
        rows = np.nonzero((lengths > below) & (lengths <= each << i))[0]
        below, fill = each << i, ceil(rows.size, 32 >> i) * (32 >> i)
        part = np.tile(np.array([0, 0, (1 << 32) - 1, 0], np.uint32), (fill, 1))
        part[: rows.size, 0], part[: rows.size, 1], part[: rows.size, 2] = offsets[rows], offsets[rows + 1], rows
        warps += fill // (32 >> i)
        arrays.append(part)
        ends.append(warps)
    return cp.asarray(np.concatenate(arrays)), tuple(ends)


def csr_binned(a, t, v, x, y, alpha=1, beta=0, **c):
    k = dict(SCALAR=t, STORED=v, EACH=8, THREADS=128, MIN_BLOCKS=10 if t == "f32" else 1) | c
    f = kernel("csr_binned.cu", "csr_binned", **k)
    if not a.rows:
        return lambda: None
    parts, ends = bins(a, k["EACH"], k["THREADS"])
    posts = cp.zeros(ends[0] * SIZE[t] // 4 + 1, np.uint64)
    grid = ends[0] + ceil(ends[6], k["THREADS"] // 32)
    return early(f, grid, k["THREADS"], (parts, ends, a.indices, a.values[v], scalar(t, alpha), x, scalar(t, beta), y, U32(0), posts, SETTLED))


def csr_vector(a, t, v, x, y, alpha=1, beta=0, lanes=None, threads=256, unroll=4, **c):
    mean = a.nnz // max(1, a.rows)
    lanes = lanes or min(32, max(2, 1 << max(0, (mean - 1).bit_length() - 1)))
    f = kernel("csr_vector.cu", "csr", SCALAR=t, STORED=v, OFFSET="u32", LANES=lanes, THREADS=threads, UNROLL=unroll, **(dict(AHEAD=int(a.nnz < 1 << 20)) | c))
    grid = ceil(a.rows, threads // lanes)
    return grid and early(f, grid, threads, (U(a.rows), a.offsets, a.indices, a.values[v], scalar(t, alpha), x, scalar(t, beta), y, U32(0), SETTLED)) or (lambda: None)


def sell(a, t, v, x, y, alpha=1, beta=0, dot=None, height=32, runtime=False, order=None, threads=None, unroll=None, **c):
    s = to_sell(a, v, height, order)
    wide = not runtime and a.nnz >= 1 << 20 and a.nnz > 40 * a.rows
    single = runtime or wide or a.nnz < 1 << 20
    threads, unroll = threads or (128 if single else 64), unroll or (9 if wide else 7)
    if s is None:
        return None
    offsets, _, columns, values = s
    lengths = NULL
    pad_columns(a, offsets, columns, height, order)
    k = dict(SCALAR=t, STORED=v, OFFSET="u32", HEIGHT=0 if runtime else height, ROWS=1 if single else 2, WIDE=int(wide), UNROLL=unroll, THREADS=threads) | c
    k["AHEAD"] = int(a.nnz < 1 << 20 and k["ROWS"] == 1 and not k["WIDE"])
    f = kernel("sell.cu", "sell" if dot is None else "sell_dot", **k)
    tiles = ceil(a.rows, threads * k["ROWS"])
    place = NULL if order is None else order
    if dot is None:
        return early(f, tiles, threads, (U(a.rows), U32(height), place, lengths, offsets, columns, values, scalar(t, alpha), x, scalar(t, beta), y, U32(0), SETTLED))
    return summed(t, tiles, dot, lambda partials, finished: f((tiles,), (threads,), (U(a.rows), U32(height), place, lengths, offsets, columns, values, scalar(t, 1), x, y, dot, partials, finished)))


def csr_block(a, t, v, x, y, vectors, alpha=1, beta=0, lanes=None, width=None, tiles=None, steps=None, **c):
    """By rows, or by tiles of equal work where rows are of very different lengths."""
    width = width or (16 // SIZE[t] if vectors % (16 // SIZE[t]) == 0 else 1)
    lanes = lanes or 1 << (ceil(vectors, width) - 1).bit_length()
    k = dict(SCALAR=t, STORED=v, OFFSET="u32", LANES=lanes, WIDTH=width, UNROLL=4, THREADS=128) | c
    tile = k["THREADS"] // lanes
    longest, fullest = a.shape()
    mean = ceil(a.nnz, max(1, a.rows))
    if tiles or tiles is None and longest > max(128, 4 * mean):
        return csr_block_tiles(a, t, v, x, y, vectors, alpha, beta, k | dict(THREADS=256) | c, steps)
    capacity = ceil(min(fullest * ceil(tile, 32) + 3, 2 * mean * tile + 64, 48128 // (4 + SIZE[v]) - 31), 32) * 32
    shared = capacity * (4 + SIZE[v])
    f = kernel("csr_block.cu", "csr_block", shared, **k)

    def run():
        if a.rows:
            f((ceil(a.rows, tile),), (k["THREADS"],), (U(a.rows), U(a.nnz), a.offsets, a.indices, a.values[v], scalar(t, alpha), x, scalar(t, beta), y, U32(vectors), U32(capacity)), shared_mem=shared)

    return run


def csr_block_tiles(a, t, v, x, y, vectors, alpha, beta, k, steps=None):
    k = k | dict(STEPS=steps or (1024 if a.nnz >= max(8 * a.rows, 1 << 23) else 2048))
    shared = (k["STEPS"] + 4) * (4 + SIZE[v])
    f, join = kernel("csr_block_tiles.cu", "csr_block_tiles", shared, **k), kernel("csr_block_tiles.cu", "csr_block_join", **k)
    starts = first_rows(a, k["STEPS"])
    tiles = starts.size - 1
    pieces = cp.zeros(2 * tiles * vectors, F[t])

    def run():
        if tiles:
            f((tiles,), (k["THREADS"],), (U(a.rows), U(a.nnz), starts, a.offsets, a.indices, a.values[v], scalar(t, alpha), x, scalar(t, beta), y, U32(vectors), pieces), shared_mem=shared)
        if tiles > 1:
            join((ceil(32 * tiles, k["THREADS"]),), (k["THREADS"],), (U(a.rows), U(a.nnz), starts, a.offsets, scalar(t, alpha), scalar(t, beta), y, U32(vectors), pieces))

    return run


def first_rows(a, steps):
    """The first row of each tile of so many steps."""
    tiles = ceil(a.rows + a.nnz, steps)
    starts = cp.zeros(tiles + 1, np.uint32)
    kernel("row_shape.cu", "tile_rows", OFFSET="u32", THREADS=256, TILE=steps, SLACK=0)((ceil(tiles + 1, 256),), (256,), (U(a.rows), U(a.nnz), a.offsets, starts))
    return starts


def coo(a, t, v, x, y, alpha=1, beta=0, atomic=False, items=7, threads=256):
    k = dict(SCALAR=t, STORED=v, THREADS=threads, ITEMS=items)
    rows = (cp.searchsorted(a.offsets.astype(np.int64), cp.arange(a.nnz, dtype=np.int64), side="right") - 1).astype(np.uint32)
    scale, segmented, join, by_atomics = (kernel("coo.cu", f, **k) for f in ("coo_scale", "coo_segmented", "coo_join", "coo_atomic"))
    tiles = ceil(a.nnz, threads * items)
    pieces = cp.zeros(2 * tiles + 1, F[t])

    def run():
        if beta != 1 and a.rows:
            scale((min(ceil(a.rows, threads), 2112),), (threads,), (U(a.rows), scalar(t, beta), y))
        if tiles and atomic:
            by_atomics((min(ceil(a.nnz, threads), 16896),), (threads,), (U(a.nnz), rows, a.indices, a.values[v], scalar(t, alpha), x, y, U32(0)))
        elif tiles:
            segmented((tiles,), (threads,), (U(a.nnz), rows, a.indices, a.values[v], scalar(t, alpha), x, y, U32(0), pieces))
            if tiles > 1:
                join((ceil(tiles, threads // 32),), (threads,), (U(a.nnz), rows, scalar(t, alpha), y, pieces))

    return run


def ell(a, t, v, x, y, alpha=1, beta=0, unroll=8, threads=256, eager=None):
    """As one section of all rows."""
    width = int(a.lengths.max()) if a.rows else 0
    if not a.rows or width * a.rows > 3 * a.nnz + 4096:
        return None
    _, lengths, columns, values = to_sell(a, v, a.rows)
    eager = int(width * a.rows < 1 << 20) if eager is None else eager
    f = kernel("ell.cu", "ell", SCALAR=t, STORED=v, UNROLL=unroll, THREADS=threads, EAGER=eager)
    return early(f, ceil(a.rows, threads), threads, (U(a.rows), U32(width), lengths, columns, values, scalar(t, alpha), x, scalar(t, beta), y, U32(0), SETTLED))


SECTION = 32


def to_dia(a, t):
    """Distances, and values in sections; None where it would pad three times over."""
    rows = cp.searchsorted(a.offsets.astype(np.int64), cp.arange(a.nnz, dtype=np.int64), side="right") - 1
    place = a.indices.astype(np.int64) - rows + a.rows
    marks = cp.zeros(a.rows + a.columns + 1, np.uint8)
    marks[place] = 1
    found = cp.flatnonzero(marks)
    if not a.rows or ceil(a.rows, SECTION) * SECTION * found.size > 3 * a.nnz + 4096:
        return None
    number = cp.zeros(marks.size, np.int32)
    number[found] = cp.arange(found.size, dtype=np.int32)
    at = (rows // SECTION * found.size + number[place]) * SECTION + rows % SECTION
    values = cp.empty(ceil(a.rows, SECTION) * SECTION * found.size, F[t])
    values.view(np.uint8)[:] = 255
    values[at] = a.values[t]
    return (found - a.rows).astype(np.int64), values


def dia(a, t, v, x, y, alpha=1, beta=0, dot=None, stored=None, **c):
    stored = stored or to_dia(a, v)
    if stored is None:
        return None
    distances, values = stored
    few, wide = a.rows * distances.size < 1 << 20, distances.size > 40
    wide, pairs = wide and not few, t == "f32" and not few and not wide
    k = dict(SCALAR=t, STORED=v, ROWS=1 + pairs, WIDE=int(wide), UNROLL=7, THREADS=128 if wide or pairs else 256) | c
    f = kernel("dia.cu", "dia" if dot is None else "dia_dot", **k)
    tiles = ceil(a.rows, k["THREADS"] * k["ROWS"])
    sizes = (U(a.rows), U(a.columns), U32(distances.size), distances, values)
    if dot is None:
        return early(f, tiles, k["THREADS"], sizes + (scalar(t, alpha), x, scalar(t, beta), y, U32(0)))
    return summed(t, tiles, dot, lambda partials, finished: f((tiles,), (k["THREADS"],), sizes + (scalar(t, 1), x, y, dot, partials, finished)))


def sorted_order(a, window):
    keys = -a.lengths.astype(np.int64) + (cp.arange(a.rows) // window) * (1 << 33)
    return cp.argsort(keys, kind="stable").astype(np.uint32)


# ---- checking ----------------------------------------------------------------------------------------------------------------
REFERENCE = cp.RawKernel(r"""
extern "C" __global__ void reference(long long rows, const unsigned* offsets, const unsigned* columns, const double* values, const double* x,
                                     double* out, double* size) {
    for (long long r = blockIdx.x * (long long)blockDim.x + threadIdx.x; r < rows; r += gridDim.x * (long long)blockDim.x) {
        double s = 0, low = 0, total = 0;
        for (unsigned k = offsets[r]; k < offsets[r + 1]; k++) {
            double p = __dmul_rn(values[k], x[columns[k]]), e = __fma_rn(values[k], x[columns[k]], -p);
            double t = __dadd_rn(s, p), z = __dadd_rn(t, -s);
            low += e + __dadd_rn(__dadd_rn(s, -__dadd_rn(t, -z)), __dadd_rn(p, -z));
            s = t;
            total += fabs(p);
        }
        out[r] = s + low;
        size[r] = total;
    }
}""", "reference") if cp else None
failures = 0


def expect(name, a, t, x, y, got, alpha, beta):
    global failures
    want, size = cp.empty(a.rows), cp.empty(a.rows)
    if a.rows:
        REFERENCE((1024,), (64,), (np.int64(a.rows), a.offsets, a.indices, a.values64, x.astype(np.float64), want, size))
    want = alpha * want + (beta * y.astype(np.float64) if beta else 0)
    size = abs(alpha) * size + (abs(beta * y.astype(np.float64)) if beta else 0)
    bound = 4 * (a.lengths.astype(np.float64) + 4) * np.finfo(F[t]).eps * size
    bad = ~(abs(got.astype(np.float64) - want) <= bound)
    if a.rows and bool(bad.any()):
        failures += 1
        r = int(bad.argmax())
        print(f"FAILED {name} on {a.name} {t}: {int(bad.sum())} rows, first {r} of length {int(a.lengths[r])}: {float(got[r])} for {float(want[r])}", flush=True)


def variants(a, t, v):
    """Every kernel as (name, make(x, y, alpha, beta))."""
    for lanes in (1, 2, 8, 32):
        for capacity in (64, None):
            yield f"stream lanes={lanes} capacity={capacity}", lambda x, y, al, be, l=lanes, c=capacity: csr_stream(a, t, v, x, y, al, be, lanes=l, capacity=c, threads=64)
    for threads, items, ahead in ((32, 2, 1), (128, 8, 0)):
        yield f"balanced {threads} {items}", lambda x, y, al, be, i=items, th=threads, h=ahead: csr_balanced(a, t, v, x, y, al, be, ITEMS=i, THREADS=th, SLACK=i * th // 4, MIN_BLOCKS=1, AHEAD=h)
    for threads, each in ((64, 2), (128, 8)):
        yield f"binned {threads} {each}", lambda x, y, al, be, e=each, th=threads: csr_binned(a, t, v, x, y, al, be, EACH=e, THREADS=th)
    yield "coo", lambda x, y, al, be: coo(a, t, v, x, y, al, be, threads=64, items=3)
    for eager in (0, 1):
        yield f"ell eager={eager}", lambda x, y, al, be, e=eager: ell(a, t, v, x, y, al, be, eager=e)
    for rows in (1, 2):
        yield f"dia rows={rows}", lambda x, y, al, be, n=rows: dia(a, t, v, x, y, al, be, ROWS=n, WIDE=2 - n, THREADS=128)
    for lanes in (1, 4, 32):
        yield f"vector {lanes}", lambda x, y, al, be, l=lanes: csr_vector(a, t, v, x, y, al, be, lanes=l)
    for height, runtime, window in ((32, False, 1), (16, False, 1), (7, True, 21), (32, False, 256)):
        order = sorted_order(a, window) if window > 1 else None
        for rows in (1,) if runtime else (1, 2):
            yield f"sell-{height}-{window} rows={rows}", lambda x, y, al, be, h=height, r=runtime, o=order, n=rows: sell(a, t, v, x, y, al, be, height=h, runtime=r, order=o, threads=64, ROWS=n, WIDE=n - 1)


def check():
    for a in ragged():
        for t, v in (("f64", "f64"), ("f32", "f32"), ("f64", "f32")):
            a.values64 = a.values[v].astype(np.float64)
            rng = cp.random.default_rng(5)
            x, y0 = (rng.random(a.columns) - 0.5).astype(F[t]), (rng.random(a.rows) - 0.5).astype(F[t])
            for name, make in variants(a, t, v):
                for alpha, beta in ((1, 0), (-1.5, 0.5)):
                    y = y0.copy() if beta else cp.full(a.rows, np.nan, F[t])
                    run = make(x, y, alpha, beta)
                    if run is None:
                        continue
                    run()
                    expect(name, a, t, x, y0, y, alpha, beta)
                    if beta == 0:
                        again = cp.full(a.rows, np.nan, F[t])
                        for _ in range(3):
                            make(x, again, alpha, beta)()
                            if not bool((again == y).all()):
                                print(f"NOT THE SAME BITS: {name} on {a.name}")
            for vectors in (1, 3, 8, 32):
                if a.rows and a.nnz:
                    xs, ys = (rng.random(a.columns * vectors) - 0.5).astype(F[t]), cp.full(a.rows * vectors, np.nan, F[t])
                    for tiles, steps in ((False, None), (True, 64), (True, 1024)):
                        ys[:] = np.nan
                        csr_block(a, t, v, xs, ys, vectors, alpha=2, tiles=tiles, steps=steps)()
                        for j in range(vectors):
                            expect(f"block {j} of {vectors} tiles={tiles} steps={steps}", a, t, cp.ascontiguousarray(xs[j::vectors]), None, ys[j::vectors], 2, 0)
            if a.rows == a.columns and a.rows:
                dot, y = cp.zeros(1, F[t]), cp.empty(a.rows, F[t])
                for name, run in (("stream dot", csr_stream(a, t, v, x, y, dot=dot)), ("sell dot", sell(a, t, v, x, y, dot=dot)), ("dia dot", dia(a, t, v, x, y, dot=dot)), ("stream dot small", csr_stream(a, t, v, x, y, dot=dot, threads=64))):
                    if run is None:
                        continue
                    dot[:] = np.nan
                    y[:] = np.nan
                    for _ in range(2):
                        run()
                        expect(name, a, t, x, y, y, 1, 0)
                        want, scale = float((x.astype(np.float64) * y.astype(np.float64)).sum()), float(abs(x.astype(np.float64) * y.astype(np.float64)).sum())
                        if not abs(float(dot[0]) - want) <= 100 * np.finfo(F[t]).eps * scale:
                            print(f"FAILED {name} on {a.name} {t}: dot {float(dot[0])} for {want}")
    print("check:", "all well" if not failures else f"{failures} failures", flush=True)


# ---- timing --------------------------------------------------------------------------------------------------------------------
def timed(run, stream, seconds=0.03):
    """Median milliseconds of a product, from replays of a captured graph."""
    # What was made before lies in another stream.
    cp.cuda.Device().synchronize()
    with stream:
        run()
        stream.synchronize()
        a, b = cp.cuda.Event(), cp.cuda.Event()
        a.record(stream)
        run()
        b.record(stream)
        b.synchronize()
        guess = cp.cuda.get_elapsed_time(a, b)
        inside = 20 if guess < 0.05 else 1
        stream.begin_capture()
        for _ in range(inside):
            run()
        graph = stream.end_capture()
        graph.launch(stream)
        times = []
        for _ in range(max(7, min(50, int(seconds * 1000 / max(guess * inside, 1e-3))))):
            a.record(stream)
            graph.launch(stream)
            b.record(stream)
            b.synchronize()
            times.append(cp.cuda.get_elapsed_time(a, b) / inside)
        return float(np.median(times))


COPY = cp.RawKernel(r"""
extern "C" __global__ void copy(const double4* x, double4* y, long long n) {
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (long long)blockDim.x) y[i] = x[i];
}""", "copy") if cp else None


def copy_speed(stream):
    """By a kernel: a copy node of a graph is slower."""
    x, y = cp.zeros(1 << 28), cp.empty(1 << 28)
    ms = timed(lambda: COPY((1 << 18,), (256,), (x, y, np.int64(x.size // 4))), stream)
    return 16 * x.size / ms * 1e-6


def ours(a, t, v, x, y):
    if int(a.lengths.max()) < 100:
        yield "stream", csr_stream(a, t, v, x, y)
    yield "balanced", csr_balanced(a, t, v, x, y)
    if a.nnz < 1 << 23:
        yield "binned", csr_binned(a, t, v, x, y)
    if a.nnz > 30 * a.rows:
        yield "vector", csr_vector(a, t, v, x, y, lanes=8)
    if int(a.lengths.max()) < 100:
        yield "sell32", sell(a, t, v, x, y)
        yield "sell16", sell(a, t, v, x, y, height=16)
    stored = to_dia(a, v)
    if stored is not None:
        yield "dia", dia(a, t, v, x, y, stored=stored)
        yield "dia+dot", dia(a, t, v, x, y, stored=stored, dot=cp.zeros(1, F[t]))
    del stored
    yield "ell", ell(a, t, v, x, y)
    yield "coo", coo(a, t, v, x, y)
    yield "coo by atomics", coo(a, t, v, x, y, atomic=True)
    dot = cp.zeros(1, F[t])
    if int(a.lengths.max()) < 100:
        yield "stream+dot", csr_stream(a, t, v, x, y, dot=dot)
        yield "sell32+dot", sell(a, t, v, x, y, dot=dot)


def bench(names):
    """A process a case: a library that fails spoils no other case."""
    for name in names:
        for t in TYPES:
            child = os.fork()
            if child == 0:
                try:
                    bench_one(name, t)
                except Exception as e:
                    print(name, t, "FAILED:", e, flush=True)
                os._exit(0)
            os.waitpid(child, 0)


def bench_one(name, t):
    stream = cp.cuda.Stream(non_blocking=True)
    copy = copy_speed(stream)
    peer = Cusparse()
    peer.on(stream)
    a = CASES[name]()
    x, y = cp.random.default_rng(2).random(a.columns).astype(F[t]), cp.zeros(a.rows, F[t])
    floor = a.bytes(t, t) / copy * 1e-6
    theirs = {}
    for peer_name, run in peer.products(a, t, x, y):
        theirs[peer_name] = timed(run, stream)
    best_csr, best = min(theirs["csr1"], theirs["csr2"]), min(theirs.values())
    print(f"{a.name} {t} nnz {a.nnz} copy {copy:.0f} GB/s floor {floor:.4f} |", *(f"{k} {m:.4f}" for k, m in theirs.items()), flush=True)
    for our_name, run in ours(a, t, t, x, y):
        if run is not None:
            ms = timed(run, stream)
            print(f"    {our_name} {ms:.4f} ({best_csr / ms:.2f} csr, {best / ms:.2f} best, {floor / ms:.2f} copy)", flush=True)
            del run


def blocks(names):
    """Several vectors at once, beside SpMM."""
    for name in names:
        for t in TYPES:
            for vectors in (2, 4, 8, 16, 32) if name == names[0] else (8,):
                child = os.fork()
                if child == 0:
                    try:
                        blocks_one(name, t, vectors)
                    except Exception as e:
                        print(name, t, vectors, "FAILED:", e, flush=True)
                    os._exit(0)
                os.waitpid(child, 0)


def blocks_one(name, t, vectors):
    stream = cp.cuda.Stream(non_blocking=True)
    peer = Cusparse()
    peer.on(stream)
    a = CASES[name]()
    x, y = cp.random.default_rng(2).random(a.columns * vectors).astype(F[t]), cp.zeros(a.rows * vectors, F[t])
    theirs = {}
    for peer_name, run in peer.block_products(a, t, x, y, vectors):
        theirs[peer_name] = timed(run, stream)
    best = min(theirs.values())
    steps = [("", {})] + ([(f"steps={n}", dict(steps=n, tiles=True)) for n in (512, 1024, 2048)] if name == "rmat" else [])
    for label, c in steps:
        ms = timed(csr_block(a, t, t, x, y, vectors, **c), stream)
        print(f"{a.name} {t} {vectors} vectors: block {label} {ms:.4f} ({best / ms:.2f}) |" if not label else f"    {label} {ms:.4f} ({best / ms:.2f})", *(f"{k} {m:.4f}" for k, m in theirs.items() if not label), flush=True)


def tune(names):
    stream = cp.cuda.Stream(non_blocking=True)
    for name in names:
        a = CASES[name]()
        for t in TYPES:
            x, y = cp.random.default_rng(2).random(a.columns).astype(F[t]), cp.zeros(a.rows, F[t])
            results = []
            for label, make in sweep(a, t, x, y):
                try:
                    run = make()
                    results.append((timed(run, stream, 0.01), label))
                    del run
                except Exception as e:
                    print(label, e)
            for kind in ("stream", "balanced", "vector", "sell"):
                print(f"{a.name} {t} {kind}: " + "; ".join(f"{l} {m:.4f}" for m, l in sorted(r for r in results if r[1].startswith(kind))[:5]), flush=True)
        del a, x, y
        cp.get_default_memory_pool().free_all_blocks()


def sweep(a, t, x, y):
    mean = a.nnz / a.rows
    for threads, lanes, unroll in STREAM_TUNE:
        if 3 <= mean / lanes <= 28:
            yield f"stream t={threads} l={lanes} u={unroll}", lambda threads=threads, lanes=lanes, unroll=unroll: csr_stream(a, t, t, x, y, threads=threads, lanes=lanes, unroll=unroll)
    for c in BALANCED_TUNE:
        yield "balanced " + " ".join(f"{k}={n}" for k, n in c.items()), lambda c=c: csr_balanced(a, t, t, x, y, **c)
    if mean > 14:
        yield "vector t=256 l=8 u=4", lambda: csr_vector(a, t, t, x, y, threads=256, lanes=8, unroll=4)
    for height, threads, unroll in SELL_TUNE:
        run = sell(a, t, t, x, y, height=height, threads=threads, unroll=unroll)
        if run is not None:
            yield f"sell-{height} t={threads} u={unroll}", lambda run=run: run


BALANCED_TUNE = [dict(THREADS=t, ITEMS=i, UNROLL=u, SLACK=s, MIN_BLOCKS=b, AHEAD=h) for h in (0, 1) for t, i, u, s, b in ((256, 4, 4, 512, 6), (256, 4, 4, 64, 6), (256, 3, 3, 64, 6), (512, 2, 2, 512, 3), (128, 4, 4, 64, 12), (128, 4, 4, 256, 12), (128, 8, 4, 256, 12), (64, 8, 4, 128, 24))]
STREAM_TUNE = [(128, 1, 4), (128, 1, 9), (128, 1, 8), (256, 1, 4), (256, 1, 8), (128, 2, 4), (128, 2, 8), (256, 2, 8), (128, 4, 4), (256, 4, 4)]
SELL_TUNE = [(h, th, u) for h in (16, 32) for th in (64, 128) for u in (7, 9)]


def precompile(command):
    jobs = []
    for t, v in (("f64", "f64"), ("f32", "f32"), ("f64", "f32")):
        s = dict(SCALAR=t, STORED=v, OFFSET="u32")
        check = command == "check"
        if not check and t != v:
            continue
        stream = [(64, l, u) for l in (1, 2, 8, 32) for u in (4, 8, 9)] if check else STREAM_TUNE
        jobs += [("csr_stream.cu", s | dict(LANES=l, UNROLL=u, THREADS=th, IN_BULK=int(u == 9 and SIZE[v] == 4))) for th, l, u in stream]
        balanced = [BALANCED[0] | dict(ITEMS=i, THREADS=th, SLACK=i * th // 4, MIN_BLOCKS=1, AHEAD=h) for th, i, h in ((32, 2, 1), (128, 8, 0))] if check else BALANCED + BALANCED_TUNE
        jobs += [("csr_balanced.cu", s | c) for c in balanced]
        jobs += [("csr_binned.cu", dict(SCALAR=t, STORED=v, EACH=e, THREADS=th, MIN_BLOCKS=10 if t == "f32" else 1)) for e, th in ([(2, 64)] if check else []) + [(8, 128)]]
        jobs += [("csr_vector.cu", s | dict(LANES=l, THREADS=256, UNROLL=4, AHEAD=h)) for l in (1, 4, 8, 32) for h in (0, 1)]
        jobs += [("coo.cu", dict(SCALAR=t, STORED=v, THREADS=th, ITEMS=i)) for th, i in ([(64, 3)] if check else [(256, 7)])]
        jobs += [("dia.cu", dict(SCALAR=t, STORED=v, ROWS=r, WIDE=w, UNROLL=7, THREADS=th)) for r, w, th in ((1, 0, 256), (1, 1, 128), (2, 0, 128))]
        jobs += [("ell.cu", dict(SCALAR=t, STORED=v, THREADS=256, UNROLL=8, EAGER=e)) for e in (0, 1)]
        many = {"f64": [(1, 1), (4, 1), (4, 2), (16, 2)], "f32": [(1, 1), (4, 1), (2, 4), (8, 4)]}[t] if check else []
        many = {"f64": [(1, 2), (2, 2), (4, 2), (8, 2), (16, 2)], "f32": [(2, 1), (1, 4), (2, 4), (4, 4), (8, 4)]}[t] if command == "blocks" else many
        jobs += [("csr_block.cu", s | dict(LANES=l, WIDTH=w, UNROLL=4, THREADS=128)) for l, w in many]
        jobs += [("csr_block_tiles.cu", s | dict(LANES=l, WIDTH=w, UNROLL=4, THREADS=256, STEPS=st)) for l, w in many for st in ([64, 1024] if check else [512, 1024, 2048])]
        sells = [(h, 64, 7) for h in (0, 16, 32)] if check else SELL_TUNE
        jobs += [("sell.cu", s | dict(HEIGHT=h, ROWS=r, WIDE=w, AHEAD=int((r, w) == (1, 0)), UNROLL=u, THREADS=th)) for h, th, u in sells for r, w in ((1, 0), (1, 1), (2, 0), (2, 1)) if h or (r, w) == (1, 0)]
    return compile_all(jobs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["compile", "check", "bench", "blocks", "tune"])
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--types", default="f64,f32")
    args = parser.parse_args()
    TYPES[:] = args.types.split(",")
    began = time.time()
    # Cases run in forked processes, so this one must not touch the device.
    ask = "import cupy; print(cupy.cuda.Device().compute_capability)"
    os.environ.setdefault("ARCH", subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True).stdout.strip())
    precompile(args.command)
    print(f"compiled in {time.time() - began:.1f} s", flush=True)
    try:
        if args.command == "check":
            check()
        elif args.command != "compile":
            {"bench": bench, "blocks": blocks, "tune": tune}[args.command](args.cases or list(CASES))
    except Exception:
        # A device that failed fails again in every destructor: leave without them.
        traceback.print_exc()
        sys.stdout.flush()
        os._exit(1)


if __name__ == "__main__":
    main()
