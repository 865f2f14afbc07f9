"""Heat in a plate that conducts better where it is hot: implicit Euler, one linear system per step.

The conductivity depends on the temperature, so each step has new values on the same pattern. Solver.update replaces
them without a new analysis, and the solution is written into memory that is reused.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

import residua

n, steps, dt = 80, 60, 5e-4  # cells per side, time steps, length of a step
h = 1 / n

# Differences between neighbouring cells: one row of D for each inner face of the grid.
differences = sp.diags_array([-np.ones(n - 1), np.ones(n - 1)], offsets=[0, 1], shape=(n - 1, n))
D = sp.vstack([sp.kron(differences, sp.eye_array(n)), sp.kron(sp.eye_array(n), differences)], format="csr")
average = abs(D) / 2


def matrix(u):
    """I + dt K(u): no heat flows through the boundary."""
    conductivity = 0.1 + average @ u**2  # at the faces
    return sp.csr_array(sp.eye_array(n * n) + dt / h**2 * (D.T @ sp.diags_array(conductivity) @ D))


# Two hot squares on a cold plate.
u = np.zeros((n, n))
u[n // 8 : n // 3, n // 8 : n // 3] = 1
u[n // 2 : n // 2 + n // 4, n // 2 : -n // 8] = 0.6
u = u.ravel()
start, heat = u.copy(), u.sum()

solver = residua.Solver(matrix(u), rtol=1e-10, updates=True)
iterations = []
for _ in range(steps):
    A, b = matrix(u), u.copy()
    solver.update(A)
    u, report = solver.solve(b, x0=u, out=u)  # starts from the last step's temperature, and overwrites it
    assert report.converged, report
    assert np.linalg.norm(b - A @ u) <= 1e-10 * np.linalg.norm(b)
    iterations.append(report.iterations)

# Physics: no heat is lost, and no cell gets hotter or colder than all cells were at the start.
assert abs(u.sum() - heat) <= 1e-7 * heat
assert u.min() >= -1e-8 and u.max() <= 1 + 1e-8 and u.max() < 0.999
print(f"{steps} steps, {sum(iterations)} iterations, heat {heat:.3f} before and {u.sum():.3f} after")

figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
for axis, values, title in zip(axes, (start, u), ("t = 0", f"t = {steps * dt:g}")):
    picture = axis.imshow(values.reshape(n, n), vmin=0, vmax=1, cmap="inferno", extent=(0, 1, 0, 1))
    axis.set_title(title)
figure.colorbar(picture, ax=axes, label="temperature")
figure.savefig("heat.png", dpi=120)
