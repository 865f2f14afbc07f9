"""What residua's Python functions cost beside SciPy's, on this machine: `python bench.py`.

Medians of repeated calls. "overhead" is the time of a call that is not the solve itself, as the solver's own clock
tells (`report.seconds["solve"]`).
"""

import statistics
import time

import numpy as np
import scipy.sparse.linalg as linalg

import residua


def median(call, least: float = 0.3) -> float:
    """Seconds of a call: the median of as many as take `least` seconds, three at least."""
    times = []
    while len(times) < 3 or (sum(times) < least and len(times) < 2000):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


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


def main() -> None:
    print("Solver.solve beside the solve itself")
    for size in (4, 30, 300, 1000):
        a = residua.generate("poisson2d", size)
        solver, b = residua.Solver(a, device="cpu"), np.ones(a.shape[0])
        whole = median(lambda: solver.solve(b))
        beyond = overhead(solver, b)
        print(f"  poisson2d {size:5} x {size:<5} {show(whole)}, overhead {show(beyond)} ({beyond / whole:.2%})")

    print("cg, rtol 1e-8                                 SciPy       residua   SciPy / residua")
    problems = [("poisson2d", 30), ("poisson2d", 300), ("poisson3d", 60), ("elasticity3d", 15)]
    for name, size in problems:
        a = residua.generate(name, size)
        b = np.ones(a.shape[0])
        theirs = median(lambda: linalg.cg(a, b, rtol=1e-8))
        ours = median(lambda: residua.cg(a, b, rtol=1e-8, device="cpu"))
        print(f"  {name:14} {size:5}, n = {a.shape[0]:8} {show(theirs)} {show(ours)} {theirs / ours:8.2f}")

    print("spsolve                                       SciPy       residua   SciPy / residua")
    for name, size in [("poisson2d", 30), ("poisson2d", 200), ("convection2d", 150), ("circuit", 3000)]:
        a = residua.generate(name, size).tocsc()
        b = np.ones(a.shape[0])
        theirs = median(lambda: linalg.spsolve(a, b))
        ours = median(lambda: residua.spsolve(a, b))
        print(f"  {name:14} {size:5}, n = {a.shape[0]:8} {show(theirs)} {show(ours)} {theirs / ours:8.2f}")


if __name__ == "__main__":
    main()
