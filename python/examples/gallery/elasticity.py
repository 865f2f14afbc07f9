"""A steel bracket, clamped at the left and pulled down at its end: linear elasticity with triangles (P1).

The elements' matrices are computed by torch where it is installed, else by NumPy: residua takes the sparse matrices
of torch and SciPy alike.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

import residua

try:
    import torch
except ImportError:
    torch = None

young, ratio, pull = 210e9, 0.3, 1e5  # Pa, 1, N/m: plane stress, thickness 1 m
length, height, nx, ny = 1.0, 0.25, 120, 30

# A grid of rectangles, each cut into two triangles; those with all corners inside a hole are left out.
x, y = np.meshgrid(np.linspace(0, length, nx + 1), np.linspace(0, height, ny + 1), indexing="ij")
points = np.column_stack([x.ravel(), y.ravel()])
corner = (np.arange(nx)[:, None] * (ny + 1) + np.arange(ny)).ravel()
right, up, both = corner + ny + 1, corner + 1, corner + ny + 2
triangles = np.vstack([np.column_stack([corner, right, both]), np.column_stack([corner, both, up])])
in_hole = np.hypot(points[:, 0] - 0.3, points[:, 1] - height / 2) < 0.06
triangles = triangles[~in_hole[triangles].all(axis=1)]
used = np.zeros(len(points), bool)
used[triangles] = True

# Gradients of the three hat functions on each triangle, and B, which makes strains of displacements.
a, b, c = (points[triangles[:, k]] for k in range(3))
area = ((b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]) / 2
gradients = np.stack([c - b, a - c, b - a], axis=1)[:, :, ::-1] * [-1, 1] / (2 * area[:, None, None])
B = np.zeros((len(triangles), 3, 6))
B[:, 0, 0::2] = B[:, 2, 1::2] = gradients[:, :, 0]
B[:, 1, 1::2] = B[:, 2, 0::2] = gradients[:, :, 1]
C = young / (1 - ratio**2) * np.array([[1, ratio, 0], [ratio, 1, 0], [0, 0, (1 - ratio) / 2]])

# Unknowns are the displacements in x and y of all points that are neither clamped nor in the hole.
free = np.repeat(used & (points[:, 0] > 0), 2)
number = np.cumsum(free) - 1
unknowns = (2 * triangles[:, :, None] + np.arange(2)).reshape(-1, 6)
rows, columns = np.repeat(unknowns, 6, axis=1).ravel(), np.tile(unknowns, 6).ravel()
keep = free[rows] & free[columns]
places, size = np.vstack([number[rows[keep]], number[columns[keep]]]), number[-1] + 1
if torch is not None:
    B_t, C_t, area_t = (torch.from_numpy(array) for array in (B, C, area))
    values = torch.einsum("eki,kl,elj,e->eij", B_t, C_t, B_t, area_t).reshape(-1)[torch.from_numpy(keep)]
    A = torch.sparse_coo_tensor(torch.from_numpy(places), values, (size, size), check_invariants=True).coalesce()
else:
    values = np.einsum("eki,kl,elj,e->eij", B, C, B, area, optimize=True).ravel()[keep]
    A = sp.coo_array((values, places), shape=(size, size)).tocsr()

# The points of the right edge share the load; its two corners get half as much.
load = np.zeros((len(points), 2))
edge = np.flatnonzero(points[:, 0] == length)
load[edge, 1] = -pull * height / ny * np.where(np.isin(points[edge, 1], [0, height]), 0.5, 1)
f = load.ravel()[free]

solver = residua.Solver(A, rtol=1e-9)
u, report = solver.solve(f)
assert report.converged, report

# Physics: a deep beam bends as Timoshenko says, and the hole makes it somewhat softer.
force, inertia, shear = pull * height, height**3 / 12, young / (2 * (1 + ratio)) * height * 5 / 6
beam = force * length**3 / (3 * young * inertia) + force * length / shear
moved = np.zeros(2 * len(points))
moved[free] = u
moved = moved.reshape(-1, 2)
deflection = -moved[edge, 1].mean()
assert 0.97 < deflection / beam < 1.15, (deflection, beam)
print(report)
print(f"deflection {deflection * 1e6:.2f} um; {beam * 1e6:.2f} um for a beam without the hole")

strain = np.einsum("eki,ei->ek", B, moved.ravel()[unknowns])
sx, sy, sxy = (strain @ C).T
stress = np.sqrt(sx**2 - sx * sy + sy**2 + 3 * sxy**2)  # von Mises
shown = points + 0.15 * length / abs(moved).max() * moved
figure, axis = plt.subplots(figsize=(8, 3.6), layout="constrained")
picture = axis.tripcolor(*shown.T, triangles, facecolors=stress / 1e6, cmap="viridis")
axis.set(aspect="equal", title="bent, displacements enlarged")
figure.colorbar(picture, label="von Mises stress in MPa")
figure.savefig("elasticity.png", dpi=120)
