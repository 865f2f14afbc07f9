"""Products of the compressed format with irregular meshes (kernels/compressed.cu) on one GPU without any Rust, compared
with cuSPARSE's CSR, COO and SELL.

    python3 benches/peers/compressed_gpu.py [MESH ...]      2d-2048, 2d-4096, 3d-128, 3d-192; with a type: 2d-2048/f64

Needs CuPy. Meshes are made and compressed on the GPU: columns as 16 bits above the base of each section, values
uncompressed, rows ordered by length in windows of 256. Every product is compared with cuSPARSE's. Times are measured as
in products_gpu.py. Bandwidths count the bytes of the format and of both vectors, relative to the bandwidth of a copy.
"""

import sys

import cupy as cp
import numpy as np

from kernels_gpu import *
from products_cusparse import Cusparse
from products_gpu import copy_speed, timed
from products_kernels import early
from products_matrices import Matrix


# ---- matrices
class Csr:
    def __init__(self, rows, indptr, indices, values):
        self.rows, self.indptr, self.indices, self.values, self.nnz = rows, indptr, indices, values, int(indices.size)


def places(shape, offsets):
    """The columns of a stencil's entries in ascending order, and which of them exist."""
    n = int(np.prod(shape))
    index = cp.arange(n, dtype="i4")
    strides = [int(np.prod(shape[d + 1 :])) for d in range(len(shape))]
    offsets = sorted(offsets, key=lambda o: sum(a * s for a, s in zip(o, strides)))
    columns, mask = cp.empty((n, len(offsets)), "i4"), cp.ones((n, len(offsets)), bool)
    for k, o in enumerate(offsets):
        columns[:, k] = index + sum(a * s for a, s in zip(o, strides))
        for a, s, m in zip(o, strides, shape):
            if a:
                c = index // s % m + a
                mask[:, k] &= (c >= 0) & (c < m)
    return n, columns, mask, offsets


def box(d):
    return [tuple(c - 1 for c in np.unravel_index(i, (3,) * d)) for i in range(3**d)]


def mesh(shape, share, dtype):
    """An irregular mesh: a grid with all axis neighbours and a random, symmetric selection of the diagonal ones. Its
    nodes are shuffled within windows of 256, and values are arbitrary."""
    n, columns, mask, offsets = places(shape, box(len(shape)))
    random = cp.random.RandomState(1)
    for k, o in enumerate(offsets):
        if sum(map(abs, o)) > 1 and o > (0,) * len(o):
            keep = random.random_sample(n) < share
            mask[:, k] &= keep
            opposite = offsets.index(tuple(-a for a in o))
            source = cp.clip(columns[:, opposite], 0, n - 1)
            mask[:, opposite] &= keep[source]
    i, k = cp.nonzero(mask)
    shuffle = cp.argsort(cp.arange(n) // 256 * 256 + random.random_sample(n) * 255)
    new = cp.empty(n, "i8")
    new[shuffle] = cp.arange(n)
    i, j = new[i], new[columns[i, k]]
    key = cp.sort(i * n + j)
    i, j = key // n, key % n
    indptr = cp.searchsorted(i, cp.arange(n + 1)).astype("u4")
    return Csr(n, indptr, j.astype("u4"), cp.random.random(j.size, dtype="f8").astype(dtype) + 1)


# ---- the format
BUILD = cp.RawModule(
    code=r"""
typedef unsigned u32;
typedef long long i64;
#define NONE (1ll << 40)
__device__ i64 least(i64 v) {
    for (int s = 16; s; s /= 2) v = min(v, __shfl_xor_sync(~0u, v, s));
    return v;
}
// As kernels/compressed_sizes.cu: width of a section, its highest bit set where columns need 32 bits, and the section's bases.
extern "C" __global__ void sizes(u32 rows, const u32* order, const u32* o, const u32* j, u32* width, u32* base) {
    u32 p = blockIdx.x * blockDim.x + threadIdx.x;
    u32 row = p < rows ? order[p] : 0, from = p < rows ? o[row] : 0, n = p < rows ? o[row + 1] - from : 0, w = n, k = 0;
    for (int s = 16; s; s /= 2) w = max(w, __shfl_xor_sync(~0u, w, s));
    i64 low = least(n ? i64(j[from]) - row : NONE), high = -least(n ? row - i64(j[from + n - 1]) : NONE), next = low;
    bool wide = high - low >= 65535;
    for (u32 b = 0; b < 4; b++) {
        if (p % 32 == 0) base[p / 32 * 4 + b] = wide && next < NONE ? u32(next) - 16384 * b : u32(low);
        while (k < n && i64(j[from + k]) - row < next + 16383) k++;
        next = least(k < n ? i64(j[from + k]) - row : NONE);
    }
    if (p % 32 == 0 && p < rows) width[p / 32] = w | (wide && next < NONE ? 1u << 31 : 0);
}
template <typename V> __device__ void put(u32 rows, const u32* order, const u32* o, const u32* j, const V* v, const u32* entries, const u32* offsets, const u32* base, u32* words, V* values) {
    u32 p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= rows) return;
    u32 row = order[p], from = o[row], n = o[row + 1] - from, s = p / 32, w = (entries[s + 1] - entries[s]) / 32, quads = (w + 3) / 4;
    bool narrow = offsets[s + 1] - offsets[s] == 64 * quads;
    for (u32 k = 0; k < 4 * quads; k++) {
        u32 code = narrow ? 65535 : ~0u;
        for (u32 b = 4; k < n && narrow && b-- > 0;)
            if ((j[from + k] - row - base[4 * s + b]) >> 14 == b) code = j[from + k] - row - base[4 * s + b];
        if (narrow) ((unsigned short*)words)[2 * (size_t(offsets[s]) + k / 2 * 32 + p % 32) + k % 2] = code;
        else words[size_t(offsets[s]) + k * 32 + p % 32] = k < n ? j[from + k] : code;
        if (k < w) values[size_t(entries[s]) + k * 32 + p % 32] = k < n ? v[from + k] : V(0);
    }
}
extern "C" __global__ void put8(u32 rows, const u32* r, const u32* o, const u32* j, const double* v, const u32* e, const u32* w, const u32* b, u32* words, double* values) { put(rows, r, o, j, v, e, w, b, words, values); }
extern "C" __global__ void put4(u32 rows, const u32* r, const u32* o, const u32* j, const float* v, const u32* e, const u32* w, const u32* b, u32* words, float* values) { put(rows, r, o, j, v, e, w, b, words, values); }
""",
    options=("-std=c++17",),
)


def scan(v):
    return cp.concatenate([cp.zeros(1, "u4"), cp.cumsum(v).astype("u4")])


class Wide:
    """The format as src/matrix/compressed/compress.rs makes it for rows ordered by length, if neither rows nor values
    repeat, and distances repeat too little."""

    def __init__(self, a):
        self.a, n, t = a, a.rows, a.values.dtype
        L = (a.indptr[1:] - a.indptr[:-1]).astype("i8")
        order = cp.argsort(
            (cp.arange(n, dtype="i8") // 256 << 40) + ((1 << 16) - L << 20) + cp.arange(n, dtype="i8") % 256
        ).astype("u4")
        sections, grid = ceil(n, 32), (ceil(n, 256),)
        w, self.bases, self.order = cp.zeros(sections, "u4"), cp.zeros(4 * sections, "u4"), (order % 256).astype("u1")
        BUILD.get_function("sizes")(grid, (256,), (U32(n), order, a.indptr, a.indices, w, self.bases))
        far, w = w >> 31, w & 0x7FFFFFFF
        self.entries, self.offsets = scan(w * 32), scan((w + 3) // 4 * 64 * (1 + far))
        self.words, self.values = cp.zeros(int(self.offsets[-1]), "u4"), cp.zeros(int(self.entries[-1]), t)
        BUILD.get_function(f"put{t.itemsize}")(
            grid,
            (256,),
            (
                U32(n),
                order,
                a.indptr,
                a.indices,
                a.values,
                self.entries,
                self.offsets,
                self.bases,
                self.words,
                self.values,
            ),
        )
        parts = self.words, self.values, self.entries, self.offsets, self.bases, self.order
        self.bytes, self.far = sum(p.nbytes for p in parts) + 2 * n * t.itemsize, float(far.mean())

    def product(self, x, y):
        a, t = self.a, "f64" if x.dtype.itemsize == 8 else "f32"
        # Short rows of f32 have two sections per warp (src/backend/cuda/tuning/compressed.rs).
        threads = 128 if t == "f32" and self.words.size <= 6 * a.rows else 256
        constants = dict(
            VALUE=t,
            COLUMNS="COMPRESSED_WIDE",
            VALUES="COMPRESSED_STORED",
            THREADS=threads,
            UNROLL=16,
            MIN_BLOCKS=2048 // threads,
            DOT_UNROLL=12,
            DOT_BLOCKS=8,
        )
        f = kernel("compressed.cu", "compressed", SCALAR=t, STORED=t, OFFSET="u32", **constants)
        one, zero = x.dtype.type(1), x.dtype.type(0)
        arguments = (
            U(a.rows),
            self.order,
            ptr(None),
            ptr(None),
            ptr(None),
            self.offsets,
            self.bases,
            self.words,
            ptr(None),
            self.entries,
            self.values,
            U32(0),
            one,
            x,
            zero,
            y,
        )
        return early(f, ceil(a.rows, 256), threads, arguments)


def case(name, a, t, stream, copy):
    x, y = cp.random.random(a.rows).astype(a.values.dtype), cp.zeros(a.rows, a.values.dtype)
    m = Matrix(name, a.rows, a.rows, a.indptr, a.indices, a.values)
    m.values = {t: a.values}
    peer = Cusparse()
    peer.on(stream)
    theirs = {k: timed(run, stream) * 1e3 for k, run in peer.products(m, t, x, y)}
    want, s = y.copy(), Wide(a)
    run = s.product(x, y)
    us = timed(run, stream) * 1e3
    error = float((cp.abs(y - want) / (cp.abs(want) + 1)).max())
    if not error < (1e-12 if t == "f64" else 1e-4):
        print(f"WRONG by {error}")
    print(
        f"{name} {t}, {a.nnz} nonzeros, {s.far:.2f} of columns in 32 bits: {us:.1f} us, {s.bytes / us * 1e-3 / copy:.2f} of copy, {min(theirs.values()) / us:.2f} times",
        *(f"{k} {m:.1f}" for k, m in theirs.items()),
        flush=True,
    )


def main():
    stream = cp.cuda.Stream(non_blocking=True)
    copy = copy_speed(stream)
    print(f"copy {copy:.0f} GB/s")
    for name in sys.argv[1:] or [
        f"{m}/{t}" for m in ("2d-4096", "3d-192", "2d-2048", "3d-128") for t in ("f64", "f32")
    ]:
        (shape, side), t = name.split("/")[0].split("-"), name.split("/")[1]
        case(
            name, mesh((int(side),) * int(shape[0]), 0.5 if shape == "2d" else 0.4, np.dtype(TYPE[t])), t, stream, copy
        )
        cp.get_default_memory_pool().free_all_blocks()


if __name__ == "__main__":
    main()
