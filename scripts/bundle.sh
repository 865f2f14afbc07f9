#!/usr/bin/env bash
# Gathers what a machine with a GPU, but without Rust, needs to run the device's tests and benchmarks: stripped release
# binaries of the command, of the tests that use a device and of their benchmarks, packed, the source of the program
# that times CUB, and small matrices, in bundle/ (64 MiB at most). There: bundle/run.sh [tests|bench|all], or
# bundle/run.sh sanitize [TOOL ...] for every kernel under compute-sanitizer (scripts/sanitize.sh).
#
#     scripts/bundle.sh [FOLDER]          the matrices of RESIDUA_MATRICES are added where they fit
#
# TESTS and BENCHES in the environment replace the lists below; MATRICES=0 leaves the matrices out; PROFILE=dev takes
# the development profile, which builds in a third of the time: the device does the work that is measured.
set -euo pipefail
cd "$(dirname "$0")/.."
bundle=${1:-bundle}
limit=$((64 << 20))
profile=${PROFILE:-release}
# What uses a device, by what the files say of themselves, and the command; the rest runs where the repository is.
names() { sed -E 's,^[^/]*/,,; s,(/main)?\.rs$,,' | sort | tr '\n' ' '; }
tests=${TESTS-cli kernels_compile $(grep -lE 'device::device|on_every_backend' tests/*.rs tests/*/main.rs | names)}
benches=${BENCHES-$(grep -lE '\bCuda\b' benches/*.rs benches/*/main.rs | names)}
rm -rf "$bundle"
mkdir -p "$bundle"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/bin/tests" "$work/bin/benches"

arguments=()
for test in $tests; do arguments+=(--test "$test"); done
for bench in $benches; do arguments+=(--bench "$bench"); done
# One call, so that the library is compiled once. Cargo names each binary that it makes.
pick='
import json, sys
folders = {"bin": ".", "test": "tests", "bench": "benches"}
for line in sys.stdin:
    m = json.loads(line)
    if m.get("reason") == "compiler-artifact" and m.get("executable"):
        print(folders[m["target"]["kind"][0]], m["target"]["name"], m["executable"])'
cargo test --profile "$profile" --no-run "${arguments[@]}" --message-format=json-render-diagnostics |
    python3 -c "$pick" | while read -r folder name path; do
    strip -o "$work/bin/$folder/$name" "$path"
done
# Tests bring the command with them; benchmarks alone do not.
[ -e "$work/bin/residua" ] ||
    cargo build --profile "$profile" --bin residua --message-format=json-render-diagnostics |
    python3 -c "$pick" | while read -r folder name path; do strip -o "$work/bin/$folder/$name" "$path"; done
# The compiled kernels of a package, if they were made: scripts/pack-kernels.sh.
if [ -e residua.kernels ]; then cp residua.kernels "$work/bin/"; fi
tar -C "$work" -cf - bin | xz -T2 -6 > "$bundle/bin.tar.xz"
cp -r matrices "$bundle/matrices"
cp scripts/{sanitize,scale}.sh "$bundle/"
mkdir "$bundle/cub"
cp benches/peers/{cub_figures,kernels_cub}.cu "$bundle/cub"

# The matrices beside the repository, smallest first, up to three quarters of the limit: the checkout travels too.
matrices=${RESIDUA_MATRICES:-../shared/matrices}
if [ "${MATRICES:-1}" != 0 ] && [ -d "$matrices" ]; then
    mkdir -p "$bundle/shared-matrices"
    cp "$matrices"/*.csv "$bundle/shared-matrices/" 2>/dev/null || true
    used=$(du -sb "$bundle" | cut -f1)
    while read -r size path; do
        used=$((used + size))
        [ $used -lt $((limit * 3 / 4)) ] || break
        cp "$path" "$bundle/shared-matrices/"
    done < <(find "$matrices" -maxdepth 1 -name '*.mtx*' -type f -printf '%s %p\n' | sort -n)
fi

cat > "$bundle/run.sh" <<'RUN'
#!/usr/bin/env bash
# Runs the bundled tests, or benchmarks, or both; or every kernel under compute-sanitizer. A device that is missing is a
# failure, unless RESIDUA_NEED_DEVICE=0.
set -u
here=$(cd "$(dirname "$0")" && pwd)
what=${1:-all}
failed=0
cd "$here"
[ -d bin ] || tar -xJf bin.tar.xz
if [ -d shared-matrices ]; then export RESIDUA_MATRICES=${RESIDUA_MATRICES:-$here/shared-matrices}; fi
export CARGO_MANIFEST_DIR=$here RESIDUA_NEED_DEVICE=${RESIDUA_NEED_DEVICE:-1}
export RESIDUA_COMMAND=$here/bin/residua
bin/residua devices || failed=1
if [ "$what" = sanitize ]; then
    TEST=$here/bin/tests/every_kernel exec ./sanitize.sh "${@:2}"
fi
if [ "$what" != bench ]; then
    for test in bin/tests/*; do
        echo "== $test"
        # The command's tests want all of the collection or nothing of it; here is as much as fits.
        case $test in */cli) hide=(env -u RESIDUA_MATRICES) ;; *) hide=() ;; esac
        "${hide[@]}" "$test" --quiet || failed=1
    done
fi
if [ "$what" != tests ]; then
    PATH=$PATH:/usr/local/cuda/bin
    if command -v nvcc >/dev/null; then
        echo "== CUB, from the toolkit, for the benchmark of the primitives"
        (cd cub && for p in 0 1 2 3 4; do
            nvcc -O3 -std=c++17 -arch=native -DPART=$p -c kernels_cub.cu -o part$p.o &
        done; wait; nvcc -O3 -std=c++17 -arch=native cub_figures.cu part?.o -o cub_figures) &&
            export RESIDUA_CUB=$here/cub/cub_figures
    fi
    for bench in bin/benches/*; do
        echo "== $bench"
        "$bench" --bench || failed=1
    done
    for model in poisson2d:2048 poisson3d:128 poisson3d-27:80 elasticity3d:40 random:500000,row-lengths=16 rmat:262144; do
        bin/residua bench --generate "$model" --device cuda --time 0.1 || failed=1
    done
fi
echo "== $([ $failed = 0 ] && echo all went well || echo something failed)"
exit $failed
RUN
chmod +x "$bundle/run.sh"
total=$(du -sb "$bundle" | cut -f1)
echo "$bundle: $total bytes"
[ "$total" -le "$limit" ] || { echo "$bundle is larger than 64 MiB" >&2; exit 1; }
