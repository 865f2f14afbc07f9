"""Times and parameter sweeps of the kernels, and CUB's times for the same arrays (libraries from kernels_cub.cu)."""

import ctypes, itertools, os

import numpy as np

from kernels_gpu import *


# ---- timing
def median_ms(launch, before=None, reps=15, inner=1):
    """Median milliseconds of `launch`, replayed from a captured graph. The time of `before` does not count."""
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
        """A closure that launches cub_NAME(args), with its temporary storage allocated."""
        f = next((getattr(lib, name) for lib in self.libs if hasattr(lib, name)), None)
        if f is None:
            return None
        raw = [ctypes.c_void_p(a.data.ptr) if hasattr(a, "data") else a for a in args]
        size = ctypes.c_size_t(0)
        f(None, ctypes.byref(size), *raw, None)
        temp = cp.empty(max(size.value, 1), np.uint8)

        def launch():
            error = f(
                ctypes.c_void_p(temp.data.ptr),
                ctypes.byref(size),
                *raw,
                ctypes.c_void_p(cp.cuda.get_current_stream().ptr),
            )
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
        report(
            f"exclusive scan {inp}",
            n,
            median_ms(launch, inner=k),
            cub_time(f"cub_scan_{inp}", x, out, C64(n), inner=k),
            2 * SIZE[inp] * n,
        )
    x = cp.random.standard_normal(1 << 28)
    out, launch = scan("f64", "f64", "f64", x)
    report("exclusive scan f64", x.size, median_ms(launch), None, 16 * x.size)


def bench_compact():
    for n in (1 << 28, 1 << 20):
        k = inner_for(n)
        x = cp.cumsum(cp.random.randint(0, 4, n, dtype=np.int32) == 0, dtype=np.uint32)
        (out, _, kept), launch = compact("UNIQUE", "u32", n, x)
        ms = median_ms(launch, inner=k)
        report(
            "unique u32, runs of 4",
            n,
            ms,
            cub_time("cub_unique_u32", x, out, kept, C64(n), inner=k),
            4 * n + 4 * int(kept[0]),
        )
        flags = cp.random.randint(0, 2, n, dtype=np.int32).astype(np.uint8)
        (out, _, kept), launch = compact("FLAGGED", "u32", n, x, flags)
        ms = median_ms(launch, inner=k)
        report(
            "compact u32+u8, half kept",
            n,
            ms,
            cub_time("cub_flagged_u32", x, flags, out, kept, C64(n), inner=k),
            5 * n + 4 * int(kept[0]),
        )
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
        report(
            f"reduce by key u64+f64, runs of {run}",
            n,
            ms,
            cub_time("cub_reduce_by_key", keys, values, ko, so, runs, C64(n), inner=k),
            16 * n + 16 * int(runs[0]),
        )


def sort_bench(key, n, pairs, bits, with_cub=True, name=None, reps=9, **constants):
    raw = (
        cp.random.randint(0, 1 << 31, n, dtype=np.int32).astype(np.uint64) << np.uint64(33)
        ^ cp.random.randint(0, 1 << 31, n, dtype=np.int32).astype(np.uint64) << np.uint64(5)
        ^ cp.random.randint(0, 1 << 31, n, dtype=np.int32).astype(np.uint64)
    )
    original = (raw & np.uint64((1 << bits) - 1)).astype(NP(key))
    del raw
    keys, values = original.copy(), cp.arange(n, dtype=np.uint32) if pairs else None
    s = sort(key, keys, values, (0, bits), **constants)
    k = inner_for(n)
    restore = lambda: cp.copyto(keys, original)
    if k == 1:
        ours = median_ms(s.launch, restore, reps)
    else:
        both = lambda: (
            cp.cuda.runtime.memcpyAsync(
                keys.data.ptr, original.data.ptr, keys.nbytes, 3, cp.cuda.get_current_stream().ptr
            ),
            s.launch(),
        )
        copy = lambda: cp.cuda.runtime.memcpyAsync(
            keys.data.ptr, original.data.ptr, keys.nbytes, 3, cp.cuda.get_current_stream().ptr
        )
        ours = median_ms(both, None, reps, k) - median_ms(copy, None, reps, k)
    peer = None
    if with_cub and cub:
        ko, vo = cp.empty_like(keys), cp.empty_like(values) if pairs else None
        args = (original, ko, values, vo) if pairs else (original, ko)
        peer = cub_time(f"cub_{'pairs' if pairs else 'keys'}_{key}", *args, C64(n), CINT(bits), reps=reps, inner=k)
    report(name or f"sort {'pairs ' + key + '+u32' if pairs else 'keys ' + key} {bits} bits", n, ours, peer)
    return ours


SORTS = [
    ("u32", 1 << 28, False, 32),
    ("u32", 1 << 28, True, 32),
    ("u64", 1 << 27, False, 64),
    ("u64", 1 << 27, True, 64),
    ("u64", 1 << 27, True, 46),
    ("u64", 1 << 27, True, 40),
    ("u32", 1 << 20, False, 32),
    ("u32", 1 << 20, True, 32),
    ("u64", 1 << 20, True, 64),
    ("u64", 1 << 20, True, 40),
    ("u32", 1 << 16, True, 32),
    ("u64", 1 << 16, True, 40),
]


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


def bench_merge():
    for n in (1 << 27, 1 << 20):
        original = cp.random.randint(0, 1 << 31, n, dtype=np.int32).astype(np.uint64) << np.uint64(
            33
        ) ^ cp.random.randint(0, 1 << 31, n, dtype=np.int32).astype(np.uint64)
        keys, values = original.copy(), cp.arange(n, dtype=np.uint32)
        s = merge_sort("u64", keys, values)
        ms = median_ms(s.launch, lambda: cp.copyto(keys, original), reps=7)
        ko, vo = cp.empty_like(keys), cp.empty_like(values)
        report(
            "merge sort u64+u32, random", n, ms, cub_time("cub_merge_sort", original, ko, values, vo, C64(n), reps=7)
        )
        half = n // 2
        a, b = cp.sort(original[:half]), cp.sort(original[half:])
        (out, out_v), launch = merge("u64", a, b, values[:half], values[half:])
        report(
            "merge u64+u32, two halves",
            n,
            median_ms(launch, reps=7),
            cub_time("cub_merge_pairs", a, values[:half], C64(half), b, values[half:], C64(half), out, out_v, reps=7),
            24 * n,
        )
        del original, keys, values, s, ko, vo, a, b, out, out_v
        cp.get_default_memory_pool().free_all_blocks()


def bench_segmented():
    n = 1 << 27
    x = cp.random.standard_normal(n)
    for mean in (4, 27, 1000):
        offsets = cp.concatenate(
            [
                cp.zeros(1, np.uint32),
                cp.sort(cp.random.randint(0, 1 << 27, n // mean, dtype=np.int32)).astype(np.uint32),
                cp.full(1, n, np.uint32),
            ]
        )
        out, launch = segmented("REDUCE", "f64", "u32", x, offsets)
        segments = offsets.size - 1
        report(
            f"segmented sum f64, mean {mean}",
            n,
            median_ms(launch, reps=7),
            cub_time("cub_segmented_sum", x, out, C64(segments), offsets, reps=7),
            8 * n + 12 * segments,
        )
        out, launch = segmented("SCAN", "f64", "u32", x, offsets)
        report(f"segmented scan f64, mean {mean}", n, median_ms(launch, reps=7), None, 16 * n + 4 * segments)


def bench_gather():
    n = 1 << 27
    x, perm = cp.random.standard_normal(n), cp.random.permutation(n).astype(np.uint32)
    for name, at in (("in order", cp.arange(n, dtype=np.uint32)), ("random", perm)):
        (out, _), launch = gather(x, at)
        report(f"gather f64, {name}", n, median_ms(launch, reps=7), None, 20 * n)
        (out, _), launch = gather(x, at, out)
        report(f"scatter f64, {name}", n, median_ms(launch, reps=7), None, 20 * n)


# ---- sweeps
def sweep(title, configs, run):
    results = []
    for c in configs:
        try:
            results.append((run(c), c))
        except Exception as e:  # parameters that the chip does not support
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
        sweep(
            f"reduce_by_key runs of {run}",
            RBK_TUNE,
            lambda c: median_ms(reduce_by_key("u64", "f64", keys, values, **c)[1], reps=3),
        )


def sort_choices(triples, looks):
    return [dict(THREADS=t, ITEMS=i, MIN_BLOCKS=m, LOOK_AT_ONCE=l) for t, i, m in triples for l in looks]


SORT_TUNE = {
    ("u32", 1 << 28, False, 32): sort_choices(
        [(256, 32, 3), (256, 36, 3), (256, 40, 3), (256, 44, 3), (256, 48, 2), (384, 32, 2)], (1, 2)
    ),
    ("u32", 1 << 28, True, 32): sort_choices(
        [(256, 20, 3), (256, 24, 3), (256, 28, 2), (384, 18, 2), (384, 20, 2), (384, 24, 2), (512, 16, 2)], (1, 2)
    ),
    ("u64", 1 << 27, False, 64): sort_choices(
        [(256, 20, 3), (256, 22, 3), (256, 24, 3), (256, 24, 2), (384, 20, 2)], (1, 2)
    ),
    ("u64", 1 << 27, True, 46): sort_choices(
        [
            (256, 16, 2),
            (256, 16, 3),
            (256, 20, 2),
            (384, 12, 2),
            (384, 15, 2),
            (384, 18, 2),
            (448, 12, 2),
            (512, 12, 2),
            (512, 14, 1),
            (640, 12, 1),
        ],
        (1, 2),
    ),
    ("u32", 1 << 20, True, 32): sort_choices(
        [(256, 14, 1), (256, 16, 1), (256, 18, 1), (384, 12, 1), (512, 8, 1)], (2, 4)
    ),
    ("u64", 1 << 16, True, 40): sort_choices([(256, 2, 1), (256, 4, 1), (256, 6, 1)], (2, 4)),
}


def tune_sort():
    for case, configs in SORT_TUNE.items():
        sweep(
            f"sort {case}",
            configs,
            lambda c: sort_bench(*case, with_cub=False, reps=3, name=" ".join(map(str, c.values())), **c),
        )
        cp.get_default_memory_pool().free_all_blocks()


MERGE_TUNE = [
    dict(THREADS=t, ITEMS=i, MIN_BLOCKS=m)
    for t, i, m in (
        (256, 16, 2),
        (256, 16, 3),
        (256, 16, 4),
        (512, 16, 1),
        (512, 15, 1),
        (256, 15, 3),
        (256, 15, 4),
        (256, 11, 5),
        (128, 16, 6),
        (128, 16, 8),
        (128, 32, 3),
    )
]


def tune_merge():
    n = 1 << 27
    original = cp.random.randint(0, 1 << 31, n, dtype=np.int32).astype(np.uint64) << np.uint64(33) ^ cp.random.randint(
        0, 1 << 31, n, dtype=np.int32
    ).astype(np.uint64)
    keys, values = original.copy(), cp.arange(n, dtype=np.uint32)
    sweep(
        "merge sort u64+u32",
        MERGE_TUNE,
        lambda c: median_ms(merge_sort("u64", keys, values, **c).launch, lambda: cp.copyto(keys, original), reps=3),
    )


SEGMENTED_TUNE = product_of(THREADS=(128, 256, 512), ITEMS=(5, 7, 9, 11, 13))


def tune_segmented():
    n = 1 << 27
    x = cp.random.standard_normal(n)
    offsets = cp.concatenate(
        [
            cp.zeros(1, np.uint32),
            cp.sort(cp.random.randint(0, 1 << 27, n // 27, dtype=np.int32)).astype(np.uint32),
            cp.full(1, n, np.uint32),
        ]
    )
    for mode in ("REDUCE", "SCAN"):
        sweep(
            f"segmented {mode}",
            SEGMENTED_TUNE,
            lambda c: median_ms(segmented(mode, "f64", "u32", x, offsets, **c)[1], reps=3),
        )


def tune_histogram():
    n, bins = 1 << 28, 1 << 20
    for skew in (1, 4):
        x = (bins * cp.random.random_sample(n) ** skew).astype(np.uint32)
        for way in ("cached", "sorted"):
            configs = [c for c in HISTOGRAM_TUNE if way == "cached" or c["CACHE"] == 2048]
            sweep(f"histogram {way} skew {skew}", configs, lambda c: median_ms(histogram(x, bins, way, **c)[1], reps=3))


def fitting(low, high, **choices):
    return [c for c in product_of(**choices) if low <= c["THREADS"] * c["MIN_BLOCKS"] <= high]


SCAN_TUNE = fitting(448, 1200, THREADS=(128, 256, 384, 512), ROWS=(3, 4, 5, 6, 7, 8), MIN_BLOCKS=(1, 2, 3, 4, 6, 8))
REDUCE_TUNE = product_of(THREADS=(256, 512), UNROLL=(2, 4, 8))
COMPACT_TUNE = fitting(448, 1500, THREADS=(128, 256, 384, 512), ROWS=(4, 8), MIN_BLOCKS=(1, 2, 3, 4, 6, 8))
RBK_TUNE = fitting(
    384, 1024, THREADS=(96, 128, 160, 192, 256, 512), ROWS=(3, 4, 5, 6), MIN_BLOCKS=(1, 2, 3, 4, 5, 6, 7, 8)
)
HISTOGRAM_TUNE = product_of(THREADS=(256, 512), ITEMS=(8, 16), CACHE=(2048, 8192))
