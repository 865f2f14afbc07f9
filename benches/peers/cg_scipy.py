"""The cases of benches/solvers.rs with SciPy's cg: python3 benches/peers/cg_scipy.py [CASE...]"""

import sys
import time

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import cg


def second_difference(n):
    return sp.diags([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], [-1, 0, 1])


def laplacian(size):
    """The sum of second differences along each axis; the first axis is the fastest."""
    a = sp.csr_matrix((int(np.prod(size)),) * 2)
    for axis, n in enumerate(size):
        term = second_difference(n)
        before = int(np.prod(size[:axis], dtype=int))
        after = int(np.prod(size[axis + 1 :], dtype=int))
        a = a + sp.kron(sp.identity(after), sp.kron(term, sp.identity(before)))
    return sp.csr_matrix(a)


if __name__ == "__main__":
    for case in sys.argv[1:] or ["128x128x128", "512x512", "64x64x64", "100x100"]:
        a = laplacian([int(k) for k in case.split("x")])
        a.sort_indices()
        b = a @ np.ones(a.shape[0])
        best, spent, count = float("inf"), 0.0, 0
        while spent < 1.0:
            count = 0

            def step(_):
                global count
                count += 1

            start = time.perf_counter()
            x, info = cg(a, b, rtol=1e-8, atol=0.0, maxiter=100000, callback=step)
            seconds = time.perf_counter() - start
            spent += seconds
            best = min(best, seconds)
        residual = np.linalg.norm(b - a @ x) / np.linalg.norm(b)
        print(
            f"{case:12} {'scipy':14} {count:5} iterations  {best * 1e3:9.3f} ms  {best / count * 1e6:9.2f} us/iteration"
            f"  residual {residual:.1e}",
            flush=True,
        )
