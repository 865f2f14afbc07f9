"""Compares every kernel with NumPy (CuPy for large arrays) on awkward sizes and inputs."""

import numpy as np

from kernels_gpu import *

# ---- checks
SIZES = [
    0,
    1,
    2,
    31,
    32,
    33,
    255,
    257,
    1023,
    2047,
    2048,
    2049,
    4095,
    4096,
    4097,
    8191,
    8192,
    8193,
    10007,
    65536,
    100003,
    1000003,
    4194301,
]
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
    return abs(complex(got) - complex(want)) <= 1e-12 * scale + (
        1e-4 * scale if got.dtype in (np.float32, np.complex64) else 0
    )


def random_values(kind, n):
    t = NP(kind)
    if t.kind == "c":
        return (rng.standard_normal(n) + 1j * rng.standard_normal(n)).astype(t)
    if t.kind == "f":
        return rng.standard_normal(n).astype(t)
    return rng.integers(0, 1 << min(16, 8 * t.itemsize - 1), n).astype(t)


REDUCE_CASES = [
    ("f64", "f64", "f64", "SUM"),
    ("f64", "f64", "f64", "DOT"),
    ("f32", "f64", "f32", "DOT"),
    ("c64", "c64", "c64", "DOT"),
    ("c32", "c64", "c64", "SUM"),
    ("c32", "c32", "c32", "DOT"),
    ("c32", "f64", "f32", "NORM2"),
    ("f64", "f64", "f64", "NORM1"),
    ("f32", "f32", "f32", "NORMINF"),
    ("u32", "u64", "u64", "SUM"),
    ("u64", "u64", "u64", "MIN"),
    ("i32", "i32", "i32", "MAX"),
    ("f64", "f64", "f64", "MIN"),
]


def check_reduce():
    for inp, acc, out, op in REDUCE_CASES:
        for n in SIZES:
            for off in (0, 1):
                x, y = (random_values(inp, n + off)[off:] for _ in "xy")
                dx, dy = (
                    cp.asarray(np.concatenate([np.zeros(off, x.dtype), x]))[off:],
                    cp.asarray(np.concatenate([np.zeros(off, y.dtype), y]))[off:],
                )
                got, launch = reduce(op, inp, acc, out, dx, dy if op == "DOT" else None)
                poison(got)
                launch()
                first = got.get()
                launch()
                wide = np.complex128 if NP(inp).kind == "c" else np.float64
                X, Y = x.astype(wide), y.astype(wide)
                want = {
                    "SUM": X.sum(),
                    "DOT": (X.conj() * Y).sum(),
                    "NORM2": (abs(X) ** 2).sum(),
                    "NORM1": abs(X).sum(),
                    "NORMINF": abs(X).max(initial=0),
                }.get(op)
                if op in ("MIN", "MAX"):
                    if n == 0:
                        continue
                    want = x.min() if op == "MIN" else x.max()
                    ok = first[0] == want
                else:
                    ok = near(
                        first[0],
                        want,
                        float((abs(X) * (abs(Y) if op == "DOT" else 1)).sum())
                        + float((abs(X) ** 2).sum() if op == "NORM2" else 0)
                        + 1e-300,
                    )
                expect(f"reduce {op} {inp} n={n} offset={off}: {first[0]} {want}", ok and same_bits(first, got))


SCAN_CASES = [
    ("u32", "u32", "u32"),
    ("u32", "u64", "u64"),
    ("u64", "u64", "u64"),
    ("f64", "f64", "f64"),
    ("f32", "f32", "f32"),
    ("i32", "i32", "i32"),
]


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
                ok = (
                    np.abs(first - want).max(initial=0) <= (1e-10 if out == "f64" else 2e-2) * max(1, n) ** 0.5
                    if NP(out).kind == "f"
                    else same_bits(first, want)
                )
                expect(f"scan {inp}->{out} inclusive={inclusive} n={n}", ok and same_bits(first, got))


def check_compact():
    for inp in ("u32", "u64", "f64", "u8"):
        for n in SIZES:
            for density in (0.0, 0.03, 0.5, 1.0):
                x = (
                    np.sort(rng.integers(0, max(1, int(n * density * 0.7) + 1), n)).astype(NP(inp))
                    if inp != "u8"
                    else random_values(inp, n) & 1
                )
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
                    ok = (
                        k == want.size
                        and same_bits(out[:k], want)
                        and (mode != "PARTITION" or same_bits(rest[: n - k], x[flags == 0]))
                    )
                    expect(f"compact {mode} {inp} n={n} density={density}: {k} {want.size}", ok)


RBK_CASES = [
    ("u64", "f64"),
    ("u32", "f32"),
    ("u64", "c64"),
    ("u64", "c32"),
    ("u32", "u64"),
    ("f64", "f64"),
    ("u64", "u32"),
]


def check_reduce_by_key():
    for key, value in RBK_CASES:
        for n in SIZES:
            for mean in (1, 1.3, 4, 64, 3000, 1e9):
                off = n % 3 == 1
                keys = np.cumsum(rng.random(n) < 1 / mean).astype(NP(key))
                values = random_values(value, n)
                dk, dv = (
                    cp.asarray(np.concatenate([a[:off], a]))[off:] if n else cp.asarray(a) for a in (keys, values)
                )
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
                    ok = same_bits(ko[:r], keys[heads]) and (
                        bool(np.all(first == want))
                        if values.dtype.kind == "u"
                        else bool(np.all(np.abs(first - want) <= tol * scale))
                    )
                    poison(ko, so)
                    launch()
                    ok = ok and same_bits(first, so[:r])
                expect(f"reduce_by_key {key} {value} n={n} mean run={mean}: {r} {heads.size}", ok)


def key_cases(key, n):
    t = NP(key)
    u = np.dtype(f"u{t.itemsize}")
    raw = rng.integers(0, 1 << 63, n, dtype=np.uint64).astype(np.uint64) * np.uint64(2) + rng.integers(0, 2, n).astype(
        np.uint64
    )
    random = raw.astype(u).view(t)  # for floats: NaNs of both signs, subnormals, infinities
    yield "random bits", random
    yield "all equal", np.repeat(random[:1], n)
    yield "ascending", np.arange(n).astype(t)
    yield "descending", np.arange(n)[::-1].astype(t)
    few = rng.integers(0, 3, n)
    yield "few, constant digits", (few * 257).astype(t)
    if t.kind == "f":
        yield (
            "zeros, infinities, NaN",
            np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1, -1], dtype=t)[rng.integers(0, 8, n)],
        )


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


SORT_CASES = [
    ("u32", 0),
    ("u32", 4),
    ("u64", 0),
    ("u64", 4),
    ("u64", 8),
    ("i32", 4),
    ("f32", 0),
    ("f64", 8),
    ("u64", 16),
    ("u16", 2),
    ("u8", 1),
]


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


MERGE_CASES = [("u64", 4), ("u32", 0), ("f64", 8), ("i32", 4), ("u64", 16)]


def check_merge():
    for key, value_bytes in MERGE_CASES:
        vt = np.dtype({0: "u4", 4: "u4", 8: "u8", 16: "c16"}[value_bytes])
        for n in SIZES:
            for what, keys in key_cases(key, n):
                values = np.arange(n).astype(vt)
                order = np.argsort(ordered(keys), kind="stable")
                s = merge_sort(key, cp.asarray(keys), cp.asarray(values) if value_bytes else None)
                poison(*s.result)
                s.launch()
                expect(
                    f"merge sort {key} values={value_bytes} {what} n={n}",
                    same_bits(s.result[0], keys[order]) and (not value_bytes or same_bits(s.result[1], values[order])),
                )
                for share in (0, 0.3, 1):
                    na = int(n * share)
                    parts = []
                    for part in (slice(0, na), slice(na, n)):
                        o = np.argsort(ordered(keys[part]), kind="stable")
                        parts += [cp.asarray(keys[part][o]), cp.asarray(values[part][o]) if value_bytes else None]
                    (out, out_v), launch = merge(key, parts[0], parts[2], parts[1], parts[3])
                    poison(out, out_v)
                    launch()
                    expect(
                        f"merge {key} values={value_bytes} {what} n={n} a={na}",
                        same_bits(out, keys[order]) and (not value_bytes or same_bits(out_v, values[order])),
                    )


def check_merge_order():
    """A sort by an order given as source code: by the last three decimal digits."""
    for n in SIZES:
        keys = rng.integers(0, 1 << 40, n, dtype=np.uint64)
        values = np.arange(n, dtype=np.uint32)
        order = np.argsort(keys % np.uint64(1000), kind="stable")
        s = merge_sort("u64", cp.asarray(keys), cp.asarray(values), **{"LESS(a,b)": "((a)%1000<(b)%1000)"})
        s.launch()
        expect(
            f"merge sort by a given order n={n}",
            same_bits(s.result[0], keys[order]) and same_bits(s.result[1], values[order]),
        )


SEGMENTED_CASES = [("f64", "u32"), ("f64", "u64"), ("f32", "u32"), ("c64", "u32"), ("u32", "u32"), ("u64", "u64")]


def check_segmented():
    for value, index in SEGMENTED_CASES:
        for n in SIZES:
            for segments in (1, 2, 43, n // 7 + 1, 3 * n + 5):
                x = random_values(value, n)
                cuts = (
                    np.sort(rng.integers(0, n + 1, segments - 1))
                    if segments != 43
                    else np.sort((n * rng.random(42) ** 8).astype(np.int64))
                )
                offsets = np.concatenate([[0], cuts, [n]]).astype(NP(index))
                dx, do = cp.asarray(x), cp.asarray(offsets)
                wide = x.astype({"f": np.float64, "c": np.complex128, "u": x.dtype}[x.dtype.kind])
                running = np.concatenate([np.zeros(1, wide.dtype), np.cumsum(wide, dtype=wide.dtype)])
                size = np.concatenate([[0.0], np.cumsum(np.abs(x).astype(np.float64))])
                o = offsets.astype(np.int64)
                owner = np.repeat(np.arange(segments), np.diff(o))
                for mode in ("REDUCE", "SCAN", "SCAN_EXCLUSIVE"):
                    got, launch = segmented(mode, value, index, dx, do)
                    poison(got)
                    launch()
                    first = got.get()
                    poison(got)
                    launch()
                    if mode == "REDUCE":
                        want = running[o[1:]] - running[o[:-1]]
                    else:
                        end = np.arange(n) + (mode == "SCAN")
                        want = running[end] - running[o[owner]]
                    if x.dtype.kind == "u":
                        ok = bool(np.all(first == want))
                    else:
                        ok = bool(
                            np.all(np.abs(first - want) <= (1e-5 if x.dtype.itemsize == 4 else 1e-12) * (size[-1] + 1))
                        )
                    expect(f"segmented {mode} {value} {index} n={n} segments={segments}", ok and same_bits(first, got))


def check_gather():
    for size in (1, 2, 4, 8, 16):
        for index in ("u32", "u64"):
            for n in SIZES:
                m = n // 2 + 3
                x = (
                    rng.integers(0, 255, m * size).astype(np.uint8).view(f"V{size}" if size == 16 else f"u{size}")
                    if size != 16
                    else random_values("c64", m)
                )
                at = rng.integers(0, m, n).astype(NP(index))
                (out, misses), launch = gather(cp.asarray(x), cp.asarray(at))
                poison(out)
                launch()
                expect(f"gather {size} {index} n={n}", same_bits(out, x[at]) and int(misses[0]) == 0)
                perm = rng.permutation(m).astype(NP(index))
                target = cp.empty(m, x.dtype)
                (out, misses), launch = gather(cp.asarray(x), cp.asarray(perm), target)
                launch()
                want = np.empty_like(x)
                want[perm] = x
                expect(f"scatter {size} {index} n={n}", same_bits(out, want) and int(misses[0]) == 0)


def check_large():
    """More than 2^31 elements, checked on the device."""
    n = (1 << 31) + 3
    x = cp.random.randint(0, 1 << 31, n, dtype=np.int32).view(np.uint32)
    out, launch = reduce("SUM", "u32", "u64", "u64", x)
    launch()
    expect("large sum", int(out[0]) == int(x.sum(dtype=np.uint64)))
    got, launch = scan("u32", "u32", "u32", x, 1)
    launch()
    want = cp.cumsum(x, dtype=np.uint32)
    expect("large scan", bool((got == want).all()))
    del got, want
    flags = (x & 3 == 0).astype(np.uint8)
    (got, _, kept), launch = compact("FLAGGED", "u32", n, x, flags)
    launch()
    k = int(kept[0])
    expect("large compact", k == int(flags.sum(dtype=np.uint64)) and bool((got[:k] == x[x & 3 == 0]).all()))
    del got, flags
    keys, ones = cp.arange(n, dtype=np.uint32) >> np.uint32(2), cp.ones(n, np.uint32)
    (ko, so, runs), launch = reduce_by_key("u32", "u32", keys, ones)
    launch()
    r = int(runs[0])
    expect(
        "large reduce_by_key",
        r == ceil(n, 4)
        and bool((ko[:r] == cp.arange(r, dtype=np.uint32)).all())
        and bool((so[: r - 1] == 4).all())
        and int(so[r - 1]) == 3,
    )
    del keys, ones, ko, so
    want = cp.sort(x)
    s = sort("u32", x.copy())
    s.launch()
    expect("large sort", bool((s.result[0] == want).all()))
    del s
    s = merge_sort("u32", x.copy())
    s.launch()
    expect("large merge sort", bool((s.result[0] == want).all()))
