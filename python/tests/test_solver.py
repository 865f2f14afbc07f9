"""residua.solve and residua.Solver: every type, format and shape, and what is refused."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sparse

import residua
from systems import DTYPES, FORMATS, dominant, random_vector, residual, tolerance


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("style", ["array", "matrix"])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_every_format_and_type(dtype, kind, style, index):
    a = dominant(41 if kind != "bsr" else 42, dtype)
    a = getattr(sparse, f"{kind}_{style}")(a)
    for name in ("indices", "indptr", "row", "col", "offsets"):
        if hasattr(a, name) and name in vars(a):
            setattr(a, name, getattr(a, name).astype(index))
    if style == "array" and kind == "coo":
        a.coords = tuple(each.astype(index) for each in a.coords)
    before = a.copy()
    b = random_vector(a.shape[0], dtype)
    x = residua.solve(a, b, rtol=tolerance(dtype))
    assert x.dtype == dtype and x.shape == b.shape
    assert residual(a.toarray(), x, b) <= 1.01 * tolerance(dtype)
    assert abs(a - before).sum() == 0 and a.data.dtype == dtype


def test_the_types_of_a_and_b_decide_that_of_x():
    for of_a in [*DTYPES, np.int64, np.int8, np.bool_]:
        for of_b in [*DTYPES, np.int32]:
            a = sparse.csr_array(np.diag([1, 2, 3]).astype(of_a))
            if of_a == np.bool_:
                a = sparse.csr_array(np.eye(3, dtype=bool))
            x = residua.solve(a, np.ones(3, dtype=of_b), rtol=1e-5)
            expected = np.result_type(of_a, of_b)
            assert x.dtype == (expected if expected.kind in "fc" else np.float64), (of_a, of_b)


def test_dense_lists_and_right_hand_sides_of_integers():
    x = residua.solve([[4, 1], [1, 3]], [1, 2])
    np.testing.assert_allclose(x, [1 / 11, 7 / 11], rtol=1e-7)
    assert residua.solve(np.array([[2.0]]), np.array([[3.0]])).shape == (1, 1)


def test_duplicates_add_up_and_the_caller_keeps_them():
    a = sparse.csr_array((np.array([1.0, 1.0, 5.0, 3.0]), np.array([1, 1, 0, 1]), np.array([0, 3, 4])), shape=(2, 2))
    x = residua.solve(a, np.array([7.0, 3.0]))
    np.testing.assert_allclose(x, [1.0, 1.0], rtol=1e-7)
    assert a.nnz == 4 and list(a.indices) == [1, 1, 0, 1]


def test_big_endian_values_and_strides_are_read():
    a = dominant(20).toarray()
    b = np.arange(40, dtype=">f8")[::2] + 1
    x = residua.solve(np.asfortranarray(a.astype(">f8")), b)
    assert residual(a, x, b.astype(float)) <= 1e-8


@pytest.mark.parametrize("dtype", DTYPES)
def test_several_right_hand_sides(dtype):
    a = dominant(60, dtype, symmetric=True)
    b = np.stack([random_vector(60, dtype, seed) for seed in range(5)], axis=1)
    for right in (b, np.asfortranarray(b)):
        solver = residua.Solver(a, right_hand_sides=5)
        x, reports = solver.solve(right)
        assert x.shape == b.shape and len(reports) == 5 and all(report.converged for report in reports)
        for k in range(5):
            assert residual(a, x[:, k], b[:, k]) <= 1.01 * tolerance(dtype)
            assert len(reports[k].history) >= 1
    assert residua.Solver(a).solve(b[:, :1])[0].shape == (60, 1)
    assert residua.Solver(a).solve(b[:, :0])[0].shape == (60, 0)


def test_complex_right_hand_sides_of_a_real_matrix():
    a = dominant(50)
    b = random_vector(50, np.complex128)
    x = residua.solve(a, b)
    assert x.dtype == np.complex128 and residual(a, x, b) <= 1e-8
    several = np.stack([b, 2j * b], axis=1)
    x, reports = residua.Solver(a).solve(several, x0=several)
    assert len(reports) == 4 and residual(a, x[:, 1], several[:, 1]) <= 1e-8


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("dtype", [np.float64, np.complex64])
def test_new_values_in_every_format(kind, dtype):
    a = sparse.csr_array(dominant(30, dtype)).asformat(kind)
    b = random_vector(30, dtype)
    solver = residua.Solver(a)
    for factor in (2, 3, 5):
        changed = a * np.array(factor, dtype)
        solver.update(changed)
        x, report = solver.solve(b)
        assert report.converged and residual(changed.toarray(), x, b) <= 1.01 * tolerance(dtype)
    if kind != "dia":
        solver.update(a.data)
        assert residual(a.toarray(), solver.solve(b)[0], b) <= 1.01 * tolerance(dtype)
    with pytest.raises(ValueError):
        solver.update(np.ones(3, dtype))


# Diagonals hold zeros where the others have no entry.
@pytest.mark.parametrize("kind", [kind for kind in FORMATS if kind != "dia"])
def test_a_matrix_of_another_pattern_is_refused_with_the_first_place_that_differs(kind):
    a = sparse.lil_array(dominant(30, np.float64))
    a[3, :] = 0.0
    a[3, 3] = 5.0
    solver = residua.Solver(sparse.csr_array(a).asformat(kind))
    b = random_vector(30, np.float64)
    x = solver.solve(b)[0]
    moved = sparse.lil_array(a)
    moved[3, 3], moved[3, 4] = 0.0, 5.0
    with pytest.raises(ValueError, match=r"row 3, column 3 \(from 0\) is an entry of the solver's matrix alone"):
        solver.update(sparse.csr_array(moved))
    more = sparse.lil_array(a)
    more[3, 1] = 1.0
    with pytest.raises(ValueError, match=r"row 3, column 1 \(from 0\) is an entry of the new matrix alone"):
        solver.update(sparse.csc_array(more))
    with pytest.raises(ValueError, match="another shape: 29 x 29"):
        solver.update(sparse.csr_array(a)[:29, :29])
    with pytest.raises(TypeError, match="complex128"):
        solver.update(sparse.csr_array(a) * 1j)
    np.testing.assert_array_equal(solver.solve(b)[0], x)


@pytest.mark.parametrize("updates", [False, True])
def test_new_values_come_in_any_order_of_the_same_pattern(updates):
    a = sparse.coo_array(dominant(30, np.float64))
    b, order = random_vector(30, np.float64), np.random.default_rng(5).permutation(a.nnz)
    solver = residua.Solver(sparse.csr_array(a), updates=updates)
    shuffled = sparse.coo_array((3 * a.data[order], (a.row[order], a.col[order])), shape=a.shape)
    halves = [np.concatenate([each, each]) for each in (1.5 * a.data[order], a.row[order], a.col[order])]
    twice = sparse.coo_array((halves[0], (halves[1], halves[2])), shape=a.shape)
    for changed in (shuffled, twice, sparse.csc_array(3 * a), 3 * a.toarray()):
        solver.update(sparse.csr_array(a))
        solver.update(changed)
        assert residual(3 * a.toarray(), solver.solve(b)[0], b) <= 1e-8


def test_new_values_of_unsorted_rows_with_duplicates():
    a = sparse.csr_array((np.array([1.0, 1.0, 5.0, 3.0]), np.array([1, 1, 0, 1]), np.array([0, 3, 4])), shape=(2, 2))
    solver = residua.Solver(a)
    solver.update(np.array([1.0, 2.0, 10.0, 4.0]))
    np.testing.assert_allclose(solver.solve([13.0, 4.0])[0], [1.0, 1.0], rtol=1e-7)


def test_starting_vectors_and_places_for_x():
    a = dominant(40, symmetric=True)
    b = random_vector(40, np.float64)
    solver = residua.Solver(a, method="cg", rtol=1e-12)
    x, first = solver.solve(b)
    again, second = solver.solve(b, x0=x)
    assert second.iterations < first.iterations and np.array_equal(solver.report.history, second.history)
    out = np.zeros(40)
    result, _ = solver.solve(b, out=out)
    assert result is out and residual(a, out, b) <= 1e-12
    start = np.ones(40)
    solver.solve(b, x0=start)
    assert np.array_equal(start, np.ones(40))
    for wrong in (np.zeros(39), np.zeros(40, np.float32), np.zeros((40, 1))):
        with pytest.raises(ValueError):
            solver.solve(b, out=wrong)


def test_not_converged_tells_how_far_it_came():
    a = residua.generate("poisson2d", (50, 50))
    with pytest.raises(residua.NotConverged) as caught:
        residua.solve(a, np.ones(2500), method="cg", maxiter=5)
    error = caught.value
    assert error.report.outcome == "max_iterations" and error.report.iterations == 5 and error.x.shape == (2500,)
    assert "the tolerance was" in str(error)
    back = pickle.loads(pickle.dumps(error))
    assert isinstance(back, residua.NotConverged) and str(back) == str(error) and np.array_equal(back.x, error.x)


def test_reports_tell_all():
    a = residua.generate("poisson2d", (30, 30))
    x, report = residua.Solver(a, rtol=1e-10, device="cpu").solve(np.ones(900))
    assert report.converged and report.solved and report.outcome == "converged" and report.method == "cg"
    true = np.linalg.norm(1 - a @ x)
    np.testing.assert_allclose([report.residual_norm, report.relative_residual], [true, true / 30], rtol=1e-3)
    assert len(report.history) == report.iterations + 1 and report.tolerance == 1e-10
    assert report.device.startswith("cpu") and report.seconds["solve"] > 0
    assert report.trail["stages"][0]["method"] == "cg" and report.trail["decisions"]
    assert "<svg" in report.convergence_svg() and "<table" in report._repr_html_() and "converged" in repr(report)


def test_an_observer_hears_and_ends():
    a = residua.generate("poisson2d", (40, 40))
    heard = []

    def observer(right_hand_side, iteration, norm):
        heard.append((right_hand_side, iteration, norm))
        return iteration >= 3

    _, report = residua.Solver(a, method="cg").solve(np.ones(1600), callback=observer)
    assert report.outcome == "interrupted" and [each[1] for each in heard[:4]] == [0, 1, 2, 3]

    def broken(*_):
        raise KeyError("from the observer")

    with pytest.raises(KeyError, match="from the observer"):
        residua.Solver(a).solve(np.ones(1600), callback=broken)


def test_a_callback_cannot_call_its_own_solver():
    a = residua.generate("poisson2d", (40, 40))
    solver, other = residua.Solver(a), residua.Solver(a)
    for call in (lambda: solver.solve(np.ones(1600)), lambda: solver.update(a.data), lambda: solver.nnz):
        with pytest.raises(RuntimeError, match="own callback"):
            solver.solve(np.ones(1600), callback=lambda *_, call=call: call())
    _, report = solver.solve(np.ones(1600), callback=lambda *_: not other.solve(np.ones(1600))[1].converged)
    assert report.converged


def test_settings_that_make_no_sense():
    a = dominant(10)
    for wrong in (
        dict(method="magic"),
        dict(device="gpu"),
        dict(preconditioner="jacobi:2"),
        dict(rtol=-1.0),
        dict(rtol=float("nan")),
        dict(time_limit=-1.0),
        dict(format="xyz"),
        dict(symmetry="perhaps"),
        dict(right_hand_sides=0),
    ):
        with pytest.raises(ValueError):
            residua.Solver(a, **wrong)
    with pytest.raises(TypeError):
        residua.Solver(a, tolerance=1e-3)
    with pytest.raises(OverflowError):
        residua.Solver(a, maxiter=-1)


def test_matrices_and_vectors_that_do_not_fit():
    a = dominant(10)
    for wrong in (np.ones(9), np.ones((9, 2)), np.ones((10, 2, 2)), np.float64(1.0)):
        with pytest.raises(ValueError, match="is needed"):
            residua.solve(a, wrong)
    with pytest.raises(ValueError):
        residua.Solver(a).solve(np.ones(10), x0=np.ones(9))
    with pytest.raises(residua.Unsupported):
        residua.solve(np.ones((2, 3)), np.ones(2), method="cg")
    with pytest.raises(ValueError):
        residua.solve(np.ones(3), np.ones(3))
    for wrong in (np.array([["a"]]), np.eye(2, dtype=object)):
        with pytest.raises(TypeError):
            residua.solve(wrong, np.ones(len(wrong)))
    with pytest.raises(TypeError, match="double precision"):
        residua.solve(np.eye(2, dtype=np.longdouble), np.ones(2))
    with pytest.raises(TypeError, match="masked"):
        residua.solve(np.eye(2), np.ma.masked_array([1.0, 2.0], mask=[True, False]))
    with pytest.raises(TypeError, match="cg"):
        residua.Solver(lambda x: x)


def test_arrays_that_belong_to_no_matrix():
    a = sparse.csr_array(np.eye(3))
    a.indices = np.array([0, 1, 7], dtype=np.int32)
    with pytest.raises(ValueError, match="column 7"):
        residua.solve(a, np.ones(3))
    a.indices = np.array([0, -1, 2], dtype=np.int64)
    with pytest.raises(ValueError, match="-1"):
        residua.solve(a, np.ones(3))
    a.indices = np.array([0, 1, 2**33], dtype=np.int64)
    with pytest.raises(ValueError, match=str(2**33)):
        residua.solve(a, np.ones(3))
    a = sparse.csr_array(np.eye(3))
    a.indptr = np.array([0, 2, 1, 3], dtype=np.int32)
    with pytest.raises(ValueError):
        residua.solve(a, np.ones(3))


def test_what_is_not_finite_is_never_a_solution():
    a = dominant(10)
    for value in (np.nan, np.inf):
        b = np.ones(10)
        b[3] = value
        with pytest.raises(ValueError, match=r"row 3 \(from 0\)"):
            residua.solve(a, b)
        assert residua.cg(a @ a.T, b)[1] == -1
        broken = a.copy()
        broken.data[2] = value
        with pytest.raises((residua.NotConverged, ValueError)):
            residua.solve(broken, np.ones(10))


def test_singular_systems_are_told_apart():
    a = sparse.diags_array([1.0, 2.0, 0.0]).tocsr()
    with pytest.raises((residua.NotConverged, ValueError)):
        residua.solve(a, np.ones(3))
    np.testing.assert_allclose(a @ residua.solve(a, np.array([1.0, 1.0, 0.0])), [1.0, 1.0, 0.0], atol=1e-7)


def test_rectangular_systems_are_least_squares():
    # If there are many solutions, x is the one of least norm.
    wide = np.array([[1.0, 2.0, 3.0], [0.0, 1.0, 5.0]])
    np.testing.assert_allclose(residua.solve(wide, np.ones(2)), np.linalg.lstsq(wide, np.ones(2))[0], rtol=1e-6)
    a, b = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), np.array([1.0, 2.0, 4.0])
    x, report = residua.Solver(a).solve(b)
    assert report.solved and not report.converged and report.outcome == "least_squares"
    np.testing.assert_allclose(x, [1, 3], rtol=1e-6)
    several, reports = residua.Solver(a).solve(np.stack([b, b], axis=1))
    assert several.shape == (2, 2) and all(each.solved for each in reports)
    with pytest.raises(residua.NotConverged):
        residua.solve(a, b)


def test_empty_and_tiny_systems():
    assert residua.solve(np.array([[2.0]]), np.array([4.0]))[0] == 2.0
    assert residua.solve(sparse.csr_array((0, 0)), np.zeros(0)).shape == (0,)
    assert np.array_equal(residua.solve(dominant(5), np.zeros(5)), np.zeros(5))


def test_a_solver_as_a_preconditioner():
    import scipy.sparse.linalg as linalg

    a = residua.generate("poisson2d", (30, 30))
    m = residua.Solver(a, method="direct").as_preconditioner()
    assert m.shape == (900, 900) and m.dtype == np.float64
    count = []
    x, info = linalg.cg(a, np.ones(900), rtol=1e-10, M=m, callback=count.append)
    assert info == 0 and len(count) <= 2 and residual(a, x, np.ones(900)) <= 1e-10
    loose = residua.Solver(a, rtol=0.1).as_preconditioner()
    x, info = residua.gmres(a, np.ones(900), rtol=1e-10, M=loose)
    assert info == 0 and residual(a, x, np.ones(900)) <= 1e-10
    assert m.matmat(np.ones((900, 2))).shape == (900, 2)


def test_what_a_solver_tells_of_itself():
    a = residua.generate("poisson2d", (10, 10))
    solver = residua.Solver(a, device="cpu")
    assert solver.shape == (100, 100) and solver.nnz == a.nnz and solver.dtype == np.float64
    assert solver.symmetry == "symmetric" and solver.device.startswith("cpu") and solver.report is None
    assert "100 x 100" in repr(solver)


def test_what_is_known_of_a_mesh_makes_multigrid():
    n = 8
    a = residua.generate("elasticity3d", n)
    points = a.shape[0] // 3
    b = a @ np.random.default_rng(0).standard_normal(a.shape[0])
    grid = np.stack(np.unravel_index(np.arange(points), (round(points ** (1 / 3)),) * 3), axis=1).astype(float)
    constants = np.tile(np.eye(3), (points, 1))
    for known in ({"coordinates": grid}, {"near_null_space": constants}):
        x, report = residua.Solver(a, device="cpu", **known).solve(b)
        assert report.converged and report.preconditioner.startswith("amg") and residual(a, x, b) <= 1e-8
    with pytest.raises(ValueError, match="dimensions"):
        residua.Solver(a, coordinates=np.zeros((2, 2, 2)))


def test_a_null_space_that_is_given_makes_b_consistent():
    n = 12  # a path of points: constants are mapped to zero
    a = sparse.diags_array([-np.ones(n - 1), np.r_[1.0, 2 * np.ones(n - 2), 1.0], -np.ones(n - 1)], offsets=[-1, 0, 1])
    b = np.random.default_rng(0).standard_normal(n)
    shortest = np.linalg.lstsq(a.toarray(), b, rcond=None)[0]
    for known in ("constants", np.ones(n), np.ones((n, 1))):
        x, report = residua.Solver(a, device="cpu", null_space=known).solve(b)
        assert report.outcome == "least_squares" and report.outside_range > 0
        assert np.linalg.norm(x - shortest) <= 1e-6 * np.linalg.norm(shortest), report
    with pytest.raises(ValueError, match="constants"):
        residua.Solver(a, null_space="ones")
    with pytest.raises(TypeError, match="complex"):
        residua.Solver(a, null_space=1j * np.ones(n))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("trans", ["T", "H"])
@pytest.mark.parametrize("kind", ["general", "symmetric", "hermitian"])
def test_transposed_systems(dtype, trans, kind):
    a = dominant(60, dtype)
    if kind != "general":
        other = a.T if kind == "symmetric" else a.conj().T
        a = (a + other).tocsr()
    matrix = a.T if trans == "T" else a.conj().T
    for method in ("auto", "direct"):
        solver = residua.Solver(a, method)
        for shape in [(60,), (60, 2)]:
            b = random_vector(np.prod(shape), dtype).reshape(shape)
            x, report = solver.solve(b, trans=trans)
            reports = report if isinstance(report, list) else [report]
            assert all(each.converged for each in reports) and x.dtype == dtype and x.shape == shape
            assert solver.report is report
            assert np.linalg.norm(matrix @ x - b) <= tolerance(dtype) * np.linalg.norm(b)
            out = np.empty_like(x)
            again, _ = solver.solve(b, np.zeros_like(x), out, trans=trans)
            assert again is out
            np.testing.assert_allclose(out, x, rtol=1e-3, atol=1e-3 * np.abs(x).max())


def test_transposed_systems_after_new_values_and_of_other_shapes():
    a = dominant(50, np.float64)
    b = random_vector(50, np.float64)
    solver = residua.Solver(a, updates=True)
    solver.solve(b, trans="T")
    solver.update(2 * a.data)
    x, _ = solver.solve(b, trans="T")
    assert np.linalg.norm(2 * a.T @ x - b) <= 1e-7 * np.linalg.norm(b)
    tall = sparse.csr_array(np.vstack([np.eye(3), np.ones((2, 3))]))
    x, report = residua.Solver(tall).solve(np.ones(3), trans="T")
    assert x.shape == (5,) and report.solved
    np.testing.assert_allclose(tall.T @ x, np.ones(3), atol=1e-6)
    with pytest.raises(ValueError, match="trans must be"):
        solver.solve(b, trans="X")


def test_a_preconditioner_of_a_solver_has_an_adjoint():
    a = dominant(40, np.complex128)
    m = residua.Solver(a, "direct").as_preconditioner()
    b = random_vector(40, np.complex128)
    np.testing.assert_allclose(a.conj().T @ m.rmatvec(b), b, atol=1e-7)


def test_the_condition_number_is_told_where_it_is_asked_for():
    a = sparse.diags_array([np.geomspace(1, 1e6, 30)], offsets=[0]).tocsr() + 0.1 * dominant(30, np.float64)
    _, report = residua.Solver(a, "direct", condition=True, row_wise=False).solve(np.ones(30))
    assert 0.1 < report.condition / np.linalg.cond(a.toarray(), 1) < 10 and report.digits > 5
