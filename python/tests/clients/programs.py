"""The programs: each gives arrays by name, which must be as with SciPy.

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
    """FiPy's examples/reactiveWetting/liquidVapor1D.py, its ten steps: density, velocity and potential coupled in one
    matrix, in units of their own."""
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


PROGRAMS = [reactive_wetting, legendre, current_flow, load_flow]


def main(name: str, whose: str, path: str) -> None:
    program = next(program for program in PROGRAMS if program.__name__ == name)
    # Whatever the program takes over by name is there before names are replaced.
    modules = {"reactive_wetting": ["fipy"], "legendre": ["skfem"], "current_flow": ["networkx"]}
    for module in modules.get(name, ["pandapower", "pandapower.networks"]):
        __import__(module)
    calls = replaced.replace() if whose == "residua" else {}
    start = time.perf_counter()
    found = program()
    seconds = time.perf_counter() - start
    words = ", ".join(f"{count} of {call}" for call, count in calls.items() if count)
    np.savez(path, **found, seconds=seconds, calls=words)


if __name__ == "__main__":
    main(*sys.argv[1:])
