// The transpose of a matrix whose pattern is symmetric: it has the same pattern, and values only change places.
//
// Bytes an entry: column and value read and written, and a look, or a search, in the column's row.
//
// Constants: VALUE_BYTES (4, 8, 16), OFFSET, THREADS, ITEMS (elements a thread of a tile), AT_ONCE (of them under way).
#include "tile_segments.cuh"

typedef unsigned_of<VALUE_BYTES>::type V;
typedef OFFSET I;

// Entry (i, j) gets the value of entry (j, i). Where rows i and j have the same distances, as inside of a grid, that lies as
// far from the end of row j as (i, j) from the start of row i: a thread looks there for AT_ONCE entries at a time, and
// searches the row where it is not. missing[0] becomes 1 where it is nowhere; then all of this was in vain. `steps`, unless it is
// null, counts those of searching. A block a tile; `starts` as in index.cu.
extern "C" __global__ void __launch_bounds__(THREADS)
    mirror(const I* offsets, const u32* columns, const V* values, u64 n, const u64* starts, u32* to_columns, V* to_values, u32* missing, u32* steps) {
    __shared__ TileSegments tile;
    if (__syncthreads_or(*static_cast<volatile u32*>(missing))) return;
    const u64 first = u64(blockIdx.x) * TILE, begin = starts[blockIdx.x];
    const u32 have = u32(min(u64(TILE), n - first));
    mark_segments(offsets, begin, starts[blockIdx.x + 1], first, have, tile);
    u32 searched = 0;
    bool lacks = false;
    for (u32 i = threadIdx.x; i < have; i += THREADS * AT_ONCE) {
        u32 row[AT_ONCE], column[AT_ONCE], seen[AT_ONCE];
        I low[AT_ONCE], end[AT_ONCE], place[AT_ONCE];
        V value[AT_ONCE];
        bool here[AT_ONCE], within[AT_ONCE];
#pragma unroll
        for (u32 u = 0; u < AT_ONCE; u++) {
            here[u] = i + u * THREADS < have;
            row[u] = here[u] ? u32(begin + tile.segment[i + u * THREADS]) : 0;
            column[u] = here[u] ? columns[first + i + u * THREADS] : 0;
        }
#pragma unroll
        for (u32 u = 0; u < AT_ONCE; u++) {
            low[u] = offsets[column[u]];
            end[u] = offsets[u64(column[u]) + 1];
            place[u] = I(first + i + u * THREADS) - offsets[row[u]];
        }
#pragma unroll
        for (u32 u = 0; u < AT_ONCE; u++) {
            within[u] = here[u] && place[u] < end[u] - low[u];
            place[u] = end[u] - 1 - place[u];
            if (within[u]) {
                seen[u] = columns[place[u]];
                value[u] = values[place[u]];
            }
        }
#pragma unroll
        for (u32 u = 0; u < AT_ONCE; u++) {
            if (!here[u]) continue;
            if (!within[u] || seen[u] != row[u]) {
                I at = low[u];
                for (I high = end[u]; at < high; searched++) {
                    const I middle = at + (high - at) / 2;
                    if (columns[middle] < row[u]) at = middle + 1;
                    else high = middle;
                }
                if (at == end[u] || columns[at] != row[u]) {
                    lacks = true;
                    continue;
                }
                value[u] = values[at];
            }
            to_columns[first + i + u * THREADS] = column[u];
            to_values[first + i + u * THREADS] = value[u];
        }
    }
    // Once a block: stores to one word queue up.
    if (__syncthreads_or(lacks) && threadIdx.x == 0) *missing = 1;
    if (!steps) return;
    searched = warp_sum(searched);
    if (lane_id() == 0) atomicAdd(steps, searched);
}
