"""residua's functions under SciPy's names."""

import pickle
import subprocess
import sys
import textwrap
import types

import numpy as np
import pytest
import scipy.integrate
import scipy.sparse as sparse
import scipy.sparse.linalg as linalg

import residua
from residua._patch import NAMES, OURS
from residua.linalg import LU
from systems import dominant

THEIRS = {name: getattr(linalg, name) for name in NAMES}


def client(name):
    """A module that imports functions by name."""
    module = types.ModuleType(name)
    sys.modules[name] = module
    exec("from scipy.sparse.linalg import spsolve as solve_it, splu\nimport scipy.sparse.linalg as sla", vars(module))
    return module


@pytest.fixture(autouse=True)
def nothing_stays():
    yield
    for name in ("client_before", "client_within"):
        sys.modules.pop(name, None)
    for name, function in THEIRS.items():
        assert getattr(linalg, name) is function


def test_programs_from_before_and_within_are_reached_and_left():
    before = client("client_before")
    with residua.patch():
        within = client("client_within")
        for module in (before, within):
            assert module.solve_it is OURS["spsolve"] and module.splu is module.sla.splu is OURS["splu"]
            assert isinstance(module.splu(sparse.eye_array(3, format="csc")), LU)
    for module in (before, within):
        assert module.solve_it is THEIRS["spsolve"] and module.splu is THEIRS["splu"]
    assert residua.spsolve is residua.linalg.spsolve and residua.spsolve.__module__.startswith("residua")


def test_all_of_scipys_places_hold_the_functions():
    with residua.patch():
        for name in NAMES:
            group = linalg._dsolve if name.startswith(("sp", "fact")) else linalg._isolve
            assert getattr(linalg, name) is getattr(group, name) is OURS[name]


def test_some_names_and_undo():
    one = residua.patch("splu", "cg")
    two = residua.patch("splu")
    assert linalg.splu is OURS["splu"] and linalg.cg is OURS["cg"] and linalg.spsolve is THEIRS["spsolve"]
    one.undo()
    assert linalg.splu is OURS["splu"] and linalg.cg is THEIRS["cg"]
    one.undo()
    assert linalg.splu is OURS["splu"]
    two.undo()
    assert "undone" in repr(two)
    with pytest.raises(ValueError, match="expm"):
        residua.patch("expm")


def test_scipys_own_functions_use_them():
    a = dominant(80, symmetric=True).tocsc()
    expected = linalg.eigsh(a, k=3, sigma=0.0, v0=np.ones(80))[0]
    calls = []
    residua_lu = LU.__init__

    def counted(self, *arguments):
        calls.append(arguments[0].shape)
        residua_lu(self, *arguments)

    with pytest.MonkeyPatch.context() as patched, residua.patch():
        patched.setattr(LU, "__init__", counted)
        values = linalg.eigsh(a, k=3, sigma=0.0, v0=np.ones(80))[0]
        assert calls == [(80, 80)]
        solved = scipy.integrate.solve_ivp(lambda t, y: -(a @ y), (0, 1), np.ones(80), method="BDF", jac=-a, rtol=1e-6)
        assert len(calls) > 1 and solved.success
        np.testing.assert_allclose(linalg.inv(a) @ a.toarray(), np.eye(80), atol=1e-9)
    np.testing.assert_allclose(values, expected, rtol=1e-8)


def test_what_falls_back_on_scipy_does_not_call_itself():
    singular = sparse.csc_array(np.array([[1.0, 2.0], [2.0, 4.0]]))
    infinite = sparse.csc_array(np.array([[np.inf, 1.0], [1.0, 2.0]]))
    a, b = dominant(30).tocsc(), np.ones(30)
    with residua.patch():
        with pytest.raises(RuntimeError, match="singular"):
            linalg.splu(singular)
        np.testing.assert_allclose(linalg.spsolve(infinite, np.ones(2)), [0.0, 0.5])
        lu = linalg.splu(a)
        np.testing.assert_allclose(lu.L.diagonal(), 1.0)
        assert linalg.spilu(a).shape == (30, 30)
        for name in ("cgs", "bicg", "qmr", "tfqmr", "lgmres", "gcrotmk", "cg", "minres", "gmres", "bicgstab"):
            m = linalg.LinearOperator(a.shape, matvec=lu.solve)
            given = {} if name in ("qmr", "bicg") else {"M": m}
            matrix = a + a.T if name in ("cg", "minres") else a
            x, info = getattr(linalg, name)(matrix, b, maxiter=200, **({} if matrix is not a else given))
            assert info == 0 and np.linalg.norm(matrix @ x - b) <= 1e-5 * np.linalg.norm(b), name
        np.testing.assert_allclose(linalg.lsqr(a, b, atol=1e-12, btol=1e-12)[0], lu.solve(b), rtol=1e-6)
        x = linalg.spsolve_triangular(lu.L, b)
        np.testing.assert_allclose(lu.L @ x, b, atol=1e-9)


def test_functions_pickle_while_they_are_in_place():
    with residua.patch():
        assert pickle.loads(pickle.dumps(linalg.spsolve)) is linalg.spsolve
        kept = pickle.dumps(linalg.spsolve)
    assert pickle.loads(kept) is THEIRS["spsolve"]


def run(*arguments, **given):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=120, **given)


def test_a_program_runs_unchanged(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            """
            import sys
            import beside
            from scipy.sparse import eye_array
            from scipy.sparse.linalg import splu
            if __name__ == "__main__":
                print(splu(eye_array(3, format="csc")), sys.argv[1:], beside.word)
                sys.exit(3)
            """
        )
    )
    (tmp_path / "beside.py").write_text("word = 'beside'\n")
    for way in ([str(program)], ["-m", "program"]):
        ended = run("-m", "residua.patch", *way, "-v", "two", cwd=tmp_path)
        assert ended.returncode == 3, ended.stderr
        assert ended.stdout == "<residua.linalg.LU: 3 x 3, float64> ['-v', 'two'] beside\n"
        assert ended.stderr == ""
    assert run("-m", "residua.patch").returncode == 2
    assert "program.py" in run("-m", "residua.patch", "--help").stdout
    ended = run("-c", "import residua.patch; residua.patch().undo(); print(residua.patch)")
    assert "function patch" in ended.stdout, ended.stderr
