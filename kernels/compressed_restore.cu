// From the compressed format back to CSR: the lengths of the rows, then their entries. Every bit is restored.
//
// A warp takes a section, or a part of its columns (compressed_turn.cuh), with one thread per row, as in compressed.cu;
// for lines (kinds of rows with values) a thread takes one entry. The length of a row is found by bisection: its
// entries come before the code for no entry.
//
// Constants: VALUE (the matrix's values), STORED (values as stored), OFFSET (offsets of sections), TARGET (CSR's
// offsets), COLUMNS, VALUES, LINES (1 if kinds include values, and nothing else is stored), THREADS, ITEMS (elements
// per thread of a tile).
#include "tile_segments.cuh"

typedef VALUE V;
typedef STORED S;
typedef OFFSET I;
typedef TARGET O;
#include "compressed_turn.cuh"

// The column code for no entry, given the number of words per quad; all entries of a row come before it.
DEVICE u32 no_entry(u32 of_columns) { return of_columns == 1 ? 255 : of_columns == 2 ? 65535 : ~0u; }

// A lane's view of a section's quads.
struct Section {
    const u32* words;
    u64 first;
    u32 width, quads, stride, of_columns;
    DEVICE const u32* quad(u32 q) const { return words + u64(q) * stride * 32; }
    // The code of entry j of a quad's four; columns given by kinds have none.
    DEVICE u32 code(const u32* quad, u32 j) const {
        if (of_columns == 1) return quad[0] >> (8 * j) & 255;
        if (of_columns == 2) return quad[j / 2 * 32] >> (16 * (j % 2)) & 65535;
        return quad[j * 32];
    }
    // Number of entries of the lane's row, if columns have codes.
    DEVICE u32 length() const {
        u32 low = 0, high = width;
        while (low < high) {
            const u32 k = low + (high - low) / 2;
            if (code(quad(k / 4), k % 4) != no_entry(of_columns)) low = k + 1;
            else high = k;
        }
        return low;
    }
};
DEVICE Section section_of(u64 place, const I* offsets, const u32* words, const I* entries) {
    const u64 section = place / 32, first = entries[section], word = offsets[section];
    const u32 width = u32(u64(entries[section + 1]) - first) / 32, quads = (width + 3) / 4;
    const u32 stride = quads ? u32(u64(offsets[section + 1]) - word) / (32 * quads) : 0;
    return {words + word + place % 32, first + place % 32, width, quads, stride, stride - (VALUES == COMPRESSED_CODES)};
}

#define ARGUMENTS                                                                                                                                                                                       \
    u64 rows, const u8 *order, const u8 *kind_of, const u32 *starts, const u32 *distances, const I *offsets, const u32 *bases, const u32 *words, const V *numbers, const I *entries, const S *values

// One thread per row.
extern "C" __global__ void __launch_bounds__(THREADS) compressed_lengths(ARGUMENTS, u32* lengths) {
    const u64 place = u64(blockIdx.x) * THREADS + threadIdx.x;
    if (place >= rows) return;
    const u32 row = u32(row_at(order, place));
    if (COLUMNS == COMPRESSED_KINDS) lengths[row] = starts[kind_of[row] + 1] - starts[kind_of[row]];
    else lengths[row] = section_of(place, offsets, words, entries).length();
}

// `splits` warps per section, each with every `splits`-th of the pieces that are transposed.
extern "C" __global__ void __launch_bounds__(THREADS) compressed_to_csr(ARGUMENTS, const O* to, u32 splits, u32* columns, V* to_values) {
    const u64 warp = (u64(blockIdx.x) * THREADS + threadIdx.x) / 32, place = warp / splits * 32 + lane_id();
    if (place - lane_id() >= rows) return;
    Turned& turned = turned_by_warp();
    const bool here = place < rows;
    const u32 row = here ? u32(row_at(order, place)) : 0;
    const Section mine = section_of(place, offsets, words, entries);
    const u64 start = to[row];
    // The entries of a row that is longer than its section are stored elsewhere.
    const u32 all = here ? u32(u64(to[u64(row) + 1]) - start) : 0, length = all > mine.width ? 0 : all, most = most_of_lanes(length);
    const u32 kind_start = COLUMNS == COMPRESSED_KINDS && here ? starts[kind_of[row]] : 0;
    const bool near = COLUMNS == COMPRESSED_WIDE && mine.of_columns == 2;
    const uint4 base = near ? reinterpret_cast<const uint4*>(bases)[place / 32] : uint4();
    for (u32 first = u32(warp % splits) * TURNED; first < most; first += splits * TURNED) {
#pragma unroll
        for (u32 j = 0; j < TURNED; j++) {
            const u32 k = first + j;
            if (k >= length) break;
            const u32* quad = mine.quad(k / 4);
            u32 column;
            if (COLUMNS == COMPRESSED_KINDS) {
                column = row + distances[kind_start + k];
            } else {
                const u32 code = mine.code(quad, j % 4);
                column = COLUMNS == COMPRESSED_CODES ? row + distances[code] : near ? row + base_of(base, code) + code : code;
            }
            turned.columns[lane_id()][j] = column;
            if (VALUES == COMPRESSED_CODES) turned.values[lane_id()][j] = numbers[quad[mine.of_columns * 32] >> (8 * (j % 4)) & 255];
            else turned.values[lane_id()][j] = widened<V>(values[mine.first + u64(k) * 32]);
        }
        __syncwarp();
        along_rows(start, length, first, [&](u32 from, u32 j, u64 at) {
            columns[at] = turned.columns[from][j];
            to_values[at] = turned.values[from][j];
        });
        __syncwarp();
    }
}

// One block per tile of entries; `starts_of_tiles` as in index.cu.
extern "C" __global__ void __launch_bounds__(THREADS)
    lines_to_csr(const u8* kind_of, const u32* starts, const u32* distances, const V* numbers, const O* to, u64 n, const u64* starts_of_tiles, u32* columns, V* values) {
    each_element(to, n, starts_of_tiles, [&](u64 row, u64 k, u64 entry) {
        const u32 at = starts[kind_of[row]] + u32(k);
        columns[entry] = u32(row) + distances[at];
        values[entry] = numbers[at];
    });
}

// The lengths of the long rows, one thread per row, and their entries by tiles.
extern "C" __global__ void __launch_bounds__(THREADS) long_lengths(u64 n, const u32* long_rows, const I* starts, u32* lengths) {
    const u64 number = u64(blockIdx.x) * THREADS + threadIdx.x;
    if (number < n) lengths[long_rows[number]] = u32(starts[number + 1] - starts[number]);
}
extern "C" __global__ void __launch_bounds__(THREADS)
    long_to_csr(const u32* long_rows, const I* from, u64 n, const u64* starts, const u32* from_columns, const V* from_values, const O* to, u32* columns, V* values) {
    each_element(from, n, starts, [&](u64 number, u64 k, u64 at) {
        const u64 target = to[long_rows[number]] + k;
        columns[target] = from_columns[at];
        values[target] = from_values[at];
    });
}
