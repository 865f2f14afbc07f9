#!/bin/sh
# Real programs with residua's functions in place of SciPy's (residua.patch), beside the same with SciPy's own: prints a table.
#
#   python/tests/clients/run.sh
#
# python/scripts/test.sh has built the bindings into python/lib before. The programs are installed into
# python/.venv-clients; where the registry is not reached, nothing is run.
set -eu
cd "$(dirname "$0")/../.."
venv=.venv-clients
# FiPy's examples are in its source archive alone.
fipy=4.0.3
needed="fipy==$fipy scikit-fem networkx pandapower pypsa pyamg scikit-image pymatting"
if [ "$(cat "$venv/installed" 2>/dev/null)" != "$needed" ]; then
    [ -x "$venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$venv"
    # shellcheck disable=SC2086
    "$venv/bin/pip" install --quiet --disable-pip-version-check $needed &&
        "$venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --no-binary fipy --dest "$venv" \
            "fipy==$fipy" || {
        echo "skipped: the clients are not to be installed"
        exit 0
    }
    tar -xzf "$venv/fipy-$fipy.tar.gz" -C "$venv"
    echo "$needed" >"$venv/installed"
fi
export FIPY_SOLVERS=scipy RESIDUA_FIPY="$PWD/$venv/fipy-$fipy" PYTHONPATH="$PWD/lib"
exec "$venv/bin/python" tests/clients/compare.py
