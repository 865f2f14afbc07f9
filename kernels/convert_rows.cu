// CSR to and from the formats that are stored column by column: ELL, JDS, SELL. For the matrix
//
//     | 1 . 7 . |      CSR                 ELL                     JDS                      SELL, C = 2, sigma = 4
//     | . . 8 . |      0 2 | 2 | 1 2 | 0 3   0 2 1 0 | 2 * 2 3       0 1 0 2 | 2 2 3          0 1 2 2 | 0 2 3 *
//     | . 4 3 . |      row after row       column after column     order 0 2 3 1            order 0 2 | 3 1
//     | 2 . . 1 |
//
// One format is contiguous along rows, the other along positions (rows in the format's order), so entries are
// transposed in shared memory. A warp takes 32 positions and LANES columns at a time. For CSR, 32 / LANES rows are read
// or written at once, with LANES neighbouring entries of each; for the other format, 32 neighbouring positions of one
// column. LANES depends on the mean row length. If there are few rows, the columns of a group are distributed to
// several warps (`splits`).
//
// In JDS all long rows are adjacent, and one row may be as long as all others together. Therefore only the first `near`
// diagonals are transposed in tiles; later ones have few positions each, and their entries are distributed one by one
// to the first `far` blocks. In SELL one long row makes its section as wide, and the warps of a separate kernel share
// the columns from `near` on.
//
// Bytes per entry: index and value read once and written once. Padding is written too: value 0, and index 0 or, in
// SELL, the column that marks padding for products.
//
// Constants: VALUE_BYTES (4, 8, 16), OFFSET (of CSR) and STARTS (of sections or diagonals; u32 or u64), THREADS, LANES
// (4, 8, 16).
#include "common.cuh"

typedef unsigned_of<VALUE_BYTES>::type V;
typedef OFFSET I;
typedef STARTS J;
#define WARPS (THREADS / 32)
#define ROWS_AT_ONCE (32 / LANES)

struct Csr {
    u64 rows;
    const I* offsets;
    u32* columns;
    V* values;
};

struct Tile {
    // One place more than LANES, so that neighbouring rows start in different banks.
    u32 columns[32][LANES + 1];
    V values[32][LANES + 1];
};

// ---- the place of entry k of a position, and how many places the position has --------------------------------------

struct Ell {
    static constexpr u32 COLUMN_OF_PADDING = 0;
    u64 rows;
    u32 width;
    u64 p;
    DEVICE u32 places(u64 position) {
        p = position;
        return position < rows ? width : 0;
    }
    DEVICE u64 at(u32 k) const { return k * rows + p; }
};
struct Jds {
    static constexpr u32 COLUMN_OF_PADDING = 0;
    const J* diagonals;
    u64 p;
    DEVICE u32 places(u64 position, u32 length) {
        p = position;
        return length;
    }
    DEVICE u64 at(u32 k) const { return u64(diagonals[k]) + p; }
};
struct Sell {
    static constexpr u32 COLUMN_OF_PADDING = PADDING;
    const J* sections;
    u64 count, height;
    u64 start;
    DEVICE u32 places(u64 position) {
        const u64 section = position / height;
        if (section >= count) return 0;
        const u64 first = sections[section];
        start = first + position % height;
        return u32((u64(sections[section + 1]) - first) / height);
    }
    DEVICE u64 at(u32 k) const { return start + k * height; }
};
DEVICE u32 places_of(Ell& to, u64 position, u32) { return to.places(position); }
DEVICE u32 places_of(Jds& to, u64 position, u32 length) { return to.places(position, length); }
DEVICE u32 places_of(Sell& to, u64 position, u32) { return to.places(position); }

// ---- both directions -----------------------------------------------------------------------------------------------

struct Line {
    I start;
    u32 length;
};

// The row of CSR at a position.
DEVICE Line line_of(const Csr& a, const u32* order, u64 position) {
    if (position >= a.rows) return {0, 0};
    const u64 row = order ? u64(order[position]) : position;
    const I start = a.offsets[row];
    return {start, u32(a.offsets[row + 1] - start)};
}

// Calls move(row of the tile, column of the tile, place in CSR) for each of the LANES entries from `first` on of the
// warp's rows.
template <typename Move> DEVICE void along_rows(Line line, u32 first, Move move) {
    const u32 lane = lane_id(), k = first + lane % LANES;
#pragma unroll 4
    for (u32 i = 0; i < LANES; i++) {
        const u32 from = i * ROWS_AT_ONCE + lane / LANES;
        const I start = shuffle(line.start, from);
        const u32 length = __shfl_sync(ALL, line.length, from);
        if (k < length) move(from, lane % LANES, u64(start) + k);
    }
}

// How JDS and SELL split their columns (diagonals in JDS): the first `near` are transposed in tiles. The entries of the
// others are left, in JDS, to the first `blocks` blocks, and in SELL to another kernel (`blocks` is 0). ELL has NONE.
struct Far {
    u32 near, blocks;
};
static constexpr Far NONE = {~0u, 0};

DEVICE Tile& tile_of_warp() {
    __shared__ Tile tiles[WARPS];
    return tiles[threadIdx.x / 32];
}

// Transposes the columns of a warp's positions from `first` on, and then at every `step` columns, as long as these are
// below `most`. `places`: the number of places of the lane's row.
template <bool FROM_CSR, typename Layout>
DEVICE void turn_columns(Csr a, Line line, u32 places, Layout layout, u32* columns, V* values, u64 first_column, u32 most, u64 step) {
    Tile& tile = tile_of_warp();
    const u32 lane = lane_id();
    for (u64 start = first_column; start < most; start += step) {
        const u32 first = u32(start);
        if (FROM_CSR) {
            along_rows(line, first, [&](u32 row, u32 k, u64 at) {
                tile.columns[row][k] = a.columns[at];
                tile.values[row][k] = a.values[at];
            });
            __syncwarp();
#pragma unroll 4
            for (u32 j = 0; j < LANES; j++) {
                const u32 k = first + j;
                if (k >= places || k >= most) break;
                const u64 at = layout.at(k);
                const bool entry = k < line.length;
                columns[at] = entry ? tile.columns[lane][j] : Layout::COLUMN_OF_PADDING;
                values[at] = entry ? tile.values[lane][j] : V();
            }
        } else {
#pragma unroll 4
            for (u32 j = 0; j < LANES; j++) {
                const u32 k = first + j;
                if (k >= line.length || k >= most) break;
                const u64 at = layout.at(k);
                tile.columns[lane][j] = columns[at];
                tile.values[lane][j] = values[at];
            }
            __syncwarp();
            along_rows(line, first, [&](u32 row, u32 k, u64 at) {
                if (first + k >= most) return;
                a.columns[at] = tile.columns[row][k];
                a.values[at] = tile.values[row][k];
            });
        }
        __syncwarp();
    }
}

template <typename Layout, bool FROM_CSR>
DEVICE void turn_over(Csr a, const u32* order, Layout layout, u32* columns, V* values, u64 positions, u32 splits, Far far = NONE) {
    const u64 warp = u64(blockIdx.x - far.blocks) * WARPS + threadIdx.x / 32;
    const u64 position = warp / splits * 32 + lane_id();
    if (position - lane_id() >= positions) return;
    Line line = line_of(a, order, position);
    const u32 places = places_of(layout, position, line.length);
    // In the hybrid format a row may be longer than its part in ELL.
    if (!FROM_CSR) line.length = min(line.length, places);
    const u32 most = min(far.near, most_of_lanes(FROM_CSR ? places : line.length));
    turn_columns<FROM_CSR>(a, line, places, layout, columns, values, warp % splits * LANES, most, u64(splits) * LANES);
}

// Entries of the diagonals from `near` on, one per thread; no diagonal is empty.
template <bool FROM_CSR> DEVICE void far_entries(Csr a, const u32* order, const J* diagonals, u64 count, Far far, u32* columns, V* values) {
    const u64 end = diagonals[count], first = u64(diagonals[far.near]) + u64(blockIdx.x) * THREADS + threadIdx.x;
    for (u64 entry = first; entry < end; entry += u64(far.blocks) * THREADS) {
        u64 low = far.near, high = count;
        while (low + 1 < high) {
            const u64 k = low + (high - low) / 2;
            if (u64(diagonals[k]) <= entry) low = k;
            else high = k;
        }
        const u64 at = u64(a.offsets[order[entry - u64(diagonals[low])]]) + low;
        if (FROM_CSR) columns[entry] = a.columns[at], values[entry] = a.values[at];
        else a.columns[at] = columns[entry], a.values[at] = values[entry];
    }
}

// Returns the last section that starts at `place` or before. Called by a whole warp.
DEVICE u64 section_by_warp(const Sell& to, u64 place) {
    u64 low = 0, high = to.count;
    while (low + 1 < high) {
        const u64 step = (high - low + 31) / 32, probe = low + lane_id() * step;
        const u32 ok = __ballot_sync(ALL, probe < high && u64(to.sections[probe]) <= place);
        low += (__popc(ok) - 1) * step;
        high = min(low + step, high);
    }
    return low;
}

// Transposes the columns from `near` on. The columns of all sections are numbered one after another; a warp takes
// `share` of them, a multiple of LANES, and searches for those from `near` on.
template <bool FROM_CSR> DEVICE void far_columns(Csr a, const u32* order, Sell to, u32 near, u32 share, u32* columns, V* values) {
    const u64 warp = u64(blockIdx.x) * WARPS + threadIdx.x / 32, begin = warp * share * to.height, end = begin + share * to.height;
    if (begin >= u64(to.sections[to.count])) return;
    bool more = true;
    for (u64 base = section_by_warp(to, begin); more; base += 32) {
        const u64 section = base + lane_id();
        const u64 first = section < to.count ? u64(to.sections[section]) : end,
                  behind = section < to.count ? u64(to.sections[section + 1]) : end;
        const bool wide = first < end && behind > max(first + near * to.height, begin);
        more = __all_sync(ALL, first < end);
        for (u32 left = __ballot_sync(ALL, wide); left; left &= left - 1) {
            const u32 from = __ffs(left) - 1;
            const u64 start = shuffle(first, from), last = shuffle(behind, from);
            const u32 low = max(near, u32((max(begin, start) - start) / to.height)), high = u32((min(end, last) - start) / to.height);
            for (u64 row = lane_id(); row - lane_id() < to.height; row += 32) {
                const u64 position = (base + from) * to.height + row;
                const bool here = row < to.height;
                const u32 places = here ? to.places(position) : 0;
                const Line line = here ? line_of(a, order, position) : Line{0, 0};
                turn_columns<FROM_CSR>(a, line, places, to, columns, values, low,
                                       FROM_CSR ? high : min(high, most_of_lanes(line.length)), LANES);
            }
        }
    }
}

// ---- one kernel per format and direction: CSR's arguments first, then the format's ---------------------------------

#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS)

KERNEL csr_to_ell(u64 rows, const I* offsets, u32* from_columns, V* from_values, u32 width, u32* columns, V* values, u32 splits) {
    turn_over<Ell, true>({rows, offsets, from_columns, from_values}, nullptr, {rows, width}, columns, values, rows, splits);
}
KERNEL ell_to_csr(u64 rows, const I* offsets, u32* to_columns, V* to_values, u32 width, u32* columns, V* values, u32 splits) {
    turn_over<Ell, false>({rows, offsets, to_columns, to_values}, nullptr, {rows, width}, columns, values, rows, splits);
}
KERNEL csr_to_jds(u64 rows, const I* offsets, u32* from_columns, V* from_values, const u32* order, const J* diagonals, u64 count,
                  u32* columns, V* values, u32 splits, u32 near, u32 far) {
    const Csr a = {rows, offsets, from_columns, from_values};
    if (blockIdx.x < far) far_entries<true>(a, order, diagonals, count, {near, far}, columns, values);
    else turn_over<Jds, true>(a, order, {diagonals}, columns, values, rows, splits, {near, far});
}
KERNEL jds_to_csr(u64 rows, const I* offsets, u32* to_columns, V* to_values, const u32* order, const J* diagonals, u64 count,
                  u32* columns, V* values, u32 splits, u32 near, u32 far) {
    const Csr a = {rows, offsets, to_columns, to_values};
    if (blockIdx.x < far) far_entries<false>(a, order, diagonals, count, {near, far}, columns, values);
    else turn_over<Jds, false>(a, order, {diagonals}, columns, values, rows, splits, {near, far});
}
// `order` is null if rows keep their order. One kernel for columns below `near`, and one for the others.
KERNEL csr_to_sell(u64 rows, const I* offsets, u32* from_columns, V* from_values, const u32* order, const J* sections, u64 count,
                   u64 height, u32* columns, V* values, u32 splits, u32 near) {
    turn_over<Sell, true>({rows, offsets, from_columns, from_values}, order, {sections, count, height}, columns, values,
                          count * height, splits, {near, 0});
}
KERNEL csr_to_sell_far(u64 rows, const I* offsets, u32* from_columns, V* from_values, const u32* order, const J* sections,
                       u64 count, u64 height, u32* columns, V* values, u32 near, u32 share) {
    far_columns<true>({rows, offsets, from_columns, from_values}, order, {sections, count, height}, near, share, columns, values);
}
KERNEL sell_to_csr(u64 rows, const I* offsets, u32* to_columns, V* to_values, const u32* order, const J* sections, u64 count,
                   u64 height, u32* columns, V* values, u32 splits, u32 near) {
    turn_over<Sell, false>({rows, offsets, to_columns, to_values}, order, {sections, count, height}, columns, values, rows,
                           splits, {near, 0});
}
KERNEL sell_to_csr_far(u64 rows, const I* offsets, u32* to_columns, V* to_values, const u32* order, const J* sections, u64 count,
                       u64 height, u32* columns, V* values, u32 near, u32 share) {
    far_columns<false>({rows, offsets, to_columns, to_values}, order, {sections, count, height}, near, share, columns, values);
}
