"""The first steps: a matrix, a right-hand side, a solution with its residual."""

import numpy as np

import residua

A = residua.generate("poisson2d", (300, 300))  # any matrix of SciPy will do
b = np.ones(A.shape[0])

x = residua.solve(A, b, rtol=1e-10)  # raises NotConverged unless ||b - A x|| <= rtol ||b||
print("residual:", np.linalg.norm(b - A @ x) / np.linalg.norm(b))

x, info = residua.cg(A, b)  # as scipy.sparse.linalg.cg
print("info:", info)

solver = residua.Solver(A, updates=True)  # one matrix, many solves
for step in range(3):
    solver.update((1 + step) * A.data)
    x, report = solver.solve(b, x0=x)
    print(report)
