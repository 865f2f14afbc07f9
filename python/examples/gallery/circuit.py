"""The power plane of a circuit board: its impedance seen by a chip, from 10 kHz to 1 GHz.

The plane is a grid of small coils with resistance, each node a small capacitor to ground. A voltage regulator sits in a
corner, decoupling capacitors around the chip. Kirchhoff's current law is A v = i with complex A, symmetric but not
Hermitian: new values on the same pattern for each frequency.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

import residua

n = 30  # nodes per side
frequencies = np.logspace(4, 9, 60)  # Hz
resistance, coil, plane = 1e-3, 0.1e-9, 5e-12  # of each edge in ohm and henry, of each node in farad

# Incidence: one row of D for each edge of the grid.
differences = sp.diags_array([-np.ones(n - 1), np.ones(n - 1)], offsets=[0, 1], shape=(n - 1, n))
D = sp.vstack([sp.kron(differences, sp.eye_array(n)), sp.kron(sp.eye_array(n), differences)], format="csr")
chip = (n // 2) * n + n // 2
capacitors = np.array([(n // 2 + i) * n + n // 2 + j for i in (-8, 0, 8) for j in (-8, 8)])
farad, series_ohm, series_henry = 1e-6, 10e-3, 0.5e-9  # of each decoupling capacitor
regulator_ohm, regulator_henry = 2e-3, 20e-9


def to_ground(omega, with_capacitors):
    """Admittance from each node to ground."""
    y = np.full(n * n, 1j * omega * plane)
    y[0] += 1 / (regulator_ohm + 1j * omega * regulator_henry)
    if with_capacitors:
        y[capacitors] += 1 / (series_ohm + 1j * omega * series_henry + 1 / (1j * omega * farad))
    return y


def impedance(with_capacitors):
    """Returns the chip's voltage for a current of 1 A into its node, at each frequency."""
    current = np.zeros(n * n, complex)
    current[chip] = 1
    solver, z = None, []
    for omega in 2 * np.pi * frequencies:
        along, ground = 1 / (resistance + 1j * omega * coil), to_ground(omega, with_capacitors)
        A = sp.csr_array(D.T @ (along * D) + sp.diags_array(ground))
        if solver is None:
            solver = residua.Solver(A, rtol=1e-9, updates=True)
        solver.update(A)
        v, report = solver.solve(current)
        assert report.converged, report
        # The power that enters at the chip is lost in resistances, or oscillates in coils and capacitors.
        power = np.conj(along) * np.sum(abs(D @ v) ** 2) + ground.conj() @ abs(v) ** 2
        assert abs(power - v[chip]) <= 1e-6 * abs(v[chip])
        z.append(v[chip])
    return np.array(z)


bare, decoupled = impedance(False), impedance(True)

# At low frequencies the regulator alone sets the impedance. Once the impedance of its coil is large, the capacitors
# take over.
assert abs(decoupled[0] - bare[0]) < 0.05 * abs(bare[0])
assert (bare.real > 0).all() and (decoupled.real > 0).all()  # passive: no power comes out of the plane
middle = (frequencies > 2e6) & (frequencies < 2e7)
gain = abs(bare[middle]) / abs(decoupled[middle])
assert gain.min() > 1.5
print(f"{frequencies[0] / 1e3:g} kHz: {1e3 * abs(bare[0]):.2f} mohm; the capacitors gain at least {gain.min():.0f}")

figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
axis.loglog(frequencies, abs(bare), label="plane alone")
axis.loglog(frequencies, abs(decoupled), label=f"with {len(capacitors)} capacitors of 1 uF")
axis.set(xlabel="frequency in Hz", ylabel="|Z| in ohm", title="Impedance of a power plane")
axis.grid(alpha=0.3, which="both")
axis.legend()
figure.savefig("circuit.png", dpi=120)
