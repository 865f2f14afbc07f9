"""SciPy's test_iterative.py, on residua's functions. conftest.py marks what differs; DEVIATIONS.md tells why."""

from scipy_own import load

IMPORTED = r"_SOLVERS = \[.*?\]"
OURS = "from residua import bicgstab, cg, gmres, minres\n_SOLVERS = [bicgstab, cg, gmres, minres]"
OTHERS = ("test_show", "TestQMR")

_names = load("test_iterative", [(IMPORTED, OURS)])
globals().update(
    {
        name: value
        for name, value in _names.items()
        if (name.startswith(("test_", "Test")) or name in ("solver", "case")) and name not in OTHERS
    }
)
