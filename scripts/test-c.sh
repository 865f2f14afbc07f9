#!/bin/sh
# Builds the C library, checks its header against it, and runs its examples (C, C++, Fortran, MPI) and a million random
# calls, with the address sanitizer where the compiler has one, against the shared and the static library.
# RESIDUA_OPENMPI and RESIDUA_MPICH name folders with bin, include and lib. PACKAGES chooses packages and features for
# cargo, by which the library can be taken as its own tests have it compiled (.ci/run).
#
#   scripts/test-c.sh [number of random calls]
set -eu
cd "$(dirname "$0")/../capi"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/../target}"
export PACKAGES="${PACKAGES:-}"
cargo fmt --check
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
if command -v make >/dev/null; then
    # Programs are built with what is installed, in a folder that was moved since.
    make --silent PROFILE=dev DESTDIR="$made/stage" PREFIX=/opt/residua install
    mv "$made/stage/opt/residua" "$made/moved"
    libraries=$made/moved/lib
else
    echo "the check of make install is skipped: there is no make"
    # shellcheck disable=SC2086
    cargo build --locked --quiet $PACKAGES
    libraries=$CARGO_TARGET_DIR/debug
fi

# The header is made of the sources: types, names and words are compared. It declares what the library exports, no less
# and no more.
cargo run --locked --quiet --manifest-path header/Cargo.toml
nm -D --defined-only "$libraries/libresidua.so" | sed -n 's/^.* T \(residua_[a-z_]*\)$/\1/p' | sort -u >"$made/exported"
sed -n 's/^.*[ *]\(residua_[a-z_]*\)(.*$/\1/p' include/residua.h | grep -v '^residua_apply$' | sort -u >"$made/declared"
diff "$made/exported" "$made/declared" || { echo "include/residua.h and the library differ" >&2; exit 1; }

sanitize=-fsanitize=address
echo 'int main(void) { return 0; }' | gcc -x c $sanitize - -o "$made/probe" 2>/dev/null && "$made/probe" || {
    echo "without the address sanitizer: gcc has none here"
    sanitize=
}
common="-Wall -Wextra -Werror $sanitize -g -Iinclude"
system="-lpthread -ldl -lm"
gcc -std=c11 $common examples/poisson.c -o "$made/shared" -L"$libraries" -lresidua
LD_LIBRARY_PATH=$libraries "$made/shared"
gcc -std=c11 $common examples/poisson.c -o "$made/static" "$libraries/libresidua.a" $system
"$made/static"
gcc -std=c11 $common examples/first.c -o "$made/first" -L"$libraries" -lresidua
test "$(LD_LIBRARY_PATH=$libraries "$made/first")" = "converged: x = 2.5 4 4.5 4 2.5"
gcc -std=c11 $common examples/batch.c -o "$made/batch" -L"$libraries" -lresidua -lm
LD_LIBRARY_PATH="$libraries" "$made/batch"
gcc -std=c11 $common examples/spaces.c -o "$made/spaces" -L"$libraries" -lresidua -lm
LD_LIBRARY_PATH=$libraries "$made/spaces"
gcc -std=c11 $common examples/callbacks.c -o "$made/callbacks" -L"$libraries" -lresidua -lm
LD_LIBRARY_PATH=$libraries "$made/callbacks"
# Arrays on a GPU: says that it is skipped where there is none.
gcc -std=gnu11 $common examples/device.c -o "$made/device" -L"$libraries" -lresidua -ldl
LD_LIBRARY_PATH=$libraries "$made/device"
# Rows on three processes of MPI, with whose headers the program is built. MPI itself leaks, so no sanitizer.
for prefix in "${RESIDUA_OPENMPI:-}" "${RESIDUA_MPICH:-}"; do
    [ -n "$prefix" ] || { echo "an MPI is skipped: RESIDUA_OPENMPI or RESIDUA_MPICH names no folder"; continue; }
    more=
    [ "$prefix" != "${RESIDUA_OPENMPI:-}" ] || more="--allow-run-as-root --oversubscribe"
    gcc -std=c11 -Wall -Wextra -Werror -g -Iinclude -isystem "$prefix/include" examples/distributed.c \
        -o "$made/distributed" -L"$libraries" -lresidua -L"$prefix/lib" -lmpi -Wl,-rpath,"$prefix/lib"
    # shellcheck disable=SC2086
    LD_LIBRARY_PATH=$libraries RAYON_NUM_THREADS=1 MPIEXEC_TIMEOUT=60 "$prefix/bin/mpirun" $more -n 3 "$made/distributed"
done
if command -v g++ >/dev/null; then
    g++ -std=c++17 $common examples/convection.cpp -o "$made/cpp" "$libraries/libresidua.a" $system
    "$made/cpp"
else
    echo "the C++ example is skipped: there is no g++"
fi
if command -v gfortran >/dev/null; then
    gfortran -std=f2018 -Wall -Wextra -Werror -J"$made" fortran/residua.f90 examples/poisson.f90 -o "$made/fortran" \
        "$libraries/libresidua.a" $system
    "$made/fortran"
else
    echo "the Fortran example is skipped: there is no gfortran"
fi
gcc -std=c11 $common tests/fuzz.c -o "$made/fuzz" -L"$libraries" -lresidua
LD_LIBRARY_PATH=$libraries "$made/fuzz" "${1:-1000000}"
if command -v valgrind >/dev/null; then
    gcc -std=c11 -g -Iinclude examples/poisson.c -o "$made/plain" -L"$libraries" -lresidua
    LD_LIBRARY_PATH=$libraries RAYON_NUM_THREADS=1 valgrind --quiet --error-exitcode=9 --leak-check=full \
        --show-leak-kinds=definite --errors-for-leak-kinds=definite "$made/plain"
else
    echo "the memory check of the example is skipped: there is no valgrind"
fi
if command -v pkg-config >/dev/null && [ -e "$libraries/pkgconfig" ]; then
    words=$(PKG_CONFIG_PATH=$libraries/pkgconfig pkg-config --cflags --libs residua)
    # shellcheck disable=SC2086
    gcc -std=c11 -Wall -Wextra -Werror -g examples/poisson.c -o "$made/installed" $words
    LD_LIBRARY_PATH=$libraries "$made/installed"
    LD_LIBRARY_PATH=$libraries ldd "$made/installed" | grep -q "libresidua.so.[0-9]* => $libraries/"
else
    echo "the check of pkg-config's file is skipped: there is no pkg-config, or no make"
fi
