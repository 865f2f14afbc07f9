"""What residua's Python functions cost beside others' on this machine.

    python bench.py           on the CPU, beside SciPy and, where it is installed, pyamg
    python bench.py gpu       on a GPU, beside CuPy

Smallest of repeated calls: what else runs on the machine makes times longer, never shorter. "overhead" is the time of a
call that is not the solve itself, as the solver's own clock tells (`report.seconds["solve"]`), its median. x is random,
and every solver's residual is computed anew.
"""

import statistics
import sys
import time

import numpy as np
import scipy.sparse.linalg as linalg

import residua

RTOL = 1e-8


def smallest(call, least: float = 0.5, wait=lambda: None) -> float:
    """Seconds of a call: the smallest of as many as take `least` seconds, three at least."""
    times = []
    while len(times) < 3 or (sum(times) < least and len(times) < 500):
        wait()
        start = time.perf_counter()
        call()
        wait()
        times.append(time.perf_counter() - start)
    return min(times)


def overhead(solver, b) -> float:
    """Seconds of a call beyond the solver's own."""
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


def meets(a, x, b, most: float) -> None:
    """Refuses a time of what is no solution."""
    norm = np.linalg.norm(b - a @ x) / np.linalg.norm(b)
    if not norm <= most:
        raise SystemExit(f"residual {norm:.1e} where {most:.0e} was asked for")


def row(name, a, theirs: float, ours: float, ratios: list) -> None:
    ratios.append(theirs / ours)
    print(f"  {name:22} n = {a.shape[0]:8} {show(theirs)} {show(ours)} {theirs / ours:8.2f}", flush=True)


def compare(title, problems, theirs, ours, most: float, ratios: list) -> None:
    print(f"{title:46} other    residua   other / residua")
    for name, size in problems:
        a, b = system(name, size)
        for solve in (theirs, ours):
            meets(a, solve(a, b), b, most)
        row(f"{name} {size}", a, smallest(lambda: theirs(a, b)), smallest(lambda: ours(a, b)), ratios)


def on_cpu() -> None:
    print("Solver.solve beside the solve itself")
    for size in (4, 10, 30, 300, 1000):
        a, b = system("poisson2d", size)
        solver = residua.Solver(a, device="cpu")
        whole = smallest(lambda: solver.solve(b))
        beyond = overhead(solver, b)
        print(f"  poisson2d {size:5} x {size:<5} {show(whole)}, overhead {show(beyond)} ({beyond / whole:.2%})")

    ratios: list[float] = []
    definite = [("poisson2d", 30), ("poisson2d", 300), ("poisson3d", 60), ("elasticity3d", 15)]
    compare(
        "cg, rtol 1e-8, beside SciPy", definite, lambda a, b: linalg.cg(a, b, rtol=RTOL)[0],
        lambda a, b: residua.cg(a, b, rtol=RTOL, device="cpu")[0], 1.01 * RTOL, ratios,
    )  # fmt: skip
    compare(
        "gmres, rtol 1e-8, beside SciPy's gmres(30)", [("convection2d", 60), ("convection3d", 30)],
        lambda a, b: linalg.gmres(a, b, rtol=RTOL, restart=30, maxiter=10**4)[0],
        lambda a, b: residua.gmres(a, b, rtol=RTOL, device="cpu")[0], 1.01 * RTOL, ratios,
    )  # fmt: skip
    direct = [("poisson2d", 30), ("poisson2d", 200), ("convection2d", 30), ("convection2d", 150), ("circuit", 3000)]
    compare(
        "spsolve beside SciPy (CSC at hand)", direct, lambda a, b: linalg.spsolve(a.tocsc(), b), residua.spsolve, 1e-8,
        ratios,
    )  # fmt: skip
    try:
        import pyamg
    except ImportError:
        print("pyamg is not installed")
    else:

        def multigrid(a, b):
            hierarchy = pyamg.smoothed_aggregation_solver(a.tocsr())
            return hierarchy.solve(b, tol=RTOL / 10, accel="cg", maxiter=300)

        compare(
            "setup and solve beside pyamg's with cg", [("poisson2d", 300), ("poisson3d", 40)], multigrid,
            lambda a, b: residua.solve(a, b, RTOL, device="cpu"), 10 * RTOL, ratios,
        )  # fmt: skip
    print(f"median of the ratios {statistics.median(ratios):.2f}, smallest {min(ratios):.2f}")


def of_torch_and_jax() -> dict:
    """What makes vectors on the GPU of arrays of NumPy, for those of the two that are installed."""
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
    import cupyx.scipy.sparse as sparse
    import cupyx.scipy.sparse.linalg as cupy_linalg

    def wait() -> None:
        cupy.cuda.Device().synchronize()

    def timed(call) -> float:
        return smallest(call, 0.3, wait)

    ratios: list[float] = []
    print("a matrix of CuPy into a solver: where it lies, and by way of the host")
    for size in (100, 160):
        a = residua.generate("poisson3d", size).tocsr()
        there = sparse.csr_matrix(a)
        b = cupy.asarray(a @ np.random.default_rng(0).standard_normal(a.shape[0]))
        settings = {"device": "cuda", "method": "cg", "preconditioner": "jacobi", "rtol": RTOL}
        lying, through = (timed(lambda m=m: residua.Solver(m, **settings)) for m in (there, a))
        row(f"poisson3d {size}, setup", a, through, lying, [])

    def compare_gpu(title, problems, theirs, **settings) -> None:
        print(f"{title:46} CuPy     residua   CuPy / residua")
        for name, size in problems:
            a, b = system(name, size)
            there, b_there = sparse.csr_matrix(a), cupy.asarray(b)
            solver = residua.Solver(there, device="cuda", rtol=RTOL, **settings)
            meets(a, theirs(there, b_there).get(), b, 1e-7)
            meets(a, solver.solve(b_there)[0].get(), b, 1.01 * RTOL)
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
    print("a call beside the solve itself, by whose vectors they are")
    kinds = {"NumPy": lambda b: b, "CuPy": cupy.asarray, **of_torch_and_jax()}
    for name, size in (("poisson2d", 10), ("poisson2d", 300), ("poisson3d", 100)):
        a, b = system(name, size)
        solver = residua.Solver(sparse.csr_matrix(a), device="cuda", method="cg", rtol=RTOL)
        for package, made in kinds.items():
            given = made(b)
            solver.solve(given)
            whole, beyond = timed(lambda given=given: solver.solve(given)), overhead(solver, given)
            told = f"{show(whole)}, overhead {show(beyond)} ({beyond / whole:.2%})"
            print(f"  {package:6} {name:10} n = {len(b):8} {told}", flush=True)
    print(f"median of the ratios {statistics.median(ratios):.2f}, smallest {min(ratios):.2f}")


if __name__ == "__main__":
    on_gpu() if sys.argv[1:] == ["gpu"] else on_cpu()
