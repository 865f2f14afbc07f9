"""Positron emission tomography: an image from counts along lines, by MLEM, OSEM and weighted least squares (LSMR).

A ring of detectors counts pairs of photons; each pair of detectors sees the activity along the line between them. The
system matrix has the length of each line in each pixel. Counts are random (Poisson).
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

import residua

rng = np.random.default_rng(3)
n, detectors, samples = 64, 120, 256  # pixels per side, detectors on the ring, points on each line

# The lines between all pairs of detectors that look through the image [-1, 1]^2; the ring has radius 1.5.
angle = 2 * np.pi * np.arange(detectors) / detectors
ring = 1.5 * np.column_stack([np.cos(angle), np.sin(angle)])
first, second = np.triu_indices(detectors, k=detectors // 5)
t = (np.arange(samples) + 0.5) / samples
path = ring[first, None] + t[:, None] * (ring[second] - ring[first])[:, None]
pixel = np.floor((path + 1) * n / 2).astype(int)
line, point = np.nonzero(((pixel >= 0) & (pixel < n)).all(axis=2))
places = pixel[line, point]
length = np.linalg.norm(ring[second] - ring[first], axis=1) / samples
A = sp.coo_array((length[line], (line, places[:, 1] * n + places[:, 0])), shape=(len(first), n * n)).tocsr()
A = A[A.sum(axis=1) > 0]

# The phantom: a body, two cold lungs, a hot tumour.
y, x = np.mgrid[-1 : 1 : n * 1j, -1 : 1 : n * 1j]
truth = 1.0 * ((x / 0.85) ** 2 + (y / 0.6) ** 2 < 1)
for centre in (-0.4, 0.4):
    truth[((x - centre) / 0.25) ** 2 + (y / 0.4) ** 2 < 1] = 0.3
truth[(x - 0.35) ** 2 + (y - 0.1) ** 2 < 0.1**2] = 4
scale = 2e6 / (A @ truth.ravel()).sum()  # two million counts
counts = rng.poisson(scale * (A @ truth.ravel())).astype(float)


def step(image, part, seen):
    """One multiplicative step of expectation maximisation with some of the lines and their counts."""
    ratio = seen / np.maximum(scale * (part @ image), 1e-12)
    weight = part.T @ np.ones(part.shape[0])
    image[weight > 0] *= (part.T @ ratio)[weight > 0] / weight[weight > 0]


# MLEM keeps the image positive and the expected number of counts right.
mlem = np.ones(n * n)
for _ in range(40):
    step(mlem, A, counts)
assert abs(scale * (A @ mlem).sum() / counts.sum() - 1) < 1e-10

# OSEM takes the same step with every tenth line in turn, so that four passes over the counts do the work of forty.
osem, subsets = np.ones(n * n), [np.arange(start, A.shape[0], 10) for start in range(10)]
parts = [(A[lines], counts[lines]) for lines in subsets]
for _ in range(4):
    for part, seen in parts:
        step(osem, part, seen)

# Weighted least squares: each count has the weight of its Poisson variance; `damp` suppresses noise.
weight, damp = 1 / np.sqrt(counts + 1), 4.0
WA, Wb = sp.csr_array(sp.diags_array(weight) @ A * scale), weight * counts
lsmr, stop, iterations, *_ = residua.lsmr(WA, Wb, damp=damp, atol=1e-8)
gradient = WA.T @ (Wb - WA @ lsmr) - damp**2 * lsmr
assert stop in (1, 2) and np.linalg.norm(gradient) <= 1e-6 * np.linalg.norm(WA.T @ Wb), (stop, iterations)

errors = [np.linalg.norm(image - truth.ravel()) / np.linalg.norm(truth) for image in (mlem, osem, lsmr)]
assert max(errors) < 0.4, errors
hot = (x - 0.35) ** 2 + (y - 0.1) ** 2 < 0.08**2  # all methods find the tumour
assert all(image.reshape(n, n)[hot].mean() > 2.5 for image in (mlem, osem, lsmr))
print(
    f"{A.shape[0]} lines, {A.nnz} entries; relative error {errors[0]:.3f} (MLEM), {errors[1]:.3f} (OSEM), "
    f"{errors[2]:.3f} (LSMR, {iterations})"
)

figure, axes = plt.subplots(1, 4, figsize=(13, 3.4), layout="constrained")
titles = (
    "activity",
    f"MLEM, 40 iterations\nerror {errors[0]:.2f}",
    f"OSEM, 4 passes of 10 subsets\nerror {errors[1]:.2f}",
    f"LSMR, {iterations} iterations\nerror {errors[2]:.2f}",
)
for axis, image, title in zip(axes, (truth, mlem, osem, lsmr), titles):
    picture = axis.imshow(np.reshape(image, (n, n)), vmin=0, vmax=4, origin="lower", cmap="magma")
    axis.set(title=title, xticks=[], yticks=[])
figure.colorbar(picture, ax=axes)
figure.savefig("pet.png", dpi=120)
