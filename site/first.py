import numpy as np

import residua

A = residua.generate("poisson2d", (300, 300))
b = np.ones(A.shape[0])
x, report = residua.Solver(A, rtol=1e-10).solve(b)
print(report.outcome, report.method, report.preconditioner, report.iterations)
print("||b - A x|| / ||b|| =", np.linalg.norm(b - A @ x) / np.linalg.norm(b))
