// CSR to and from the layouts that are stored column by column: ELL, JDS, SELL. Of the matrix
//
//     | 1 . 7 . |      CSR                 ELL                     JDS                      SELL, C = 2, sigma = 4
//     | . . 8 . |      0 2 | 2 | 1 2 | 0 3   0 2 1 0 | 2 * 2 3       0 1 0 2 | 2 2 3          0 1 2 2 | 0 2 3 *
//     | . 4 3 . |      row after row       column after column     order 0 2 3 1            order 0 2 | 3 1
//     | 2 . . 1 |
//
// One side lies along rows, the other along positions (rows in the layout's order), so entries are turned over in shared
// memory. A warp takes 32 positions and LANES columns at a time. On the side of CSR, 32 / LANES rows are read or written
// at once, LANES neighbouring entries of each; on the other side the 32 neighbouring positions of one column. LANES goes
// with the mean length of rows. Where there are few rows, the columns of a group are dealt out to several warps
// (`splits`).
//
// In JDS all long rows are neighbours, and one row may be as long as all others together. Only the first `near` diagonals are
// turned over; those behind them have few positions each, and their entries are shared out one by one to the first `far` blocks. In SELL
// a section with one long row is as wide, and the same blocks share out the places of its columns from `near` on.
//
// Bytes an entry: index and value read once and written once. Padding is written too: value 0, and index 0 or what tells the products
// of SELL that it is padding.
//
// Constants: VALUE_BYTES (4, 8, 16), OFFSET (of CSR) and STARTS (of sections or diagonals; u32 or u64), THREADS, LANES (4,
// 8, 16).
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
    // One place more than LANES: neighbouring rows then start in different banks.
    u32 columns[32][LANES + 1];
    V values[32][LANES + 1];
};

// ---- where entry k of a position lies, and how many places the position has ----------------------------------------

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

DEVICE u32 warp_max(u32 x) {
#pragma unroll
    for (u32 with = 16; with; with /= 2) x = max(x, __shfl_xor_sync(ALL, x, with));
    return x;
}

// move(row of the tile, column of the tile, place in CSR) for each of the LANES entries from `first` of the warp's rows.
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

// What ELL has of far columns.
struct Far {
    u32 near, blocks;
};
static constexpr Far NONE = {~0u, 0};

template <typename Layout, bool FROM_CSR>
DEVICE void turn_over(Csr a, const u32* order, Layout layout, u32* columns, V* values, u64 positions, u32 splits, Far far = NONE) {
    __shared__ Tile tiles[WARPS];
    Tile& tile = tiles[threadIdx.x / 32];
    const u32 lane = lane_id();
    const u64 warp = u64(blockIdx.x - far.blocks) * WARPS + threadIdx.x / 32;
    const u64 position = warp / splits * 32 + lane;
    if (position - lane >= positions) return;
    Line line = line_of(a, order, position);
    const u32 places = places_of(layout, position, line.length);
    // A row may be longer than what the layout has of it: hybrid's.
    if (!FROM_CSR) line.length = min(line.length, places);
    const u32 most = min(far.near, warp_max(FROM_CSR ? places : line.length));

    for (u64 start = warp % splits * LANES; start < most; start += u64(splits) * LANES) {
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
                if (k >= places) break;
                const u64 at = layout.at(k);
                const bool entry = k < line.length;
                columns[at] = entry ? tile.columns[lane][j] : Layout::COLUMN_OF_PADDING;
                values[at] = entry ? tile.values[lane][j] : V();
            }
        } else {
#pragma unroll 4
            for (u32 j = 0; j < LANES; j++) {
                const u32 k = first + j;
                if (k >= line.length) break;
                const u64 at = layout.at(k);
                tile.columns[lane][j] = columns[at];
                tile.values[lane][j] = values[at];
            }
            __syncwarp();
            along_rows(line, first, [&](u32 row, u32 k, u64 at) {
                a.columns[at] = tile.columns[row][k];
                a.values[at] = tile.values[row][k];
            });
        }
        __syncwarp();
    }
}

// Entries of diagonals from `near` on, a thread each; no diagonal is empty.
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

// The same of the places in columns from `near` on of sections that are wider, which have at most as many rows as there are threads: a
// thread keeps to one row, so that places written, and read, one after another are neighbours.
template <bool FROM_CSR> DEVICE void far_places(Csr a, const u32* order, Sell to, Far far, u32* columns, V* values) {
    constexpr u32 SCANNED = 8; // sections a thread looks at, at a time
    __shared__ u32 wide[SCANNED * THREADS], found;
    const u64 threads = u64(far.blocks) * THREADS, mine = u64(blockIdx.x) * THREADS + threadIdx.x;
    const u64 at_once = threads / to.height, first = far.near + mine / to.height, row = mine % to.height;
    const u64 near_places = far.near * to.height;
    for (u64 base = 0; base < to.count; base += SCANNED * THREADS) {
        u32 mask = 0;
#pragma unroll
        for (u32 j = 0; j < SCANNED; j++) {
            const u64 section = base + j * THREADS + threadIdx.x;
            if (section < to.count && u64(to.sections[section + 1]) - u64(to.sections[section]) > near_places) mask |= 1u << j;
        }
        if (!__syncthreads_or(mask)) continue;
        if (threadIdx.x == 0) found = 0;
        __syncthreads();
        for (; mask; mask &= mask - 1) wide[atomicAdd(&found, 1u)] = (__ffs(mask) - 1) * THREADS + threadIdx.x;
        __syncthreads();
        for (u32 i = 0; i < found; i++) {
            const u64 position = (base + wide[i]) * to.height + row;
            const u32 places = to.places(position);
            const Line line = line_of(a, order, position);
            const u32 end = FROM_CSR ? places : line.length;
            if (mine >= at_once * to.height) continue;
#pragma unroll 4
            for (u64 k = first; k < end; k += at_once) {
                const u64 at = to.at(u32(k)), from = u64(line.start) + k;
                const bool entry = k < line.length;
                if (FROM_CSR) {
                    columns[at] = entry ? a.columns[from] : PADDING;
                    values[at] = entry ? a.values[from] : V();
                } else {
                    a.columns[from] = columns[at];
                    a.values[from] = values[at];
                }
            }
        }
        __syncthreads();
    }
}

// ---- one kernel a layout and direction: CSR first, then the layout -------------------------------------------------

#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS)

KERNEL csr_to_ell(u64 rows, const I* offsets, u32* from_columns, V* from_values, u32 width, u32* columns, V* values, u32 splits) {
    turn_over<Ell, true>({rows, offsets, from_columns, from_values}, nullptr, {rows, width}, columns, values, rows, splits);
}
KERNEL ell_to_csr(u64 rows, const I* offsets, u32* to_columns, V* to_values, u32 width, u32* columns, V* values, u32 splits) {
    turn_over<Ell, false>({rows, offsets, to_columns, to_values}, nullptr, {rows, width}, columns, values, rows, splits);
}
KERNEL csr_to_jds(u64 rows, const I* offsets, u32* from_columns, V* from_values, const u32* order, const J* diagonals, u64 count, u32* columns, V* values, u32 splits, u32 near, u32 far) {
    const Csr a = {rows, offsets, from_columns, from_values};
    if (blockIdx.x < far) far_entries<true>(a, order, diagonals, count, {near, far}, columns, values);
    else turn_over<Jds, true>(a, order, {diagonals}, columns, values, rows, splits, {near, far});
}
KERNEL jds_to_csr(u64 rows, const I* offsets, u32* to_columns, V* to_values, const u32* order, const J* diagonals, u64 count, u32* columns, V* values, u32 splits, u32 near, u32 far) {
    const Csr a = {rows, offsets, to_columns, to_values};
    if (blockIdx.x < far) far_entries<false>(a, order, diagonals, count, {near, far}, columns, values);
    else turn_over<Jds, false>(a, order, {diagonals}, columns, values, rows, splits, {near, far});
}
// `order` is null where rows keep their order.
KERNEL csr_to_sell(u64 rows, const I* offsets, u32* from_columns, V* from_values, const u32* order, const J* sections, u64 count, u64 height, u32* columns, V* values, u32 splits, u32 near, u32 far) {
    const Csr a = {rows, offsets, from_columns, from_values};
    const Sell to = {sections, count, height};
    if (blockIdx.x < far) far_places<true>(a, order, to, {near, far}, columns, values);
    else turn_over<Sell, true>(a, order, to, columns, values, count * height, splits, {near, far});
}
KERNEL sell_to_csr(u64 rows, const I* offsets, u32* to_columns, V* to_values, const u32* order, const J* sections, u64 count, u64 height, u32* columns, V* values, u32 splits, u32 near, u32 far) {
    const Csr a = {rows, offsets, to_columns, to_values};
    const Sell from = {sections, count, height};
    if (blockIdx.x < far) far_places<false>(a, order, from, {near, far}, columns, values);
    else turn_over<Sell, false>(a, order, from, columns, values, rows, splits, {near, far});
}
