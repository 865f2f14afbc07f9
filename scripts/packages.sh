#!/usr/bin/env bash
# Makes a release's packages for this machine's processor, each with the compiled kernels that scripts/pack-kernels.sh
# has made (residua.kernels here), and checks that the programs in them find and read these.
#
#     scripts/packages.sh program|library|wheel ...
#
# TARGET names the processor in names of files; PROFILE=dev builds without optimisation, as a test of this script. The
# wheel needs Python's maturin and, to be tried, NumPy and SciPy.
set -euo pipefail
cd "$(dirname "$0")/.."
profile=${PROFILE:-release}
target=${TARGET:-$(rustc -vV | sed -n 's/^host: //p')}
kernels=$PWD/residua.kernels
[ -e "$kernels" ] || { echo "residua.kernels is missing: run scripts/pack-kernels.sh first" >&2; exit 1; }
built="${CARGO_TARGET_DIR:-target}/$([ "$profile" = dev ] && echo debug || echo "$profile")"

program() {
    cargo build --locked --profile "$profile"
    "$built/residua" solve matrices/poisson2d-64x64.mtx
    local name="residua-$target"
    rm -rf "$name"
    mkdir "$name"
    cp "$built/residua" "$kernels" README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$name"
    local told
    told=$("$name/residua" devices)
    echo "$told"
    grep -Eq "kernels .*compiled in advance" <<<"$told"
    tar -czf "$name.tar.gz" "$name"
    ls -l "$name.tar.gz"
}

library() {
    local name="residua-c-$target"
    rm -rf "$name"
    make -C capi install PREFIX=/usr/local DESTDIR="$PWD/$name" KERNELS="$kernels" PROFILE="$profile"
    cp capi/README.md capi/fortran/residua.f90 LICENSE-MIT LICENSE-APACHE "$name"
    tar -czf "$name.tar.gz" "$name"
    cmp "$kernels" "$name/usr/local/lib/residua.kernels"
    ls -l "$name.tar.gz"
}

wheel() {
    # Beside the module, where it looks for them.
    cp "$kernels" python/lib/residua/
    local out="$PWD/python/dist" place
    rm -rf "$out"
    (cd python && python3 -m maturin build --profile "$profile" --strip --locked --out "$out")
    place=$(mktemp -d)
    python3 -m pip install --quiet --disable-pip-version-check --no-deps --target "$place" "$out"/*.whl
    PYTHONPATH="$place" python3 -c "
import residua
kernels = residua.devices()[0]['cuda']['kernels']
print(residua.__file__, kernels)
assert min(kernels.values()) > 0"
    PYTHONPATH="$place" python3 python/examples/first.py
    rm -rf "$place"
    ls -l "$out"
}

for what in "$@"; do
    case $what in
    program | library | wheel) "$what" ;;
    *) echo "$what: program, library or wheel" >&2; exit 1 ;;
    esac
done
