"""An ensemble of stiff ODEs: 2000 chemical reactors at different temperatures, with all Newton systems solved together.

Robertson's reactions (three species, rates over nine orders of magnitude) in each reactor, by implicit Euler. Every
Newton step has 2000 systems of 3 unknowns: residua.Batch solves them together and reports for each if it was solved.
"""

import matplotlib.pyplot as plt
import numpy as np

import residua

reactors, steps = 2000, 80
temperature = np.linspace(0.5, 2.0, reactors)
# Rates of the three reactions grow with the temperature.
k1, k2, k3 = (rate * np.exp(energy * (1 - 1 / temperature)) for rate, energy in ((0.04, 3), (3e7, 1), (1e4, 2)))


def rates(y):
    """The rates of change of the species, and their derivatives by each species."""
    a, b, c = y.T
    one, two, three = k1 * a, k2 * b * b, k3 * b * c
    f = np.stack([three - one, one - two - three, two], axis=1)
    J = np.zeros((reactors, 3, 3))
    J[:, 0] = np.stack([-k1, k3 * c, k3 * b], axis=1)
    J[:, 2, 1] = 2 * k2 * b
    J[:, 1] = -J[:, 0] - J[:, 2]
    return f, J


y = np.tile([1.0, 0.0, 0.0], (reactors, 1))
times, history, solved = np.geomspace(1e-4, 1e4, steps), [], 0
batch = residua.Batch(np.tile(np.eye(3), (reactors, 1, 1)), rtol=1e-10)
for before, now in zip(np.concatenate([[0], times]), times):
    dt, old = now - before, y
    for _ in range(20):
        f, J = rates(y)
        batch.update(np.eye(3) - dt * J)
        change, report = batch.solve(old + dt * f - y)
        assert report.converged.all(), report
        y, solved = y + change, solved + reactors
        if np.abs(change).max() < 1e-12:
            break
    history.append(y[:, 0])

# Physics: matter is conserved, no concentration is negative, and hot reactors are ahead.
assert np.abs(y.sum(axis=1) - 1).max() < 1e-9 and y.min() > -1e-12
assert (np.diff(y[:, 0]) < 0).all()
print(f"{solved} systems in {steps} steps, species A between {y[:, 0].min():.4f} and {y[:, 0].max():.4f} at the end")

figure, axis = plt.subplots(figsize=(6, 3.6), layout="constrained")
picture = axis.pcolormesh(times, temperature, np.array(history).T, cmap="viridis", shading="nearest")
axis.set(xscale="log", xlabel="time", ylabel="temperature", title="species A in 2000 reactors")
figure.colorbar(picture, ax=axis)
figure.savefig("ensemble.png", dpi=120)
