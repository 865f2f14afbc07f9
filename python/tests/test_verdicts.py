"""What a report claims about x is true of the returned x, whichever function was called. The systems are of types that
people have reported trouble with, and claims are checked in exact arithmetic."""

import pickle
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sparse
import scipy.sparse.linalg as linalg

import residua
from systems import DTYPES, residual, tolerance
from verdict_cases import Measures, all_cases, grid, permuted, turned

CASES = [variant for case in all_cases() for variant in (case, turned(case), permuted(case))]
SQUARE = [case for case in CASES if case.square]
#: The default tolerance in double precision.
USUAL = 1e-8
#: A^H r counts as zero up to this times the tolerance.
LEAST = 0.01
#: An x with this normwise backward error cannot be improved in double precision.
AT_ROUNDING = 64 * np.finfo(float).eps


def named(cases):
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


def assert_true(outcome, case, x):
    """The outcome is one that the case allows, x satisfies what it claims, and x is right."""
    assert not case.allowed or outcome in case.allowed, outcome
    measures = Measures(case.a, case.b, x)
    if outcome == "converged":
        assert measures.relative <= USUAL and measures.row_wise <= USUAL * (1 + 1e-10), vars(measures)
    elif outcome == "least_squares":
        assert measures.normal <= LEAST * USUAL * 1.01, vars(measures)
    elif outcome == "precision_limit":
        assert measures.backward <= AT_ROUNDING, vars(measures)
    if outcome in ("converged", "precision_limit"):
        assert case.faults_of(x) == []


@named(CASES)
def test_solver_tells_the_truth(case):
    solver = residua.Solver(case.a)
    seen = None
    for _ in range(2):
        x, report = solver.solve(case.b)
        # The verdict on the same x need not be checked twice.
        if seen is None or report.outcome != seen[0] or not np.array_equal(x, seen[1]):
            assert_true(report.outcome, case, x)
            seen = report.outcome, x
        assert report.converged == (report.outcome == "converged")
        if case.regular:
            assert report.solved


@named(SQUARE)
def test_solve_returns_what_is_right_or_raises(case):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            x = residua.solve(case.a, case.b)
        except residua.NotConverged as error:
            assert not case.regular, str(error)
            assert_true(error.report.outcome, case, error.x)
            return
    # If x has fewer correct digits than requested, there is a warning.
    assert_true("precision_limit" if heard else "converged", case, x)


def assert_as_good_as_scipys(case, x, theirs):
    """The backward error of x is not much larger than that of SciPy's x; a nearly singular matrix allows no more."""
    assert np.isfinite(x).all()
    if np.isfinite(theirs).all():
        allowed = 10 * Measures(case.a, case.b, theirs).backward + AT_ROUNDING
        assert Measures(case.a, case.b, x).backward <= allowed
    assert case.faults_of(x) == []


@named([case for case in SQUARE if case.regular])
def test_spsolve_and_factorized_are_as_good_as_scipys(case):
    theirs = linalg.spsolve(case.a.tocsc(), case.b)
    with warnings.catch_warnings():
        # If SciPy's function gives no warning, residua's gives none either.
        warnings.simplefilter("error")
        x = residua.spsolve(case.a, case.b)
        solve = residua.factorized(case.a)
        again = [solve(case.b), solve(case.b)]
    assert_as_good_as_scipys(case, x, theirs)
    for y in again:
        if not np.array_equal(y, x):
            assert_as_good_as_scipys(case, y, theirs)


@named([case for case in SQUARE if "near-an-eigenvalue" in case.name or "leak-1" in case.name])
def test_nothing_goes_on_where_double_precision_ends(case):
    def seconds(solve):
        best = float("inf")
        for _ in range(3):
            start = time.perf_counter()
            solve()
            best = min(best, time.perf_counter() - start)
        return best

    theirs = seconds(lambda: linalg.spsolve(case.a.tocsc(), case.b))
    # An optimised build takes at most three times as long as SciPy. This test allows ten times that for other builds.
    assert seconds(lambda: residua.spsolve(case.a, case.b)) <= 30 * theirs + 0.1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [10, 20, 100])
def test_default_tolerances_are_those_of_the_type(dtype, n):
    a, b = grid(n).astype(dtype), np.ones(n * n, dtype)
    x, report = residua.Solver(a).solve(b)
    assert report.solved and report.tolerance == pytest.approx(tolerance(dtype))
    # On the largest grid, x is so large that single precision cannot meet the tolerance.
    assert report.converged or (n == 100 and np.finfo(dtype).eps > 1e-10)
    with warnings.catch_warnings():
        warnings.simplefilter("error" if report.converged else "ignore")
        x = residua.solve(a, b)
    assert x.dtype == dtype
    assert residual(a, x, b) <= (1.01 * tolerance(dtype) if report.converged else 1e-3)


@pytest.mark.parametrize("n", [12, 40])
def test_factors_are_kept_when_a_tolerance_is_missed(n):
    a, b = grid(n), np.random.default_rng(0).standard_normal(n * n)
    solver = residua.Solver(a, method="direct", rtol=1e-15)
    first, report = solver.solve(b)
    assert report.relative_residual <= 1e-11
    for _ in range(3):
        np.testing.assert_array_equal(solver.solve(b)[0], first)
    several, reports = solver.solve(np.stack([b, 2 * b, -b], axis=1))
    np.testing.assert_allclose(several, np.stack([first, 2 * first, -first], axis=1), rtol=1e-9)


@pytest.mark.parametrize("off", [1e-3, 1e-10])
def test_shift_invert_finds_the_eigenvalues(off):
    n = 25
    a = grid(n)
    shift = 4 - 4 * np.cos(np.pi / (n + 1)) - off
    shifted = sparse.csc_array(a - shift * sparse.eye_array(n * n))
    expected = linalg.eigsh(a, 5, sigma=shift, return_eigenvectors=False)
    solver = residua.Solver(shifted, method="direct", rtol=1e-15)
    for solve in (residua.factorized(shifted), lambda b: solver.solve(b)[0]):
        inverse = linalg.LinearOperator(a.shape, lambda b: solve(b.reshape(-1)), dtype=float)
        found = linalg.eigsh(a, 5, sigma=shift, OPinv=inverse, return_eigenvectors=False)
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_reports_can_be_pickled():
    a = grid(20)
    for b, settings in ((np.ones(400), {}), (np.ones(400), {"maxiter": 1, "method": "cg"})):
        _, report = residua.Solver(a, **settings).solve(b)
        again = pickle.loads(pickle.dumps(report))
        for name in ("outcome", "converged", "solved", "message", "method", "iterations", "relative_residual"):
            assert getattr(again, name) == getattr(report, name), name
        assert again.trail == report.trail
        np.testing.assert_array_equal(again.history, report.history)
    with pytest.raises(residua.NotConverged) as caught:
        residua.solve(a, np.ones(400), maxiter=1, method="cg")
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.report.outcome == caught.value.report.outcome == "max_iterations"


def test_update_compares_patterns():
    a = grid(12)
    b = np.ones(144)
    solver = residua.Solver(a, updates=True)
    # The same number of entries, with one of them in another position.
    other = a.copy()
    moved = other.indptr[70]
    other.indices[moved] = 3
    assert 3 not in a.indices[a.indptr[70] : a.indptr[71]]
    with pytest.raises(ValueError, match="70"):
        solver.update(other)
    x, report = solver.solve(b)
    assert report.converged and residual(a, x, b) <= 1e-8
    # The same pattern in another order, and with an entry in two parts.
    double = 2 * a
    unsorted = double.copy()
    for i in range(144):
        row = slice(unsorted.indptr[i], unsorted.indptr[i + 1])
        unsorted.indices[row], unsorted.data[row] = unsorted.indices[row][::-1].copy(), unsorted.data[row][::-1].copy()
    unsorted.has_sorted_indices = False
    solver.update(unsorted)
    x, report = solver.solve(b)
    assert report.converged and residual(double, x, b) <= 1e-8
    parts = double.tocoo()
    rows, columns = (np.r_[index, index[:1]] for index in (parts.row, parts.col))
    values = np.r_[parts.data, 1.0]
    twice = sparse.coo_array((values, (rows, columns)), shape=a.shape)
    solver.update(twice)
    x, report = solver.solve(b)
    assert report.converged and residual(twice.tocsr(), x, b) <= 1e-8


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_named(bad):
    a, b = grid(9), np.ones(81)
    spoilt = b.copy()
    spoilt[57] = bad
    broken = a.copy()
    broken.data[broken.indptr[57] + list(a.indices[a.indptr[57] : a.indptr[58]]).index(66)] = bad
    for call in (residua.solve, lambda a, b: residua.Solver(a).solve(b)):
        with pytest.raises(ValueError, match="57"):
            call(a, spoilt)
        with pytest.raises(ValueError, match=r"57.*66|66.*57"):
            call(broken, b)


def test_drop_ins_take_what_is_not_finite_as_scipys_do():
    a, b = grid(6), np.ones(36)
    b[7] = np.nan
    assert np.isnan(residua.spsolve(a, b)).all() == np.isnan(linalg.spsolve(a.tocsc(), b)).all()
    assert np.isnan(residua.factorized(a)(b)).any()
    # An infinite conductance to ground: its unknown is zero, as networkx asks for.
    grounded = sparse.csc_array(grid(6, 1))
    grounded[0, 0] = np.inf
    b = np.zeros(36)
    b[5], b[30] = 1, -1
    np.testing.assert_allclose(residua.spsolve(grounded, b), linalg.spsolve(grounded, b), rtol=1e-9, atol=1e-12)
