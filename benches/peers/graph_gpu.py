"""Traversals on the GPU from Python: kernels/bfs.cu and kernels/cuthill_mckee.cu, checked and timed on generated
graphs.

Usage: python benches/peers/graph_gpu.py check|bfs|tune|check_rcm|rcm|scipy [NAME=VALUE ...]     constants, e.g. CLUSTER=4 THREADS=1024

Edges per second are counted as in Graph500: undirected edges of the source's component (without duplicates and loops)
divided by the time of the search, as the harmonic mean over sources.
"""

import ctypes, hashlib, sys, time

import numpy as np

from kernels_gpu import SM, U, U32, compile_all, cp, defines, kernel, ptr

BFS = dict(OFFSET="u32", THREADS=1024, CHUNK=256, CLUSTER=16, PIECE=1024, ROOM=2048, STAYS=64, LONG=8, BY_ITSELF=32)
CM = dict(OFFSET="u32", THREADS=512, ALONE=256, STAGE=64, CLUSTER=16, HELD=8, NARROW=8192)
UNREACHED = 0xFFFFFFFF


# ---- graphs
class Graph:
    """An undirected graph in CSR, without duplicates and loops."""

    def __init__(self, n, u, v):
        keys = cp.unique(
            cp.concatenate(
                [u.astype(cp.uint64) << U(32) | v.astype(cp.uint64), v.astype(cp.uint64) << U(32) | u.astype(cp.uint64)]
            )
        )
        rows, columns = (keys >> U(32)).astype(cp.uint32), keys.astype(cp.uint32)
        del keys
        keep = rows != columns
        rows, self.indices = rows[keep], columns[keep]
        self.n, self.m = n, len(rows)
        self.offsets = cp.searchsorted(rows, cp.arange(n + 1, dtype=cp.uint32)).astype(cp.uint32)
        self.degrees = cp.diff(self.offsets)
        self.rows = rows


def rmat(scale, factor, seed=1):
    rng, u, v = cp.random.default_rng(seed), 0, 0
    n = factor << scale
    u, v = cp.zeros(n, cp.uint32), cp.zeros(n, cp.uint32)
    for _ in range(scale):
        x = rng.random(n, dtype=cp.float32)
        u = u << 1 | (x > 0.76)
        v = v << 1 | ((x > 0.57) & (x <= 0.76) | (x > 0.95))
    order = cp.random.default_rng(seed + 1).random(1 << scale, dtype=cp.float32).argsort().astype(cp.uint32)
    return Graph(1 << scale, order[u], order[v])


def uniform(scale, factor, seed=1):
    rng = cp.random.default_rng(seed)
    u, v = (rng.integers(0, 1 << scale, factor << scale, dtype=cp.uint32) for _ in "uv")
    return Graph(1 << scale, u, v)


def grid(*sizes, shuffle=False):
    n = int(np.prod(sizes))
    number = cp.arange(n, dtype=cp.uint32).reshape(sizes)
    if shuffle:
        number = cp.random.default_rng(3).random(n, dtype=cp.float64).argsort().astype(cp.uint32).reshape(sizes)
    u, v = [], []
    for axis in range(len(sizes)):
        a = cp.moveaxis(number, axis, 0)
        u.append(a[:-1].ravel()), v.append(a[1:].ravel())
    return Graph(n, cp.concatenate(u), cp.concatenate(v))


def road(side, seed=1):
    """A square grid with a quarter of its streets missing; each of the others is a path of two or three edges."""
    g = grid(side, side)
    u, v = g.rows, g.indices
    keep = (u < v) & (cp.random.default_rng(seed).random(g.m) < 0.75)
    u, v = u[keep], v[keep]
    k = cp.arange(len(u), dtype=cp.uint32)
    long = k % 2 == 0
    a, b = g.n + k, g.n + len(u) + cp.cumsum(long).astype(cp.uint32) - 1
    parts = [(u, a), (a[long], b[long]), (b[long], v[long]), (a[~long], v[~long])]
    return Graph(g.n + len(u) + int(long.sum()), *(cp.concatenate(x) for x in zip(*parts)))


def path(n):
    k = cp.arange(n - 1, dtype=cp.uint32)
    return Graph(n, k, k + 1)


def star(n):
    k = cp.arange(1, n, dtype=cp.uint32)
    return Graph(n, k * 0, k)


def cliques(k):
    """Two cliques connected by an edge, and an isolated vertex."""
    i = cp.arange(k * k, dtype=cp.uint32)
    return Graph(
        2 * k + 1,
        cp.concatenate([i // k, k + i // k, cp.array([k - 1], cp.uint32)]),
        cp.concatenate([i % k, k + i % k, cp.array([k], cp.uint32)]),
    )


def small_random(n, edges, seed):
    rng = cp.random.default_rng(seed)
    return Graph(n, rng.integers(0, n, edges, dtype=cp.uint32), rng.integers(0, n, edges, dtype=cp.uint32))


# ---- clusters of blocks
class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig with one attribute."""

    _fields_ = [(k, ctypes.c_uint) for k in "gx gy gz bx by bz shared".split()] + [
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.c_void_p),
        ("count", ctypes.c_uint),
    ]


def clusters_at_a_time(f, threads, size):
    """The number of clusters of `size` blocks that the device can run at the same time."""
    if size == 1:
        return SM()
    attribute = (ctypes.c_uint * 18)(4, 0, size, 1, 1)  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    config = LaunchConfig(size, 1, 1, threads, 1, 1, 0, None, ctypes.addressof(attribute), 1)
    cuda, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    if size > 8:
        cuda.cuFuncSetAttribute(
            ctypes.c_void_p(f.kernel.ptr), 14, 1
        )  # CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
    code = cuda.cuOccupancyMaxActiveClusters(ctypes.byref(count), ctypes.c_void_p(f.kernel.ptr), ctypes.byref(config))
    assert code == 0, code
    return count.value


# ---- breadth-first search --------------------------------------------------------------------------------------------
class Bfs:
    def __init__(self, g, **constants):
        self.g, self.c = g, {**BFS, **constants}
        self.levels, self.seen = cp.empty(g.n, cp.uint32), cp.empty(2 * ((g.n + 31) // 32), cp.uint32)
        self.queue, self.state = cp.empty(g.n + g.m // self.c["CHUNK"] + 1, cp.uint64), cp.zeros(16, cp.uint64)
        self.kernel = kernel("bfs.cu", "bfs", **self.c)

    def __call__(self, sources):
        g = self.g
        sources = cp.asarray(sources, cp.uint32)
        self.state.fill(0)
        size = self.c["CLUSTER"]
        blocks = int(
            self.c.get(
                "BLOCKS", min(SM() // size * size, clusters_at_a_time(self.kernel, self.c["THREADS"], size) * size)
            )
        )
        launch_cooperative(
            self.kernel,
            blocks,
            self.c["THREADS"],
            (
                U32(g.n),
                U(g.m),
                ptr(g.offsets),
                ptr(g.indices),
                ptr(sources),
                U32(len(sources)),
                ptr(self.levels),
                ptr(self.seen),
                ptr(self.queue),
                ptr(self.state),
            ),
        )
        return self.levels

    def count(self):
        return int(self.state[8])


def launch_cooperative(f, blocks, threads, args):
    f((blocks,), (threads,), args)  # nothing else runs on the device, so as many blocks as fit are resident


def levels_are_right(g, levels, sources):
    """Checks distances: they differ by at most one along edges, and every vertex has a neighbour closer to a source."""
    l = levels.astype(cp.int64)
    l[levels == UNREACHED] = 1 << 40
    step = l[g.rows] - l[g.indices]
    lowest = cp.full(g.n, 1 << 50, cp.int64)
    from cupyx import scatter_min

    scatter_min(lowest, g.rows, l[g.indices])
    zero = cp.sort(cp.flatnonzero(l == 0)).tolist() == sorted(set(sources))
    inner = (l > 0) & (l < 1 << 40)
    return zero and bool((cp.abs(step) <= 1).all()) and bool((lowest[inner] == l[inner] - 1).all())


def timed(f, n=1):
    a, b = cp.cuda.Event(), cp.cuda.Event()
    a.record()
    for _ in range(n):
        f()
    b.record()
    b.synchronize()
    return cp.cuda.get_elapsed_time(a, b) / n / 1e3


def small():
    return {
        "path": path(600),
        "star": star(3000),
        "cliques": cliques(40),
        "grid": grid(40, 60),
        "rmat": rmat(9, 8),
        "dense": small_random(2000, 60_000, 3),
        "sparse": small_random(3000, 2500, 4),
    }


def check_bfs(**c):
    graphs = (
        small()
        if c.pop("SMALL", 0)
        else {
            "one": Graph(1, cp.zeros(1, cp.uint32), cp.zeros(1, cp.uint32)),
            "path": path(100_000),
            "star": star(100_000),
            "cliques": cliques(300),
            "grid": grid(300, 400),
            "sparse": small_random(50_000, 40_000, 1),
            "random": small_random(30_000, 200_000, 2),
            "dense": small_random(20_000, 3_000_000, 3),
            "rmat": rmat(16, 16),
            "road": road(200),
            "shuffled": grid(60, 50, 70, shuffle=True),
        }
    )
    for name, g in graphs.items():
        f, good = Bfs(g, **c), []
        for sources in ([0], [g.n - 1], [g.n // 2], sorted({0, g.n // 3, g.n - 1}), list(range(0, g.n, 7))):
            l = f(sources).copy()
            again = f(sources)
            top = int(l[l != UNREACHED].max())
            good.append(levels_are_right(g, l, sources) and bool((l == again).all()) and f.count() == top + 1)
        print(f"bfs {name:9} n {g.n} m {g.m}", "ok" if all(good) else f"WRONG {good}", flush=True)


def bench_bfs(variants, only=""):
    for name, build, sources in (
        ("R-MAT 2^21 x 64", lambda: rmat(21, 64), 16),
        ("uniform 2^21 x 64", lambda: uniform(21, 64), 16),
        ("5-point 5000^2", lambda: grid(5000, 5000), 3),
        ("road-like", lambda: road(2000), 3),
        ("path 10^6", lambda: path(1_000_000), 1),
        ("star 10^6", lambda: star(1_000_000), 2),
    ):
        if only not in name:
            continue
        g = build()
        cp.get_default_memory_pool().free_all_blocks()
        choice = cp.flatnonzero(g.degrees)
        starts = [int(choice[int(k)]) for k in np.random.default_rng(5).integers(0, len(choice), sources)]
        for c in variants:
            f, rates, times, counts = Bfs(g, **c), [], [], []
            for k, s in enumerate(starts):
                l = f([s])
                if k == 0 and c is variants[0] and not levels_are_right(g, l, [s]):
                    print("WRONG", name)
                seconds = min(timed(lambda: f([s])) for _ in range(2))
                edges = int(g.degrees[l != UNREACHED].sum(dtype=cp.int64)) / 2
                rates.append(edges / seconds), times.append(seconds), counts.append(f.count())
            print(
                f"{name:18} n {g.n} m {g.m} levels {counts[0]:6} mean {np.mean(times) * 1e3:9.3f} ms {1e-9 * len(rates) / sum(1 / r for r in rates):8.1f} G edges/s {np.mean([t / k for t, k in zip(times, counts)]) * 1e6:7.2f} us a level  {c}",
                flush=True,
            )
        del g, f


# ---- reverse Cuthill-McKee -------------------------------------------------------------------------------------------
class CuthillMckee:
    def __init__(self, g, teams=1, **constants):
        self.g, self.teams, self.c = g, teams, {**CM, **constants}
        self.kernel = kernel("cuthill_mckee.cu", "cuthill_mckee", **self.c)
        self.describe = kernel("pattern.cu", "describe", OFFSET=self.c["OFFSET"], THREADS=256, LANES=8)
        self.marks, self.order = cp.empty((teams, g.n), cp.uint32), cp.empty((teams, g.n), cp.uint32)
        self.rows, self.tiles = cp.empty((teams, g.n), cp.uint64), g.n // self.c["THREADS"] + 256
        self.memory = cp.zeros(teams * (16 + self.tiles), cp.uint64)
        self.states = self.memory[: 16 * teams].reshape(teams, 16)
        self.vertices = cp.empty(g.n, cp.uint64)
        self.blocks = min(
            SM(), clusters_at_a_time(self.kernel, self.c["THREADS"], self.c["CLUSTER"]) * self.c["CLUSTER"]
        )

    def __call__(self, roots, limit=2**64 - 1):
        """Orders with a list of roots for each team. Returns (order, height, width, bandwidth, end) of each."""
        g, self.sorts = self.g, 0
        self.memory.fill(0)
        for t, r in enumerate(roots):
            self.order[t, : len(r)] = cp.asarray(r, cp.uint32)
            self.states[t, 5], self.states[t, 9] = len(r), limit
        threads = self.c["THREADS"]
        self.describe((4 * SM(),), (256,), (U(g.n), ptr(g.offsets), ptr(g.degrees), ptr(self.vertices)))
        while True:
            launch_cooperative(
                self.kernel,
                self.blocks,
                threads,
                (
                    U32(g.n),
                    ptr(g.indices),
                    ptr(self.vertices),
                    U32(self.teams),
                    ptr(self.marks),
                    ptr(self.order),
                    ptr(self.rows),
                    ptr(self.memory),
                    U(self.tiles),
                ),
            )
            states = self.states.get()
            if (states[:, 10] != 3).all():
                return [
                    (self.order[t, : int(s[5])], int(s[6]), int(s[7]), int(s[8]), int(s[11]) & 0xFFFFFFFF)
                    for t, s in enumerate(states)
                ]
            for t, s in enumerate(states):
                if s[10] == 3:
                    level = self.order[t, int(s[4]) : int(s[5])]
                    level[:] = level[cp.lexsort(cp.stack([level, g.degrees[level], self.marks[t][level]]))]
                    self.states[t, :4], self.states[t, 10] = 0, 0
                    self.sorts += 1


def twin_cuthill_mckee(g, root):
    offsets, indices, degrees = g.offsets.get(), g.indices.get(), g.degrees.get()
    order, seen, level_end, height, width, bandwidth, k, head = [root], np.zeros(g.n, bool), 1, 0, 1, 0, 0, 0
    seen[root] = True
    while True:
        while k < level_end:
            w = indices[offsets[order[k]] : offsets[order[k] + 1]]
            w = w[~seen[w]]
            seen[w] = True
            order += w[np.lexsort((w, degrees[w]))].tolist()
            bandwidth = max(bandwidth, len(order) - 1 - k)
            k += 1
        if len(order) == level_end:
            break
        height, width, head, level_end = height + 1, max(width, len(order) - level_end), level_end, len(order)
    end = min((int(degrees[v]), v) for v in order[head:])[1]
    return order, height, width, bandwidth, end


def check_rcm(**c):
    graphs = (
        small()
        if c.pop("SMALL", 0)
        else {
            "one": Graph(1, cp.zeros(1, cp.uint32), cp.zeros(1, cp.uint32)),
            "path": path(5000),
            "star": star(30_000),
            "cliques": cliques(300),
            "grid": grid(200, 150),
            "shuffled": grid(40, 30, 50, shuffle=True),
            "sparse": small_random(20_000, 16_000, 1),
            "random": small_random(30_000, 200_000, 2),
            "rmat": rmat(14, 16),
            "road": road(60),
            "wide": grid(8, 70, 70, 3, shuffle=True),
        }
    )
    for name, g in graphs.items():
        for teams in (1, 3):
            f, good, sorts = CuthillMckee(g, teams, **c), [], 0
            for root in (0, g.n // 2, g.n - 1):
                results = f([[root]] * teams)
                sorts += f.sorts
                twin = twin_cuthill_mckee(g, root)
                good += [r[0].tolist() == twin[0] and r[1:] == twin[1:] for r in results]
            print(
                f"rcm {name:9} n {g.n} m {g.m} teams {teams} levels sorted by the caller {sorts}",
                "ok" if all(good) else f"WRONG {good}",
                flush=True,
            )


def bench_rcm(variants):
    import scipy.sparse as sp
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    for name, build in (
        ("5-point 1000^2", lambda: grid(1000, 1000)),
        ("5-point 1000^2 shuffled", lambda: grid(1000, 1000, shuffle=True)),
        ("7-point 100^3 shuffled", lambda: grid(100, 100, 100, shuffle=True)),
        ("7-point 200^3 shuffled", lambda: grid(200, 200, 200, shuffle=True)),
        ("5-point 3000^2", lambda: grid(3000, 3000)),
        ("uniform 2^20 x 8", lambda: uniform(20, 8)),
    ):
        g = build()
        cp.get_default_memory_pool().free_all_blocks()
        a = sp.csr_matrix(
            (np.ones(g.m, np.int8), g.indices.get().astype(np.int32), g.offsets.get().astype(np.int32)),
            shape=(g.n, g.n),
        )
        start = time.perf_counter()
        reverse_cuthill_mckee(a, symmetric_mode=True)
        scipy = time.perf_counter() - start
        root = int(cp.argmin(g.degrees))
        for c in variants:
            for teams in (1, 4):
                f = CuthillMckee(g, teams, **c)
                end = f([[root]] * teams)[0][4]
                result = f([[end]] * teams)[0]
                seconds = min(timed(lambda: f([[end]] * teams)) for _ in range(2))
                print(
                    f"{name:24} n {g.n} SciPy {scipy * 1e3:8.1f} ms  {teams} traversals {seconds * 1e3:8.3f} ms, {scipy / seconds:6.1f} times, height {result[1]} width {result[2]} bandwidth {result[3]} {seconds / (result[1] + 1) * 1e6:6.2f} us a level, sorted {f.sorts} order {hashlib.md5(result[0].get()).hexdigest()[:8]} {c}",
                    flush=True,
                )
                del f
        del g


def bench_scipy(only=""):
    """SciPy's reverse Cuthill-McKee on one core, on the meshes of `cargo bench --bench graph -- device` whose names
    begin with `only`."""
    import scipy.sparse as sp
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    for name, sizes in (
        ("5-point 1000^2", (1000, 1000)),
        ("5-point 2000^2", (2000, 2000)),
        ("5-point 3000^2", (3000, 3000)),
        ("5-point 5000^2", (5000, 5000)),
        ("7-point 100^3", (100,) * 3),
        ("7-point 200^3", (200,) * 3),
    ):
        for shuffle in (False, True):
            if not f"{name}{', shuffled' if shuffle else ''}".startswith(only):
                continue
            g = grid(*sizes, shuffle=shuffle)
            u, v = (cp.asnumpy(x).astype(np.int32) for x in (g.rows, g.indices))
            a = sp.csr_matrix((np.ones(g.m, np.int8), v, g.offsets.get().astype(np.int32)), shape=(g.n, g.n))
            times = []
            for _ in range(2):
                start = time.perf_counter()
                p = reverse_cuthill_mckee(a, symmetric_mode=True)
                times.append(time.perf_counter() - start)
            place = np.empty(g.n, np.int64)
            place[p] = np.arange(g.n)
            print(
                f"{name}{', shuffled' if shuffle else ''}: SciPy {min(times) * 1e3:.1f} ms, bandwidth {np.abs(place[u] - place[v]).max()}",
                flush=True,
            )


def main():
    constants = {k: int(v) if v.isdigit() else v for k, v in (a.split("=") for a in sys.argv[2:])}
    if sys.argv[1] == "check":
        check_bfs(**constants)
    if sys.argv[1] == "bfs":
        bench_bfs([constants])
    if sys.argv[1] == "tune":
        bench_bfs(
            [{}]
            + [dict(BY_ITSELF=b) for b in (8, 16, 64)]
            + [dict(CHUNK=c) for c in (128, 512)]
            + [dict(CLUSTER=1), dict(THREADS=512)],
            "2^21",
        )
    if sys.argv[1] == "check_rcm":
        check_rcm(**constants)
    if sys.argv[1] == "scipy":
        bench_scipy(str(constants.get("ONLY", "")))
    if sys.argv[1] == "rcm":
        bench_rcm([constants])


if __name__ == "__main__":
    main()
