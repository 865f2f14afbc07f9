"""Which links of a network matter: potentials and effective resistances by the Laplacian of its graph.

An edge of conductance w whose ends have the effective resistance R is in a fraction w R of all spanning trees: 1 means
that the network falls apart without it. By Foster's theorem, these fractions of all edges add up to n - 1.
"""

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp
from matplotlib.collections import LineCollection
from scipy.spatial import Delaunay

import residua

rng = np.random.default_rng(7)
n = 500
points = rng.random((n, 2))

# Neighbours in a Delaunay triangulation are linked; long links and every third of the others, at random, are cut.
mesh = Delaunay(points).simplices
edges = np.unique(np.sort(np.vstack([mesh[:, [0, 1]], mesh[:, [1, 2]], mesh[:, [2, 0]]]), axis=1), axis=0)
lengths = np.linalg.norm(points[edges[:, 0]] - points[edges[:, 1]], axis=1)
order = np.argsort(lengths)
tree = sp.csgraph.minimum_spanning_tree(sp.coo_array((lengths, edges.T), shape=(n, n))).tocoo()
on_tree = set(zip(tree.row.tolist(), tree.col.tolist()))  # these stay, so that the network is connected
stays = [
    (i, j) in on_tree or (length < 0.08 and rng.random() > 0.35) for (i, j), length in zip(edges.tolist(), lengths)
]
edges, lengths = edges[stays], lengths[stays]
weights = 1 / lengths  # a long link conducts less
m = len(edges)

# Incidence D, one row per edge; the Laplacian is D' W D. Potentials are known up to a constant: node 0 is grounded.
D = sp.coo_array((np.tile([1.0, -1.0], m), (np.repeat(np.arange(m), 2), edges.ravel())), shape=(m, n)).tocsc()[:, 1:]
L = sp.csr_array(D.T @ sp.diags_array(weights) @ D)

# One matrix, many right-hand sides: for each edge, a current of 1 from one end to the other.
currents = D.T.toarray()
solver = residua.Solver(L, rtol=1e-10, right_hand_sides=m)
potentials, reports = solver.solve(currents)
assert all(report.converged for report in reports)
resistance = np.einsum("ek,ke->e", D.toarray(), potentials)
share = weights * resistance

# Foster's theorem: the fractions add up to n - 1. A bridge, whose removal disconnects the graph, has the fraction 1.
assert abs(share.sum() - (n - 1)) <= 1e-5 and share.min() > 0 and share.max() <= 1 + 1e-7
bridges = np.flatnonzero(share > 1 - 1e-6)
for cut in bridges[:5]:
    rest = np.delete(edges, cut, axis=0)
    assert sp.csgraph.connected_components(sp.coo_array((np.ones(m - 1), rest.T), shape=(n, n)))[0] == 2
print(f"{n} nodes, {m} links, {len(bridges)} bridges, sum of shares {share.sum():.9f}")

figure, axis = plt.subplots(figsize=(6.4, 5.4), layout="constrained")
lines = LineCollection(points[edges], array=share, cmap="plasma_r", linewidths=0.6 + 2.5 * share)
axis.add_collection(lines)
axis.plot(*points.T, "k.", markersize=2)
axis.set(aspect="equal", xticks=[], yticks=[], title="Share of the spanning trees that need a link")
figure.colorbar(lines)
figure.savefig("network.png", dpi=120)
