// From CSR to CSC. Where the pattern is symmetric, `mirror` moves values only: the transpose has the same pattern.
//
// Else a stretch of entries after another: the caller has sorted a stretch by column, stably, and each column's entries go
// behind what earlier stretches put there.
//
//     columns  0 2 | 2 | 1 2 | 0 3      sorted   0 0 1 2 2 2 3       cursor of each column: where its next entry goes
//                                       sources  0 5 3 1 2 4 6
//
// For a run of equal columns from k on, cursor - k + (place in the stretch) is where an entry goes: run_heads subtracts k,
// place adds its own place, run_tails moves the cursors on.
//
// Bytes an entry: column, source, row and value read (the latter two from anywhere in the stretch), row and value written; columns
// twice more. Of a symmetric pattern: column and value read and written, and a look, or a search, in the column's row.
//
// Constants: VALUE_BYTES (4, 8, 16), OFFSET (of CSR), CURSOR (of columns; u32 or u64), THREADS, ITEMS (elements a thread of a tile), AT_ONCE (of
// them under way).
#include "tile_segments.cuh"

typedef unsigned_of<VALUE_BYTES>::type V;
typedef OFFSET I;
typedef CURSOR C;

#define EACH(i, n) for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < (n); i += u64(gridDim.x) * THREADS)

// The rows of entries first .. first + n. A block a tile.
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

// Sources, rows and values are of this stretch.
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

// Entry (i, j) gets the value of entry (j, i). Where rows i and j have the same distances, as inside of a grid, that lies as
// far from the end of row j as (i, j) from the start of row i: a thread looks there for AT_ONCE entries at a time, and
// searches the row where it is not. missing[0] becomes 1 where it is nowhere; then all of this was in vain. A block a tile;
// `starts` as in index.cu.
extern "C" __global__ void __launch_bounds__(THREADS)
    mirror(const I* offsets, const u32* columns, const V* values, u64 n, const u64* starts, u32* to_columns, V* to_values, u32* missing) {
    __shared__ TileSegments tile;
    if (__syncthreads_or(*static_cast<volatile u32*>(missing))) return;
    const u64 first = u64(blockIdx.x) * TILE, begin = starts[blockIdx.x];
    const u32 have = u32(min(u64(TILE), n - first));
    mark_segments(offsets, begin, starts[blockIdx.x + 1], first, have, tile);
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
                for (I high = end[u]; at < high;) {
                    const I middle = at + (high - at) / 2;
                    if (columns[middle] < row[u]) at = middle + 1;
                    else high = middle;
                }
                if (at == end[u] || columns[at] != row[u]) {
                    *missing = 1;
                    continue;
                }
                value[u] = values[at];
            }
            to_columns[first + i + u * THREADS] = column[u];
            to_values[first + i + u * THREADS] = value[u];
        }
    }
}
