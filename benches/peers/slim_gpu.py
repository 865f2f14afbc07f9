"""The compressed format's kernels (kernels/slim*.cu) on one GPU without any Rust, beside cuSPARSE's CSR and SELL.

    python3 benches/peers/slim_gpu.py [--small] [--tune] [--single] [MATRIX ...]

Needs CuPy. Matrices are made on the GPU, compressed there by the format's own kernels, and every product is compared with
cuSPARSE's. Times are medians of event-timed launches; GB/s and the share of copy bandwidth count the format's own bytes.
"""
import argparse, ctypes, glob, os

import cupy as cp
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
KERNELS = os.environ.get("KERNELS", os.path.join(HERE, "..", "..", "kernels"))
SLOTS, KINDS, CODES, WIDE, STORED = 1024, 0, 1, 2, 3
NAMES = {np.dtype("f8"): "f64", np.dtype("f4"): "f32"}
modules = {}


def module(name, **constants):
    key = (name, tuple(sorted(constants.items())))
    if key not in modules:
        text = open(os.path.join(KERNELS, name + ".cu")).read()
        options = ("-std=c++17", "-I" + KERNELS) + tuple(f"-D{k}={v}" for k, v in key[1])
        modules[key] = cp.RawModule(code=text, options=options)
    return modules[key]


def kernel(name, entry, **constants):
    return module(name, **constants).get_function(entry)


def timed(f, reps=15):
    f(), f()
    times = []
    for _ in range(reps):
        a, b = cp.cuda.Event(), cp.cuda.Event()
        a.record(), f(), b.record(), b.synchronize()
        times.append(cp.cuda.get_elapsed_time(a, b))
    return sorted(times)[reps // 2]


# ---- matrices --------------------------------------------------------------------------------------------------------
class Csr:
    def __init__(self, rows, indptr, indices, values):
        self.rows, self.indptr, self.indices, self.values, self.nnz = rows, indptr, indices, values, int(indices.size)


def from_mask(n, columns, mask, values):
    counts = mask.sum(axis=1)
    indptr = cp.zeros(n + 1, "u4")
    cp.cumsum(counts, out=indptr[1:])
    return Csr(n, indptr, columns[mask].astype("u4"), values[mask])


def places(shape, offsets):
    """Columns and existence of a stencil's entries, in ascending order."""
    n = int(np.prod(shape))
    index = cp.arange(n, dtype="i4")
    strides = [int(np.prod(shape[d + 1:])) for d in range(len(shape))]
    offsets = sorted(offsets, key=lambda o: sum(a * s for a, s in zip(o, strides)))
    columns, mask = cp.empty((n, len(offsets)), "i4"), cp.ones((n, len(offsets)), bool)
    for k, o in enumerate(offsets):
        columns[:, k] = index + sum(a * s for a, s in zip(o, strides))
        for a, s, m in zip(o, strides, shape):
            if a:
                c = index // s % m + a
                mask[:, k] &= (c >= 0) & (c < m)
    return n, columns, mask, offsets


def star(d):
    return [(0,) * d] + [tuple(s if i == j else 0 for i in range(d)) for j in range(d) for s in (-1, 1)]


def box(d):
    return [tuple(c - 1 for c in np.unravel_index(i, (3,) * d)) for i in range(3**d)]


def stencil(shape, offsets, general, dtype):
    n, columns, mask, offsets = places(shape, offsets)
    if general:
        values = cp.random.random((n, len(offsets)), dtype="f8").astype(dtype) + 1
    else:
        values = cp.broadcast_to(cp.asarray([len(offsets) - 1.0 if not any(o) else -1.0 for o in offsets], dtype), columns.shape)
    return from_mask(n, columns, mask, values)


def elastic(m, dtype):
    """The pattern of trilinear elasticity on m^3 nodes with general values: blocks of 3 x 3."""
    n, columns, mask, _ = places((m, m, m), box(3))
    columns = (cp.repeat(columns, 3, axis=1) * 3 + cp.tile(cp.arange(3, dtype="i4"), 27)).repeat(3, axis=0)
    mask = cp.repeat(mask, 3, axis=1).repeat(3, axis=0)
    return from_mask(3 * n, columns, mask, cp.random.random(columns.shape, dtype="f8").astype(dtype) + 1)


def mesh(shape, share, dtype):
    """An irregular mesh: a grid with all axis neighbours and a random, symmetric choice of the diagonal ones, its nodes
    shuffled within windows of 256; general values."""
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


def matrices(small, dtype):
    s = 4 if small else 1
    g = lambda *shape: tuple(m // s for m in shape)
    return {
        "5-point": lambda: stencil(g(4096, 4096), star(2), False, dtype),
        "7-point": lambda: stencil(g(256, 256, 256), star(3), False, dtype),
        "27-point": lambda: stencil(g(160, 160, 160), box(3), False, dtype),
        "5-point-general": lambda: stencil(g(4096, 4096), star(2), True, dtype),
        "7-point-general": lambda: stencil(g(256, 256, 256), star(3), True, dtype),
        "27-point-general": lambda: stencil(g(160, 160, 160), box(3), True, dtype),
        "elasticity": lambda: elastic(64 // s, dtype),
        "mesh-2d": lambda: mesh(g(2048, 2048), 0.5, dtype),
        "mesh-3d": lambda: mesh(g(128, 128, 128), 0.4, dtype),
    }


# ---- the format ------------------------------------------------------------------------------------------------------
class Slim:
    """As src/matrix/slim/compress.rs builds it; `limit` keeps it from using what it could: kinds with values, kinds, codes."""

    def __init__(self, a, limit=()):
        self.a, dtype = a, a.values.dtype
        V = NAMES[dtype]
        n, longest = a.rows, 8 * a.nnz // max(a.rows, 1) + 64
        keys, first = cp.full(4 * SLOTS, 2**64 - 1, "u8"), cp.full(2 * SLOTS, 2**32 - 1, "u4")
        length, counters, long_rows = cp.zeros(2 * SLOTS, "u4"), cp.zeros(6, "u4"), cp.zeros(min(n, a.nnz // longest + 1), "u4")
        lanes = min(32, max(2, 1 << int(np.ceil(np.log2(a.nnz / n)) - 1)))
        survey = kernel("slim_survey", "survey", VALUE=V, OFFSET="u32", THREADS=256, LANES=lanes)
        args = (np.uint64(n), a.indptr, a.indices, a.values, np.uint32(longest), keys, first, length, counters, long_rows)
        run_survey = lambda: survey((132 * 5,), (256,), args)
        self.times = {}
        self.steps = []
        self.do("survey", run_survey)
        keys_h, counts = keys.get().reshape(4, SLOTS), counters.get()
        self.counts = counts
        assert counts[5] == 0, "long rows"
        distances = np.sort(keys_h[0][keys_h[0] != 2**64 - 1].astype("u4").view("i4")).view("u4") if counts[0] <= 255 and "codes" not in limit else None
        bits = "u8" if dtype.itemsize == 8 else "u4"
        numbers = np.sort(keys_h[1][keys_h[1] != 2**64 - 1].astype(bits)) if counts[1] <= 256 and "numbers" not in limit else None
        self.stored = V if counts[4] or "narrow" in limit else "f32"
        self.columns, self.values, self.lines = WIDE, STORED, False
        self.kind_of = self.starts = None
        self.order = None
        fill = dict(VALUE=V, STORED=self.stored, OFFSET="u32", TARGET="u32", THREADS=256, LANES=lanes, CHUNK=128)
        for which, name in ((1, "lines"), (0, "kinds")):
            if counts[2 + which] > 255 or name in limit:
                continue
            slots = np.nonzero(keys_h[2 + which] != 2**64 - 1)[0]
            rows, lengths = first.get()[which * SLOTS:][:SLOTS][slots], length.get()[which * SLOTS:][:SLOTS][slots]
            by_row = np.argsort(rows)
            starts = np.concatenate([[0], np.cumsum(lengths[by_row])]).astype("u4")
            if starts[-1] > 4096:
                continue
            codes = np.zeros(SLOTS, "u1")
            codes[slots[by_row]] = np.arange(slots.size)
            self.kinds, self.table = slots.size, int(starts[-1])
            self.starts, self.distances, self.table_numbers = cp.asarray(starts), cp.zeros(max(1, self.table), "u4"), cp.zeros(max(1, self.table), dtype)
            constants = dict(fill, COLUMNS=KINDS, VALUES=STORED, LINES=which)
            kernel("slim_fill", "slim_table", **constants)((self.kinds,), (256,), (a.indptr, a.indices, a.values, cp.asarray(rows[by_row]), self.starts, self.distances, self.table_numbers))
            self.kind_of, wrong = cp.zeros(n, "u1"), cp.zeros(1, "u4")
            f = kernel("slim_fill", "slim_rows", **constants)
            args2 = (np.uint64(n), a.indptr, a.indices, a.values, keys[(2 + which) * SLOTS:], cp.asarray(codes), self.starts, self.distances, self.table_numbers, self.kind_of, wrong)
            self.do("rows", lambda: f((132 * 8,), (256,), args2))
            assert wrong.get()[0] == 0
            self.columns, self.lines = KINDS, which == 1
            break
        if self.lines:
            self.bytes = n + self.table * (4 + dtype.itemsize) + 2 * n * dtype.itemsize
            return
        if self.columns != KINDS and distances is not None:
            self.columns, self.kinds, self.table = CODES, 0, distances.size
            self.distances = cp.asarray(distances)
        elif self.columns == WIDE:
            self.kinds, self.table, self.distances = 0, 0, cp.zeros(1, "u4")
        if numbers is not None:
            self.values = CODES
        self.numbers = cp.asarray(numbers.view(dtype)) if numbers is not None else cp.zeros(1, dtype)
        def codes_of(which, table):
            codes = np.zeros(SLOTS, "u1")
            if table is not None:
                slots = np.nonzero(keys_h[which] != 2**64 - 1)[0]
                codes[slots] = np.searchsorted(table.view("i4") if which == 0 else table, keys_h[which][slots].astype("u4").view("i4") if which == 0 else keys_h[which][slots].astype(bits))
            return cp.asarray(codes)
        column_codes, number_codes = codes_of(0, distances), codes_of(1, numbers)
        constants = dict(fill, COLUMNS=self.columns, VALUES=self.values, LINES=0)
        sections = (n + 31) // 32
        entries, words, self.bases = cp.zeros(sections + 1, "u4"), cp.zeros(sections + 1, "u4"), cp.zeros(sections, "u4")
        plan = kernel("slim_fill", "slim_sections", **constants)
        run_plan = lambda: plan(((sections + 7) // 8,), (256,), (np.uint64(n), 0 if self.order is None else self.order, a.indptr, a.indices, np.uint32(longest), entries, words, self.bases))
        self.do("sections", run_plan)
        if int(entries.sum()) - a.nnz > a.nnz // 20:
            self.order = cp.zeros(n, "u4")
            by_length = kernel("slim_fill", "slim_order", **constants)
            self.do("order", lambda: by_length(((n + 255) // 256,), (256,), (np.uint64(n), a.indptr, np.uint32(longest), self.order)))
            self.do("sections", run_plan)
        scan = lambda x: cp.concatenate([cp.zeros(1, "u4"), cp.cumsum(x[:-1]).astype("u4")])
        self.entries, self.offsets = scan(entries), scan(words)
        total = int(self.entries[-1])
        self.padding = total - a.nnz
        self.words = cp.zeros(max(1, int(self.offsets[-1])), "u4")
        self.stored_values = cp.zeros(max(1, total if self.values == STORED else 1), "f8" if self.stored == "f64" else "f4")
        f, wrong = kernel("slim_fill", "slim_fill", **constants), cp.zeros(1, "u4")
        args3 = (np.uint64(n), 0 if self.order is None else self.order, a.indptr, a.indices, a.values, np.uint32(longest), keys, column_codes, keys[SLOTS:], number_codes, self.offsets, self.entries, self.bases, self.words, self.stored_values, wrong)
        self.do("fill", lambda: f(((sections + 7) // 8,), (256,), args3))
        assert wrong.get()[0] == 0
        self.bytes = self.words.nbytes + self.stored_values.nbytes + self.entries.nbytes + self.offsets.nbytes + self.bases.nbytes + 2 * n * dtype.itemsize
        self.bytes += n if self.columns == KINDS else 0
        self.bytes += 4 * n if self.order is not None else 0

    def do(self, name, f):
        a, b = cp.cuda.Event(), cp.cuda.Event()
        kernel_ready = f  # the first call compiles: time a second one, which changes nothing
        if name == "survey":
            a.record(), f(), b.record(), b.synchronize()
            self.times[name] = cp.cuda.get_elapsed_time(a, b)
            return
        f()
        a.record(), f(), b.record(), b.synchronize()
        self.times[name] = cp.cuda.get_elapsed_time(a, b)

    def describe(self):
        columns = ["kinds", "codes", "wide"][self.columns]
        if self.lines:
            return f"lines({self.kinds}/{self.table})"
        return f"{columns}+{'codes' if self.values == CODES else self.stored}" + ("+order" if self.order is not None else "") + f" pad {self.padding / self.a.nnz:.3f}"

    def product(self, x, y, alpha=1.0, beta=0.0, **tuning):
        a, dtype = self.a, self.a.values.dtype
        T = V = NAMES[dtype]
        scalar = dtype.type
        if self.lines:
            c = dict(THREADS=256, ROWS=2, BLOCKS=8 if a.nnz < 16 * a.rows else 1 << 16)
            c.update(tuning)
            blocks = min(132 * c.pop("BLOCKS"), -(-a.rows // (c["THREADS"] * c["ROWS"])))
            f = kernel("slim_kinds", "slim_kinds", SCALAR=T, VALUE=V, **c)
            shared = self.table * (4 + dtype.itemsize) + 4 * (self.kinds + 1)
            args = (np.uint64(a.rows), self.kind_of, np.uint32(self.kinds), np.uint32(self.table), self.starts, self.distances, self.table_numbers, np.uint32(0), scalar(alpha), x, scalar(beta), y)
        else:
            c = dict(THREADS=256, QUADS=1, BLOCKS=8 if a.nnz < 16 * a.rows and self.order is None else 1 << 20)
            c.update(tuning)
            blocks = min(132 * c.pop("BLOCKS"), -(-a.rows // c["THREADS"]))
            f = kernel("slim", "slim", SCALAR=T, VALUE=V, STORED=self.stored, OFFSET="u32", COLUMNS=self.columns, VALUES=self.values, **c)
            shared = (256 * dtype.itemsize if self.values == CODES else 0) + (1024 if self.columns == CODES else 4 * (self.table + self.kinds + 1) if self.columns == KINDS else 0)
            null = 0
            args = (np.uint64(a.rows), null if self.order is None else self.order, null if self.kind_of is None else self.kind_of, np.uint32(self.kinds), np.uint32(self.table),
                    null if self.starts is None else self.starts, self.distances, self.offsets, self.bases, self.words, np.uint32(self.numbers.size), self.numbers, self.entries, self.stored_values,
                    np.uint32(0), scalar(alpha), x, scalar(beta), y)
        if shared > 48 * 1024:
            f.max_dynamic_shared_size_bytes = shared
        return lambda: f((blocks,), (c["THREADS"],), args, shared_mem=shared)


# ---- cuSPARSE --------------------------------------------------------------------------------------------------------
SELL = r"""
extern "C" __global__ void widths(unsigned rows, const unsigned* p, unsigned* w) {
    unsigned row = blockIdx.x * blockDim.x + threadIdx.x, n = row < rows ? p[row + 1] - p[row] : 0;
    for (int s = 16; s; s /= 2) n = max(n, __shfl_xor_sync(~0u, n, s));
    if (threadIdx.x % 32 == 0 && row < rows) w[row / 32] = n * 32;
}
template <typename V> __device__ void put(unsigned rows, const unsigned* p, const unsigned* j, const V* v, const int* o, int* tj, V* tv) {
    unsigned row = blockIdx.x * blockDim.x + threadIdx.x, s = row / 32;
    if (s >= (rows + 31) / 32) return;
    unsigned b = row < rows ? p[row] : 0, n = row < rows ? p[row + 1] - b : 0, w = (o[s + 1] - o[s]) / 32;
    for (unsigned k = 0; k < w; k++) {
        tj[o[s] + k * 32 + row % 32] = k < n ? (int)j[b + k] : -1;
        tv[o[s] + k * 32 + row % 32] = k < n ? v[b + k] : 0;
    }
}
extern "C" __global__ void put8(unsigned rows, const unsigned* p, const unsigned* j, const double* v, const int* o, int* tj, double* tv) { put(rows, p, j, v, o, tj, tv); }
extern "C" __global__ void put4(unsigned rows, const unsigned* p, const unsigned* j, const float* v, const int* o, int* tj, float* tv) { put(rows, p, j, v, o, tj, tv); }
"""


class Sparse:
    def __init__(self):
        for path in ["libcusparse.so.12", "libcusparse.so"] + glob.glob("/usr/local/cuda*/lib64/libcusparse.so*"):
            try:
                self.lib = ctypes.CDLL(path)
                break
            except OSError:
                continue
        self.handle = ctypes.c_void_p()
        assert self.lib.cusparseCreate(ctypes.byref(self.handle)) == 0
        self.sell = cp.RawModule(code=SELL)

    def spmv(self, descriptor, a, x, y, algorithm):
        p, i64 = lambda v: ctypes.c_void_p(v.data.ptr), ctypes.c_int64
        kind = 1 if a.values.dtype.itemsize == 8 else 0
        vx, vy, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
        self.lib.cusparseCreateDnVec(ctypes.byref(vx), i64(x.size), p(x), kind)
        self.lib.cusparseCreateDnVec(ctypes.byref(vy), i64(y.size), p(y), kind)
        scalar = ctypes.c_double if kind else ctypes.c_float
        one, zero = scalar(1), scalar(0)
        head = (self.handle, 0, ctypes.byref(one), descriptor, vx, ctypes.byref(zero), vy, kind, algorithm)
        assert self.lib.cusparseSpMV_bufferSize(*head, ctypes.byref(size)) == 0
        buffer = cp.zeros(size.value + 8, "u1")
        self.lib.cusparseSpMV_preprocess(*head, p(buffer))
        keep = (one, zero, buffer, vx, vy)
        def run(keep=keep):
            assert self.lib.cusparseSpMV(*head, p(buffer)) == 0
        run()
        return run

    def all(self, a, x, y):
        """Times of CSR with both algorithms and SELL with 32 rows."""
        p, i64 = lambda v: ctypes.c_void_p(v.data.ptr), ctypes.c_int64
        kind = 1 if a.values.dtype.itemsize == 8 else 0
        n, times = a.rows, {}
        d = ctypes.c_void_p()
        assert self.lib.cusparseCreateCsr(ctypes.byref(d), i64(n), i64(n), i64(a.nnz), p(a.indptr), p(a.indices), p(a.values), 2, 2, 0, kind) == 0
        for name, algorithm in (("csr1", 2), ("csr2", 3)):
            times[name] = timed(self.spmv(d, a, x, y, algorithm))
        result = y.copy()
        sections = (n + 31) // 32
        w = cp.zeros(sections, "u4")
        self.sell.get_function("widths")(((n + 255) // 256,), (256,), (np.uint32(n), a.indptr, w))
        o = cp.zeros(sections + 1, "i4")
        cp.cumsum(w, out=o[1:])
        total = int(o[-1])
        j, v = cp.empty(total, "i4"), cp.empty(total, a.values.dtype)
        self.sell.get_function("put8" if kind else "put4")(((n + 255) // 256,), (256,), (np.uint32(n), a.indptr, a.indices, a.values, o, j, v))
        s = ctypes.c_void_p()
        if self.lib.cusparseCreateSlicedEll(ctypes.byref(s), i64(n), i64(n), i64(a.nnz), i64(total), i64(32), p(o), p(j), p(v), 2, 2, 0, kind) == 0:
            times["sell"] = timed(self.spmv(s, a, x, y, 5))
            assert float(cp.abs(y - result).max()) < 1e-3
        return times, result


def copy_bandwidth():
    x = cp.ones(1 << 27)
    y = cp.empty_like(x)
    f = cp.RawKernel("extern \"C\" __global__ void copy(const uint4* a, uint4* b) { size_t i = (size_t(blockIdx.x) * 256 + threadIdx.x) * 2; uint4 u = __ldcs(a + i), v = __ldcs(a + i + 1); __stcs(b + i, u); __stcs(b + i + 1, v); }", "copy")
    return 16 * x.size / timed(lambda: f((x.size // 1024,), (256,), (x, y))) * 1e-6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--single", action="store_true")
    options = parser.parse_args()
    dtype = np.dtype("f4" if options.single else "f8")
    sparse, copy = Sparse(), copy_bandwidth()
    print(f"copy {copy:.0f} GB/s")
    for name, make in matrices(options.small, dtype).items():
        if options.names and name not in options.names:
            continue
        try:
            a = make()
            x = cp.random.random(a.rows, dtype="f8").astype(dtype)
            y = cp.full(a.rows, np.nan, dtype)
            peers, expected = sparse.all(a, x, y)
            best = min(peers.values())
            print(f"{name}: {a.rows} rows, {a.nnz} nonzeros; cuSPARSE " + ", ".join(f"{k} {v:.4f}" for k, v in peers.items()), flush=True)
            seen = set()
            for limit in [(), ("lines",), ("lines", "numbers"), ("lines", "numbers", "narrow"), ("lines", "kinds"), ("lines", "kinds", "codes"), ("lines", "kinds", "codes", "numbers", "narrow")]:
                s = Slim(a, limit)
                if s.describe() in seen:
                    continue
                seen.add(s.describe())
                build = sum(s.times.values())
                if s.lines:
                    tunings = [dict(THREADS=t, ROWS=r, BLOCKS=b) for t in (128, 256, 512) for r in (2, 4, 8) for b in (8 * 256 // t, 1 << 16)] if options.tune else [dict()]
                else:
                    tunings = [dict(THREADS=t, QUADS=q, BLOCKS=b) for t in (128, 256) for q in (1, 2, 3) for b in (8 * 256 // t, 1 << 16)] if options.tune else [dict()]
                times = []
                for tuning in tunings:
                    y.fill(np.nan)
                    f = s.product(x, y, **tuning)
                    f()
                    error = float((cp.abs(y - expected) / (cp.abs(expected) + 1)).max())
                    if not error < (1e-4 if options.single else 1e-12):
                        print(f"   WRONG by {error} {tuning}")
                    times.append((timed(f), tuning))
                times.sort(key=lambda t: t[0])
                ms, tuning = times[0]
                print(f"   {s.describe():34} {ms:.4f} ms  {best / ms:.2f} of cuSPARSE's best  {s.bytes / ms * 1e-6:5.0f} GB/s  {s.bytes / ms * 1e-6 / copy:.2f} of copy  built in {build:.2f} ms = {build / peers['csr1']:.1f} csr "
                      + " ".join(f"{k} {v:.2f}" for k, v in s.times.items()), flush=True)
                if options.tune:
                    print("      " + "  ".join(f"{'/'.join(str(v) for v in t.values())} {ms:.4f}" for ms, t in times[:8]), flush=True)
                del s
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}"[:1500], flush=True)
        a = x = y = expected = None
        cp.get_default_memory_pool().free_all_blocks()


if __name__ == "__main__":
    main()
