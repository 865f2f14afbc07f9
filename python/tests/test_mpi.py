"""Rows distributed over MPI processes, with mpi4py. RESIDUA_OPENMPI and RESIDUA_MPICH are folders with bin and lib."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

# The program of each process. The rows are divided unevenly.
WORK = """
import sys
import numpy as np, residua
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
A = residua.generate("poisson2d", (30, 30)).tocsr()
if sys.argv[1] == "complex":
    A = A.astype(complex) * (1 + 0.5j)
cuts = [900 * k * k // (size * size) for k in range(size + 1)]
own = slice(cuts[rank], cuts[rank + 1])
x = np.linspace(-1, 1, 1800).reshape(900, 2, order="F")
b = A @ x
if sys.argv[1] == "refused":
    try:
        residua.Solver(A[own] if rank else A[own][:, :-1], comm=comm)
    except (ValueError, RuntimeError) as error:
        print(type(error).__name__)
    sys.exit()
solver = residua.Solver(A[own], comm=comm, rtol=1e-12)
assert solver.nnz == A.nnz and solver.shape == (own.stop - own.start,) * 2
for column in (0, 1):
    here, report = solver.solve(b[own, column])
    assert report.converged and np.allclose(here, x[own, column], atol=1e-9), report
here, reports = solver.solve(b[own])
assert len(reports) == 2 and np.allclose(here, x[own], atol=1e-9)
heard = []
here, report = solver.solve(b[own, 0], callback=lambda *told: heard.append(told) or (rank == 1 and len(heard) > 3))
assert not report.converged and 2 < report.iterations < 8, report
assert comm.allreduce(1) == 3
print("good")
"""

INSTALLED = [name for name in ("RESIDUA_OPENMPI", "RESIDUA_MPICH") if os.environ.get(name)]


def run(name: str, work: str, window: bool) -> str:
    """Runs the program in three processes, and returns what they print."""
    folder = pathlib.Path(os.environ[name])
    library = next(path for path in (folder / "lib").glob("libmpi.so.*"))
    more = ["--allow-run-as-root", "--oversubscribe"] if name == "RESIDUA_OPENMPI" else []
    done = subprocess.run(
        [folder / "bin" / "mpirun", *more, "-n", "3", sys.executable, "-c", WORK, work],
        env=os.environ
        | {"MPI4PY_LIBMPI": str(library), "RAYON_NUM_THREADS": "1", "RESIDUA_NO_WINDOW": "0" if window else "1"}
        | {"MPIEXEC_TIMEOUT": "60"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not INSTALLED, reason="neither RESIDUA_OPENMPI nor RESIDUA_MPICH names a folder")
@pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed")
@pytest.mark.parametrize("window", [True, False])
@pytest.mark.parametrize("name", INSTALLED)
def test_processes_solve_together(name, window):
    for work in ("real", "complex"):
        assert run(name, work, window).count("good") == 3
    # If one process has other columns than the others, all of them raise an error.
    raised = run(name, "refused", window)
    assert (raised.count("ValueError"), raised.count("RuntimeError")) == (1, 2)
