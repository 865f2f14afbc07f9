#!/usr/bin/env bash
# Figures on 2, 4 and 8 GPUs of a machine beside one, as far as it has them, for docs/internals/scale.md: conjugate
# gradients with the same system on more GPUs (strong) and with as much for each (weak), multigrid likewise, the rounds of two sums and
# a halo over windows and over NCCL, breadth-first search, and the largest system.
#
#     scripts/scale.sh
#
# BENCH in the environment is the benchmark's binary (in the bundle: bin/benches/ranks_device); without, it is built.
# SIZE (400) is the side of a GPU's cube in the weak cases and of the whole in the strong ones, which also run at twice
# that; MESH (2000) points a side; GRAPH (33554432:16) vertices and edges a vertex; LARGEST (500000000) unknowns a GPU,
# 0 for none; COUNTS ("2 4 8") of GPUs, in the order in which they run. The processors of the machine are shared among
# the ranks.
set -euo pipefail
size=${SIZE:-400} mesh=${MESH:-2000} graph=${GRAPH:-33554432:16} largest=${LARGEST:-500000000}
if [ -z "${BENCH:-}" ]; then
    cd "$(dirname "$0")/.."
    BENCH=$(cargo bench --locked --no-run --bench ranks_device --message-format=json-render-diagnostics |
        sed -n 's/.*"executable":"\([^"]*ranks_device[^"]*\)".*/\1/p')
fi
gpus=$(nvidia-smi --list-gpus | wc -l)
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | sort | uniq -c
date --utc +'%Y-%m-%d %H:%M UTC'

bench() { # GPUs, cases
    # A case that fails is told of, and the others run.
    RAYON_NUM_THREADS=$(($(nproc) / $1)) "$BENCH" "$@" || echo "failed: $*"
    echo "-- $SECONDS s"
}

cube=${size}x${size}
double=$((2 * size))x$((2 * size))x$((2 * size))
alone=
for count in ${COUNTS:-2 4 8}; do
    [ "$count" -le "$gpus" ] || continue
    echo "== $count GPUs"
    # One GPU alone, with the first of the counts only.
    bench "$count" "${alone}own:${cube}x$size" "${alone}mesh:$mesh"
    bench "$count" "several-own:${cube}x$((size * count))" "several-amg:${cube}x$((size * count))"
    bench "$count" "${alone}amg:${cube}x$size"
    bench "$count" "${alone}256x256x256"
    RESIDUA_PEERS=nccl bench "$count" several-256x256x256
    bench "$count" "bfs:$graph"
    bench "$count" "${alone}own:$double"
    alone=several-
done
if [ "$largest" != 0 ]; then
    # Square planes of a thousand points, eight or a multiple of it for each GPU.
    bench "$gpus" "certified:1000x1000x$((largest / 8000000 * 8 * gpus))"
fi
