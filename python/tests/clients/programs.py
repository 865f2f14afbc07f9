"""The programs. Each returns arrays by name, which must agree with those from SciPy's functions.

python programs.py NAME scipy|residua FILE
"""

import doctest
import os
import pathlib
import sys
import time

import numpy as np
import replaced


def reactive_wetting():
    """The ten steps of FiPy's examples/reactiveWetting/liquidVapor1D.py: density, velocity and potential coupled in one
    matrix, each in other units."""
    source = pathlib.Path(os.environ["RESIDUA_FIPY"], "examples/reactiveWetting/liquidVapor1D.py").read_text()
    text = source.split('"""')[1]
    space = {"__name__": "liquidVapor1D"}
    for example in doctest.DocTestParser().get_examples(text):
        if not example.want:
            exec(compile(example.source, "liquidVapor1D", "exec"), space)
    names = ("density", "velocity", "potentialNC")
    return {name: np.array(space[name].value) for name in names} | {"energy": np.array(float(space["freeEnergy"]))}


def legendre():
    """scikit-fem's ex16: eigenvalues of ((1 - x^2) u')' by shift-invert at zero, where the matrix is singular."""
    import skfem
    from scipy.sparse.linalg import eigsh
    from skfem.helpers import d, dot
    from skfem.models.poisson import mass

    basis = skfem.Basis(skfem.MeshLine(np.linspace(-1, 1)), skfem.ElementLineP1())
    stiffness = skfem.BilinearForm(lambda u, v, w: (1 - w.x[0] ** 2) * dot(d(u), d(v)))
    values = eigsh(stiffness.assemble(basis), M=mass.assemble(basis), sigma=0.0, v0=np.ones(basis.N))[0]
    return {"eigenvalues": np.sort(values)}


def current_flow():
    """networkx, current_flow with solver="lu": the Laplacian with one node grounded."""
    import networkx

    graphs = {
        "karate": networkx.karate_club_graph(),
        "grid": networkx.convert_node_labels_to_integers(networkx.grid_2d_graph(9, 9)),
        "random": networkx.connected_watts_strogatz_graph(120, 6, 0.2, seed=3),
    }
    found = {}
    for name, graph in graphs.items():
        for measure in ("betweenness", "closeness"):
            function = getattr(networkx, f"current_flow_{measure}_centrality")
            result = function(graph, weight=None, solver="lu")
            found[f"{measure} of {name}"] = np.array([result[node] for node in sorted(graph)])
    return found


def load_flow():
    """pandapower's load flow on its own networks: Newton's method, and the linear one."""
    import pandapower
    import pandapower.networks as networks

    found = {}
    for name in ("case9", "case14", "case30", "case57", "case118", "case300", "case1354pegase", "example_multivoltage"):
        network = getattr(networks, name)()
        pandapower.runpp(network, numba=False)
        found[f"voltages of {name}"] = network.res_bus[["vm_pu", "va_degree"]].to_numpy()
        pandapower.rundcpp(network)
        found[f"linear angles of {name}"] = network.res_bus["va_degree"].to_numpy()
    return found


def power_grid():
    """PyPSA's load flow, linear and by Newton's method, of a ring of buses with chords."""
    import pypsa

    network, buses = pypsa.Network(), 60
    rng = np.random.default_rng(5)
    network.add("Bus", [str(k) for k in range(buses)], v_nom=110.0)
    pairs = [(k, (k + 1) % buses) for k in range(buses)] + [(k, (k + 17) % buses) for k in range(0, buses, 3)]
    for number, (start, end) in enumerate(pairs):
        length = rng.uniform(0.5, 2.0)
        network.add(
            "Line", f"line {number}", bus0=str(start), bus1=str(end), x=0.4 * length, r=0.1 * length, s_nom=200.0
        )
    network.add("Generator", "slack", bus="0", control="Slack", p_nom=1e4)
    for k in range(1, buses):
        network.add("Load", f"load {k}", bus=str(k), p_set=rng.uniform(0.5, 3.0), q_set=0.3)
    network.lpf()
    found = {"linear angles": network.buses_t.v_ang.to_numpy()}
    network.pf()
    return found | {"angles": network.buses_t.v_ang.to_numpy(), "voltages": network.buses_t.v_mag_pu.to_numpy()}


def coarse_levels():
    """pyamg's multigrid with a factorisation on the coarsest level, and as a preconditioner of SciPy's methods."""
    import pyamg
    import scipy.sparse.linalg as linalg

    a = pyamg.gallery.poisson((80, 80), format="csr")
    b = np.random.default_rng(1).standard_normal(a.shape[0])
    levels = pyamg.ruge_stuben_solver(a, coarse_solver="splu", max_coarse=400)
    found = {"levels": levels.solve(b, tol=1e-12)}
    for name in ("cg", "bicgstab", "gmres"):
        x, info = getattr(linalg, name)(a, b, M=levels.aspreconditioner(), rtol=1e-10)
        assert info == 0, (name, info)
        found[name] = x
    return found


def pictures():
    """scikit-image: a hole filled by the biharmonic equation, and regions by random walks."""
    from skimage.restoration import inpaint_biharmonic
    from skimage.segmentation import random_walker

    y, x = np.mgrid[0:64, 0:64] / 63.0
    picture = np.sin(5 * x) * np.cos(4 * y) + x
    hole = np.zeros(picture.shape, bool)
    hole[20:34, 25:40] = hole[50:55, 3:12] = True
    labels = np.zeros(picture.shape, int)
    labels[5, 5], labels[58, 58], labels[40, 10] = 1, 2, 3
    found = {"filled": inpaint_biharmonic(np.where(hole, 0.0, picture), hole)}
    for mode in ("bf", "cg", "cg_j"):
        found[f"walks, {mode}"] = random_walker(picture, labels, beta=50, mode=mode, tol=1e-9, return_full_prob=True)
    return found


def matting():
    """pymatting's closed-form matting: its Laplacian with the known pixels, by SciPy's spsolve."""
    import pymatting
    import scipy.sparse as sparse
    import scipy.sparse.linalg as linalg

    y, x = np.mgrid[0:48, 0:48] / 47.0
    image = np.stack([x, y, 0.5 + 0.5 * np.sin(9 * x * y)], axis=2)
    trimap = np.full(x.shape, 0.5)
    trimap[x < 0.2], trimap[x > 0.8] = 0.0, 1.0
    known = (trimap != 0.5).ravel().astype(float)
    a = (pymatting.cf_laplacian(image) + sparse.diags(100.0 * known)).tocsc()
    return {"alpha": linalg.spsolve(a, 100.0 * known * trimap.ravel())}


def scipys_own():
    """Functions of SciPy that use its solvers: an inverse, an exponential, a stiff ODE, inner eigenvalues."""
    import scipy.sparse as sparse
    import scipy.sparse.linalg as linalg
    from scipy.integrate import solve_ivp

    n = 120
    a = sparse.diags([np.full(n - 1, 1.0), np.full(n, -2.0), np.full(n - 1, 1.0)], [-1, 0, 1], format="csc")
    heat = solve_ivp(
        lambda t, y: 400 * (a @ y), (0, 1), np.sin(np.arange(n)), "BDF", jac=400 * a, rtol=1e-8, atol=1e-10
    )
    return {
        "inverse": linalg.inv(a).toarray(),
        "exponential": linalg.expm(a).toarray(),
        "heat": heat.y[:, -1],
        "eigenvalues": np.sort(linalg.eigsh(a, sigma=-1.7, k=5, v0=np.ones(n))[0]),
    }


PROGRAMS = [
    reactive_wetting, legendre, current_flow, load_flow, power_grid, coarse_levels, pictures, matting, scipys_own,
]  # fmt: skip


def main(name: str, whose: str, path: str) -> None:
    program = next(program for program in PROGRAMS if program.__name__ == name)
    calls = replaced.replace() if whose == "residua" else {}
    start = time.perf_counter()
    found = program()
    seconds = time.perf_counter() - start
    words = ", ".join(f"{count} of {call}" for call, count in calls.items() if count)
    assert words or whose == "scipy", "residua was not called"
    np.savez(path, **found, seconds=seconds, calls=words)


if __name__ == "__main__":
    main(*sys.argv[1:])
