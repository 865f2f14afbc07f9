#!/usr/bin/env bash
# Every kernel under compute-sanitizer (memcheck, initcheck, racecheck, synccheck), on a machine with a GPU: the groups
# of the test `every_kernel`, several at a time, each in a process of its own. What a group came to is printed as it
# ends; the end says which kernels no run of a tool has seen. Fails where a tool reports anything, where a result is
# wrong, and where a kernel was not seen. Not beside the test `gpu`, which takes nearly all of the device's memory.
#
#     scripts/sanitize.sh [TOOL ...]
#
# TEST in the environment is the test's binary (in the bundle: bin/tests/every_kernel); without, it is built. ONLY names
# groups to run, AT_ONCE the processes at a time, LIMIT the seconds of each, LOGS a folder for all that the tools said.
set -u
tools=${*:-memcheck initcheck racecheck synccheck}
limit=${LIMIT:-600}
logs=${LOGS:-$(mktemp -d)}
mkdir -p "$logs"
rm -f "$logs"/*.said
# A freed buffer that is kept for the next would hide accesses beyond it, and reads of what was never written.
export PATH=$PATH:/usr/local/cuda/bin RESIDUA_NEED_DEVICE=1 RESIDUA_KEEP_BUFFERS=0
command -v compute-sanitizer >/dev/null || { echo "compute-sanitizer, of the CUDA toolkit, is not on the PATH" >&2; exit 2; }
if [ -z "${TEST:-}" ]; then
    cd "$(dirname "$0")/.."
    TEST=$(cargo test --locked --no-run --test every_kernel --message-format=json-render-diagnostics |
        sed -n 's/.*"executable":"\([^"]*every_kernel[^"]*\)".*/\1/p')
fi
export TEST logs limit

run() { # groups, and a command before the test's
    local groups=$1
    shift
    RESIDUA_GROUPS=$groups "$@" "$TEST" --exact every_kernel_is_launched_and_right --nocapture
}
# What a group is run with under a tool, a line each. Racecheck finishes no launch in clusters of 16, and few in which
# blocks of a large chip meet: there it sees no clusters; clusters of four on a chip made small, of small graphs; and
# clusters of eight.
forms() { # tool, group
    case $1.$2 in
    # A smaller chip, where blocks have more to do in a level, and no clusters.
    alone.levels* | alone.orders* | alone.structures)
        echo
        echo "RESIDUA_CLUSTERS=1 RESIDUA_MULTIPROCESSORS=4" ;;
    # And where a thread of a product with a grid goes through several planes.
    *.compressed-products | *.compressed-dots)
        echo
        echo "RESIDUA_MULTIPROCESSORS=1" ;;
    *.compressed-grids) echo "RESIDUA_MULTIPROCESSORS=16" ;;
    racecheck.levels-parts) echo "RESIDUA_MULTIPROCESSORS=1" ;;
    racecheck.*-wide) echo "RESIDUA_CLUSTERS=1 RESIDUA_MULTIPROCESSORS=8" ;;
    racecheck.levels | racecheck.orders | racecheck.orders-components | racecheck.structures | racecheck.wide-offsets | racecheck.streams)
        echo "RESIDUA_CLUSTERS=1" ;;
    racecheck.traversals-narrow)
        echo "RESIDUA_CLUSTERS=4 RESIDUA_MULTIPROCESSORS=4"
        echo "RESIDUA_CLUSTERS=4 RESIDUA_MULTIPROCESSORS=16" ;;
    racecheck.persistent-clusters) echo "RESIDUA_CLUSTERS=8" ;;
    *) echo ;;
    esac
}
one() { # tool, group, variables
    local tool=$1 group=$2 begin=$SECONDS said
    shift 2
    local log="$logs/$tool.$group $*"
    local command=(env "$@" timeout "$limit")
    [ "$tool" = alone ] || command+=(compute-sanitizer --tool "$tool" --error-exitcode 9 --print-limit 20)
    run "$group" "${command[@]}" >"$log" 2>&1
    case $? in
    0) said=$(grep 'SUMMARY: ' "$log" | grep -v 'SUMMARY: 0 ') || said=nothing ;;
    124) said="not over after $limit s" ;;
    9) said=$(grep 'SUMMARY: ' "$log" | tail -1) ;;
    *) said="failed: $(grep -E "panicked at|rror" "$log" | head -1)" ;;
    esac
    echo "$tool $group${*:+ ($*)}: $said ($((SECONDS - begin)) s)" | tee "$log.said"
}
each() { # Every group under the tools named.
    for tool in "$@"; do for group in $groups; do forms "$tool" "$group" | sed "s/^/$tool $group /; s/ *$//"; done; done |
        xargs -P "${AT_ONCE:-8}" -L 1 bash -c 'one "$@"' sanitize
}
export -f run one

run "" >"$logs/list" 2>&1 || { cat "$logs/list"; exit 1; }
failed=0
groups=${ONLY:-$(sed -n 's/^GROUPS //p' "$logs/list")}
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
compute-sanitizer --version | tail -1
# A tool that does not see what is wrong on purpose says nothing by its silence.
for tool in $tools; do
    grep -q "^CONTROL control-$tool$" "$logs/list" || continue
    run "control-$tool" timeout "$limit" compute-sanitizer --tool "$tool" --print-limit 2 >"$logs/control.$tool" 2>&1
    if grep 'SUMMARY: ' "$logs/control.$tool" | grep -qv 'SUMMARY: 0 '; then
        echo "$tool reports a defect made on purpose"
    else
        echo "$tool does not report a defect made on purpose"
        failed=1
    fi
done
# Once without a tool: are the results right? This compiles the kernels to their cache, too.
each alone
# shellcheck disable=SC2086
each $tools

for tool in alone $tools; do
    found=$(cat "$logs/$tool".*.said | grep -cv ': nothing (')
    seen=$(sed -n 's/^LAUNCHED //p' "$logs/$tool".* | sort -u)
    unseen=$(sed -n 's/^KERNEL //p' "$logs/list" | sort -u | comm -23 - <(echo "$seen"))
    echo "== $tool: $(grep -c . <<<"$seen") kernels seen, $found runs with findings"
    [ -z "$unseen" ] || sed 's/^/   not seen: /' <<<"$unseen"
    if [ "$found" != 0 ] || [ -n "$unseen" ]; then failed=1; fi
done
exit $failed
