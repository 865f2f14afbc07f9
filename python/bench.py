"""Measures what residua's Python functions cost, compared with other packages on this machine.

    python bench.py                         on the CPU, compared with SciPy and, if it is installed, pyamg
    python bench.py cpu spsolve gmres       only these parts
    python bench.py gpu                     on a GPU, compared with CuPy

Each time is the smallest of repeated calls, which alternate between residua and the other package: other programs make
times longer, never shorter. With RESIDUA_CLOCK=processor, times are the processor times of all threads, which other
programs disturb less; use one thread then (RAYON_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1), because threads that wait for
work count too. RESIDUA_MATRICES is a folder of Matrix Market files; without it only generated systems are solved.

"overhead" is the median time of a call minus the solve time that the library measures (`report.seconds["solve"]`). x is
random, and every solver's residual is computed anew.
"""

import functools
import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sparse
import scipy.sparse.linalg as linalg

import residua

RTOL = 1e-8
CLOCK = time.process_time if os.environ.get("RESIDUA_CLOCK") == "processor" else time.perf_counter
MATRICES = os.environ.get("RESIDUA_MATRICES")


def smallest(call, least: float = 0.5, wait=lambda: None) -> float:
    """Returns the smallest time of a call in seconds, of at least three calls that take `least` seconds together."""
    times = []
    while len(times) < 3 or (sum(times) < least and len(times) < 500):
        wait()
        start = time.perf_counter()
        call()
        wait()
        times.append(time.perf_counter() - start)
    return min(times)


def overhead(solver, b) -> float:
    """Returns the median time of a call in seconds, beyond the time that the solver reports."""
    beyond = []
    for _ in range(200 if len(b) < 10**5 else 5):
        start = time.perf_counter()
        _, report = solver.solve(b)
        beyond.append(time.perf_counter() - start - report.seconds["solve"])
    return statistics.median(beyond)


def show(seconds: float) -> str:
    return f"{seconds * 1e6:9.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:9.2f} ms"


def system(name: str, size) -> tuple:
    a = residua.generate(name, size).tocsr()
    return a, a @ np.random.default_rng(0).standard_normal(a.shape[0])


def meets(a, x, b, most: float) -> bool:
    """Returns whether x is a solution. Times are only compared if both packages find one."""
    return bool(np.linalg.norm(b - a @ x) <= most * np.linalg.norm(b))


def row(name, a, theirs: float, ours: float, ratios: list) -> None:
    ratios.append(theirs / ours)
    print(f"  {name:24} n = {a.shape[0]:8} {show(theirs)} {show(ours)} {theirs / ours:8.2f}", flush=True)


def in_turns(calls, least: float = 0.6) -> list[float]:
    """Returns the smallest time of each call in seconds. Calls alternate, three times or more, `least` seconds each."""
    times: list[list[float]] = [[] for _ in calls]
    while len(times[0]) < 3 or (min(map(sum, times)) < least and len(times[0]) < 500):
        for call, own in zip(calls, times):
            start = CLOCK()
            call()
            own.append(CLOCK() - start)
    return [min(own) for own in times]


def problems(*named) -> list:
    """Systems by name and size. A name without a size is a file, which is left out if there is no folder of files."""
    systems = []
    for name, *size in named:
        if size:
            systems.append((f"{name} {size[0]}", *system(name, size[0])))
        elif MATRICES is not None:
            file = next(path for path in Path(MATRICES).iterdir() if path.name in (f"{name}.mtx", f"{name}.mtx.gz"))
            a = residua.read(file).tocsr().astype(np.float64)
            systems.append((name, a, a @ np.random.default_rng(0).standard_normal(a.shape[0])))
    return systems


def compare(title, systems, theirs, ours, most: float, ratios: list) -> None:
    """Times both packages on each system. `theirs(a)` and `ours(a)` return the function of b that is timed."""
    print(f"{title:49} other      residua   other / residua")
    for name, a, b in systems:
        other, own = theirs(a), ours(a)
        fails = [who for who, solve in (("residua", own), ("the other", other)) if not meets(a, solve(b), b, most)]
        if fails:
            print(f"  {name:24} n = {a.shape[0]:8} not solved by {' and '.join(fails)}", flush=True)
            continue
        row(name, a, *in_turns([lambda: other(b), lambda: own(b)]), ratios)


def overheads(ratios: list) -> None:
    print("Solver.solve beside the library's call")
    for size in (4, 10, 30, 300, 1000):
        a, b = system("poisson2d", size)
        solver = residua.Solver(a, device="cpu")
        whole = smallest(lambda: solver.solve(b))
        beyond = overhead(solver, b)
        print(f"  poisson2d {size:5} x {size:<5} {show(whole)}, overhead {show(beyond)} ({beyond / whole:.2%})")


def cg(ratios: list) -> None:
    compare(
        "cg, rtol 1e-8, beside SciPy",
        problems(("poisson2d", 30), ("poisson2d", 300), ("poisson3d", 60), ("elasticity3d", 15), ("bcsstk16",),
                 ("fem_flatplate_poisson",)),
        lambda a: lambda b: linalg.cg(a, b, rtol=RTOL)[0],
        lambda a: lambda b: residua.cg(a, b, rtol=RTOL, device="cpu")[0], 1.01 * RTOL, ratios,
    )  # fmt: skip


def minres(ratios: list) -> None:
    """SciPy's rtol is relative to ||A|| ||x||, so SciPy gets a smaller one, for which b - A x is as small."""
    shifted = [
        (f"{name} - {shift}", a - shift * sparse.eye_array(a.shape[0], format="csr"))
        for name, a, shift in (("poisson2d 30", system("poisson2d", 30)[0], 0.5),
                               ("poisson2d 100", system("poisson2d", 100)[0], 0.05),
                               ("poisson3d 30", system("poisson3d", 30)[0], 0.1))
    ]  # fmt: skip
    systems = [(name, a, a @ np.random.default_rng(0).standard_normal(a.shape[0])) for name, a in shifted]
    compare(
        "minres, residual 1e-8, beside SciPy", systems,
        lambda a: lambda b: linalg.minres(a, b, rtol=RTOL / 100)[0],
        lambda a: lambda b: residua.minres(a, b, rtol=RTOL, device="cpu")[0], 3 * RTOL, ratios,
    )  # fmt: skip


def gmres(ratios: list) -> None:
    compare(
        "gmres, rtol 1e-8, beside SciPy's gmres(30)",
        problems(("convection2d", 60), ("convection3d", 30), ("add32",), ("orsreg_1",), ("fem_cylinder_convdiff",)),
        lambda a: lambda b: linalg.gmres(a, b, rtol=RTOL, restart=30, maxiter=300)[0],
        lambda a: lambda b: residua.gmres(a, b, rtol=RTOL, device="cpu")[0], 1.01 * RTOL, ratios,
    )  # fmt: skip


def bicgstab(ratios: list) -> None:
    compare(
        "bicgstab, rtol 1e-8, beside SciPy",
        problems(("convection2d", 30), ("convection2d", 150), ("convection3d", 40), ("add32",)),
        lambda a: lambda b: linalg.bicgstab(a, b, rtol=RTOL / 10)[0],
        lambda a: lambda b: residua.bicgstab(a, b, rtol=RTOL, device="cpu")[0], 1.01 * RTOL, ratios,
    )  # fmt: skip


#: Systems for the direct solvers: some symmetric, most of them unsymmetric.
DIRECT = [
    ("poisson2d", 30), ("poisson2d", 200), ("poisson3d", 20), ("convection2d", 30), ("convection2d", 150),
    ("convection2d", 316), ("convection3d", 12), ("convection3d", 24), ("circuit", 3000), ("circuit", 30000),
    ("west0479",), ("steam2",), ("jpwh_991",), ("cage8",), ("fidapex6",), ("adder_dcop_05",), ("watt__1",),
    ("orsreg_1",), ("cryg2500",), ("ani4",), ("add32",), ("bips98_606",), ("fem_cylinder_convdiff",), ("bayer10",),
    ("memplus",),
]  # fmt: skip


def spsolve(ratios: list) -> None:
    def by_scipy(a):
        columns = a.tocsc()
        return lambda b: linalg.spsolve(columns, b)

    def by_residua(a):
        columns = a.tocsc()
        return lambda b: residua.spsolve(columns, b)

    compare("spsolve beside SciPy's (SuperLU), from CSC", problems(*DIRECT), by_scipy, by_residua, 1e-8, ratios)


def factorized(ratios: list) -> None:
    compare(
        "factorized: another b, beside SciPy's", problems(*DIRECT), lambda a: linalg.factorized(a.tocsc()),
        residua.factorized, 1e-8, ratios,
    )  # fmt: skip


def few_unknowns(n: int) -> list:
    """Small systems: three diagonals, two grids, and random rows with a tenth of the columns (from 2000 on five)."""
    side = int(np.sqrt(n))
    rng = np.random.default_rng(n)
    filled = sparse.random_array((n, n), density=max(0.1, 3 / n) if n < 2000 else 5 / n, rng=rng)
    diagonals = [np.full(n - 1, -1.0), np.full(n, 2.4), np.full(n - 1, -1.3)]
    return [
        ("three diagonals", sparse.diags_array(diagonals, offsets=[-1, 0, 1]).tocsc()),
        ("poisson2d", system("poisson2d", side)[0].tocsc()),
        ("convection2d", system("convection2d", side)[0].tocsc()),
        ("random", (filled + 4 * sparse.eye_array(n)).tocsc()),
    ]


def small(ratios: list) -> None:
    calls = {
        "spsolve": (lambda a, b: lambda: linalg.spsolve(a, b), lambda a, b: lambda: residua.spsolve(a, b)),
        "splu": (lambda a, b: lambda: linalg.splu(a), lambda a, b: lambda: residua.linalg.splu(a)),
        "factorized's solve": (
            lambda a, b: functools.partial(linalg.factorized(a), b),
            lambda a, b: functools.partial(residua.factorized(a), b),
        ),
    }
    for title, (theirs, ours) in calls.items():
        print(f"{title + ', whole calls beside SciPy':49} other      residua   other / residua")
        for n in (10, 100, 400, 2000):
            for name, a in few_unknowns(n):
                b = a @ np.random.default_rng(1).standard_normal(a.shape[0])
                row(name, a, *in_turns([theirs(a, b), ours(a, b)]), ratios)


def columns(ratios: list) -> None:
    print(f"{'100 right-hand sides of kept factors':49} other      residua   other / residua")
    for size in (30, 200):
        a = system("convection2d", size)[0].tocsc()
        b = np.random.default_rng(0).standard_normal((a.shape[0], 100))
        theirs, ours = linalg.splu(a), residua.linalg.splu(a)
        for name, given in (("by rows", b), ("by columns", np.asfortranarray(b))):
            times = in_turns([lambda b=given: theirs.solve(b), lambda b=given: ours.solve(b)])
            row(f"convection2d {size}, {name}", a, *times, ratios)


def pyamg(ratios: list) -> None:
    try:
        import pyamg
    except ImportError:
        print("pyamg is not installed")
        return

    def multigrid(a):
        return lambda b: pyamg.smoothed_aggregation_solver(a).solve(b, tol=RTOL / 10, accel="cg", maxiter=300)

    compare(
        "setup and solve beside pyamg's with cg", problems(("poisson2d", 300), ("poisson3d", 40), ("jumping3d", 40)),
        multigrid, lambda a: lambda b: residua.solve(a, b, RTOL, device="cpu"), 10 * RTOL, ratios,
    )  # fmt: skip


ALL = (overheads, cg, minres, gmres, bicgstab, spsolve, factorized, small, columns, pyamg)
PARTS = {part.__name__: part for part in ALL}


def on_cpu(named: list[str]) -> None:
    ratios: list[float] = []
    for name in named or PARTS:
        own: list[float] = []
        PARTS[name](own)
        if own:
            print(f"  {name}: median {statistics.median(own):.2f}, smallest {min(own):.2f} of {len(own)}")
        ratios += own
    if ratios:
        print(f"all: median of the ratios {statistics.median(ratios):.2f}, smallest {min(ratios):.2f} of {len(ratios)}")


def of_torch_and_jax() -> dict:
    """Functions that copy an array of NumPy to the GPU, by package: torch and JAX if they are installed."""
    kinds = {}
    try:
        import torch

        kinds["torch"] = lambda b: torch.from_numpy(b).cuda()
    except ImportError:
        print("torch is not installed")
    try:
        import jax

        jax.config.update("jax_enable_x64", True)
        kinds["JAX"] = jax.numpy.asarray
    except ImportError:
        print("JAX is not installed")
    return kinds


def on_gpu() -> None:
    import cupy
    import cupyx.scipy.sparse as cupy_sparse
    import cupyx.scipy.sparse.linalg as cupy_linalg

    def wait() -> None:
        cupy.cuda.Device().synchronize()

    def timed(call) -> float:
        return smallest(call, 0.3, wait)

    ratios: list[float] = []
    print("a matrix of CuPy into a solver: where it lies, and by way of the host")
    for size in (100, 160):
        a = residua.generate("poisson3d", size).tocsr()
        there = cupy_sparse.csr_matrix(a)
        b = cupy.asarray(a @ np.random.default_rng(0).standard_normal(a.shape[0]))
        settings = {"device": "cuda", "method": "cg", "preconditioner": "jacobi", "rtol": RTOL}
        lying, through = (timed(lambda m=m: residua.Solver(m, **settings)) for m in (there, a))
        row(f"poisson3d {size}, setup", a, through, lying, [])

    def compare_gpu(title, problems, theirs, **settings) -> None:
        print(f"{title:46} CuPy     residua   CuPy / residua")
        for name, size in problems:
            a, b = system(name, size)
            there, b_there = cupy_sparse.csr_matrix(a), cupy.asarray(b)
            solver = residua.Solver(there, device="cuda", rtol=RTOL, **settings)
            found = (theirs(there, b_there), 1e-7), (solver.solve(b_there)[0], 1.01 * RTOL)
            if not all(meets(a, x.get(), b, most) for x, most in found):
                print(f"  {name} {size} is not solved by both")
                continue
            times = timed(lambda: theirs(there, b_there)), timed(lambda: solver.solve(b_there))
            row(f"{name} {size}", a, *times, ratios)

    compare_gpu(
        "cg, rtol 1e-8, warm", [("poisson2d", 512), ("poisson3d", 100), ("poisson3d", 160)],
        lambda a, b: cupy_linalg.cg(a, b, rtol=RTOL)[0], method="cg",
    )  # fmt: skip
    compare_gpu(
        "gmres(30), rtol 1e-8, warm", [("convection2d", 100), ("convection3d", 60)],
        lambda a, b: cupy_linalg.gmres(a, b, rtol=RTOL, restart=30, maxiter=30000)[0], method="gmres",
    )  # fmt: skip
    compare_gpu(
        "spsolve; residua with its factors at hand", [("poisson2d", 100), ("convection2d", 100)],
        cupy_linalg.spsolve, method="direct",
    )  # fmt: skip
    print("a fresh solve, and new values with a solve")
    for name, size in (("poisson2d", 2000), ("poisson3d", 128)):
        a, b = system(name, size)
        there, b_there = cupy_sparse.csr_matrix(a), cupy.asarray(b)
        solver = residua.Solver(there, device="cuda", rtol=RTOL)

        def again(solver=solver, values=there.data, b=b_there) -> None:
            solver.update(values)
            solver.solve(b)

        times = timed(lambda: residua.solve(there, b_there, RTOL)), timed(again)
        row(f"{name} {size}", a, *times, [])
    print("a call beside the solve itself, by whose vectors they are")
    kinds = {"NumPy": lambda b: b, "CuPy": cupy.asarray, **of_torch_and_jax()}
    for name, size in (("poisson2d", 10), ("poisson2d", 300), ("poisson3d", 100)):
        a, b = system(name, size)
        solver = residua.Solver(cupy_sparse.csr_matrix(a), device="cuda", method="cg", rtol=RTOL)
        for package, made in kinds.items():
            given = made(b)
            solver.solve(given)
            whole, beyond = timed(lambda given=given: solver.solve(given)), overhead(solver, given)
            told = f"{show(whole)}, overhead {show(beyond)} ({beyond / whole:.2%})"
            print(f"  {package:6} {name:10} n = {len(b):8} {told}", flush=True)
    print(f"median of the ratios {statistics.median(ratios):.2f}, smallest {min(ratios):.2f}")


if __name__ == "__main__":
    on_gpu() if sys.argv[1:] == ["gpu"] else on_cpu(sys.argv[2:])
