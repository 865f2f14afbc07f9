#!/usr/bin/env python3
"""Records which kernel files solves ask for, on a machine with a GPU: the lines of tests/units-seen.txt.

    scripts/record-units.py FILE [WORKERS [SECONDS]]

Solves a collection of systems with residua's Python package, in several processes that share a cache: real and complex
matrices in double and single precision, structured and not, of sizes from a hundred to some million unknowns, by all
methods, preconditioners and formats. What failed to solve matters little here; what raised is told. Each process begins
at another place of a shuffled list and has SECONDS seconds.
"""

import collections
import itertools
import os
import random
import subprocess
import sys
import tempfile
import time

TYPES = ["float64", "float32", "complex128", "complex64"]
SYSTEMS = [
    ("poisson2d", (12, 12)), ("poisson2d", (30, 30)), ("poisson2d", (100, 100)), ("poisson2d", (300, 300)),
    ("poisson2d", (700, 700)), ("poisson2d", (1500, 1500)), ("poisson2d-9", (40, 40)), ("poisson2d-9", (300, 300)),
    ("poisson3d", (10, 10, 10)), ("poisson3d", (32, 32, 32)), ("poisson3d", (60, 60, 60)),
    ("poisson3d", (100, 100, 100)), ("poisson3d", (160, 160, 160)), ("poisson3d-27", (12, 12, 12)),
    ("poisson3d-27", (40, 40, 40)), ("poisson3d-27", (80, 80, 80)), ("anisotropic2d", (200, 200)),
    ("anisotropic3d", (40, 40, 40)), ("jumping2d", (64, 64)), ("jumping2d", (500, 500)), ("jumping3d", (30, 30, 30)),
    ("jumping3d", (100, 100, 100)), ("elasticity2d", (32, 32)), ("elasticity2d", (200, 200)),
    ("elasticity3d", (10, 10, 10)), ("elasticity3d", (25, 25, 25)), ("wathen", (30, 30)), ("wathen", (150, 150)),
    ("convection2d", (64, 64)), ("convection2d", (500, 500)), ("convection3d", (32, 32, 32)),
    ("convection3d", (80, 80, 80)), ("helmholtz2d", (64, 64)), ("helmholtz2d", (250, 250)),
    ("helmholtz3d", (24, 24, 24)), ("helmholtz3d", (50, 50, 50)), ("stokes2d", (32, 32)), ("stokes2d", (100, 100)),
    ("stokes3d", (10, 10, 10)), ("kkt", (3000, 1000)), ("circuit", (4096,)), ("circuit", (100_000,)),
    ("rmat-laplacian", (4096,)), ("rmat-laplacian", (100_000,)), ("random", (4096, 4096)),
    ("random", (200_000, 200_000)), ("random", (5000, 3000)), ("tridiagonal", (1000,)), ("tridiagonal", (1_000_000,)),
    ("diagonal", (1000,)), ("arrow", (1000,)), ("helmholtz2d-absorbing", (64, 64)),
    ("helmholtz2d-absorbing", (250, 250)), ("helmholtz3d-absorbing", (24, 24, 24)), ("mesh", (300,)),
    ("mesh", (3000,)), ("mesh", (30_000,)), ("mesh", (200_000,)), ("mesh3d", (4000,)), ("mesh3d", (40_000,)),
    ("lognormal", (20, 20, 20)), ("lognormal", (60, 60, 60)), ("lognormal", (120, 120, 120)),
    ("shuffled", (300, 300)), ("shuffled", (1000, 1000)),
]  # fmt: skip
SEVERAL = [
    ("poisson2d", (20, 20)), ("poisson2d", (250, 250)), ("jumping3d", (40, 40, 40)), ("mesh", (20_000,)),
    ("convection2d", (200, 200)), ("elasticity2d", (40, 40)),
]  # fmt: skip
PRECONDITIONERS = {
    "cg": "none jacobi block-jacobi:3 fsai chebyshev chebyshev-single ilu amg amg:smoothing=diagonal "
    "amg:coarsening=classical amg:precision=double",
    "minres": "none jacobi block-jacobi fsai chebyshev amg",
    "gmres": "none jacobi block-jacobi fsai chebyshev ilu ilut amg",
    "bicgstab": "none jacobi block-jacobi fsai chebyshev ilu ilut amg",
    "lsmr": "none jacobi",
}
FORMATS = "csr coo csc ell hybrid jds sell dia compressed".split()


def cases():
    """Every solve, as a system, its type and the settings."""
    for system, kind in itertools.product(SYSTEMS, TYPES):
        yield system, kind, {}
        if kind.startswith("complex"):
            yield system, kind, {"hermitian": True}
    for system, kind in itertools.product(SEVERAL, TYPES):
        symmetric = {"hermitian": True} if kind.startswith("complex") else {}
        methods = [m for m in PRECONDITIONERS if system[0] != "convection2d" or m not in ("cg", "minres")]
        for method in methods:
            more = {"method": method} | (symmetric if method in ("cg", "minres") else {})
            for name in PRECONDITIONERS[method].split():
                # A polynomial needs a positive diagonal.
                yield system, kind, more | {"preconditioner": name} | (symmetric if "cheb" in name else {})
        for form in FORMATS:
            for method in (m for m in methods if m in ("cg", "gmres")):
                more = {"format": form, "method": method} | (symmetric if method == "cg" else {})
                yield system, kind, more | {"preconditioner": "jacobi"}
            yield system, kind, {"format": form, "columns": 4}
        for precision in ["mixed", "auto"]:
            yield system, kind, {"precision": precision} | symmetric
            if "cg" in methods:
                yield system, kind, {"precision": precision, "method": "cg"} | symmetric
        for more in [{"reorder": "rcm"}, {"columns": 2}, {"columns": 5}, {"columns": 8}, {"columns": 16},
                     {"updates": True}, {"row_wise": False}]:  # fmt: skip
            yield system, kind, more
            yield system, kind, more | symmetric


def mesh(points, dimensions):
    """The Laplacian of a random mesh with random weights, and a little of the identity."""
    import numpy as np
    import scipy.sparse as sp
    from scipy.spatial import Delaunay

    simplices = Delaunay(np.random.default_rng(1).random((points, dimensions))).simplices
    pairs = np.concatenate([simplices[:, list(p)] for p in itertools.permutations(range(dimensions + 1), 2)])
    graph = sp.coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), (points, points)).tocsr()
    graph.data *= 0.5 + np.random.default_rng(2).random(graph.nnz)
    graph = (graph + graph.T) / 2
    return (sp.diags_array(graph.sum(axis=0) + 1e-3) - graph).tocsr()


def matrix(name, size, kind, hermitian):
    import numpy as np
    import scipy.sparse as sp

    import residua

    if name in ("mesh", "mesh3d"):
        a = mesh(size[0], 3 if name == "mesh3d" else 2)
    elif name == "lognormal":
        a = residua.generate("poisson3d", size)
        scale = sp.diags_array(np.exp(np.random.default_rng(3).normal(size=a.shape[0])))
        a = (scale @ a @ scale).tocsr()
    elif name == "shuffled":
        a = residua.generate("poisson2d", size)
        order = np.random.default_rng(4).permutation(a.shape[0])
        a = a[order][:, order]
    else:
        a = residua.generate(name, size)
    a = sp.csr_array(a)
    complex_values = kind.startswith("complex")
    if np.iscomplexobj(a.data) and not complex_values:
        return None
    if hermitian and not np.iscomplexobj(a.data) and a.shape[0] == a.shape[1]:
        turns = sp.diags_array(np.exp(1j * np.arange(a.shape[0])))
        a = sp.csr_array(turns @ a @ turns.conj())
        a.setdiag(a.diagonal().real)
    if complex_values and not np.iscomplexobj(a.data):
        # Complex symmetric, and not Hermitian; where rows and columns differ there is no diagonal to shift.
        square = a.shape[0] == a.shape[1]
        a = a + 0.1j * sp.eye_array(a.shape[0]) if square else a.astype(complex) * (1 + 0.25j)
    return sp.csr_array(a).astype(kind)


def solve(case):
    import numpy as np

    import residua

    (name, size), kind, settings = case
    settings = dict(settings)
    a = matrix(name, size, kind, settings.pop("hermitian", False))
    if a is None:
        return
    columns, updates = settings.pop("columns", 1), settings.get("updates", False)
    solver = residua.Solver(a, device="cuda", time_limit=3.0, right_hand_sides=columns, **settings)
    b = a @ np.ones((a.shape[1], columns), a.dtype)
    solver.solve(b if columns > 1 else b[:, 0])
    if updates:
        solver.update((2 * a).data)
        solver.solve(b[:, 0])


def work(number, workers, seconds):
    todo = list(cases())
    random.Random(1).shuffle(todo)
    begin = time.time()
    done, faults = 0, collections.Counter()
    for case in todo[number::workers]:
        if time.time() - begin > seconds:
            break
        try:
            solve(case)
        except Exception as error:  # a case that is refused is told, and the others go on
            text = f"{type(error).__name__}: {str(error)[:100]}"
            faults[text] += 1
            if faults[text] == 1:
                print(f"{case}: {text}", flush=True)
        done += 1
    print(f"worker {number}: {done} of {len(todo[number::workers])} in {time.time() - begin:.0f} s", flush=True)


def main():
    if sys.argv[1] == "--worker":
        return work(int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
    workers = int(sys.argv[2]) if len(sys.argv) > 2 else max(1, (os.cpu_count() or 1) - 2)
    seconds = sys.argv[3] if len(sys.argv) > 3 else "600"
    with tempfile.TemporaryDirectory() as folder:
        running = []
        for number in range(workers):
            more = {"RESIDUA_UNITS": f"{folder}/{number}", "OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "2"}
            command = [sys.executable, __file__, "--worker", str(number), str(workers), seconds]
            running.append(subprocess.Popen(command, env=os.environ | more))
        for process in running:
            process.wait()
        units = set()
        for file in os.listdir(folder):
            with open(f"{folder}/{file}") as lines:
                units |= {line.split("\t")[0].strip() for line in lines}
    with open(sys.argv[1], "w") as out:
        out.writelines(f"{unit}\n" for unit in sorted(units) if unit)
    print(f"{len(units)} kernel files")


main()
