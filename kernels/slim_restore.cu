// From the slim format back to CSR: how long the rows are, then their entries. Every bit is as it was.
//
// A warp takes a section, a thread a row, as in slim.cu; of lines (kinds of rows with values) a thread takes a row to tell its
// length, and an entry to write it.
//
// Constants: VALUE (the matrix's values), STORED (values as stored), OFFSET (offsets of sections), TARGET (CSR's offsets),
// COLUMNS, VALUES, LINES (1 where kinds hold values, and nothing else is stored), THREADS, ITEMS (elements a thread of a tile).
#include "slim.cuh"
#include "tile_segments.cuh"

typedef VALUE V;
typedef STORED S;
typedef OFFSET I;
typedef TARGET O;

// entry(k, column, value) for the entries of the row at a place.
template <typename F>
DEVICE void each(u64 place, u32 row, const u8* kind_of, const u32* starts, const u32* distances, const I* offsets, const u32* bases, const u32* words, const V* numbers, const I* entries,
                 const S* values, F entry) {
    const u64 section = place / 32, lane = place % 32;
    if (LINES) {
        const u32 start = starts[kind_of[row]], end = starts[kind_of[row] + 1];
        for (u32 k = start; k < end; k++) entry(k - start, row + distances[k], numbers[k]);
        return;
    }
    const u64 first = entries[section], word = offsets[section];
    const u32 width = u32(u64(entries[section + 1]) - first) / 32, quads = (width + 3) / 4;
    if (quads == 0) return;
    const u32 stride = u32(u64(offsets[section + 1]) - word) / (32 * quads), of_columns = stride - (VALUES == SLIM_CODES);
    const u32 start = COLUMNS == SLIM_KINDS ? starts[kind_of[row]] : 0;
    const u32 length = COLUMNS == SLIM_KINDS ? starts[kind_of[row] + 1] - start : width;
    for (u32 k = 0; k < length; k++) {
        const u32* mine = words + word + u64(k / 4) * stride * 32 + lane;
        u32 column;
        if (COLUMNS == SLIM_KINDS) {
            column = row + distances[start + k];
        } else if (COLUMNS == SLIM_CODES) {
            const u32 code = mine[0] >> (8 * (k % 4)) & 255;
            if (code == 255) break;
            column = row + distances[code];
        } else if (of_columns == 2) {
            const u32 code = mine[k % 4 / 2 * 32] >> (16 * (k % 2)) & 65535;
            if (code == 65535) break;
            column = bases[section] + row + code;
        } else {
            column = mine[k % 4 * 32];
            if (column == ~0u) break;
        }
        if (VALUES == SLIM_CODES) entry(k, column, numbers[mine[of_columns * 32] >> (8 * (k % 4)) & 255]);
        else entry(k, column, widened<V>(values[first + u64(k) * 32 + lane]));
    }
}

#define ARGUMENTS                                                                                                                                                                                       \
    u64 rows, const u32 *order, const u8 *kind_of, const u32 *starts, const u32 *distances, const I *offsets, const u32 *bases, const u32 *words, const V *numbers, const I *entries, const S *values
#define PASSED kind_of, starts, distances, offsets, bases, words, numbers, entries, values

extern "C" __global__ void __launch_bounds__(THREADS) slim_lengths(ARGUMENTS, u32* lengths) {
    for (u64 place = u64(blockIdx.x) * THREADS + threadIdx.x; place < rows; place += u64(gridDim.x) * THREADS) {
        const u32 row = order ? order[place] : u32(place);
        u32 length = 0;
        each(place, row, PASSED, [&](u32, u32, V) { length++; });
        lengths[row] = length;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) slim_to_csr(ARGUMENTS, const O* to, u32* columns, V* to_values) {
    for (u64 place = u64(blockIdx.x) * THREADS + threadIdx.x; place < rows; place += u64(gridDim.x) * THREADS) {
        const u32 row = order ? order[place] : u32(place);
        const u64 start = to[row];
        each(place, row, PASSED, [&](u32 k, u32 column, V value) {
            columns[start + k] = column;
            to_values[start + k] = value;
        });
    }
}

// A block a tile of the entries; `starts_of_tiles` as in index.cu.
extern "C" __global__ void __launch_bounds__(THREADS)
    lines_to_csr(const u8* kind_of, const u32* starts, const u32* distances, const V* numbers, const O* to, u64 n, const u64* starts_of_tiles, u32* columns, V* values) {
    __shared__ TileSegments tile;
    const u64 first = u64(blockIdx.x) * TILE, begin = starts_of_tiles[blockIdx.x];
    const u32 have = u32(min(u64(TILE), n - first));
    mark_segments(to, begin, starts_of_tiles[blockIdx.x + 1], first, have, tile);
#pragma unroll 4
    for (u32 i = threadIdx.x; i < have; i += THREADS) {
        const u64 row = begin + tile.segment[i];
        const u32 at = starts[kind_of[row]] + u32(first + i - to[row]);
        columns[first + i] = u32(row) + distances[at];
        values[first + i] = numbers[at];
    }
}

// Lengths and entries of the long rows, a block a row.
extern "C" __global__ void __launch_bounds__(THREADS) long_lengths(const u32* long_rows, const I* starts, u32* lengths) {
    if (threadIdx.x == 0) lengths[long_rows[blockIdx.x]] = u32(starts[blockIdx.x + 1] - starts[blockIdx.x]);
}
extern "C" __global__ void __launch_bounds__(THREADS)
    long_to_csr(const u32* long_rows, const I* starts, const u32* from_columns, const V* from_values, const O* to, u32* columns, V* values) {
    const u64 start = starts[blockIdx.x], length = starts[blockIdx.x + 1] - start, target = to[long_rows[blockIdx.x]];
    for (u64 k = threadIdx.x; k < length; k += THREADS) {
        columns[target + k] = from_columns[start + k];
        values[target + k] = from_values[start + k];
    }
}
