"""SciPy's time to convert triplets to CSR with duplicates summed: the peer of `cargo bench --bench assembly`.

Usage: python benches/peers/assembly.py [triplets] [rows]
Each position of a random square pattern is given twice on average, in random order. Prints the best of three, in
seconds.
"""

import sys
import time

import numpy as np
import scipy
from scipy.sparse import coo_matrix


def best(work, runs=3):
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    return min(times), result


def main():
    triplets = int(float(sys.argv[1])) if len(sys.argv) > 1 else 20_000_000
    n = int(float(sys.argv[2])) if len(sys.argv) > 2 else 1_000_000
    random = np.random.default_rng(1)
    place = random.integers(0, triplets // 2, triplets)
    rows = random.integers(0, n, triplets // 2, dtype=np.int32)[place]
    columns = random.integers(0, n, triplets // 2, dtype=np.int32)[place]
    values = random.standard_normal(triplets)
    coo = coo_matrix((values, (rows, columns)), shape=(n, n))

    def assemble():
        csr = coo.tocsr()
        csr.sum_duplicates()
        return csr

    seconds, csr = best(assemble)
    print(
        f"scipy {scipy.__version__}: {triplets} triplets, {n} rows, {csr.nnz} nonzeros: "
        f"{seconds:.3f} s, {triplets / seconds / 1e6:.1f} M triplets/s"
    )


main()
