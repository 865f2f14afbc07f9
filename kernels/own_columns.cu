// The rows of one of several ranks, divided into the columns that the rank owns and the others (its halo).
//
//     rows of a rank with columns 2 and 3         own, from 0     others
//     . . 4 1 | 2    columns 2 3 4                0 1             4
//     1 . 1 4 | .    columns 0 2 3                0 1             0
//
// A block takes THREADS rows at a time. Most blocks of a rank have no entry in other columns: they look at their
// entries one after another, and copy them as they lie. In the others a warp takes a row at a time.
//
// Bytes per entry: the column read twice and written once, the value read and written once.
//
// Constants: VALUE_BYTES (4, 8, 16), OFFSET (of the rows), TARGET (of the own columns; u32 or u64), THREADS.
#include "common.cuh"

typedef unsigned_of<VALUE_BYTES>::type V;
#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS)
#define WARPS (THREADS / 32)

// beyond[i] = the number of entries of row i in columns below `first`, or from `last` on.
KERNEL entries_beyond(u64 rows, const OFFSET* offsets, const u32* columns, u64 first, u64 last, u32* beyond) {
    for (u64 base = u64(blockIdx.x) * THREADS; base < rows; base += u64(gridDim.x) * THREADS) {
        const u64 end = min(base + THREADS, rows);
        bool any = false;
        for (u64 k = u64(offsets[base]) + threadIdx.x; k < u64(offsets[end]); k += THREADS)
            any = any || columns[k] < first || columns[k] >= last;
        if (base + threadIdx.x < end) beyond[base + threadIdx.x] = 0;
        if (!__syncthreads_or(any)) continue;
        for (u64 row = base + threadIdx.x / 32; row < end; row += WARPS) {
            u32 count = 0;
            for (u64 k = offsets[row]; k < u64(offsets[row + 1]); k += 32) {
                const bool has = k + lane_id() < u64(offsets[row + 1]);
                const u32 column = has ? columns[k + lane_id()] : 0;
                count += __popc(__ballot_sync(ALL, has && (column < first || column >= last)));
            }
            if (lane_id() == 0) beyond[row] = count;
        }
    }
}

// before[i] is the number of entries of all rows before row i in other columns, and there is one more for the end.
KERNEL split_columns(u64 rows, const OFFSET* from, const u32* columns, const V* values, u64 first, u64 last,
                     const u64* before, TARGET* offsets, u32* own_columns, V* own_values, u32* other_columns, V* other_values) {
    const u64 start = from[0];
    for (u64 base = u64(blockIdx.x) * THREADS; base < rows; base += u64(gridDim.x) * THREADS) {
        const u64 end = min(base + THREADS, rows), row = base + threadIdx.x;
        if (row < end) offsets[row] = TARGET(u64(from[row]) - start - before[row]);
        if (end == rows && threadIdx.x == 0) offsets[rows] = TARGET(u64(from[rows]) - start - before[rows]);
        const u64 shift = start + before[base];
        if (before[end] == before[base]) {
            for (u64 k = u64(from[base]) + threadIdx.x; k < u64(from[end]); k += THREADS) {
                own_columns[k - shift] = u32(columns[k] - first);
                own_values[k - shift] = values[k];
            }
            continue;
        }
        for (u64 row = base + threadIdx.x / 32; row < end; row += WARPS) {
            u64 own = u64(from[row]) - start - before[row], other = before[row];
            for (u64 k = from[row]; k < u64(from[row + 1]); k += 32) {
                const bool has = k + lane_id() < u64(from[row + 1]);
                const u32 column = has ? columns[k + lane_id()] : 0;
                const bool is_own = has && column >= first && column < last;
                const u32 owned = __ballot_sync(ALL, is_own), others = __ballot_sync(ALL, has && !is_own);
                if (is_own) {
                    const u64 to = own + __popc(owned & lanes_below());
                    own_columns[to] = u32(column - first);
                    own_values[to] = values[k + lane_id()];
                } else if (has) {
                    const u64 to = other + __popc(others & lanes_below());
                    other_columns[to] = column;
                    other_values[to] = values[k + lane_id()];
                }
                own += __popc(owned);
                other += __popc(others);
            }
        }
    }
}
