// The transpose of a matrix whose pattern is symmetric: it has the same pattern, and values only change places.
//
// Bytes an entry: column and value read and written, and a look, or a search, in the column's row.
//
// A block takes many entries at once: with a quarter of the threads a block it took up to 1.8 times as long, probably
// because those of neighbouring rows look into the same rows, or into neighbouring ones, and lines of the cache serve
// several.
//
// Constants: VALUE_BYTES (4, 8, 16), OFFSET, THREADS, ITEMS (elements a thread of a tile), AT_ONCE (of them under way),
// TILES (of index.cu that are one here).
#include "tile_segments.cuh"

typedef unsigned_of<VALUE_BYTES>::type V;
typedef OFFSET I;

struct Pattern {
    const I* offsets;
    const u32* columns;
    u64 n;
    const u64* starts; // as in index.cu
};

// Entry (i, j) gets the value of entry (j, i). Where rows i and j have the same distances, as inside of a grid, that
// lies as far from the end of row j as (i, j) from the start of row i: a thread looks there for AT_ONCE entries at a
// time, and where it is not, halves what that look leaves of the row until it meets it. *missing becomes 1 where it is
// nowhere; then all of this was in vain.
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
            seen[u] = ~row[u]; // of an empty row
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
        // Not with the looks: those that miss would fetch values for nothing.
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
    // Once a block: stores to one word queue up.
    if (__syncthreads_or(lacks) && threadIdx.x == 0) *missing = 1;
    if constexpr (COUNT) {
        searched = warp_sum(searched);
        if (lane_id() == 0) atomicAdd(steps, searched);
    }
}

// A block a tile.
extern "C" __global__ void __launch_bounds__(THREADS)
    mirror(const I* offsets, const u32* columns, const V* values, u64 n, const u64* starts, u32* to_columns, V* to_values, u32* missing) {
    mirror_tile<false>({offsets, columns, n, starts}, values, blockIdx.x, to_columns, to_values, missing, nullptr);
}

// Tiles that are `apart`, all of them full. Adds to *steps those of searching, once for a row that several lanes
// search: it is near them then.
extern "C" __global__ void __launch_bounds__(THREADS)
    mirror_few(const I* offsets, const u32* columns, const V* values, u64 n, const u64* starts, u64 apart, u32* to_columns,
               V* to_values, u32* missing, u32* steps) {
    mirror_tile<true>({offsets, columns, n, starts}, values, blockIdx.x * apart, to_columns, to_values, missing, steps);
}
