// Parts of rows copied to other offsets: the part of the hybrid format beyond its width, and rows put together again.
//
//     rows      a b c | d | e f g h        skip 2       tails  c | | g h
//     heads     a b | d | e f              appended     a b c | d | e f g h
//
// Every thread copies one element of the tails, whose row the block finds in its tile (tile_segments.cuh), so that a
// giant row among short ones is shared by all blocks. `starts` has the row in which each tile starts (index.cu, whose
// tiles are the same). Heads are moved by convert_rows.cu.
//
// Bytes per entry: index and value read once and written once.
//
// Constants: VALUE_BYTES (4, 8, 16), OFFSET (of whole rows, and of the target of `tails`), HEADS and TAILS (u32 or
// u64), THREADS, ITEMS.
#include "tile_segments.cuh"

typedef unsigned_of<VALUE_BYTES>::type V;
#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS)

// Entry k of a target's row is entry skip + k of the source's.
KERNEL tails(const TAILS* from, u64 skip, const u32* from_columns, const V* from_values, const OFFSET* offsets, u64 n,
             const u64* starts, u32* rows, u32* columns, V* values) {
    each_element(offsets, n, starts, [&](u64 row, u64 k, u64 to) {
        const u64 at = u64(from[row]) + skip + k;
        rows[to] = u32(row);
        columns[to] = from_columns[at];
        values[to] = from_values[at];
    });
}

// The inverse: entry k of a tail is appended to the target's row. `starts` is that of the tails' tiles.
KERNEL append(const TAILS* tails, const u32* tail_columns, const V* tail_values, const OFFSET* offsets, u64 n, const u64* starts,
              u32* columns, V* values) {
    each_element(tails, n, starts, [&](u64 row, u64 k, u64 from) {
        const u64 at = u64(offsets[row + 1]) - (u64(tails[row + 1]) - u64(tails[row])) + k;
        columns[at] = tail_columns[from];
        values[at] = tail_values[from];
    });
}

KERNEL join_offsets(const HEADS* heads, const TAILS* tails, OFFSET* offsets, u64 n) {
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < n; i += u64(gridDim.x) * THREADS)
        offsets[i] = OFFSET(u64(heads[i]) + u64(tails[i]));
}
