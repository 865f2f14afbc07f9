// Sizes of the compressed format's sections of 32 rows: how wide each is, where it starts, and the bases of its
// distances (column - row).
//
//     lengths   2 1 4 1 | 3 1 1 1     in order: widths 4 3     by length: widths 4 1, rows 2 4 0 1 | 3 5 6 7
//     (sections of 4, a window of 8)
//
//     compressed_sizes      widths with rows in their order, and from longest to shortest in windows of 256; this order
//     compressed_bases      bases, in the order that the sections will have; for stored columns
//     compressed_offsets    where places and words of each section start, when the storage of columns is known
//     long_rows             numbers and lengths of long rows, from row << 32 | length
//
// Both orders are measured in one pass, and compressed_bases chooses one by itself, so that the host waits once. A
// width has its highest bit set if distances are too far apart for 16 bits (compressed.cuh). Long rows count as empty.
//
// Bytes per row: the offset, and one for the order, written; the offset, the order, and the first and last column,
// read, with a few more columns if these are far apart; 28 per section written.
//
// Constants: OFFSET (CSR's offsets), TARGET (offsets of sections), THREADS (of compressed_offsets; compressed_sizes and
// compressed_bases have 256, long_rows any number).
#include "columns.cuh"
#include "length_order.cuh"
#include "compressed.cuh"

typedef OFFSET I;
typedef TARGET O;

#define WIDE_BIT (1u << 31)
#define SIZES_THREADS 256

// Totals over all sections: widths and quads in order, the same by length, entries without those of long rows, and
// quads of wide sections.
enum : u32 { WIDTHS, QUADS, ORDERED_WIDTHS, ORDERED_QUADS, ENTRIES, WIDE_QUADS };

// One warp per window. Adds to all of `totals` except the last.
extern "C" __global__ void __launch_bounds__(SIZES_THREADS) compressed_sizes(u64 rows, const I* offsets, u32 longest, u32* widths, u32* ordered_widths, u8* order, u64* totals) {
    constexpr u32 ROWS = WINDOW / 32;
    __shared__ LengthOrderOfWarp<ROWS> rooms[SIZES_THREADS / 32];
    __shared__ u64 sums[WIDE_QUADS];
    if (threadIdx.x < WIDE_QUADS) sums[threadIdx.x] = 0;
    __syncthreads();
    LengthOrderOfWarp<ROWS>& room = rooms[threadIdx.x / 32];
    const u64 warps = u64(gridDim.x) * (SIZES_THREADS / 32), sections = (rows + 31) / 32;
    u64 sum[WIDE_QUADS] = {};
    for (u64 window = u64(blockIdx.x) * (SIZES_THREADS / 32) + threadIdx.x / 32; window * WINDOW < rows; window += warps) {
        const u64 first = window * WINDOW;
        u32 length[ROWS];
#pragma unroll
        for (u32 i = 0; i < ROWS; i++) {
            const u64 row = first + 32 * i + lane_id(), entries = row < rows ? u64(offsets[row + 1]) - u64(offsets[row]) : 0;
            length[i] = entries > longest ? 0 : u32(entries);
            sum[ENTRIES] += length[i];
        }
        // Lane i has the sizes of section i.
        u32 width = 0, ordered_width = 0;
#pragma unroll
        for (u32 i = 0; i < ROWS; i++) {
            const u32 most = most_of_lanes(length[i]);
            if (lane_id() == i) width = most;
        }
        order_by_length(room, length);
#pragma unroll
        for (u32 i = 0; i < ROWS; i++) {
            const u32 most = __shfl_sync(ALL, length[i], 0);
            if (lane_id() == i) ordered_width = most;
        }
        if (lane_id() < ROWS && window * ROWS + lane_id() < sections) {
            widths[window * ROWS + lane_id()] = width;
            ordered_widths[window * ROWS + lane_id()] = ordered_width;
        }
        sum[WIDTHS] += width;
        sum[QUADS] += (width + 3) / 4;
        sum[ORDERED_WIDTHS] += ordered_width;
        sum[ORDERED_QUADS] += (ordered_width + 3) / 4;
#pragma unroll
        for (u32 i = 0; i < ROWS; i++) {
            const u32 place = 32 * i + lane_id();
            if (first + place < rows) order[first + place] = room.row_at[place];
        }
    }
#pragma unroll
    for (u32 i = 0; i < WIDE_QUADS; i++) {
        const u64 of_warp = warp_sum(sum[i]);
        if (lane_id() == 0) atomicAdd(&sums[i], of_warp);
    }
    __syncthreads();
    if (threadIdx.x < WIDE_QUADS) atomicAdd(totals + threadIdx.x, sums[threadIdx.x]);
}

// Must give the same result as `wants_order` in src/backend/compressed/found.rs.
DEVICE bool wants_order(u64 rows, const u64* totals) { return rows > 32 && 32 * totals[WIDTHS] - totals[ENTRIES] > totals[ENTRIES] / 20; }

// ---- distances from the least possible one of the window; 32 bits hold them: columns are fewer than 2^32 - 256 ----

// Greater than any distance.
#define NONE (~0u)

// A lane's row: its columns, their number, the number to add to columns to get distances, the first and the last
// distance. `first` is NONE for an empty row.
struct Distances {
    const u32* columns;
    u32 entries, shift, first, last;
};

// Computes the base of the range with the lane's number, for a section whose distances start at `low` and are not close
// to each other; returns whether more than four ranges are needed.
DEVICE bool ranges(u32 low, Distances row, u32& base) {
    u32 next = low, mine = row.first, k = 0;
    for (u32 b = 0; b < BASES; b++) {
        if (lane_id() == b) base = next - (b << 14);
        // The distances of a row that are in no range yet begin at `mine`.
        if (mine != NONE && mine - next < RANGE) {
            if (row.last - next < RANGE) {
                mine = NONE;
            } else {
                k = first_from(row.columns, k + 1, row.entries - 1, next + RANGE - row.shift);
                mine = k == row.entries - 1 ? row.last : row.columns[k] + row.shift;
            }
        }
        next = least_of_lanes(mine);
        if (next == NONE) return false;
    }
    return true;
}

// One warp per section, with rows in the order that `totals` call for. Distances are compared as signed numbers and
// kept modulo 2^32. Sets the bit in the widths of wide sections, and adds to the last of the totals.
extern "C" __global__ void __launch_bounds__(SIZES_THREADS)
    compressed_bases(u64 rows, const u8* order, const I* offsets, const u32* columns, u32 longest, u32* widths, u32* ordered_widths, u32* bases, u64* totals) {
    const bool by_length = wants_order(rows, totals);
    if (by_length) widths = ordered_widths;
    else order = nullptr;
    const u64 warps = u64(gridDim.x) * (SIZES_THREADS / 32);
    u32 wide_quads = 0;
    for (u64 section = u64(blockIdx.x) * (SIZES_THREADS / 32) + threadIdx.x / 32; section * 32 < rows; section += warps) {
        const u64 place = section * 32 + lane_id(), first = place / WINDOW * WINDOW;
        const u64 row = place < rows ? row_at(order, place) : rows, start = offsets[row];
        const u64 length = row < rows ? u64(offsets[row + 1]) - start : 0;
        Distances of_row = {columns + start, length > longest ? 0 : u32(length), WINDOW - 1 - u32(row - first), NONE, 0};
        if (of_row.entries) {
            of_row.first = of_row.columns[0] + of_row.shift;
            of_row.last = of_row.columns[of_row.entries - 1] + of_row.shift;
        }
        const u32 low = least_of_lanes(of_row.first), high = most_of_lanes(of_row.last);
        u32 base = low;
        const bool wide = low != NONE && high - low >= 65535 && ranges(low, of_row, base);
        base = low == NONE ? 0 : base - (WINDOW - 1) - u32(first);
        if (lane_id() < BASES) bases[BASES * section + lane_id()] = base;
        if (wide && lane_id() == 0) {
            const u32 width = widths[section];
            widths[section] = width | WIDE_BIT;
            wide_quads += (width + 3) / 4;
        }
    }
    if (wide_quads) atomicAdd(totals + WIDE_QUADS, u64(wide_quads));
}

// A block takes `each` sections, and first adds up all sections before them. `words` and `wide_words`: words per row
// and quad, for distances that are close and for those that are far.
extern "C" __global__ void __launch_bounds__(THREADS)
    compressed_offsets(u64 sections, u64 each, const u32* widths, u32 words, u32 wide_words, O* place_offsets, O* word_offsets) {
    __shared__ O of_warp[2][THREADS / 32];
    const u32 lane = lane_id(), warp = threadIdx.x / 32;
    const u64 first = u64(blockIdx.x) * each, end = min(first + each, sections);
    // Computed in the type of the offsets, which is wide enough for all of them.
    auto places_of = [&](u32 width) { return O(width & ~WIDE_BIT) * 32; };
    auto words_of = [&](u32 width) { return O(((width & ~WIDE_BIT) + 3) / 4) * 32 * (width & WIDE_BIT ? wide_words : words); };
    // Turns inclusive sums within a warp into those within the block, and computes the block's totals.
    auto up_to_warp = [&](O (&mine)[2], O (&all)[2]) {
        if (lane == 31)
            for (u32 i = 0; i < 2; i++) of_warp[i][warp] = mine[i];
        __syncthreads();
#pragma unroll
        for (u32 i = 0; i < 2; i++) {
            const O upto = warp_inclusive_sum(lane < THREADS / 32 ? of_warp[i][lane] : O(0));
            all[i] = __shfl_sync(ALL, upto, 31);
            mine[i] += __shfl_sync(ALL, upto, warp) - of_warp[i][warp];
        }
        __syncthreads();
    };
    O mine[2] = {0, 0}, before[2], all[2];
    // `each` is a multiple of four.
#pragma unroll 4
    for (u64 s = threadIdx.x; s < first / 4; s += THREADS) {
        const uint4 four = reinterpret_cast<const uint4*>(widths)[s];
        mine[0] += places_of(four.x) + places_of(four.y) + places_of(four.z) + places_of(four.w);
        mine[1] += words_of(four.x) + words_of(four.y) + words_of(four.z) + words_of(four.w);
    }
    for (u32 i = 0; i < 2; i++) mine[i] = warp_inclusive_sum(mine[i]);
    up_to_warp(mine, before);
    for (u64 base = first; base < end; base += THREADS) {
        const u64 s = base + threadIdx.x;
        const u32 width = s < end ? widths[s] : 0;
        const O places = places_of(width), words_here = words_of(width);
        mine[0] = warp_inclusive_sum(places);
        mine[1] = warp_inclusive_sum(words_here);
        up_to_warp(mine, all);
        if (s < end) {
            place_offsets[s] = O(before[0] + mine[0] - places);
            word_offsets[s] = O(before[1] + mine[1] - words_here);
        }
        before[0] += all[0];
        before[1] += all[1];
    }
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) {
        place_offsets[sections] = O(before[0]);
        word_offsets[sections] = O(before[1]);
    }
}

// One thread per long row.
extern "C" __global__ void long_rows(const u64* found, u64 n, u32* rows, u32* lengths) {
    const u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) rows[i] = u32(found[i] >> 32), lengths[i] = u32(found[i]);
}
