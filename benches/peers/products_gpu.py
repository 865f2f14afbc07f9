"""Checks and times the products of kernels/ on one GPU without any Rust, compared with cuSPARSE in the same process.

    python3 benches/peers/products_gpu.py check            every kernel against compensated sums on ragged shapes
    python3 benches/peers/products_gpu.py bench [CASE ...]  compared with cuSPARSE's CSR (two algorithms), COO, SELL-32
    python3 benches/peers/products_gpu.py blocks [CASE ...] several vectors at the same time, compared with SpMM
    python3 benches/peers/products_gpu.py tune [CASE ...]   sweeps the constants

Needs CuPy. Matrices are made on the GPU. Each time is the median of replays of a captured graph (of 20 products if one
takes less than 50 us), so that Python's time does not count. Bandwidths are relative to that of a copy, measured first.
"""

import argparse, os, subprocess, sys, time, traceback

import numpy as np

from kernels_gpu import F, SIZE, compile_all, cp
from products_cusparse import Cusparse
from products_kernels import (
    BALANCED,
    coo,
    csr_balanced,
    csr_binned,
    csr_block,
    csr_stream,
    csr_vector,
    dia,
    ell,
    sell,
    sorted_order,
    to_dia,
)
from products_matrices import CASES, ragged

TYPES = ["f64", "f32"]


# ---- checking
REFERENCE = (
    cp.RawKernel(
        r"""
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
}""",
        "reference",
    )
    if cp
    else None
)
failures = 0


def expect(name, a, t, x, y, got, alpha, beta):
    global failures
    want, size = cp.empty(a.rows), cp.empty(a.rows)
    if a.rows:
        REFERENCE(
            (1024,), (64,), (np.int64(a.rows), a.offsets, a.indices, a.values64, x.astype(np.float64), want, size)
        )
    want = alpha * want + (beta * y.astype(np.float64) if beta else 0)
    size = abs(alpha) * size + (abs(beta * y.astype(np.float64)) if beta else 0)
    bound = 4 * (a.lengths.astype(np.float64) + 4) * np.finfo(F[t]).eps * size
    bad = ~(abs(got.astype(np.float64) - want) <= bound)
    if a.rows and bool(bad.any()):
        failures += 1
        r = int(bad.argmax())
        print(
            f"FAILED {name} on {a.name} {t}: {int(bad.sum())} rows, first {r} of length {int(a.lengths[r])}: {float(got[r])} for {float(want[r])}",
            flush=True,
        )


def variants(a, t, v):
    """Every kernel as (name, make(x, y, alpha, beta))."""
    for lanes in (1, 2, 8, 32):
        for capacity in (64, None):
            yield (
                f"stream lanes={lanes} capacity={capacity}",
                lambda x, y, al, be, l=lanes, c=capacity: csr_stream(
                    a, t, v, x, y, al, be, lanes=l, capacity=c, threads=64
                ),
            )
    for threads, items, ahead in ((32, 2, 1), (128, 8, 0)):
        yield (
            f"balanced {threads} {items}",
            lambda x, y, al, be, i=items, th=threads, h=ahead: csr_balanced(
                a, t, v, x, y, al, be, ITEMS=i, THREADS=th, SLACK=i * th // 4, MIN_BLOCKS=1, AHEAD=h
            ),
        )
    for threads, each in ((64, 2), (128, 8)):
        yield (
            f"binned {threads} {each}",
            lambda x, y, al, be, e=each, th=threads: csr_binned(a, t, v, x, y, al, be, EACH=e, THREADS=th),
        )
    yield "coo", lambda x, y, al, be: coo(a, t, v, x, y, al, be, threads=64, items=3)
    for eager in (0, 1):
        yield f"ell eager={eager}", lambda x, y, al, be, e=eager: ell(a, t, v, x, y, al, be, eager=e)
    for rows in (1, 2):
        yield (
            f"dia rows={rows}",
            lambda x, y, al, be, n=rows: dia(a, t, v, x, y, al, be, ROWS=n, WIDE=2 - n, THREADS=128),
        )
    for lanes in (1, 4, 32):
        yield f"vector {lanes}", lambda x, y, al, be, l=lanes: csr_vector(a, t, v, x, y, al, be, lanes=l)
    for height, runtime, window in ((32, False, 1), (16, False, 1), (7, True, 21), (32, False, 256)):
        order = sorted_order(a, window) if window > 1 else None
        for rows in (1,) if runtime else (1, 2):
            yield (
                f"sell-{height}-{window} rows={rows}",
                lambda x, y, al, be, h=height, r=runtime, o=order, n=rows: sell(
                    a, t, v, x, y, al, be, height=h, runtime=r, order=o, threads=64, ROWS=n, WIDE=n - 1
                ),
            )


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
                    xs, ys = (
                        (rng.random(a.columns * vectors) - 0.5).astype(F[t]),
                        cp.full(a.rows * vectors, np.nan, F[t]),
                    )
                    for tiles, steps in ((False, None), (True, 64), (True, 1024)):
                        ys[:] = np.nan
                        csr_block(a, t, v, xs, ys, vectors, alpha=2, tiles=tiles, steps=steps)()
                        for j in range(vectors):
                            expect(
                                f"block {j} of {vectors} tiles={tiles} steps={steps}",
                                a,
                                t,
                                cp.ascontiguousarray(xs[j::vectors]),
                                None,
                                ys[j::vectors],
                                2,
                                0,
                            )
            if a.rows == a.columns and a.rows:
                dot, y = cp.zeros(1, F[t]), cp.empty(a.rows, F[t])
                for name, run in (
                    ("stream dot", csr_stream(a, t, v, x, y, dot=dot)),
                    ("sell dot", sell(a, t, v, x, y, dot=dot)),
                    ("dia dot", dia(a, t, v, x, y, dot=dot)),
                    ("stream dot small", csr_stream(a, t, v, x, y, dot=dot, threads=64)),
                ):
                    if run is None:
                        continue
                    dot[:] = np.nan
                    y[:] = np.nan
                    for _ in range(2):
                        run()
                        expect(name, a, t, x, y, y, 1, 0)
                        want, scale = (
                            float((x.astype(np.float64) * y.astype(np.float64)).sum()),
                            float(abs(x.astype(np.float64) * y.astype(np.float64)).sum()),
                        )
                        if not abs(float(dot[0]) - want) <= 100 * np.finfo(F[t]).eps * scale:
                            print(f"FAILED {name} on {a.name} {t}: dot {float(dot[0])} for {want}")
    print("check:", "all well" if not failures else f"{failures} failures", flush=True)


# ---- timing
def timed(run, stream, seconds=0.03):
    """Median milliseconds of a product, from replays of a captured graph."""
    # The arrays were made on another stream.
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


COPY = (
    cp.RawKernel(
        r"""
extern "C" __global__ void copy(const double4* x, double4* y, long long n) {
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n; i += gridDim.x * (long long)blockDim.x) y[i] = x[i];
}""",
        "copy",
    )
    if cp
    else None
)


def copy_speed(stream):
    """The bandwidth of a copy by a kernel, since a copy node of a graph is slower."""
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
    """Runs each case in its own process, so that a library that fails does not affect the other cases."""
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
    print(
        f"{a.name} {t} nnz {a.nnz} copy {copy:.0f} GB/s floor {floor:.4f} |",
        *(f"{k} {m:.4f}" for k, m in theirs.items()),
        flush=True,
    )
    for our_name, run in ours(a, t, t, x, y):
        if run is not None:
            ms = timed(run, stream)
            print(
                f"    {our_name} {ms:.4f} ({best_csr / ms:.2f} csr, {best / ms:.2f} best, {floor / ms:.2f} copy)",
                flush=True,
            )
            del run


def blocks(names):
    """Several vectors at the same time, compared with SpMM."""
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
    steps = [("", {})] + (
        [(f"steps={n}", dict(steps=n, tiles=True)) for n in (512, 1024, 2048)] if name == "rmat" else []
    )
    for label, c in steps:
        ms = timed(csr_block(a, t, t, x, y, vectors, **c), stream)
        print(
            f"{a.name} {t} {vectors} vectors: block {label} {ms:.4f} ({best / ms:.2f}) |"
            if not label
            else f"    {label} {ms:.4f} ({best / ms:.2f})",
            *(f"{k} {m:.4f}" for k, m in theirs.items() if not label),
            flush=True,
        )


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
                print(
                    f"{a.name} {t} {kind}: "
                    + "; ".join(f"{l} {m:.4f}" for m, l in sorted(r for r in results if r[1].startswith(kind))[:5]),
                    flush=True,
                )
        del a, x, y
        cp.get_default_memory_pool().free_all_blocks()


def sweep(a, t, x, y):
    mean = a.nnz / a.rows
    for threads, lanes, unroll in STREAM_TUNE:
        if 3 <= mean / lanes <= 28:
            yield (
                f"stream t={threads} l={lanes} u={unroll}",
                lambda threads=threads, lanes=lanes, unroll=unroll: csr_stream(
                    a, t, t, x, y, threads=threads, lanes=lanes, unroll=unroll
                ),
            )
    for c in BALANCED_TUNE:
        yield "balanced " + " ".join(f"{k}={n}" for k, n in c.items()), lambda c=c: csr_balanced(a, t, t, x, y, **c)
    if mean > 14:
        yield "vector t=256 l=8 u=4", lambda: csr_vector(a, t, t, x, y, threads=256, lanes=8, unroll=4)
    for height, threads, unroll in SELL_TUNE:
        run = sell(a, t, t, x, y, height=height, threads=threads, unroll=unroll)
        if run is not None:
            yield f"sell-{height} t={threads} u={unroll}", lambda run=run: run


BALANCED_TUNE = [
    dict(THREADS=t, ITEMS=i, UNROLL=u, SLACK=s, MIN_BLOCKS=b, AHEAD=h)
    for h in (0, 1)
    for t, i, u, s, b in (
        (256, 4, 4, 512, 6),
        (256, 4, 4, 64, 6),
        (256, 3, 3, 64, 6),
        (512, 2, 2, 512, 3),
        (128, 4, 4, 64, 12),
        (128, 4, 4, 256, 12),
        (128, 8, 4, 256, 12),
        (64, 8, 4, 128, 24),
    )
]
STREAM_TUNE = [
    (128, 1, 4),
    (128, 1, 9),
    (128, 1, 8),
    (256, 1, 4),
    (256, 1, 8),
    (128, 2, 4),
    (128, 2, 8),
    (256, 2, 8),
    (128, 4, 4),
    (256, 4, 4),
]
SELL_TUNE = [(h, th, u) for h in (16, 32) for th in (64, 128) for u in (7, 9)]


def precompile(command):
    jobs = []
    for t, v in (("f64", "f64"), ("f32", "f32"), ("f64", "f32")):
        s = dict(SCALAR=t, STORED=v, OFFSET="u32")
        check = command == "check"
        if not check and t != v:
            continue
        stream = [(64, l, u) for l in (1, 2, 8, 32) for u in (4, 8, 9)] if check else STREAM_TUNE
        jobs += [
            ("csr_stream.cu", s | dict(LANES=l, UNROLL=u, THREADS=th, IN_BULK=int(u == 9 and SIZE[v] == 4)))
            for th, l, u in stream
        ]
        balanced = (
            [
                BALANCED[0] | dict(ITEMS=i, THREADS=th, SLACK=i * th // 4, MIN_BLOCKS=1, AHEAD=h)
                for th, i, h in ((32, 2, 1), (128, 8, 0))
            ]
            if check
            else BALANCED + BALANCED_TUNE
        )
        jobs += [("csr_balanced.cu", s | c) for c in balanced]
        jobs += [
            ("csr_binned.cu", dict(SCALAR=t, STORED=v, EACH=e, THREADS=th, MIN_BLOCKS=10 if t == "f32" else 1))
            for e, th in ([(2, 64)] if check else []) + [(8, 128)]
        ]
        jobs += [
            ("csr_vector.cu", s | dict(LANES=l, THREADS=256, UNROLL=4, AHEAD=h)) for l in (1, 4, 8, 32) for h in (0, 1)
        ]
        jobs += [
            ("coo.cu", dict(SCALAR=t, STORED=v, THREADS=th, ITEMS=i)) for th, i in ([(64, 3)] if check else [(256, 7)])
        ]
        jobs += [
            ("dia.cu", dict(SCALAR=t, STORED=v, ROWS=r, WIDE=w, HALF=0, UNROLL=7, BLOCKS=0, TILES=1, THREADS=th))
            for r, w, th in ((1, 0, 256), (1, 1, 128), (2, 0, 128))
        ]
        jobs += [("ell.cu", dict(SCALAR=t, STORED=v, THREADS=256, UNROLL=8, EAGER=e)) for e in (0, 1)]
        many = {"f64": [(1, 1), (4, 1), (4, 2), (16, 2)], "f32": [(1, 1), (4, 1), (2, 4), (8, 4)]}[t] if check else []
        many = (
            {"f64": [(1, 2), (2, 2), (4, 2), (8, 2), (16, 2)], "f32": [(2, 1), (1, 4), (2, 4), (4, 4), (8, 4)]}[t]
            if command == "blocks"
            else many
        )
        jobs += [("csr_block.cu", s | dict(LANES=l, WIDTH=w, UNROLL=4, THREADS=128)) for l, w in many]
        jobs += [
            ("csr_block_tiles.cu", s | dict(LANES=l, WIDTH=w, UNROLL=4, THREADS=256, STEPS=st))
            for l, w in many
            for st in ([64, 1024] if check else [512, 1024, 2048])
        ]
        sells = [(h, 64, 7) for h in (0, 16, 32)] if check else SELL_TUNE
        jobs += [
            ("sell.cu", s | dict(HEIGHT=h, ROWS=r, WIDE=w, AHEAD=int((r, w) == (1, 0)), UNROLL=u, THREADS=th))
            for h, th, u in sells
            for r, w in ((1, 0), (1, 1), (2, 0), (2, 1))
            if h or (r, w) == (1, 0)
        ]
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
    os.environ.setdefault(
        "ARCH", subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True).stdout.strip()
    )
    precompile(args.command)
    print(f"compiled in {time.time() - began:.1f} s", flush=True)
    try:
        if args.command == "check":
            check()
        elif args.command != "compile":
            {"bench": bench, "blocks": blocks, "tune": tune}[args.command](args.cases or list(CASES))
    except Exception:
        # After a failure of the device, every destructor would fail again, so the process exits without them.
        traceback.print_exc()
        sys.stdout.flush()
        os._exit(1)


if __name__ == "__main__":
    main()
