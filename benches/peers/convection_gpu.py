#!/usr/bin/env python3
"""Unsymmetric systems on a GPU: `residua.Solver` with defaults compared with CuPy's GMRES and incomplete LU.

    python3 benches/peers/convection_gpu.py [SIZE [POINTS]]      default: 200 points per side, and 10^6 points

Convection and diffusion on a grid of SIZE^3 points (7 points, upwind, cell Peclet numbers of 1 and 20), and linear
elements on a Delaunay mesh of POINTS random points in the plane with streamline diffusion, in random order. b = A x
with a random x, a true relative residual of 1e-8. Each solver solves twice: first with all that it has to load and set
up, and then again after a new setup. CuPy's incomplete LU is cuSPARSE's, without fill (`fill_factor=1`). Its iterations
are limited to about a minute; if they do not converge in that time, the residual shows it.
"""

import sys
import time

import cupy
import cupyx.scipy.sparse as cupy_sparse
import cupyx.scipy.sparse.linalg as cupy_linalg
import numpy as np
import scipy.sparse as sparse
from scipy.spatial import Delaunay

import residua

RTOL = 1e-8


def mesh(points: int, diffusion: float = 1e-3):
    """Linear elements for -diffusion laplace u + w . grad u, zero on the boundary."""
    rng = np.random.default_rng(1)
    places = rng.random((points, 2))
    triangles = Delaunay(places).simplices
    corners = places[triangles]
    edges = corners[:, [2, 0, 1]] - corners[:, [1, 2, 0]]
    twice = edges[:, 0, 0] * edges[:, 1, 1] - edges[:, 0, 1] * edges[:, 1, 0]
    area = np.abs(twice) / 2
    gradients = np.stack([-edges[:, :, 1], edges[:, :, 0]], axis=2) / twice[:, None, None]
    wind = np.array([np.cos(0.7), np.sin(0.7)])
    along = gradients @ wind
    # Streamline diffusion: half the element's length along the wind, reduced if diffusion is not negligible.
    length = 2 / np.abs(along).sum(axis=1)
    peclet = length / (2 * diffusion)
    upwind = length / 2 * np.maximum(0, 1 - 1 / np.maximum(peclet, 1e-300))
    values = diffusion * np.einsum("tid,tjd->tij", gradients, gradients) + along[:, None, :] / 3
    values = (values + upwind[:, None, None] * along[:, :, None] * along[:, None, :]) * area[:, None, None]
    rows, columns = np.repeat(triangles, 3, axis=1).ravel(), np.tile(triangles, 3).ravel()
    whole = sparse.csr_matrix((values.ravel(), (rows, columns)), shape=(points, points))
    margin = points**-0.5
    inside = np.flatnonzero(((places > margin) & (places < 1 - margin)).all(axis=1))
    return whole[inside][:, inside].tocsr()


def timed(call):
    cupy.cuda.Device().synchronize()
    start = time.perf_counter()
    made = call()
    cupy.cuda.Device().synchronize()
    return made, time.perf_counter() - start


def ours(a, b):
    x, report = residua.Solver(a, device="cuda", rtol=RTOL).solve(b)
    stages = [f"{stage['method']}/{stage['preconditioner']} {stage['iterations']}" for stage in report.trail["stages"]]
    return x, ", ".join(stages)


def theirs(a, b):
    try:
        factors = cupy_linalg.spilu(a, fill_factor=1)
    except Exception as error:  # the message of the library
        return cupy.zeros_like(b), f"refused: {str(error)[:60]}"
    count = [0]

    def counted(_):
        count[0] += 1

    operator = cupy_linalg.LinearOperator(a.shape, factors.solve, dtype=a.dtype)
    x, info = cupy_linalg.gmres(a, b, rtol=RTOL, restart=30, maxiter=600, M=operator, callback=counted)
    return x, f"info {info}, {count[0]} calls back"


def main() -> None:
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    points = int(sys.argv[2]) if len(sys.argv) > 2 else 10**6
    print(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode(), "CuPy", cupy.__version__)
    systems = []
    for peclet in (1, 20):
        a = residua.generate("convection3d", size, peclet=peclet).tocsr()
        systems.append((f"convection {size}^3, Peclet {peclet}", a))
    systems.append((f"P1 mesh of {points} points", mesh(points)))
    for name, a in systems:
        b = a @ np.random.default_rng(0).standard_normal(a.shape[0])
        there, b_there = cupy_sparse.csr_matrix(a), cupy.asarray(b)
        for who, solve in (("residua", ours), ("CuPy gmres + spilu", theirs)):
            for run in (1, 2):
                (x, told), seconds = timed(lambda: solve(there, b_there))
                residual = np.linalg.norm(b - a @ x.get()) / np.linalg.norm(b)
                figures = f"{1e3 * seconds:9.1f} ms  residual {residual:.1e}"
                print(f"{name:28} {who:18} run {run} {figures}  {told}", flush=True)
                if seconds > 60:
                    break


if __name__ == "__main__":
    main()
