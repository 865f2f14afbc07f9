#!/usr/bin/env bash
# Gathers what a machine without Rust needs to run the tests and benchmarks: stripped release binaries, and the small
# matrices of the repository, in bundle/ (64 MiB at most). There: bundle/run.sh [tests|bench|all].
#
#     scripts/bundle.sh [FOLDER]          the matrices of RESIDUA_MATRICES are added where they fit
set -euo pipefail
cd "$(dirname "$0")/.."
bundle=${1:-bundle}
limit=$((64 << 20))
rm -rf "$bundle"
mkdir -p "$bundle/tests" "$bundle/benches"

# Every binary that cargo names: tests by their target's name, benchmarks too, and the command.
collect() { # FOLDER KIND CARGO-ARGUMENTS...
    local folder=$1 kind=$2
    shift 2
    cargo "$@" --release --message-format=json-render-diagnostics | python3 -c '
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    if m.get("reason") == "compiler-artifact" and m.get("executable") and sys.argv[1] in m["target"]["kind"]:
        print(m["target"]["name"], m["executable"])' "$kind" | while read -r name path; do
        strip -o "$bundle/$folder/$name" "$path"
    done
}
collect . bin build --bins
collect tests lib test --no-run --lib
collect tests test test --no-run --tests
collect benches bench build --benches
cp -r benches/peers "$bundle/peers" 2>/dev/null || true
cp -r matrices "$bundle/matrices" 2>/dev/null || mkdir -p "$bundle/matrices"

# The matrices beside the repository, smallest first, up to three quarters of the limit: the checkout travels too.
matrices=${RESIDUA_MATRICES:-../shared/matrices}
if [ -d "$matrices" ]; then
    mkdir -p "$bundle/shared-matrices"
    find "$matrices" -name '*.mtx*' -type f -printf '%s %p\n' | sort -n | while read -r size path; do
        used=$(du -sb "$bundle" | cut -f1)
        if [ $((used + size)) -lt $((limit * 3 / 4)) ]; then cp "$path" "$bundle/shared-matrices/"; fi
    done
fi

cat > "$bundle/run.sh" <<'RUN'
#!/usr/bin/env bash
# Runs the bundled tests and benchmarks. RESIDUA_NEED_DEVICE=1 turns a missing device into a failure.
set -u
here=$(cd "$(dirname "$0")" && pwd)
export RESIDUA_MATRICES=${RESIDUA_MATRICES:-$here/shared-matrices} CARGO_MANIFEST_DIR=$here
what=${1:-all}
failed=0
cd "$here"
if [ "$what" != bench ]; then
    for test in tests/*; do
        echo "== $test"
        "$test" --nocapture || failed=1
    done
fi
if [ "$what" != tests ]; then
    for bench in benches/*; do
        echo "== $bench"
        "$bench" --bench || failed=1
    done
fi
exit $failed
RUN
chmod +x "$bundle/run.sh"
total=$(du -sb "$bundle" | cut -f1)
echo "$bundle: $total bytes"
[ "$total" -le "$limit" ] || { echo "$bundle is larger than 64 MiB" >&2; exit 1; }
