#!/bin/sh
# Sets up a virtual environment in python/.venv, builds the bindings into it (profile dev) and runs all their tests:
# formatting, lints of Python, pytest with hypothesis, SciPy's own tests of its iterative solvers, the examples.
#
#   python/scripts/test.sh [options of pytest]
#
# RESIDUA_MATRICES names a folder of Matrix Market files; RESIDUA_OPENMPI and RESIDUA_MPICH name folders with bin/mpirun
# and lib. Without them the tests of real files, and those of MPI, are skipped, and say so.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
needed="maturin>=1.9,<2 numpy scipy pytest hypothesis ruff"
# Real clients: their assembled systems are solved where they can be installed. Matplotlib draws the gallery.
clients="pyamg scikit-fem mpi4py matplotlib"
# They look at the types; the second is pyright with a Node of its own.
checkers="mypy basedpyright"
stamp=.venv/installed
if [ "$(cat "$stamp" 2>/dev/null)" != "$needed $clients $checkers" ]; then
    [ -x .venv/bin/python ] || "$python" -m venv .venv
    # shellcheck disable=SC2086
    .venv/bin/pip install --quiet $needed
    # shellcheck disable=SC2086
    .venv/bin/pip install --quiet $clients || \
        echo "tests of pyamg, scikit-fem, mpi4py and the gallery's pictures are skipped: not to be installed"
    # shellcheck disable=SC2086
    .venv/bin/pip install --quiet $checkers || echo "types are not looked at: mypy and basedpyright are not to be installed"
    echo "$needed $clients $checkers" >"$stamp"
fi
cargo fmt --check
.venv/bin/ruff check --quiet --config pyproject.toml . ../site
.venv/bin/ruff format --check --quiet --config pyproject.toml . ../site ../benches/peers
# With all features the library is compiled as it is for its own tests.
VIRTUAL_ENV="$PWD/.venv" .venv/bin/maturin develop --locked --quiet --all-features
.venv/bin/python -m pytest -q "$@" tests
