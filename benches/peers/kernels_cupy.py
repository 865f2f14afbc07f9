"""Checks and times the kernels of kernels/ on one GPU without any Rust, and compares them with CUB on the same arrays.

    nvcc -O3 -std=c++17 -arch=sm_90 -shared -Xcompiler -fPIC benches/peers/kernels_cub.cu -o libkernels_cub.so
    python3 benches/peers/kernels_cupy.py check [NAME ...]       every kernel against NumPy/CuPy on awkward inputs
    python3 benches/peers/kernels_cupy.py bench [NAME ...] --cub libkernels_cub.so
    python3 benches/peers/kernels_cupy.py tune [NAME ...]        sweeps the constants, best last

Needs CuPy and NumPy. Kernels are compiled by NVRTC through ctypes, many at a time. Each time is the median of
event-timed replays of a captured graph (up to 2^21 elements: of 20 operations in one graph). GB/s count once each byte
that the operation must move.
"""

import argparse, sys, time

import kernels_bench, kernels_check
from kernels_bench import *
from kernels_check import *


def precompile(command, names):
    """Compiles in parallel what a command needs. Kernels that are missing here are compiled at their first call."""
    sort_sizes = (0, 1 << 20, 1 << 23)
    jobs = {
        "check": {
            "reduce": [("reduce.cu", reduce_constants(op, i, a, o)) for i, a, o, op in REDUCE_CASES],
            "scan": [("scan.cu", scan_constants(i, o, a, k, 0)) for i, o, a in SCAN_CASES for k in (0, 1)],
            "compact": [
                ("compact.cu", compact_constants(m, i, x))
                for m in ("UNIQUE", "FLAGGED", "PARTITION")
                for i in ("u32", "u64", "f64", "u8")
                for x in ("u32", "u64")
            ]
            + [("compact.cu", compact_constants("POSITIONS", "u32", x)) for x in ("u32", "u64")],
            "reduce_by_key": [
                ("reduce_by_key.cu", reduce_by_key_constants(k, v, x)) for k, v in RBK_CASES for x in ("u32", "u64")
            ],
            "sort": [
                ("sort.cu", sort_constants(k, v, n, small))
                for k, v in SORT_CASES
                for n, small in ((0, True), (0, False), (1 << 20, False))
            ]
            + [
                ("sort.cu", sort_constants("u64", v, n, LOOK=look))
                for v in (0, 4)
                for n in sort_sizes
                for look in ("u32", "u64")
            ],
            "histogram": [("histogram.cu", histogram_constants())],
            "merge": [("merge.cu", merge_constants(k, v)) for k, v in MERGE_CASES],
            "segmented": [
                ("segmented.cu", segmented_constants(m, v, i))
                for m in ("REDUCE", "SCAN", "SCAN_EXCLUSIVE")
                for v, i in SEGMENTED_CASES
            ],
            "gather": [("gather.cu", gather_constants(b, i)) for b in (1, 2, 4, 8, 16) for i in ("u32", "u64")],
        },
        "bench": {
            "reduce": [("reduce.cu", reduce_constants(op, "f64", "f64", "f64")) for op in ("SUM", "DOT")],
            "scan": [
                ("scan.cu", scan_constants(t, t, t, 0, n)) for t in ("u32", "u64", "f64") for n in (1 << 16, 1 << 28)
            ],
            "compact": [
                ("compact.cu", compact_constants(m, "u32")) for m in ("UNIQUE", "FLAGGED", "PARTITION", "POSITIONS")
            ],
            "reduce_by_key": [("reduce_by_key.cu", reduce_by_key_constants("u64", "f64"))],
            "sort": [("sort.cu", sort_constants(k, 4 * p, n)) for k, n, p, _ in SORTS],
            "histogram": [("histogram.cu", histogram_constants()), ("sort.cu", sort_constants("u32", 0, 1 << 28))],
        },
        "tune": {
            "reduce": [
                ("reduce.cu", reduce_constants(op, "f64", "f64", "f64", **c))
                for op in ("SUM", "DOT")
                for c in REDUCE_TUNE
            ],
            "scan": [("scan.cu", scan_constants(t, t, t, **c)) for t in ("u32", "u64") for c in SCAN_TUNE],
            "compact": [
                ("compact.cu", compact_constants(m, "u32", **c)) for m in ("UNIQUE", "FLAGGED") for c in COMPACT_TUNE
            ],
            "reduce_by_key": [("reduce_by_key.cu", reduce_by_key_constants("u64", "f64", **c)) for c in RBK_TUNE],
            "sort": [
                ("sort.cu", sort_constants(k, 4 * p, n, **c))
                for (k, n, p, _), configs in SORT_TUNE.items()
                for c in configs
            ],
            "histogram": [("histogram.cu", histogram_constants(**c)) for c in HISTOGRAM_TUNE],
            "merge": [("merge.cu", merge_constants("u64", 4, **c)) for c in MERGE_TUNE],
            "segmented": [
                ("segmented.cu", segmented_constants(m, "f64", "u32", **c))
                for m in ("REDUCE", "SCAN")
                for c in SEGMENTED_TUNE
            ],
        },
    }[command]
    return compile_all([job for name in names for job in jobs.get(name, [])])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["check", "bench", "tune"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--cub", nargs="*", default=[], help="libraries built from kernels_cub.cu")
    parser.add_argument("--sizes", help="comma-separated sizes for check, instead of the usual ones")
    args = parser.parse_args()
    kernels_bench.cub = kernels_bench.Cub(args.cub) if args.cub else None
    if args.sizes:
        SIZES[:] = [int(s) for s in args.sizes.split(",")]
    names = args.names or [
        "copy",
        "reduce",
        "scan",
        "compact",
        "reduce_by_key",
        "sort",
        "histogram",
        "merge",
        "merge_order",
        "segmented",
        "gather",
    ]
    began = time.time()
    if not precompile(args.command, names):
        print("some kernels did not compile")
    print(f"compiled in {time.time() - began:.1f} s", flush=True)
    if args.command == "bench":
        header()
    for name in names:
        f = getattr(kernels_check if args.command == "check" else kernels_bench, f"{args.command}_{name}", None)
        if f is None:
            continue
        began = time.time()
        f()
        cp.get_default_memory_pool().free_all_blocks()
        if args.command == "check":
            print(
                f"check {name}: {kernels_check.checked} cases so far, {kernels_check.failures} wrong, {time.time() - began:.1f} s",
                flush=True,
            )
    if kernels_check.failures:
        sys.exit(1)


if __name__ == "__main__":
    main()
