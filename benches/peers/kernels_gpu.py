"""Compiles the kernels of kernels/ with NVRTC, chooses their constants, and launches them with CuPy."""

import collections, concurrent.futures, ctypes, glob, hashlib, multiprocessing, os, site, tempfile

import numpy as np

try:
    import cupy as cp
except ImportError:  # compiling needs neither CuPy nor a GPU
    cp = None

HERE = os.path.dirname(os.path.abspath(__file__))
KERNELS = os.environ.get("KERNELS", os.path.join(HERE, "..", "..", "kernels"))
CACHE = os.path.join(tempfile.gettempdir(), "kernels_cupy")


# ---- compiling
def nvrtc():
    places = [os.environ.get("NVRTC_FOLDER", ""), "/usr/local/cuda/lib64"] + [
        os.path.join(s, "nvidia", d, "lib") for s in site.getsitepackages() for d in ("cu13", "cuda_nvrtc")
    ]
    for place in places:
        for path in sorted(glob.glob(os.path.join(place, "libnvrtc.so*"))):
            return ctypes.CDLL(path)
    return ctypes.CDLL("libnvrtc.so")


def cached(job):
    """The sources, and the path of the cubin of (file, (define, ...), arch), which may not exist yet."""
    sources = {
        f: open(os.path.join(KERNELS, f), "rb").read()
        for f in sorted(os.listdir(KERNELS))
        if f.endswith((".cu", ".cuh"))
    }
    return sources, os.path.join(CACHE, hashlib.sha256(repr((sources, job)).encode()).hexdigest()[:24] + ".cubin")


def compile_one(job):
    """Compiles a job unless its cubin exists. Returns the path of the cubin, or the compiler's log."""
    name, defines, arch = job
    sources, path = cached(job)
    if os.path.exists(path):
        return path
    lib, program = nvrtc(), ctypes.c_void_p()
    headers = [f for f in sources if f.endswith(".cuh")]
    strings = lambda items: (ctypes.c_char_p * len(items))(*items)
    lib.nvrtcCreateProgram(
        ctypes.byref(program),
        sources[name],
        name.encode(),
        len(headers),
        strings([sources[h] for h in headers]),
        strings([h.encode() for h in headers]),
    )
    options = [
        b"--std=c++17",
        b"-lineinfo",
        b"--device-as-default-execution-space",
        f"--gpu-architecture=sm_{arch}".encode(),
    ] + [b"-D" + d.encode() for d in defines]
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
    """Compiles [(file, {constants})] in parallel, so that later calls of `module` find them."""
    jobs = [job for job in sorted({(f, defines(**c), arch()) for f, c in jobs}) if not os.path.exists(cached(job)[1])]
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
    if "CARVEOUT" in os.environ and shared:
        f.preferred_shared_memory_carveout = int(os.environ["CARVEOUT"])
    return f


SM = lambda: cp.cuda.Device().attributes["MultiProcessorCount"]


def resident(f, tiles, threads, shared=0):
    blocks = cp.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(f.kernel.ptr, threads, shared)
    return max(1, min(tiles, blocks * SM()))


SIZE = dict(u8=1, u16=2, u32=4, u64=8, i8=1, i16=2, i32=4, i64=8, f32=4, f64=8, c32=8, c64=16)
F = {"f32": np.float32, "f64": np.float64}  # NumPy's types
TYPE = dict(
    u8="u1",
    u16="u2",
    u32="u4",
    u64="u8",
    i8="i1",
    i16="i2",
    i32="i4",
    i64="i8",
    f32="f4",
    f64="f8",
    c32="c8",
    c64="c16",
)
NP = lambda name: np.dtype(TYPE[name])
U = np.uint64
U32 = np.uint32
ptr = lambda a: U(0 if a is None else a.data.ptr)


def ceil(a, b):
    return -(-a // b)


workspace_words = 0
workspace = None


def lookback_workspace(words):
    """A workspace that all look-back kernels share one after another, as kernels/README.md allows."""
    global workspace, workspace_words
    if workspace is None or workspace_words < words:
        workspace_words = max(words, 1 << 16)
        workspace = cp.zeros(4 + workspace_words, dtype=np.uint64)
        workspace[3] = workspace_words
    return workspace


# ---- policies: the constants, by kernel and by size of types and arrays
def reduce_constants(op, inp, acc, out, **c):
    return dict(IN=inp, ACC=acc, OUT=out, OP=op, THREADS=256, UNROLL=4) | c


def scan_constants(inp, out, acc, inclusive=0, n=1 << 30, **c):
    if n < 1 << 22:
        tuning = dict(THREADS=256, ROWS=4, MIN_BLOCKS=4)
    else:
        tuning = dict(THREADS=384, ROWS=6, MIN_BLOCKS=2) if SIZE[acc] <= 4 else dict(THREADS=256, ROWS=6, MIN_BLOCKS=3)
    return dict(IN=inp, OUT=out, ACC=acc, INCLUSIVE=inclusive) | tuning | c


def compact_constants(mode, inp, index="u32", **c):
    return (
        dict(
            MODE=mode,
            IN=inp,
            INDEX=index,
            THREADS=256,
            ROWS=8,
            MIN_BLOCKS=3 if mode == "UNIQUE" or SIZE[inp] > 4 else 4,
        )
        | c
    )


def reduce_by_key_constants(key, value, index="u32", **c):
    return (
        dict(
            KEY=key, VALUE=value, INDEX=index, OP="op_sum", THREADS=192, ROWS=5, MIN_BLOCKS=3 if SIZE[value] < 16 else 1
        )
        | c
    )


def sort_constants(key, value_bytes, n, small=False, **c):
    if n <= 2048 and small:
        tuning = dict(THREADS=256, ITEMS=8, MIN_BLOCKS=1, LOOK_AT_ONCE=4)
    elif n < 1 << 18:
        tuning = dict(THREADS=256, ITEMS=4, MIN_BLOCKS=1, LOOK_AT_ONCE=4)
    elif n < 1 << 23:
        tuning = dict(THREADS=256, ITEMS=16, MIN_BLOCKS=1, LOOK_AT_ONCE=4)
    elif SIZE[key] == 8:
        tuning = (
            dict(THREADS=512, ITEMS=12, MIN_BLOCKS=2, LOOK_AT_ONCE=1)
            if value_bytes
            else dict(THREADS=256, ITEMS=22, MIN_BLOCKS=3, LOOK_AT_ONCE=2)
        )
    else:
        tuning = (
            dict(THREADS=512, ITEMS=16, MIN_BLOCKS=2, LOOK_AT_ONCE=1)
            if value_bytes
            else dict(THREADS=256, ITEMS=36, MIN_BLOCKS=3, LOOK_AT_ONCE=2)
        )
    look = "u32" if n < 1 << 30 else "u64"
    return (
        dict(KEY=key, VALUE_BYTES=value_bytes, LOOK=look, HISTOGRAM_THREADS=256, HISTOGRAM_ITEMS=16, MATCH_HARDWARE=0)
        | tuning
        | c
    )


def merge_constants(key, value_bytes, **c):
    return dict(KEY=key, VALUE_BYTES=value_bytes, THREADS=256, ITEMS=16, MIN_BLOCKS=3 if value_bytes <= 4 else 2) | c


def segmented_constants(mode, value, index, **c):
    return dict(MODE=mode, VALUE=value, INDEX=index, OP="op_sum", THREADS=256, ITEMS=13 if SIZE[value] <= 8 else 7) | c


def gather_constants(item_bytes, index):
    return dict(ITEM_BYTES=item_bytes, INDEX=index, THREADS=256, ITEMS=4)


def histogram_constants(**c):
    return dict(COUNT="u32", THREADS=256, ITEMS=8, CACHE=8192, WINDOW=4096) | c


# ---- the operations
def reduce(op, inp, acc, out_type, x, y=None, grid=None, **constants):
    c = reduce_constants(op, inp, acc, out_type, **constants)
    f = kernel("reduce.cu", "reduce", **c)
    n = x.size
    grid = resident(f, ceil(n, c["THREADS"] * c["UNROLL"] * (16 // SIZE[inp])), c["THREADS"])
    ws = cp.zeros(2 + grid * SIZE[acc] // 4 + 2, dtype=np.uint64)
    out = cp.empty(1, dtype=NP(out_type))
    return out, lambda: f((grid,), (c["THREADS"],), (ptr(x), ptr(y), U(n), ptr(out), ptr(ws)))


def scan(inp, out_type, acc, x, inclusive=0, out=None, **constants):
    c = scan_constants(inp, out_type, acc, inclusive, x.size, **constants)
    tile = c["THREADS"] * c["ROWS"] * (16 // SIZE[inp])
    shared = tile * SIZE[acc]
    f = kernel("scan.cu", "scan", shared, **c)
    tiles = ceil(x.size, tile)
    ws = lookback_workspace(tiles * SIZE[acc] // 4)
    out = cp.empty(x.size, dtype=NP(out_type)) if out is None else out
    block = c["THREADS"]
    grid = resident(f, tiles, block, shared)
    return out, lambda: f((grid,), (block,), (ptr(x), ptr(out), U(x.size), U(x.size), ptr(ws)), shared_mem=shared)


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
    block = c["THREADS"]
    grid = resident(f, tiles, block, shared)
    return (out, rest, kept), lambda: f(
        (grid,), (block,), (ptr(x), ptr(flags), ptr(out), ptr(rest), U(n), ptr(kept), ptr(ws)), shared_mem=shared
    )


def reduce_by_key(key, value, keys, values, index="u32", **constants):
    c = reduce_by_key_constants(key, value, index, **constants)
    tile = c["THREADS"] * c["ROWS"] * 2
    shared = 2 * tile * (SIZE[key] + SIZE[value])
    f = kernel("reduce_by_key.cu", "reduce_by_key", shared, **c)
    n, tiles = keys.size, ceil(keys.size, tile)
    words = 8 if value == "c64" else 2 if SIZE[value] == 4 and index == "u32" else 4
    ws = lookback_workspace(tiles * words)
    out = cp.empty(n, NP(key)), cp.empty(n, NP(value)), cp.empty(1, np.uint64)
    block = c["THREADS"]
    grid = resident(f, tiles, block, shared)
    return out, lambda: f(
        (grid,),
        (block,),
        (ptr(keys), ptr(values), ptr(out[0]), ptr(out[1]), U(n), ptr(out[2]), ptr(ws)),
        shared_mem=shared,
    )


Sort = collections.namedtuple("Sort", "result launch")
sort_ws = None


def sort(key, keys, values=None, bits=None, small=False, **constants):
    """Sorts `keys` (and `values`), which it overwrites; .result has the arrays with the sorted elements."""
    global sort_ws
    first_bit, end_bit = bits or (0, 8 * SIZE[key])
    n, value_bytes = keys.size, values.dtype.itemsize if values is not None else 0
    c = sort_constants(key, value_bytes, n, small, **constants)
    t, tile = c["THREADS"], c["THREADS"] * c["ITEMS"]
    shared = t // 32 * 1024 + tile * max(SIZE[key], value_bytes)
    bit_count = end_bit - first_bit
    other_k, other_v = cp.empty_like(keys), None if values is None else cp.empty_like(values)
    if small:
        f = kernel("sort.cu", "sort_small", shared, **c)
        return Sort(
            (other_k, other_v),
            lambda: f(
                (1,),
                (t,),
                (ptr(keys), ptr(other_k), ptr(values), ptr(other_v), U(n), U32(first_bit), U32(bit_count)),
                shared_mem=shared,
            ),
        )
    passes, tiles = ceil(bit_count, 8), ceil(n, tile)
    look_words = ceil(passes * tiles * 256 * SIZE[c["LOOK"]], 8)
    if sort_ws is None or sort_ws.size < 2064 + look_words:
        sort_ws = cp.zeros(2064 + look_words, np.uint64)
    ws = sort_ws
    h, p, e = (
        kernel("sort.cu", f, shared if f == "sort_pass" else 0, **c)
        for f in ("sort_histogram", "sort_pass", "sort_finish")
    )
    ht = c["HISTOGRAM_THREADS"]
    hist_grid = max(1, min(ceil(n, ht * c["HISTOGRAM_ITEMS"]), 4 * SM()))
    finish_grid = max(1, min(ceil(n, ht * 4), 4 * SM()))
    both = ptr(keys), ptr(other_k), ptr(values), ptr(other_v)

    def launch():
        h((hist_grid,), (ht,), (ptr(keys), U(n), U32(first_bit), U32(bit_count), U32(passes), ptr(ws), U(look_words)))
        for i in range(passes):
            if tiles:
                p(
                    (tiles,),
                    (t,),
                    both + (U(n), U32(first_bit), U32(bit_count), U32(passes), U32(i), ptr(ws)),
                    shared_mem=shared,
                )
        e((finish_grid,), (ht,), both + (U(n), U32(passes), ptr(ws)))

    return Sort((other_k, other_v) if passes % 2 else (keys, values), launch)


def histogram(x, bins, way, counts=None, **constants):
    """`way`: shared, cached, or sorted (a pass of the radix sort first groups elements by their upper bits)."""
    c = histogram_constants(**constants)
    shared = {"shared": bins * 4, "cached": c["CACHE"] * 8, "sorted": c["WINDOW"] * 4}[way]
    f = kernel(
        "histogram.cu",
        {"shared": "histogram", "cached": "histogram_cached", "sorted": "histogram_by_tiles"}[way],
        shared,
        **c,
    )
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


def merge_shared(c):
    tile = c["THREADS"] * c["ITEMS"]
    spread = tile if c["ITEMS"] % 2 else tile + tile // 16
    return tile * c["VALUE_BYTES"] + spread * (SIZE[c["KEY"]] + (2 if c["VALUE_BYTES"] else 0)), tile


def merge_sort(key, keys, values=None, **constants):
    """Sorts into new arrays, by comparison. `keys` and `values` are used as buffers and overwritten."""
    value_bytes, n = values.dtype.itemsize if values is not None else 0, keys.size
    c = merge_constants(key, value_bytes, **constants)
    shared, tile = merge_shared(c)
    t, tiles = c["THREADS"], ceil(n, tile)
    first, cut, merge = (
        kernel("merge.cu", f, 0 if f == "merge_partition" else shared, **c)
        for f in ("merge_sort_tiles", "merge_partition", "merge_tiles")
    )
    other_k, other_v = cp.empty_like(keys), None if values is None else cp.empty_like(values)
    ranks = cp.empty(tiles + 1, np.uint64)
    widths = [tile << i for i in range(max(0, (tiles - 1).bit_length()))]
    # Chooses the first target such that the last merge writes to the output.
    start_k, start_v = (keys, values) if len(widths) % 2 else (other_k, other_v)

    def launch():
        if not tiles:
            return
        k, v = start_k, start_v
        first((tiles,), (t,), (ptr(keys), ptr(k), ptr(values), ptr(v), U(n)), shared_mem=shared)
        for w in widths:
            k2, v2 = (other_k, other_v) if k is keys else (keys, values)
            cut((ceil(tiles, 256),), (256,), (ptr(k), U(0), U(n), U(0), U(w), ptr(ranks)))
            merge(
                (tiles,),
                (t,),
                (ptr(k), U(0), ptr(k2), ptr(v), U(0), ptr(v2), U(n), U(0), U(w), ptr(ranks)),
                shared_mem=shared,
            )
            k, v = k2, v2

    return Sort((other_k, other_v), launch)


def merge(key, a, b, av=None, bv=None, **constants):
    value_bytes, n = av.dtype.itemsize if av is not None else 0, a.size + b.size
    c = merge_constants(key, value_bytes, **constants)
    shared, tile = merge_shared(c)
    tiles = ceil(n, tile)
    cut, f = kernel("merge.cu", "merge_partition", **c), kernel("merge.cu", "merge_tiles", shared, **c)
    out, out_v, ranks = (
        cp.empty(n, a.dtype),
        cp.empty(n, av.dtype) if value_bytes else None,
        cp.empty(tiles + 1, np.uint64),
    )

    def launch():
        if tiles:
            cut((ceil(tiles, 256),), (256,), (ptr(a), ptr(b), U(n), U(a.size), U(0), ptr(ranks)))
            f(
                (tiles,),
                (c["THREADS"],),
                (ptr(a), ptr(b), ptr(out), ptr(av), ptr(bv), ptr(out_v), U(n), U(a.size), U(0), ptr(ranks)),
                shared_mem=shared,
            )

    return (out, out_v), launch


def segmented(mode, value, index, x, offsets, **constants):
    c = segmented_constants(mode, value, index, **constants)
    t, tile = c["THREADS"], c["THREADS"] * c["ITEMS"]
    shared = tile * (SIZE[value] + 4)
    cut, f = kernel("segmented.cu", "segment_partition", **c), kernel("segmented.cu", "segmented", shared, **c)
    n, segments = x.size, offsets.size - 1
    tiles = ceil(n + segments, tile)
    words = 8 if value == "c64" else 2 if SIZE[value] == 4 and index == "u32" else 4
    ws, starts = lookback_workspace(tiles * words), cp.empty(tiles + 1, np.uint64)
    out = cp.empty(segments if mode == "REDUCE" else n, NP(value))

    def launch():
        if tiles:
            cut((ceil(tiles + 1, 256),), (256,), (ptr(offsets), U(segments), U(n), ptr(starts)))
            f(
                (tiles,),
                (t,),
                (ptr(x), ptr(offsets), ptr(out), U(segments), U(n), ptr(starts), ptr(ws)),
                shared_mem=shared,
            )

    return out, launch


def gather(x, index, scatter_to=None):
    c = gather_constants(x.dtype.itemsize, "u32" if index.dtype.itemsize == 4 else "u64")
    n = index.size
    f = kernel("gather.cu", "gather" if scatter_to is None else "scatter", **c)
    out, misses = cp.empty(n, x.dtype) if scatter_to is None else scatter_to, cp.zeros(1, np.uint32)
    args = (
        (ptr(x), U(x.size), ptr(index), ptr(out), U(n), ptr(misses))
        if scatter_to is None
        else (ptr(x), U(n), ptr(index), ptr(out), U(out.size), ptr(misses))
    )
    return (out, misses), lambda: f((max(1, ceil(n, 1024)),), (256,), args)
