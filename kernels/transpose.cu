// From CSR to CSC in little memory, one range of consecutive entries ("stretch") after another: the caller has sorted a
// stretch by column, stably, and each column's entries are appended to those of earlier stretches.
//
//     columns  0 2 | 2 | 1 2 | 0 3      sorted   0 0 1 2 2 2 3       cursor of each column: where its next entry goes
//                                       sources  0 5 3 1 2 4 6
//
// For a run of equal columns from k on, the place of an entry is cursor - k + (place in the stretch): run_heads
// subtracts k, place adds its own place, run_tails advances the cursors.
//
// Bytes per entry: column, source, row and value read (the latter two from anywhere in the stretch), row and value
// written; columns twice more.
//
// Constants: VALUE_BYTES (4, 8, 16), OFFSET (of CSR), CURSOR (of columns; u32 or u64), THREADS, ITEMS (elements per
// thread of a tile).
#include "tile_segments.cuh"

typedef unsigned_of<VALUE_BYTES>::type V;
typedef OFFSET I;
typedef CURSOR C;

#define EACH(i, n) for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < (n); i += u64(gridDim.x) * THREADS)

// The rows of entries first .. first + n. One block per tile.
extern "C" __global__ void __launch_bounds__(THREADS) rows_of(const I* offsets, u64 rows, u64 first, u64 n, u32* row_of) {
    __shared__ TileSegments tile;
    __shared__ u64 ends[2];
    const u64 from = u64(blockIdx.x) * TILE;
    const u32 have = u32(min(u64(TILE), n - from));
    if (threadIdx.x < 2) ends[threadIdx.x] = segment_of(offsets, rows, first + from + (threadIdx.x ? have - 1 : 0));
    __syncthreads();
    mark_segments(offsets, ends[0], ends[1], first + from, have, tile);
    for (u32 i = threadIdx.x; i < have; i += THREADS) row_of[from + i] = u32(ends[0] + tile.segment[i]);
}

extern "C" __global__ void __launch_bounds__(THREADS) run_heads(const u32* columns, u64 n, C* cursors) {
    EACH(k, n) if (k == 0 || columns[k - 1] != columns[k]) cursors[columns[k]] -= C(k);
}

// `columns`, `sources`, `row_of` and `values` start at the current stretch, and sources count from there; the rows in
// `row_of` are those of the whole matrix.
extern "C" __global__ void __launch_bounds__(THREADS)
    place(const u32* columns, const u32* sources, const u32* row_of, const V* values, u64 n, const C* cursors, u32* to_rows, V* to_values) {
    EACH(k, n) {
        const u64 at = C(cursors[columns[k]] + C(k));
        const u32 source = sources[k];
        to_rows[at] = row_of[source];
        to_values[at] = values[source];
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) run_tails(const u32* columns, u64 n, C* cursors) {
    EACH(k, n) if (k + 1 == n || columns[k + 1] != columns[k]) cursors[columns[k]] += C(k + 1);
}
