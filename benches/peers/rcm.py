"""Reverse Cuthill-McKee compared with SciPy's, on every symmetric matrix of a folder with an index.csv and on large
meshes.

Usage: python benches/peers/rcm.py meshes FOLDER      writes the large meshes (a few minutes)
       python benches/peers/rcm.py BENCH FILE...      BENCH: the built bench, target/release/deps/graph-...
       python benches/peers/rcm.py BENCH --index FOLDER
       (cargo bench --bench graph --no-run prints the name of BENCH)

Both know that the pattern is symmetric (symmetric_mode=True, Adjacency::from_symmetric). Times are the best of seven
runs (three above 2^21 nonzeros, one if SciPy takes longer than a second), without reading the file.
"""

import csv
import io
import os
import subprocess
import sys
import tempfile
import time

import fast_matrix_market
import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee


def stencil(n, dimensions):
    line = sp.diags([-np.ones(n - 1), -np.ones(n - 1)], [-1, 1])
    total = sp.csr_matrix((n**dimensions, n**dimensions))
    for d in range(dimensions):
        total = total + sp.kron(sp.kron(sp.eye(n**d), line), sp.eye(n ** (dimensions - 1 - d)))
    return (total + 2 * dimensions * sp.eye(n**dimensions)).tocsr()


def delaunay(points, dimensions):
    from scipy.spatial import Delaunay

    cells = Delaunay(np.random.default_rng(1).random((points, dimensions))).simplices
    pairs = np.concatenate([cells[:, [i, j]] for i in range(dimensions + 1) for j in range(dimensions + 1)])
    a = sp.csr_matrix((np.ones(len(pairs)), pairs.T), shape=(points, points))
    a.data[:] = 1.0
    return a


def shuffled(a):
    order = np.random.default_rng(2).permutation(a.shape[0])
    return a[order][:, order]


def write_meshes(folder):
    os.makedirs(folder, exist_ok=True)
    meshes = {
        "7-point 100^3, natural": lambda: stencil(100, 3),
        "7-point 100^3, shuffled": lambda: shuffled(stencil(100, 3)),
        "5-point 1000^2, shuffled": lambda: shuffled(stencil(1000, 2)),
        "Delaunay 2D, 10^6 random points": lambda: delaunay(1_000_000, 2),
        "Delaunay 3D, 2x10^5 random points": lambda: delaunay(200_000, 3),
    }
    for name, build in meshes.items():
        path = os.path.join(folder, name.replace(", ", "_").replace(" ", "_") + ".mtx")
        fast_matrix_market.mmwrite(path, build().tocoo(), field="pattern", symmetry="symmetric")
        print(path)


def read(path):
    a = fast_matrix_market.mmread(path)
    return sp.csr_matrix((np.ones(a.nnz), (a.row, a.col)), shape=a.shape)


def scipy_rcm(a):
    times = []
    while True:
        start = time.perf_counter()
        order = reverse_cuthill_mckee(a, symmetric_mode=True)
        times.append(time.perf_counter() - start)
        if len(times) == (7 if a.nnz < 2**21 else 3) or times[0] > 1.0:
            break
    new = np.empty(a.shape[0], dtype=np.int64)
    new[order] = np.arange(a.shape[0])
    a = a.tocoo()
    return min(times), int(np.abs(new[a.row] - new[a.col]).max(initial=0))


def residua_rcm(bench, paths):
    output = subprocess.run([bench, "table", *paths], check=True, stdout=subprocess.PIPE, text=True).stdout
    return {row["path"]: row for row in csv.DictReader(io.StringIO(output))}


def symmetric_files(folder):
    with open(os.path.join(folder, "index.csv"), newline="") as index:
        for row in csv.DictReader(index):
            if row["symmetry"] != "general" and row["format"] == "coordinate":
                yield os.path.join(folder, row["file"])


def main():
    if sys.argv[1] == "meshes":
        return write_meshes(sys.argv[2])
    bench, paths = sys.argv[1], sys.argv[2:]
    if paths[0] == "--index":
        paths = list(symmetric_files(paths[1]))
    ours = residua_rcm(bench, paths)
    # A file that declares symmetry but lists both triangles is refused, so it is written again as a general one.
    with tempfile.TemporaryDirectory() as folder:
        general = {path: os.path.join(folder, f"{k}.mtx") for k, path in enumerate(paths) if path not in ours}
        for path, copy in general.items():
            fast_matrix_market.mmwrite(copy, read(path).tocoo(), field="pattern", symmetry="general")
        copied = residua_rcm(bench, general.values()) if general else {}
        ours.update({path: copied[copy] for path, copy in general.items()})
    print("| matrix | rows | nonzeros | bandwidth | SciPy | residua | ratio | SciPy ms | residua ms | times |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    worst, wide, slow, total, better = 0.0, [], [], np.zeros(2), 0
    for path in paths:
        row = ours[path]
        name = os.path.basename(path).split(".mtx")[0]
        seconds, bandwidth = scipy_rcm(read(path))
        after, rcm = int(row["bandwidth_after"]), float(row["rcm_s"])
        ratio = after / bandwidth if bandwidth else 1.0
        worst, better = max(worst, ratio), better + (ratio < 1)
        wide += [f"{name} {ratio:.3f}"] if ratio > 1.05 else []
        slow += [f"{name} {seconds / rcm:.2f}"] if seconds < rcm else []
        total += [seconds, rcm]
        print(
            f"| {name} | {row['rows']} | {row['nonzeros']} | {row['bandwidth_before']} | {bandwidth} | {after} "
            f"| {ratio:.3f} | {seconds * 1e3:.3f} | {rcm * 1e3:.3f} | {seconds / rcm:.2f} |"
        )
    print(
        f"\n{len(paths)} matrices, {better} with a lower bandwidth than SciPy's; worst ratio {worst:.3f}; "
        f"above 1.05: {', '.join(wide) or 'none'}; slower than SciPy: {', '.join(slow) or 'none'}; "
        f"total {total[0] * 1e3:.1f} ms and {total[1] * 1e3:.1f} ms"
    )


if __name__ == "__main__":
    main()
