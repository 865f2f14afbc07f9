"""Triplets to CSR with CuPy, each position twice in random order: the peer of `cargo bench --bench convert --
assembly`."""

import cupy
from cupyx.scipy import sparse


def milliseconds(work, runs=5):
    work()
    times = []
    for _ in range(runs):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        work()
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, end))
    return sorted(times)[runs // 2]


random = cupy.random.RandomState(1)
for rows, triplets in ((1 << 20, 10_000_000), (1 << 23, 100_000_000)):
    places = [random.randint(0, rows, triplets // 2, dtype=cupy.int32) for _ in range(2)]
    order = random.permutation(triplets) % (triplets // 2)
    i, j = (p[order] for p in places)
    values = random.random_sample(triplets)

    def assemble():
        a = sparse.coo_matrix((values, (i, j)), shape=(rows, rows))
        a.sum_duplicates()
        return a.tocsr()

    time = milliseconds(assemble)
    print(f"{triplets} triplets, {rows} rows: {time:.3f} ms, {triplets / time * 1e-3:.0f} M triplets/s", flush=True)
