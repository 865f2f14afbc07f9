"""For all tests: the folder of real matrices, and the tests of SciPy that residua does not pass."""

import os
import pathlib

import pytest
from hypothesis import settings

# Every run draws the same examples. With new ones each time, a test might fail for reasons that have nothing to do
# with the change under test.
settings.register_profile("fixed", derandomize=True)
settings.load_profile("fixed")

#: The tests of SciPy that residua does not pass, each with the reason; DEVIATIONS.md says more.
DEVIATIONS = {
    "TestFactorized::test_call_with_cast_to_complex_without_umfpack": "complex right-hand sides are solved for",
    "TestSplu::test_bad_inputs": "complex right-hand sides are solved for, and of a wrong size a ValueError",
    "TestSplu::test_lu_refcount": "permutations are arrays of their own, which hold nothing else alive",
    "test_scipy_iterative.py::TestGMRES::test_callback": "gmres hears of the true residual, not the preconditioned one",
    "test_scipy_iterative.py::TestGMRES::test_defective_precond_breakdown": "a zero is asked for to the last bit",
}


def pytest_configure(config):
    for mark in ("fail_slow(seconds)", "slow"):
        config.addinivalue_line("markers", f"{mark}: SciPy's own mark, of no meaning here")


def pytest_collection_modifyitems(items):
    for item in items:
        reason = next((why for name, why in DEVIATIONS.items() if item.nodeid.endswith(name)), None)
        if reason:
            item.add_marker(pytest.mark.xfail(reason=reason, strict=True))


@pytest.fixture(scope="session")
def matrices() -> pathlib.Path:
    """The folder of real matrices, in Matrix Market format."""
    folder = os.environ.get("RESIDUA_MATRICES")
    if not folder or not pathlib.Path(folder).is_dir():
        pytest.skip("RESIDUA_MATRICES names no folder of Matrix Market files")
    return pathlib.Path(folder)
