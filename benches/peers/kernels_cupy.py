"""Checks and times the kernels of kernels/ on one GPU without any Rust, beside CUB on the same arrays.

    nvcc -O3 -std=c++17 -arch=sm_90 -shared -Xcompiler -fPIC benches/peers/kernels_cub.cu -o libkernels_cub.so
    python3 benches/peers/kernels_cupy.py check [NAME ...]       every kernel against NumPy/CuPy on awkward inputs
    python3 benches/peers/kernels_cupy.py bench [NAME ...] --cub libkernels_cub.so
    python3 benches/peers/kernels_cupy.py tune [NAME ...]        sweeps the constants, best last

Needs CuPy and NumPy. Kernels are compiled by NVRTC through ctypes, many at a time. Each time is the median of
event-timed replays of a captured graph; GB/s count the bytes that the operation must move, once each.
"""
import argparse, collections, concurrent.futures, ctypes, glob, hashlib, itertools, multiprocessing, os, site, sys, tempfile, time

import numpy as np

cp = None  # CuPy, imported by main: the compiling processes do without

HERE = os.path.dirname(os.path.abspath(__file__))
KERNELS = os.environ.get("KERNELS", os.path.join(HERE, "..", "..", "kernels"))
CACHE = os.path.join(tempfile.gettempdir(), "kernels_cupy")


# ---- compiling -------------------------------------------------------------------------------------------------------
def nvrtc():
    places = [os.environ.get("NVRTC_FOLDER", ""), "/usr/local/cuda/lib64"] + [os.path.join(s, "nvidia", d, "lib") for s in site.getsitepackages() for d in ("cu13", "cuda_nvrtc")]
    for place in places:
        for path in sorted(glob.glob(os.path.join(place, "libnvrtc.so*"))):
            return ctypes.CDLL(path)
    return ctypes.CDLL("libnvrtc.so")


def compile_one(job):
    """(file, (define, ...), arch) -> path of a cubin, or the compiler's log."""
    name, defines, arch = job
    sources = {f: open(os.path.join(KERNELS, f), "rb").read() for f in sorted(os.listdir(KERNELS)) if f.endswith((".cu", ".cuh"))}
    key = hashlib.sha256(repr((sources, job)).encode()).hexdigest()[:24]
    path = os.path.join(CACHE, key + ".cubin")
    if os.path.exists(path):
        return path
    lib, program = nvrtc(), ctypes.c_void_p()
    headers = [f for f in sources if f.endswith(".cuh")]
    strings = lambda items: (ctypes.c_char_p * len(items))(*items)
    lib.nvrtcCreateProgram(ctypes.byref(program), sources[name], name.encode(), len(headers), strings([sources[h] for h in headers]), strings([h.encode() for h in headers]))
    options = [b"--std=c++17", b"-lineinfo", f"--gpu-architecture=sm_{arch}".encode()] + [b"-D" + d.encode() for d in defines]
    failed, size = lib.nvrtcCompileProgram(program, len(options), strings(options)), ctypes.c_size_t()
    if failed:
        lib.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        lib.nvrtcGetProgramLog(program, log)
        return f"ERROR {name} {' '.join(defines)}\n{log.value.decode()[:3000]}"
    lib.nvrtcGetCUBINSize(program, ctypes.byref(size))
    cubin = ctypes.create_string_buffer(size.value)
    lib.nvrtcGetCUBIN(program, cubin)
    os.makedirs(CACHE, exist_ok=True)
    with open(path + f".{os.getpid()}", "wb") as f:
        f.write(cubin.raw)
    os.replace(path + f".{os.getpid()}", path)
    return path


def defines(**constants):
    return tuple(f"{k}={v}" for k, v in sorted(constants.items()))


def compile_all(jobs, workers=os.cpu_count()):
    """Compiles [(file, {constants})] side by side, so that later calls of `module` find them."""
    jobs = sorted({(f, defines(**c), arch()) for f, c in jobs})
    if not jobs:
        return True
    with concurrent.futures.ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        results = list(pool.map(compile_one, jobs))
    bad = [r for r in results if r.startswith("ERROR")]
    for r in bad:
        print(r)
    return not bad


def arch():
    return os.environ.get("ARCH") or cp.cuda.Device().compute_capability


loaded = {}


def kernel(file, name, shared=0, **constants):
    key = (file, name, defines(**constants))
    if key not in loaded:
        path = compile_one((file, defines(**constants), arch()))
        if path.startswith("ERROR"):
            raise RuntimeError(path)
        loaded[key] = cp.RawModule(path=path).get_function(name)
    f = loaded[key]
    if f.max_dynamic_shared_size_bytes < shared:
        f.max_dynamic_shared_size_bytes = shared
    f.preferred_shared_memory_carveout = int(os.environ.get("CARVEOUT", 100))
    return f


SM = lambda: cp.cuda.Device().attributes["MultiProcessorCount"]


def resident(f, tiles, threads, shared=0):
    blocks = cp.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(f.kernel.ptr, threads, shared)
    return max(1, min(tiles, blocks * SM()))


SIZE = dict(u8=1, u16=2, u32=4, u64=8, i8=1, i16=2, i32=4, i64=8, f32=4, f64=8, c32=8, c64=16)
TYPE = dict(u8="u1", u16="u2", u32="u4", u64="u8", i8="i1", i16="i2", i32="i4", i64="i8", f32="f4", f64="f8", c32="c8", c64="c16")
NP = lambda name: np.dtype(TYPE[name])
U = np.uint64
U32 = np.uint32
ptr = lambda a: U(0 if a is None else a.data.ptr)


def ceil(a, b):
    return -(-a // b)


workspace_words = 0
workspace = None


def lookback_workspace(words):
    """One for all look-back kernels in turn, as kernels/README.md allows."""
    global workspace, workspace_words
    if workspace is None or workspace_words < words:
        workspace_words = max(words, 1 << 16)
        workspace = cp.zeros(4 + workspace_words, dtype=np.uint64)
        workspace[3] = workspace_words
    return workspace


# ---- policies: the constants, by kernel and by size of types and arrays ------------------------------------------------
def reduce_constants(op, inp, acc, out, **c):
    return dict(IN=inp, ACC=acc, OUT=out, OP=op, THREADS=256, UNROLL=4) | c


def scan_constants(inp, out, acc, inclusive=0, **c):
    return dict(IN=inp, OUT=out, ACC=acc, INCLUSIVE=inclusive, THREADS=256, ROWS=4, MIN_BLOCKS=4) | c


def compact_constants(mode, inp, index="u32", **c):
    return dict(MODE=mode, IN=inp, INDEX=index, THREADS=256, ROWS=4, MIN_BLOCKS=3) | c


def reduce_by_key_constants(key, value, index="u32", **c):
    return dict(KEY=key, VALUE=value, INDEX=index, THREADS=256, ROWS=4, MIN_BLOCKS=3 if SIZE[value] < 16 else 1) | c


def sort_constants(key, value_bytes, n, **c):
    if n < 1 << 18:
        policy = dict(THREADS=256, ITEMS=8, MIN_BLOCKS=2, LOOK_AT_ONCE=8)
    elif n < 1 << 23:
        policy = dict(THREADS=256, ITEMS=12, MIN_BLOCKS=2, LOOK_AT_ONCE=8)
    else:
        policy = dict(THREADS=512, ITEMS=16, MIN_BLOCKS=2 if SIZE[key] <= 4 else 1, LOOK_AT_ONCE=4)
    look = "u32" if n < 1 << 30 else "u64"
    return dict(KEY=key, VALUE_BYTES=value_bytes, LOOK=look, HISTOGRAM_THREADS=256, HISTOGRAM_ITEMS=16, MATCH_HARDWARE=0) | policy | c


def histogram_constants(**c):
    return dict(COUNT="u32", THREADS=512, ITEMS=16, CACHE=8192, WINDOW=4096) | c


# ---- the operations ----------------------------------------------------------------------------------------------------
def reduce(op, inp, acc, out_type, x, y=None, grid=None, **constants):
    c = reduce_constants(op, inp, acc, out_type, **constants)
    f = kernel("reduce.cu", "reduce", **c)
    n = x.size
    grid = resident(f, ceil(n, c["THREADS"] * c["UNROLL"] * (16 // SIZE[inp])), c["THREADS"])
    ws = cp.zeros(2 + grid * SIZE[acc] // 4 + 2, dtype=np.uint64)
    out = cp.empty(1, dtype=NP(out_type))
    return out, lambda: f((grid,), (c["THREADS"],), (ptr(x), ptr(y), U(n), ptr(out), ptr(ws)))


def scan(inp, out_type, acc, x, inclusive=0, out=None, **constants):
    c = scan_constants(inp, out_type, acc, inclusive, **constants)
    tile = c["THREADS"] * c["ROWS"] * (16 // SIZE[inp])
    shared = tile * SIZE[acc]
    f = kernel("scan.cu", "scan", shared, **c)
    tiles = ceil(x.size, tile)
    ws = lookback_workspace(tiles * SIZE[acc] // 4)
    out = cp.empty(x.size, dtype=NP(out_type)) if out is None else out
    grid = resident(f, tiles, c["THREADS"], shared)
    return out, lambda: f((grid,), (c["THREADS"],), (ptr(x), ptr(out), U(x.size), ptr(ws)), shared_mem=shared)


def compact(mode, inp, n, x=None, flags=None, index="u32", **constants):
    c = compact_constants(mode, inp, index, **constants)
    item = index if mode == "POSITIONS" else inp
    vec = 4 if mode == "POSITIONS" or SIZE[inp] <= 4 else 16 // SIZE[inp]
    tile = c["THREADS"] * c["ROWS"] * vec
    shared = 2 * tile * SIZE[item]
    f = kernel("compact.cu", "compact", shared, **c)
    tiles = ceil(n, tile)
    ws = lookback_workspace(tiles * SIZE[index] // 4)
    out, rest, kept = cp.empty(n, NP(item)), cp.empty(n if mode == "PARTITION" else 0, NP(item)), cp.empty(1, np.uint64)
    grid = resident(f, tiles, c["THREADS"], shared)
    return (out, rest, kept), lambda: f((grid,), (c["THREADS"],), (ptr(x), ptr(flags), ptr(out), ptr(rest), U(n), ptr(kept), ptr(ws)), shared_mem=shared)


def reduce_by_key(key, value, keys, values, index="u32", **constants):
    c = reduce_by_key_constants(key, value, index, **constants)
    tile = c["THREADS"] * c["ROWS"] * 2
    shared = 2 * tile * (SIZE[key] + SIZE[value])
    f = kernel("reduce_by_key.cu", "reduce_by_key", shared, **c)
    n, tiles = keys.size, ceil(keys.size, tile)
    words = 8 if value == "c64" else 2 if SIZE[value] == 4 and index == "u32" else 4
    ws = lookback_workspace(tiles * words)
    out = cp.empty(n, NP(key)), cp.empty(n, NP(value)), cp.empty(1, np.uint64)
    grid = resident(f, tiles, c["THREADS"], shared)
    return out, lambda: f((grid,), (c["THREADS"],), (ptr(keys), ptr(values), ptr(out[0]), ptr(out[1]), U(n), ptr(out[2]), ptr(ws)), shared_mem=shared)


Sort = collections.namedtuple("Sort", "result launch")
sort_ws = None


def sort(key, keys, values=None, bits=None, small=False, **constants):
    """Sorts `keys` (and `values`), which it overwrites; .result names the arrays that hold the outcome."""
    global sort_ws
    first_bit, end_bit = bits or (0, 8 * SIZE[key])
    n, value_bytes = keys.size, values.dtype.itemsize if values is not None else 0
    c = sort_constants(key, value_bytes, n, **constants)
    t, tile = c["THREADS"], c["THREADS"] * c["ITEMS"]
    shared = t // 32 * 1024 + tile * max(SIZE[key], value_bytes)
    bit_count = end_bit - first_bit
    other_k, other_v = cp.empty_like(keys), None if values is None else cp.empty_like(values)
    if small:
        f = kernel("sort.cu", "sort_small", shared, **c)
        return Sort((other_k, other_v), lambda: f((1,), (t,), (ptr(keys), ptr(other_k), ptr(values), ptr(other_v), U(n), U32(first_bit), U32(bit_count)), shared_mem=shared))
    passes, tiles = ceil(bit_count, 8), ceil(n, tile)
    look_words = ceil(passes * tiles * 256 * SIZE[c["LOOK"]], 8)
    if sort_ws is None or sort_ws.size < 2064 + look_words:
        sort_ws = cp.zeros(2064 + look_words, np.uint64)
    ws = sort_ws
    h, p, e = (kernel("sort.cu", f, shared if f == "sort_pass" else 0, **c) for f in ("sort_histogram", "sort_pass", "sort_finish"))
    ht = c["HISTOGRAM_THREADS"]
    hist_grid = max(1, min(ceil(n, ht * c["HISTOGRAM_ITEMS"]), 4 * SM()))
    finish_grid = max(1, min(ceil(n, ht * 4), 4 * SM()))
    both = ptr(keys), ptr(other_k), ptr(values), ptr(other_v)

    def launch():
        h((hist_grid,), (ht,), (ptr(keys), U(n), U32(first_bit), U32(bit_count), U32(passes), ptr(ws), U(look_words)))
        for i in range(passes):
            if tiles:
                p((tiles,), (t,), both + (U(n), U32(first_bit), U32(bit_count), U32(passes), U32(i), ptr(ws)), shared_mem=shared)
        e((finish_grid,), (ht,), both + (U(n), U32(passes), ptr(ws)))

    return Sort((other_k, other_v) if passes % 2 else (keys, values), launch)


def histogram(x, bins, way, counts=None, **constants):
    """`way`: shared, cached, or sorted (groups by the upper bits first, with the radix sort's pass)."""
    c = histogram_constants(**constants)
    shared = {"shared": bins * 4, "cached": c["CACHE"] * 8, "sorted": c["WINDOW"] * 4}[way]
    f = kernel("histogram.cu", {"shared": "histogram", "cached": "histogram_cached", "sorted": "histogram_by_tiles"}[way], shared, **c)
    n, t = x.size, c["THREADS"]
    counts = cp.zeros(bins, NP(c["COUNT"])) if counts is None else counts
    grid = resident(f, ceil(n, t * c["ITEMS"]), t, shared)
    if way != "sorted":
        return counts, lambda: f((grid,), (t,), (ptr(x), U(n), ptr(counts), U32(bins)), shared_mem=shared)
    low, high = c["WINDOW"].bit_length() - 1, max(1, (bins - 1).bit_length())
    grouped = sort("u32", x, bits=(low, max(high, low + 1)))

    def launch():
        grouped.launch()
        f((grid,), (t,), (ptr(grouped.result[0]), U(n), ptr(counts), U32(bins)), shared_mem=shared)

    return counts, launch


# ---- checks ------------------------------------------------------------------------------------------------------------
SIZES = [0, 1, 2, 31, 32, 33, 255, 257, 1023, 2047, 2048, 2049, 4095, 4096, 4097, 8191, 8192, 8193, 10007, 65536, 100003, 1000003, 4194301]
rng = np.random.default_rng(1)
failures = 0
checked = 0


def expect(what, ok):
    global failures, checked
    checked += 1
    if not ok:
        failures += 1
        print("WRONG", what, flush=True)


def poison(*arrays):
    for a in arrays:
        if a is not None and a.size:
            a.view(np.uint8)[:] = 0xA5


def same_bits(a, b):
    a, b = (cp.asnumpy(v) for v in (a, b))
    return a.shape == b.shape and a.tobytes() == b.tobytes()


def near(got, want, scale):
    return abs(complex(got) - complex(want)) <= 1e-12 * scale + (1e-4 * scale if got.dtype in (np.float32, np.complex64) else 0)


def random_values(kind, n):
    t = NP(kind)
    if t.kind == "c":
        return (rng.standard_normal(n) + 1j * rng.standard_normal(n)).astype(t)
    if t.kind == "f":
        return rng.standard_normal(n).astype(t)
    return rng.integers(0, 1 << min(16, 8 * t.itemsize - 1), n).astype(t)


REDUCE_CASES = [("f64", "f64", "f64", "SUM"), ("f64", "f64", "f64", "DOT"), ("f32", "f64", "f32", "DOT"), ("c64", "c64", "c64", "DOT"), ("c32", "c64", "c64", "SUM"), ("c32", "c32", "c32", "DOT"),
                ("c32", "f64", "f32", "NORM2"), ("f64", "f64", "f64", "NORM1"), ("f32", "f32", "f32", "NORMINF"), ("u32", "u64", "u64", "SUM"), ("u64", "u64", "u64", "MIN"), ("i32", "i32", "i32", "MAX"), ("f64", "f64", "f64", "MIN")]


def check_reduce():
    for inp, acc, out, op in REDUCE_CASES:
        for n in SIZES:
            for off in (0, 1):
                x, y = (random_values(inp, n + off)[off:] for _ in "xy")
                dx, dy = cp.asarray(np.concatenate([np.zeros(off, x.dtype), x]))[off:], cp.asarray(np.concatenate([np.zeros(off, y.dtype), y]))[off:]
                got, launch = reduce(op, inp, acc, out, dx, dy if op == "DOT" else None)
                poison(got)
                launch()
                first = got.get()
                launch()
                wide = np.complex128 if NP(inp).kind == "c" else np.float64
                X, Y = x.astype(wide), y.astype(wide)
                want = {"SUM": X.sum(), "DOT": (X.conj() * Y).sum(), "NORM2": (abs(X) ** 2).sum(), "NORM1": abs(X).sum(), "NORMINF": abs(X).max(initial=0)}.get(op)
                if op in ("MIN", "MAX"):
                    if n == 0:
                        continue
                    want = x.min() if op == "MIN" else x.max()
                    ok = first[0] == want
                else:
                    ok = near(first[0], want, float((abs(X) * (abs(Y) if op == "DOT" else 1)).sum()) + float((abs(X) ** 2).sum() if op == "NORM2" else 0) + 1e-300)
                expect(f"reduce {op} {inp} n={n} offset={off}: {first[0]} {want}", ok and same_bits(first, got))


SCAN_CASES = [("u32", "u32", "u32"), ("u32", "u64", "u64"), ("u64", "u64", "u64"), ("f64", "f64", "f64"), ("f32", "f32", "f32"), ("i32", "i32", "i32")]


def check_scan():
    for inp, out, acc in SCAN_CASES:
        for inclusive in (0, 1):
            for n in SIZES:
                off = n % 3 == 1
                x = random_values(inp, n)
                if inp == "u64":
                    x = rng.integers(0, 1 << 63, n, dtype=np.uint64)
                dx = cp.asarray(np.concatenate([x[:off], x]))[off:] if n else cp.asarray(x)
                got, launch = scan(inp, out, acc, dx, inclusive)
                poison(got)
                launch()
                first = got.get()
                poison(got)
                launch()
                want = np.cumsum(x, dtype=NP(out) if NP(out).kind != "f" else np.float64)
                if not inclusive:
                    want = np.concatenate([np.zeros(1, want.dtype), want])[:n]
                ok = np.abs(first - want).max(initial=0) <= (1e-10 if out == "f64" else 2e-2) * max(1, n) ** 0.5 if NP(out).kind == "f" else same_bits(first, want)
                expect(f"scan {inp}->{out} inclusive={inclusive} n={n}", ok and same_bits(first, got))


def check_compact():
    for inp in ("u32", "u64", "f64", "u8"):
        for n in SIZES:
            for density in (0.0, 0.03, 0.5, 1.0):
                x = np.sort(rng.integers(0, max(1, int(n * density * 0.7) + 1), n)).astype(NP(inp)) if inp != "u8" else random_values(inp, n) & 1
                flags = (rng.random(n) < density).astype(np.uint8) * 3
                off = n % 3 == 1
                dx = cp.asarray(np.concatenate([x[:off], x]))[off:] if n else cp.asarray(x)
                df = cp.asarray(np.concatenate([flags[:off], flags]))[off:] if n else cp.asarray(flags)
                for mode in ("UNIQUE", "FLAGGED", "PARTITION", "POSITIONS"):
                    if mode == "POSITIONS" and inp != "u32":
                        continue
                    index = "u64" if density == 0.5 else "u32"
                    (out, rest, kept), launch = compact(mode, inp, n, dx, df, index)
                    poison(out, rest, kept)
                    launch()
                    if mode == "UNIQUE":
                        want = x[np.concatenate([[True], x[1:] != x[:-1]])] if n else x
                    elif mode == "POSITIONS":
                        want = np.flatnonzero(flags).astype(NP(index))
                    else:
                        want = x[flags != 0]
                    k = int(kept[0])
                    ok = k == want.size and same_bits(out[:k], want) and (mode != "PARTITION" or same_bits(rest[: n - k], x[flags == 0]))
                    expect(f"compact {mode} {inp} n={n} density={density}: {k} {want.size}", ok)


RBK_CASES = [("u64", "f64"), ("u32", "f32"), ("u64", "c64"), ("u64", "c32"), ("u32", "u64"), ("f64", "f64"), ("u64", "u32")]


def check_reduce_by_key():
    for key, value in RBK_CASES:
        for n in SIZES:
            for mean in (1, 1.3, 4, 64, 3000, 1e9):
                off = n % 3 == 1
                keys = np.cumsum(rng.random(n) < 1 / mean).astype(NP(key))
                values = random_values(value, n)
                dk, dv = (cp.asarray(np.concatenate([a[:off], a]))[off:] if n else cp.asarray(a) for a in (keys, values))
                index = "u64" if mean == 4 else "u32"
                (ko, so, runs), launch = reduce_by_key(key, value, dk, dv, index)
                poison(ko, so, runs)
                launch()
                r = int(runs[0])
                ok = False
                heads = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if n else np.zeros(0, int)
                if r == heads.size:
                    first = so[:r].get()
                    wide = values.astype({"f": np.float64, "c": np.complex128, "u": np.uint64}[values.dtype.kind])
                    want = np.add.reduceat(wide, heads) if n else values
                    want = want.astype(values.dtype) if values.dtype.kind == "u" else want
                    scale = np.add.reduceat(np.abs(values).astype(np.float64), heads) if n else values
                    tol = {"f4": 1e-5, "c8": 1e-5}.get(values.dtype.str[1:], 1e-13)
                    ok = same_bits(ko[:r], keys[heads]) and (bool(np.all(first == want)) if values.dtype.kind == "u" else bool(np.all(np.abs(first - want) <= tol * scale)))
                    poison(ko, so)
                    launch()
                    ok = ok and same_bits(first, so[:r])
                expect(f"reduce_by_key {key} {value} n={n} mean run={mean}: {r} {heads.size}", ok)


def key_cases(key, n):
    t = NP(key)
    u = np.dtype(f"u{t.itemsize}")
    raw = rng.integers(0, 1 << 63, n, dtype=np.uint64).astype(np.uint64) * np.uint64(2) + rng.integers(0, 2, n).astype(np.uint64)
    random = raw.astype(u).view(t)  # for floats: NaNs of both signs, subnormals, infinities
    yield "random bits", random
    yield "all equal", np.repeat(random[:1], n)
    yield "ascending", np.arange(n).astype(t)
    yield "descending", np.arange(n)[::-1].astype(t)
    few = rng.integers(0, 3, n)
    yield "few, constant digits", (few * 257).astype(t)
    if t.kind == "f":
        yield "zeros, infinities, NaN", np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1, -1], dtype=t)[rng.integers(0, 8, n)]


def ordered(keys):
    u = keys.view(np.dtype(f"u{keys.dtype.itemsize}"))
    sign = u.dtype.type(1 << (8 * keys.dtype.itemsize - 1))
    if keys.dtype.kind == "f":
        return np.where(u & sign, ~u, u ^ sign)
    return u ^ sign if keys.dtype.kind == "i" else u


def sort_case(key, value_bytes, keys, bits, small, what, **constants):
    n = keys.size
    vt = np.dtype({0: "u4", 1: "u1", 2: "u2", 4: "u4", 8: "u8", 16: "c16"}[value_bytes])
    values = np.arange(n).astype(vt)
    dk, dv = cp.asarray(keys), cp.asarray(values) if value_bytes else None
    s = sort(key, dk, dv, bits, small, **constants)
    if s.result[0] is not dk:
        poison(*s.result)
    s.launch()
    o = ordered(keys)
    if bits:
        o = (o >> o.dtype.type(bits[0])) & o.dtype.type((1 << (bits[1] - bits[0])) - 1)
    order = np.argsort(o, kind="stable")
    ok = same_bits(s.result[0], keys[order]) and (not value_bytes or same_bits(s.result[1], values[order]))
    expect(f"sort {key} values={value_bytes} {what} n={n} bits={bits} small={small}", ok)


SORT_CASES = [("u32", 0), ("u32", 4), ("u64", 0), ("u64", 4), ("u64", 8), ("i32", 4), ("f32", 0), ("f64", 8), ("u64", 16), ("u16", 2), ("u8", 1)]


def check_sort():
    for key, value_bytes in SORT_CASES:
        width = 8 * SIZE[key]
        for n in SIZES:
            for what, keys in key_cases(key, n):
                sort_case(key, value_bytes, keys, None, False, what)
                if n <= 2048:
                    sort_case(key, value_bytes, keys, None, True, what)
                if what == "random bits" and width > 8:
                    sort_case(key, value_bytes, keys, (3, width - 5), False, what)
                    sort_case(key, value_bytes, keys, (0, 1), False, what)
    for n in (1 << 20, 9_000_011):
        for value_bytes in (0, 4):
            keys = rng.integers(0, 1 << 46, n, dtype=np.uint64)
            sort_case("u64", value_bytes, keys, (0, 46), False, "46 bits")
            sort_case("u64", value_bytes, keys, None, False, "46 bits of 64", LOOK="u64")


def check_histogram():
    for n in SIZES:
        for bins in (1, 7, 256, 4097, 1 << 20):
            for skew in (1, 4):
                x = (bins * rng.random(n) ** skew).astype(np.uint32)
                if n > 3:
                    x[::97] = bins + 5  # left out
                want = np.bincount(x[x < bins], minlength=bins).astype(np.uint32)
                for way in ("shared", "cached", "sorted"):
                    if way == "shared" and bins > 8192 or way == "sorted" and bins < 4096:
                        continue
                    counts, launch = histogram(cp.asarray(x), bins, way)
                    launch()
                    expect(f"histogram {way} n={n} bins={bins} skew={skew}", same_bits(counts, want))


# ---- timing ------------------------------------------------------------------------------------------------------------
def median_ms(launch, before=None, reps=15, inner=1):
    """Median milliseconds of `launch`, replayed from a captured graph; `before` runs outside of the timed stretch."""
    cp.cuda.Device().synchronize()
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        if before:
            before()
        launch()
        stream.synchronize()
        stream.begin_capture()
        for _ in range(inner):
            launch()
        graph = stream.end_capture()
        start, end, times = cp.cuda.Event(), cp.cuda.Event(), []
        for i in range(reps + 2):
            if before:
                before()
            start.record(stream)
            graph.launch(stream)
            end.record(stream)
            end.synchronize()
            times.append(cp.cuda.get_elapsed_time(start, end) / inner)
    return sorted(times[2:])[reps // 2]


class Cub:
    def __init__(self, paths):
        self.libs = [ctypes.CDLL(os.path.abspath(p)) for p in paths]

    def __call__(self, name, *args):
        """A closure that launches cub_NAME(args), its temporary storage allocated."""
        f = next((getattr(lib, name) for lib in self.libs if hasattr(lib, name)), None)
        if f is None:
            return None
        raw = [ctypes.c_void_p(a.data.ptr) if hasattr(a, "data") else a for a in args]
        size = ctypes.c_size_t(0)
        f(None, ctypes.byref(size), *raw, None)
        temp = cp.empty(max(size.value, 1), np.uint8)

        def launch():
            error = f(ctypes.c_void_p(temp.data.ptr), ctypes.byref(size), *raw, ctypes.c_void_p(cp.cuda.get_current_stream().ptr))
            assert error == 0, f"{name}: CUDA error {error}"

        launch.keep = (temp, args)
        return launch


cub = None
C64, CINT = ctypes.c_uint64, ctypes.c_int
rows = []


def report(name, n, our_ms, cub_ms, total_bytes=None, note=""):
    gb = f"{total_bytes / our_ms * 1e-6:8.0f}" if total_bytes else f"{n / our_ms * 1e-6:7.2f}G"
    peer = f"{cub_ms:9.4f} {cub_ms / our_ms:6.2f}" if cub_ms else "        -      -"
    line = f"{name:34s} {n:11d} {our_ms:9.4f} {peer} {gb}  {note}"
    rows.append(line)
    print(line, flush=True)


def header():
    print(f"{'what':34s} {'n':>11s} {'ours ms':>9s} {'CUB ms':>9s} {'ratio':>6s} {'GB/s|/s':>8s}")


def cub_time(name, *args, reps=15, inner=1):
    launch = cub(name, *args) if cub else None
    return median_ms(launch, reps=reps, inner=inner) if launch else None


def inner_for(n):
    return 20 if n <= 1 << 21 else 1


def bench_copy():
    n = 1 << 29
    a, b = cp.ones(n, np.float64), cp.empty(n, np.float64)
    start, end, times = cp.cuda.Event(), cp.cuda.Event(), []
    for _ in range(9):
        start.record()
        cp.copyto(b, a)
        end.record()
        end.synchronize()
        times.append(cp.cuda.get_elapsed_time(start, end))
    ms = sorted(times)[4]
    report("copy f64", n, ms, None, 16 * n)


def bench_reduce():
    for n in (1 << 28, 1 << 20, 1 << 16):
        k = inner_for(n)
        x, y = cp.random.standard_normal(n), cp.random.standard_normal(n)
        out, launch = reduce("SUM", "f64", "f64", "f64", x)
        report("sum f64", n, median_ms(launch, inner=k), cub_time("cub_sum_f64", x, out, C64(n), inner=k), 8 * n)
        out, launch = reduce("DOT", "f64", "f64", "f64", x, y)
        report("dot f64", n, median_ms(launch, inner=k), cub_time("cub_dot_f64", x, y, out, C64(n), inner=k), 16 * n)


def bench_scan():
    for inp, n in (("u32", 1 << 29), ("u64", 1 << 28), ("u32", 1 << 20), ("u64", 1 << 20), ("u32", 1 << 16)):
        k = inner_for(n)
        x = cp.random.randint(0, 100, n).astype(NP(inp))
        out, launch = scan(inp, inp, inp, x)
        report(f"exclusive scan {inp}", n, median_ms(launch, inner=k), cub_time(f"cub_scan_{inp}", x, out, C64(n), inner=k), 2 * SIZE[inp] * n)
    x = cp.random.standard_normal(1 << 28)
    out, launch = scan("f64", "f64", "f64", x)
    report("exclusive scan f64", x.size, median_ms(launch), None, 16 * x.size)


def bench_compact():
    for n in (1 << 28, 1 << 20):
        k = inner_for(n)
        x = cp.cumsum(cp.random.randint(0, 4, n, dtype=np.int32) == 0, dtype=np.uint32)
        (out, _, kept), launch = compact("UNIQUE", "u32", n, x)
        ms = median_ms(launch, inner=k)
        report("unique u32, runs of 4", n, ms, cub_time("cub_unique_u32", x, out, kept, C64(n), inner=k), 4 * n + 4 * int(kept[0]))
        flags = cp.random.randint(0, 2, n, dtype=np.int32).astype(np.uint8)
        (out, _, kept), launch = compact("FLAGGED", "u32", n, x, flags)
        ms = median_ms(launch, inner=k)
        report("compact u32+u8, half kept", n, ms, cub_time("cub_flagged_u32", x, flags, out, kept, C64(n), inner=k), 5 * n + 4 * int(kept[0]))
        (out, rest, kept), launch = compact("PARTITION", "u32", n, x, flags)
        report("partition u32+u8", n, median_ms(launch, inner=k), None, 9 * n)
        (out, rest, kept), launch = compact("POSITIONS", "u32", n, None, flags)
        ms = median_ms(launch, inner=k)
        report("positions u8", n, ms, None, n + 4 * int(kept[0]))


def rbk_input(n, run):
    keys = cp.cumsum(cp.random.random_sample(n, dtype=np.float32) < 1 / run, dtype=np.uint64)
    return keys, cp.random.standard_normal(n)


def bench_reduce_by_key():
    for n, run in ((1 << 27, 1), (1 << 27, 4), (1 << 27, 64), (1 << 20, 4)):
        k = inner_for(n)
        keys, values = rbk_input(n, run)
        (ko, so, runs), launch = reduce_by_key("u64", "f64", keys, values)
        ms = median_ms(launch, inner=k)
        report(f"reduce by key u64+f64, runs of {run}", n, ms, cub_time("cub_reduce_by_key", keys, values, ko, so, runs, C64(n), inner=k), 16 * n + 16 * int(runs[0]))


def sort_bench(key, n, pairs, bits, with_cub=True, name=None, reps=9, **constants):
    raw = cp.random.randint(0, 1 << 31, n, dtype=np.int32).astype(np.uint64) << np.uint64(33) ^ cp.random.randint(0, 1 << 31, n, dtype=np.int32).astype(np.uint64) << np.uint64(5) ^ cp.random.randint(0, 1 << 31, n, dtype=np.int32).astype(np.uint64)
    original = (raw & np.uint64((1 << bits) - 1)).astype(NP(key))
    del raw
    keys, values = original.copy(), cp.arange(n, dtype=np.uint32) if pairs else None
    s = sort(key, keys, values, (0, bits), **constants)
    k = inner_for(n)
    restore = lambda: cp.copyto(keys, original)
    if k == 1:
        ours = median_ms(s.launch, restore, reps)
    else:
        both = lambda: (cp.cuda.runtime.memcpyAsync(keys.data.ptr, original.data.ptr, keys.nbytes, 3, cp.cuda.get_current_stream().ptr), s.launch())
        copy = lambda: cp.cuda.runtime.memcpyAsync(keys.data.ptr, original.data.ptr, keys.nbytes, 3, cp.cuda.get_current_stream().ptr)
        ours = median_ms(both, None, reps, k) - median_ms(copy, None, reps, k)
    peer = None
    if with_cub and cub:
        ko, vo = cp.empty_like(keys), cp.empty_like(values) if pairs else None
        args = (original, ko, values, vo) if pairs else (original, ko)
        peer = cub_time(f"cub_{'pairs' if pairs else 'keys'}_{key}", *args, C64(n), CINT(bits), reps=reps, inner=k)
    report(name or f"sort {'pairs ' + key + '+u32' if pairs else 'keys ' + key} {bits} bits", n, ours, peer)
    return ours


SORTS = [("u32", 1 << 28, False, 32), ("u32", 1 << 28, True, 32), ("u64", 1 << 27, False, 64), ("u64", 1 << 27, True, 64), ("u64", 1 << 27, True, 46), ("u64", 1 << 27, True, 40),
         ("u32", 1 << 20, False, 32), ("u32", 1 << 20, True, 32), ("u64", 1 << 20, True, 64), ("u64", 1 << 20, True, 40), ("u32", 1 << 16, True, 32), ("u64", 1 << 16, True, 40)]


def bench_sort():
    for case in SORTS:
        sort_bench(*case)
        cp.get_default_memory_pool().free_all_blocks()


def bench_histogram():
    n, bins = 1 << 28, 1 << 20
    for skew in (1, 4):
        x = (bins * cp.random.random_sample(n) ** skew).astype(np.uint32)
        counts = cp.zeros(bins, np.int32)
        peer = cub_time("cub_histogram_u32", x, counts, C64(n), CINT(bins), reps=5)
        for way in ("cached", "sorted"):
            keep = x.copy()
            counts, launch = histogram(keep, bins, way)
            ms = median_ms(launch, (lambda: cp.copyto(keep, x)) if way == "sorted" else None, reps=7)
            report(f"histogram 2^20 bins, {'uniform' if skew == 1 else 'power law'}, {way}", n, ms, peer, 4 * n)


# ---- sweeps ------------------------------------------------------------------------------------------------------------
def sweep(title, configs, run):
    results = []
    for c in configs:
        try:
            results.append((run(c), c))
        except Exception as e:  # a choice that does not fit the chip
            print("  skipped", c, str(e).splitlines()[0][:100])
    results.sort(key=lambda r: -r[0])
    print(f"-- {title}")
    for ms, c in results[-6:]:
        print(f"   {ms:9.4f} ms  {' '.join(f'{k}={v}' for k, v in c.items())}", flush=True)


def product_of(**choices):
    return [dict(zip(choices, values)) for values in itertools.product(*choices.values())]


def tune_scan():
    for inp in ("u32", "u64"):
        x = cp.ones((1 << 31) // SIZE[inp], NP(inp))
        out = cp.empty_like(x)
        sweep(f"scan {inp}", SCAN_TUNE, lambda c: median_ms(scan(inp, inp, inp, x, out=out, **c)[1], reps=5))


def tune_reduce():
    x = cp.ones(1 << 28)
    for op in ("SUM", "DOT"):
        sweep(f"reduce {op}", REDUCE_TUNE, lambda c: median_ms(reduce(op, "f64", "f64", "f64", x, x, **c)[1], reps=5))


def tune_compact():
    n = 1 << 28
    x = cp.cumsum(cp.random.randint(0, 4, n, dtype=np.int32) == 0, dtype=np.uint32)
    flags = (x & 1).astype(np.uint8)
    for mode in ("UNIQUE", "FLAGGED"):
        sweep(mode, COMPACT_TUNE, lambda c: median_ms(compact(mode, "u32", n, x, flags, **c)[1], reps=5))


def tune_reduce_by_key():
    for run in (1, 4):
        keys, values = rbk_input(1 << 27, run)
        sweep(f"reduce_by_key runs of {run}", RBK_TUNE, lambda c: median_ms(reduce_by_key("u64", "f64", keys, values, **c)[1], reps=3))


def sort_choices(triples, looks):
    return [dict(THREADS=t, ITEMS=i, MIN_BLOCKS=m, LOOK_AT_ONCE=l) for t, i, m in triples for l in looks]


SORT_TUNE = {
    ("u32", 1 << 28, False, 32): sort_choices([(256, 20, 4), (256, 24, 3), (256, 24, 4), (256, 28, 3), (256, 32, 3), (256, 23, 3), (384, 23, 2), (384, 16, 3), (384, 20, 2), (384, 24, 2), (512, 12, 2), (512, 16, 2), (512, 20, 2), (512, 24, 2)], (1, 2)),
    ("u32", 1 << 28, True, 32): sort_choices([(256, 16, 3), (384, 16, 2), (384, 20, 2), (512, 12, 2), (512, 16, 2), (512, 20, 1)], (1, 2)),
    ("u64", 1 << 27, True, 46): sort_choices([(256, 16, 2), (256, 16, 3), (384, 12, 2), (384, 15, 2), (512, 9, 2), (512, 12, 2), (512, 16, 1)], (1, 2)),
    ("u32", 1 << 20, True, 32): sort_choices([(256, 8, 1), (256, 12, 1), (256, 16, 1), (256, 20, 1), (512, 8, 1), (512, 10, 1), (384, 12, 1)], (2, 4)),
    ("u64", 1 << 20, True, 40): sort_choices([(256, 8, 1), (256, 12, 1), (256, 16, 1), (256, 20, 1), (512, 8, 1), (512, 10, 1), (384, 12, 1)], (2, 4)),
    ("u64", 1 << 16, True, 40): sort_choices([(256, 2, 1), (256, 4, 1), (256, 8, 1), (512, 4, 1)], (4, 8)),
}


def tune_sort():
    for case, configs in SORT_TUNE.items():
        sweep(f"sort {case}", configs, lambda c: sort_bench(*case, with_cub=False, reps=3, name=" ".join(map(str, c.values())), **c))
        cp.get_default_memory_pool().free_all_blocks()


def tune_histogram():
    n, bins = 1 << 28, 1 << 20
    for skew in (1, 4):
        x = (bins * cp.random.random_sample(n) ** skew).astype(np.uint32)
        for way in ("cached", "sorted"):
            configs = [c for c in HISTOGRAM_TUNE if way == "cached" or c["CACHE"] == 2048]
            sweep(f"histogram {way} skew {skew}", configs, lambda c: median_ms(histogram(x, bins, way, **c)[1], reps=3))


def fitting(low, high, **choices):
    return [c for c in product_of(**choices) if low <= c["THREADS"] * c["MIN_BLOCKS"] <= high]


SCAN_TUNE = fitting(512, 1536, THREADS=(128, 256, 512), ROWS=(2, 4, 6, 8), MIN_BLOCKS=(1, 2, 3, 4, 6, 8))
REDUCE_TUNE = product_of(THREADS=(256, 512), UNROLL=(2, 4, 8))
COMPACT_TUNE = fitting(512, 1536, THREADS=(128, 256, 512), ROWS=(4, 8), MIN_BLOCKS=(1, 2, 3, 4, 6, 8))
RBK_TUNE = fitting(512, 1024, THREADS=(128, 256, 512), ROWS=(3, 4, 5, 6), MIN_BLOCKS=(1, 2, 3, 4, 5, 6, 8))
HISTOGRAM_TUNE = product_of(THREADS=(256, 512), ITEMS=(8, 16), CACHE=(2048, 8192))


def precompile(command, names):
    """What a command will compile, side by side; what is missed here is compiled when it is called for."""
    sort_sizes = (0, 1 << 20, 1 << 23)
    jobs = {
        "check": {
            "reduce": [("reduce.cu", reduce_constants(op, i, a, o)) for i, a, o, op in REDUCE_CASES],
            "scan": [("scan.cu", scan_constants(i, o, a, k)) for i, o, a in SCAN_CASES for k in (0, 1)],
            "compact": [("compact.cu", compact_constants(m, i, x)) for m in ("UNIQUE", "FLAGGED", "PARTITION") for i in ("u32", "u64", "f64", "u8") for x in ("u32", "u64")] + [("compact.cu", compact_constants("POSITIONS", "u32", x)) for x in ("u32", "u64")],
            "reduce_by_key": [("reduce_by_key.cu", reduce_by_key_constants(k, v, x)) for k, v in RBK_CASES for x in ("u32", "u64")],
            "sort": [("sort.cu", sort_constants(k, v, n)) for k, v in SORT_CASES for n in sort_sizes[:2]] + [("sort.cu", sort_constants("u64", v, n, LOOK=look)) for v in (0, 4) for n in sort_sizes for look in ("u32", "u64")],
            "histogram": [("histogram.cu", histogram_constants())],
        },
        "bench": {
            "reduce": [("reduce.cu", reduce_constants(op, "f64", "f64", "f64")) for op in ("SUM", "DOT")],
            "scan": [("scan.cu", scan_constants(t, t, t)) for t in ("u32", "u64", "f64")],
            "compact": [("compact.cu", compact_constants(m, "u32")) for m in ("UNIQUE", "FLAGGED", "PARTITION", "POSITIONS")],
            "reduce_by_key": [("reduce_by_key.cu", reduce_by_key_constants("u64", "f64"))],
            "sort": [("sort.cu", sort_constants(k, 4 * p, n)) for k, n, p, _ in SORTS],
            "histogram": [("histogram.cu", histogram_constants()), ("sort.cu", sort_constants("u32", 0, 1 << 28))],
        },
        "tune": {
            "reduce": [("reduce.cu", reduce_constants(op, "f64", "f64", "f64", **c)) for op in ("SUM", "DOT") for c in REDUCE_TUNE],
            "scan": [("scan.cu", scan_constants(t, t, t, **c)) for t in ("u32", "u64") for c in SCAN_TUNE],
            "compact": [("compact.cu", compact_constants(m, "u32", **c)) for m in ("UNIQUE", "FLAGGED") for c in COMPACT_TUNE],
            "reduce_by_key": [("reduce_by_key.cu", reduce_by_key_constants("u64", "f64", **c)) for c in RBK_TUNE],
            "sort": [("sort.cu", sort_constants(k, 4 * p, n, **c)) for (k, n, p, _), configs in SORT_TUNE.items() for c in configs],
            "histogram": [("histogram.cu", histogram_constants(**c)) for c in HISTOGRAM_TUNE],
        },
    }[command]
    return compile_all([job for name in names for job in jobs.get(name, [])])


def main():
    global cp, cub
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["check", "bench", "tune"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--cub", nargs="*", default=[], help="libraries built from kernels_cub.cu")
    parser.add_argument("--sizes", help="comma-separated sizes for check, instead of the usual ones")
    args = parser.parse_args()
    import cupy as cp

    cub = Cub(args.cub) if args.cub else None
    if args.sizes:
        SIZES[:] = [int(s) for s in args.sizes.split(",")]
    names = args.names or ["copy", "reduce", "scan", "compact", "reduce_by_key", "sort", "histogram"]
    began = time.time()
    if not precompile(args.command, names):
        print("some kernels did not compile")
    print(f"compiled in {time.time() - began:.1f} s", flush=True)
    if args.command == "bench":
        header()
    for name in names:
        f = globals().get(f"{args.command}_{name}")
        if f is None:
            continue
        began = time.time()
        f()
        cp.get_default_memory_pool().free_all_blocks()
        if args.command == "check":
            print(f"check {name}: {checked} cases so far, {failures} wrong, {time.time() - began:.1f} s", flush=True)
    if failures:
        sys.exit(1)


if __name__ == "__main__":
    main()
