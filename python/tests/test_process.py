"""Threads, fork, Ctrl-C."""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import residua
from systems import residual

A = residua.generate("poisson3d", 12)
B = np.ones(A.shape[0])


def run(code: str, timeout: float = 60) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=timeout, check=False
    )


def solve_in_threads(count, solver):
    """Each of `count` threads solves five times, each time with the solver that `solver()` returns."""
    wrong = []

    def work(seed):
        b = np.random.default_rng(seed).standard_normal(A.shape[0])
        for _ in range(5):
            x, report = solver().solve(b)
            if not (report.converged and residual(A, x, b) <= 1e-8):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert wrong == []


def test_several_solvers_in_several_threads():
    solve_in_threads(6, lambda: residua.Solver(A))


def test_one_solver_in_several_threads_takes_turns():
    solver = residua.Solver(A)
    solve_in_threads(4, lambda: solver)


def test_other_threads_run_during_a_solve():
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.002)

    thread = threading.Thread(target=tick)
    thread.start()
    a = residua.generate("poisson3d", 60)
    start = time.monotonic()
    residua.Solver(a, preconditioner="none", rtol=1e-12, device="cpu").solve(np.ones(a.shape[0]))
    end = time.monotonic()
    stop.set()
    thread.join()
    during = [t for t in ticks if start < t < end]
    assert end - start > 0.05 and len(during) > (end - start) / 0.05


def in_child(connection):
    x, report = residua.Solver(A).solve(B)
    connection.send((report.converged, residual(A, x, B)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("generations", [1, 2])
def test_children_of_fork_compute(generations):
    residua.solve(A, B)  # the parent's pool has threads, which the child has not

    def descend(connection, left):
        if left == 1:
            in_child(connection)
            return
        assert residual(A, residua.solve(A, B), B) <= 1e-8
        child = fork.Process(target=descend, args=(connection, left - 1))
        child.start()
        child.join(60)

    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe()
    child = fork.Process(target=descend, args=(there, generations))
    child.start()
    assert here.poll(60), "the child hangs"
    converged, norm = here.recv()
    child.join(10)
    assert converged and norm <= 1e-8 and child.exitcode == 0
    residua.solve(A, B)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_solver_from_before_fork_goes_on():
    solver = residua.Solver(A)
    solver.solve(B)
    pid = os.fork()
    if pid == 0:
        x, report = solver.solve(2 * B)
        os._exit(0 if report.converged and residual(A, x, 2 * B) <= 1e-8 else 1)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    pytest.fail("the child hangs")


def ask_for_gpus(connection):
    told = [residua.devices()[0]["cuda"].get("driver_missing", "")]
    try:
        residua.Solver(A, device="cuda")
    except RuntimeError as error:
        told.append(str(error))
    x, _ = residua.Solver(A, device="auto", right_hand_sides=10**6).solve(B)  # so many that a GPU would pay
    connection.send((told, residual(A, x, B)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_children_of_fork_have_no_gpu_and_are_told_so():
    residua.devices()  # the driver starts in this process
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe()
    child = fork.Process(target=ask_for_gpus, args=(there,))
    child.start()
    assert here.poll(60), "the child hangs"
    told, norm = here.recv()
    child.join(10)
    assert len(told) == 2 and all("fork" in each for each in told) and norm <= 1e-8


SOLVE = """
import os, signal, sys, threading, time
import numpy as np, residua
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
a = residua.generate("jumping3d", 48, contrast=1e10)
solver = residua.Solver(a, "cg", "cpu", preconditioner="none", rtol=1e-15, maxiter=10**8, stagnation_window=10**7)
solver.solve(np.ones(a.shape[0]), callback=lambda *_: True)
{before}
sent = []
def later():
    time.sleep(0.4)
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=later).start()
try:
    solver.solve(np.ones(a.shape[0]))
except KeyboardInterrupt:
    print("late by", time.monotonic() - sent[0])
{after}
"""


def test_ctrl_c_ends_a_solve():
    done = run(SOLVE.format(before="", after=""))
    assert done.stdout.startswith("late by"), done.stderr
    assert float(done.stdout.split()[-1]) < 2.0


def test_ctrl_c_ends_a_solve_in_a_child_of_fork():
    done = run(
        SOLVE.format(before="if os.fork(): os.wait(); sys.exit()", after="os._exit(0)").replace(
            "time.monotonic() - sent[0])", "time.monotonic() - sent[0], flush=True)"
        )
    )
    assert done.stdout.startswith("late by"), done.stderr
    assert float(done.stdout.split()[-1]) < 2.0


def test_ctrl_c_ends_a_method_with_functions_of_python():
    done = run(
        """
        import os, signal, threading, time
        import numpy as np, residua
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Timer(0.4, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        weights = np.logspace(0, 12, 20000)
        def product(x):
            time.sleep(1e-3)  # Else a fast machine has come to rounding errors by then.
            return weights * x
        try:
            residua.cg(product, np.ones(20000), rtol=1e-15, maxiter=10**8)
            print("ended by itself")
        except KeyboardInterrupt:
            print("interrupted")
        """
    )
    assert done.stdout.strip() == "interrupted", done.stdout + done.stderr


# The work is repeated until the signal comes, so that no machine is too fast for this test.
SET_UP = """
import os, signal, threading, time
import numpy as np, residua
signal.signal(signal.SIGINT, signal.default_int_handler)
a = residua.generate({model!r}, {size})
b = np.ones(a.shape[0])
sent = []
def later():
    time.sleep({after})
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=later).start()
try:
    while True:
        {work}
except KeyboardInterrupt:
    print("late by", time.monotonic() - sent[0], flush=True)
x, report = residua.Solver(residua.generate("poisson2d", 20), "cg", "cpu").solve(np.ones(400))
print(report.converged, flush=True)
os._exit(0)  # whatever another library still computes ends with the process
"""


# The first, second and fourth take at least ten seconds if nothing interrupts them.
@pytest.mark.parametrize(
    "model, size, work",
    [
        ("poisson3d", 80, 'residua.Solver(a, "direct", "cpu").solve(b)'),  # order, then Cholesky
        ("convection3d", 48, 'residua.Solver(a, "direct", "cpu").solve(b)'),  # LU
        ("poisson3d", 100, 'residua.Solver(a, "cg", "cpu", preconditioner="amg")'),
        ("convection3d", 64, 'residua.Solver(a, "gmres", "cpu", preconditioner="ilut:fill=30,digits=9").solve(b)'),
        ("poisson2d", 1500, "residua.ilu(a)"),
    ],
)
@pytest.mark.parametrize("after", [0.1, 1.0])
def test_ctrl_c_ends_a_setup(model, size, work, after):
    done = run(SET_UP.format(model=model, size=size, work=work, after=after))
    late, again = done.stdout.strip().splitlines()
    assert again == "True", done.stderr
    assert float(late.split()[-1]) < 2.0, late
