"""Sparse products A A and R A P by cuSPARSE (through CuPy), compared with ours in the same run.

    python3 benches/peers/spgemm.py BENCH [CASE...]     BENCH is the binary of benches/multigrid_device.rs

Cases: grid7, grid27, mesh (Delaunay, 10^6 points in random order), rmat, and rap-grid7, rap-mesh with prolongations of
smoothed aggregation. Times are medians of five, and include all of the product: lengths of rows, columns and values.
Memory is that of both libraries' pools. The triple product is computed as R (A P) by both. Needs CuPy and SciPy.
"""

import subprocess, sys, tempfile, time, os

import cupy, cupyx.scipy.sparse as csp
import numpy as np, scipy.sparse as sp

RUNS = 5


def grid7(k):
    t = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(k, k))
    i = sp.identity(k)
    return (sp.kron(sp.kron(t, i), i) + sp.kron(sp.kron(i, t), i) + sp.kron(sp.kron(i, i), t)).tocsr()


def grid27(k):
    t = sp.diags([1.0, 1.0, 1.0], [-1, 0, 1], shape=(k, k))
    return (27 * sp.identity(k**3) - sp.kron(sp.kron(t, t), t)).tocsr()


def mesh(points):
    from scipy.spatial import Delaunay

    x = np.random.default_rng(1).random((points, 2))
    corners = Delaunay(x).simplices
    i = np.concatenate([corners[:, [0, 1, 2]].ravel(), corners[:, [1, 2, 0]].ravel()])
    j = np.concatenate([corners[:, [1, 2, 0]].ravel(), corners[:, [0, 1, 2]].ravel()])
    a = sp.coo_matrix((np.full(len(i), -0.5), (i, j)), shape=(points, points)).tocsr()
    return (a + sp.diags(1.001 * -np.asarray(a.sum(axis=1)).ravel())).tocsr(), x


def rmat(scale, edges):
    rng, n = np.random.default_rng(1), 1 << scale
    i, j = np.zeros(n * edges, np.int64), np.zeros(n * edges, np.int64)
    for _ in range(scale):
        u = rng.random(n * edges)
        i, j = 2 * i + (u >= 0.76), 2 * j + (((u >= 0.57) & (u < 0.76)) | (u >= 0.95))
    a = sp.coo_matrix((np.ones(len(i)), (i, j)), shape=(n, n))
    return (a + a.T).tocsr()


def smoothed(a, group):
    _, group = np.unique(group, return_inverse=True)
    p = sp.csr_matrix((np.ones(len(group)), group, np.arange(len(group) + 1)))
    return (p - sp.diags(2 / 3 / a.diagonal()) @ (a @ p)).tocsr()


def boxes(k):
    at = np.arange(k**3)
    x, y, z = at % k // 2, at // k % k // 2, at // k**2 // 2
    return x + k * (y + k * z)


def on_device(a):
    return csp.csr_matrix((cupy.asarray(a.data), cupy.asarray(a.indices), cupy.asarray(a.indptr)), shape=a.shape)


def timed(product):
    seconds = []
    for _ in range(RUNS + 1):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        c = product()
        cupy.cuda.Device().synchronize()
        seconds.append(time.perf_counter() - start)
    return c.nnz, 1e3 * sorted(seconds[1:])[RUNS // 2]


def sorted_rows(a):
    a = a.astype(np.float64).tocsr()
    a.sum_duplicates()
    a.indices, a.indptr = a.indices.astype(np.int32), a.indptr.astype(np.int32)
    return a


def main(bench, cases):
    with tempfile.TemporaryDirectory() as folder:
        meshed = None
        for case in cases:
            p = None
            if case.endswith("mesh"):
                meshed = meshed or mesh(1_000_000)
            if case == "grid7":
                a = grid7(160)
            elif case == "grid27":
                a = grid27(100)
            elif case == "mesh":
                a = meshed[0]
            elif case == "rmat":
                a = rmat(16, 8)
            elif case == "rap-grid7":
                a = grid7(160)
                p = smoothed(a, boxes(160))
            elif case == "rap-mesh":
                a = meshed[0]
                cells = (meshed[1] * 400).astype(np.int64)
                p = smoothed(a, cells[:, 0] * 400 + cells[:, 1])
            a = sorted_rows(a)
            files = [os.path.join(folder, name) for name in ("a.npz", "p.npz")]
            sp.save_npz(files[0], a, compressed=False)
            da = on_device(a)
            if p is None:
                product, what = (lambda: da @ da), "square:" + files[0]
            else:
                p = sorted_rows(p)
                sp.save_npz(files[1], p, compressed=False)
                dp, dr = on_device(p), on_device(sorted_rows(p.T))
                product, what = (lambda: dr @ (da @ dp)), "triple:" + ",".join(files)
            try:
                entries, peer = timed(product)
                print(
                    f"{case:10} {a.shape[0]} rows, {a.nnz} entries; cuSPARSE {peer:8.2f} ms, {entries} entries",
                    flush=True,
                )
            except Exception as e:  # out of memory, mostly
                print(f"{case:10} cuSPARSE: {type(e).__name__} {str(e)[:90]}", flush=True)
            da = dp = dr = product = None
            cupy.get_default_memory_pool().free_all_blocks()
            print(
                subprocess.run([bench, what], capture_output=True, text=True).stdout.strip().splitlines()[-1],
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] or ["grid7", "grid27", "mesh", "rmat", "rap-grid7", "rap-mesh"])
