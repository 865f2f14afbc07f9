// The transpose of a matrix whose pattern is symmetric: it has the same pattern, and only values are exchanged.
//
// Bytes per entry: column and value read and written, and one access, or a search, in the column's row.
//
// A block takes many entries at once: with a quarter of the threads per block it took up to 1.8 times as long, probably
// because entries of neighbouring rows read the same rows, or neighbouring ones, and share cache lines.
//
// Constants: VALUE_BYTES (4, 8, 16), OFFSET, THREADS, ITEMS (elements per thread of a tile), AT_ONCE (number of them in
// flight), TILES (of index.cu that make one tile here).
#include "tile_segments.cuh"

typedef unsigned_of<VALUE_BYTES>::type V;
typedef OFFSET I;

struct Pattern {
    const I* offsets;
    const u32* columns;
    u64 n;
    const u64* starts; // as in index.cu
};

// Entry (i, j) gets the value of entry (j, i). If rows i and j have the same distances, as inside a grid, that entry is
// as far from the end of row j as (i, j) is from the start of row i: a thread first reads there, for AT_ONCE entries at
// a time, and if it finds another column, continues by bisection in the remaining part of the row. *missing becomes 1
// if the entry does not exist; the result is then useless.
template <bool COUNT>
DEVICE void mirror_tile(const Pattern& a, const V* values, u64 number, u32* to_columns, V* to_values, u32* missing, u32* steps) {
    __shared__ TileSegments tile;
    if (__syncthreads_or(*static_cast<volatile u32*>(missing))) return;
    const u64 first = number * TILE, begin = a.starts[number * TILES];
    const u64 end_at = min((number + 1) * TILES, (a.n + TILE / TILES - 1) / (TILE / TILES));
    const u32 have = u32(min(u64(TILE), a.n - first));
    mark_segments(a.offsets, begin, a.starts[end_at], first, have, tile);
    u32 searched = 0;
    bool lacks = false;
    for (u32 i = threadIdx.x; i < have; i += THREADS * AT_ONCE) {
        u32 row[AT_ONCE], column[AT_ONCE], seen[AT_ONCE];
        I low[AT_ONCE], end[AT_ONCE], place[AT_ONCE];
        V value[AT_ONCE];
        bool here[AT_ONCE];
#pragma unroll
        for (u32 u = 0; u < AT_ONCE; u++) {
            here[u] = i + u * THREADS < have;
            row[u] = here[u] ? u32(begin + tile.segment[i + u * THREADS]) : 0;
            column[u] = here[u] ? a.columns[first + i + u * THREADS] : 0;
        }
#pragma unroll
        for (u32 u = 0; u < AT_ONCE; u++) {
            low[u] = a.offsets[column[u]];
            end[u] = a.offsets[u64(column[u]) + 1];
            place[u] = I(first + i + u * THREADS) - a.offsets[row[u]];
        }
#pragma unroll
        for (u32 u = 0; u < AT_ONCE; u++) {
            place[u] = place[u] < end[u] - low[u] ? end[u] - 1 - place[u] : low[u];
            seen[u] = ~row[u]; // for an empty row
            if (here[u] && low[u] < end[u]) seen[u] = a.columns[place[u]];
        }
#pragma unroll
        for (u32 u = 0; u < AT_ONCE; u++) {
            u32 taken = 0;
            while (here[u] && seen[u] != row[u]) {
                if (seen[u] < row[u]) low[u] = place[u] + 1;
                else end[u] = place[u];
                if (low[u] >= end[u]) {
                    lacks = true;
                    here[u] = false;
                } else {
                    place[u] = low[u] + (end[u] - low[u]) / 2;
                    seen[u] = a.columns[place[u]];
                    taken++;
                }
            }
            if constexpr (COUNT)
                if (!(__match_any_sync(ALL, column[u]) & lanes_below())) searched += taken;
        }
        // Not loaded together with the columns: for columns that miss, values would be loaded for nothing.
#pragma unroll
        for (u32 u = 0; u < AT_ONCE; u++)
            if (here[u]) value[u] = values[place[u]];
#pragma unroll
        for (u32 u = 0; u < AT_ONCE; u++) {
            if (!here[u]) continue;
            to_columns[first + i + u * THREADS] = column[u];
            to_values[first + i + u * THREADS] = value[u];
        }
    }
    // Once per block, because stores to one word are serialised.
    if (__syncthreads_or(lacks) && threadIdx.x == 0) *missing = 1;
    if constexpr (COUNT) {
        searched = warp_sum(searched);
        if (lane_id() == 0) atomicAdd(steps, searched);
    }
}

// One block per tile.
extern "C" __global__ void __launch_bounds__(THREADS)
    mirror(const I* offsets, const u32* columns, const V* values, u64 n, const u64* starts, u32* to_columns, V* to_values, u32* missing) {
    mirror_tile<false>({offsets, columns, n, starts}, values, blockIdx.x, to_columns, to_values, missing, nullptr);
}

// Processes every `apart`-th tile, all of which are full. Adds the number of search steps to *steps. If several lanes
// search one row, only the steps of one lane count, since the row is then in their caches.
extern "C" __global__ void __launch_bounds__(THREADS)
    mirror_few(const I* offsets, const u32* columns, const V* values, u64 n, const u64* starts, u64 apart, u32* to_columns,
               V* to_values, u32* missing, u32* steps) {
    mirror_tile<true>({offsets, columns, n, starts}, values, blockIdx.x * apart, to_columns, to_values, missing, steps);
}
