// Properties of the rows of a CSR matrix that products need, computed once per matrix. Bytes per row: its offset.
//
// row_shape: out[0] the longest row, out[1] the maximum number of nonzeros in 32 consecutive rows, counted from a
// multiple of 32. out must be zero initially.
//
// tile_rows: tiles of TILE steps; for each the first row that starts in it or after it, and one more for the end.
// tile_starts: the same for tiles whose last row may have up to SLACK more nonzeros (tile_start.cuh). One bisection per
// tile. Source: PMPP ch. 12 (co-rank).
//
// Constants: OFFSET (u32 or u64), THREADS, TILE, SLACK (less than TILE).
#include "tile_start.cuh"

typedef OFFSET I;

DEVICE u64 warp_max(u64 v) {
#pragma unroll
    for (u32 with = 16; with; with /= 2) {
        const u64 other = shuffle_xor(v, with);
        v = other > v ? other : v;
    }
    return v;
}

extern "C" __global__ void __launch_bounds__(THREADS) row_shape(u64 rows, const I* offsets, u64* out) {
    u64 longest = 0, fullest = 0;
    for (u64 base = u64(blockIdx.x) * THREADS; base < rows; base += u64(gridDim.x) * THREADS) {
        const u64 row = base + threadIdx.x;
        u64 length = row < rows ? u64(offsets[row + 1]) - u64(offsets[row]) : 0;
        longest = length > longest ? length : longest;
        length = warp_sum(length);
        fullest = length > fullest ? length : fullest;
    }
    longest = warp_max(longest);
    fullest = warp_max(fullest);
    if (lane_id() == 0) {
        atomicMax(out, longest);
        atomicMax(out + 1, fullest);
    }
}

// Returns the first row that starts at `step` or later.
DEVICE u64 row_from(u64 step, u64 rows, const I* offsets) {
    u64 low = 0, high = rows;
    while (low < high) {
        const u64 middle = low + (high - low) / 2;
        if (u64(offsets[middle]) + middle < step) low = middle + 1;
        else high = middle;
    }
    return low;
}

extern "C" __global__ void __launch_bounds__(THREADS) tile_rows(u64 rows, u64 count, const I* offsets, u32* first_rows) {
    const u64 tiles = (rows + count + TILE - 1) / TILE;
    for (u64 tile = u64(blockIdx.x) * THREADS + threadIdx.x; tile <= tiles; tile += u64(gridDim.x) * THREADS)
        first_rows[tile] = u32(row_from(tile * TILE, rows, offsets));
}

extern "C" __global__ void __launch_bounds__(THREADS) tile_starts(u64 rows, u64 count, const I* offsets, TileStart* starts) {
    const u64 tiles = (rows + count + TILE - 1) / TILE;
    for (u64 tile = u64(blockIdx.x) * THREADS + threadIdx.x; tile <= tiles; tile += u64(gridDim.x) * THREADS) {
        const u64 step = tile < tiles ? tile * TILE : rows + count;
        const u64 row = row_from(step, rows, offsets);
        TileStart start = {step - row, u32(row), u32(tile)};
        if (row > 0 && u64(offsets[row]) > start.begin) {
            // The previous row continues into this tile, unless the rest of it fits the tile in which it started.
            const u64 since = (u64(offsets[row - 1]) + row - 1) / TILE, border = (since + 1) * TILE - row;
            if (u64(offsets[row]) - border <= SLACK) start.begin = offsets[row];
            else start.since = u32(since);
        }
        starts[tile] = start;
    }
}
