#!/usr/bin/env bash
# Makes residua.kernels, the archive of compiled kernels that packages carry (docs/gpu.md), on a machine without a GPU:
# compiles what solves can ask for (src/backend/cuda/compile/asked.rs) with NVRTC 12.9, whose code drivers of CUDA 12 and
# 13 take. It is the same for every processor. Refuses more than 11.3 MB, with which a wheel has 25.
#
#     scripts/pack-kernels.sh [FILE [CHIP,CHIP,...]]      default: residua.kernels, of the chips that packages have
#
# 5.9 MB are for sm_90, and 5.1 for sm_80 (2026-11-29). What one chip's code has in common with another's saves 1 %, so
# five chips would take 28 MB. Kernels for other chips are compiled at their first use.
#
# RESIDUA names a command that is built already, RESIDUA_NVRTC another compiler. Needs Python's pip and zstd.
set -euo pipefail
cd "$(dirname "$0")/.."
file=$(realpath -m "${1:-residua.kernels}")
most=11300000
release=12.9.86
nvrtc="target/nvrtc-$release"
if [ -z "${RESIDUA_NVRTC:-}" ]; then
    [ -e "$nvrtc/nvidia/cuda_nvrtc/lib" ] || python3 -m pip install --quiet --disable-pip-version-check \
        --target "$nvrtc" "nvidia-cuda-nvrtc-cu12==$release"
    export RESIDUA_NVRTC="$PWD/$nvrtc/nvidia/cuda_nvrtc/lib"
fi
if [ -z "${RESIDUA:-}" ]; then
    cargo build --locked --release --bin residua
    RESIDUA="${CARGO_TARGET_DIR:-target}/release/residua"
fi
"$RESIDUA" devices --pack "$file" ${2:+--chips "$2"}
size=$(wc -c <"$file")
[ "$size" -le $most ] || { echo "$file: $size bytes, more than $most" >&2; exit 1; }
