// Sizes of the slim format's sections of 32 rows: how wide each is, where it starts, and the bases of its distances (column - row).
//
//     lengths   2 1 4 1 | 3 1 1 1      in order: widths 4 3      by length: widths 4 1, rows 2 4 0 1 | 3 5 6 7      (sections of 4, a window of 8)
//
//     slim_sizes      widths and distances, of rows in their order and of rows from longest to shortest within windows of 256
//     slim_order      the rows in the latter order, each by its number in the window, where it is taken
//     slim_offsets    where places and words of each section start, once it is known how columns and values are held
//     long_rows       numbers and lengths of long rows, from row << 32 | length
//
// Both orders are measured at once, so that the host asks once. A width has the highest bit set where distances are too far apart for
// 16 bits (slim.cuh). Long rows count as empty.
//
// Bytes a row: offset, first and last column read, where these are far apart those around the ends of ranges too; 40 a section written.
//
// Constants: OFFSET (CSR's offsets), TARGET (offsets of sections), THREADS (of slim_offsets; slim_sizes and slim_order have 256, long_rows any number).
#include "columns.cuh"
#include "length_order.cuh"
#include "slim.cuh"

typedef OFFSET I;
typedef TARGET O;

#define WIDE_BIT (1u << 31)

// Farther away than any distance.
#define NONE (1ll << 40)

DEVICE i64 warp_min(i64 a) {
#pragma unroll
    for (u32 with = 16; with; with /= 2) {
        const i64 other = shuffle_xor(a, with);
        a = other < a ? other : a;
    }
    return a;
}

// The base of the range whose number is the lane's, of a section whose distances start at `low` and are not near each other; whether four ranges do
// not hold them. Each lane has its row, the row's columns and the distance of the first, NONE where there is none.
DEVICE bool ranges(i64 low, i64 row, const u32* columns, u32 entries, i64 mine, u32& base) {
    i64 next = low;
    u32 k = 0;
    for (u32 b = 0; b < BASES; b++) {
        if (lane_id() == b) base = u32(next) - (b << 14);
        // Those of a row that are in no range yet begin at `mine`.
        if (mine < next + RANGE) {
            k = first_from(columns, k + 1, entries, row + next + RANGE);
            mine = k < entries ? i64(columns[k]) - row : NONE;
        }
        next = warp_min(mine);
        if (next == NONE) return false;
    }
    return true;
}

// What a lane adds to the totals, and a section's size: a warp calls it, each lane with its row, the row's length, distances and columns.
struct Totals {
    u64 widths, quads, wide_quads;
};
DEVICE void measure(u64 section, u64 row, u32 width, i64 low, i64 high, const u32* columns, u32* widths, u32* bases, Totals& totals) {
    const u32 entries = width;
    const i64 mine = low;
#pragma unroll
    for (u32 with = 16; with; with /= 2) {
        const i64 other_low = shuffle_xor(low, with), other_high = shuffle_xor(high, with);
        const u32 other = shuffle_xor(width, with);
        low = other_low < low ? other_low : low;
        high = other_high > high ? other_high : high;
        width = other > width ? other : width;
    }
    bool wide = high - low >= 65535;
    if (bases) {
        u32 base = u32(low);
        if (wide) wide = ranges(low, i64(row), columns, entries, mine, base);
        if (lane_id() < BASES) bases[BASES * section + lane_id()] = base;
    }
    if (lane_id() == 0) widths[section] = width | (wide ? WIDE_BIT : 0);
    totals.widths += width;
    totals.quads += (width + 3) / 4;
    totals.wide_quads += wide ? (width + 3) / 4 : 0;
}

// A block a window at a time, a warp a section. `columns`, and with it bases, are null where columns are not stored. Distances are compared
// as signed numbers and kept modulo 2^32. Totals of rows in their order and by length are added to `totals`.
extern "C" __global__ void __launch_bounds__(WINDOW)
    slim_sizes(u64 rows, const I* offsets, const u32* columns, u32 longest, u32* widths, u32* bases, u32* ordered_widths, u32* ordered_bases, u64* totals) {
    __shared__ LengthOrder<WINDOW> room;
    __shared__ i64 lows[WINDOW], highs[WINDOW];
    __shared__ u64 starts[WINDOW];
    __shared__ u64 sums[6];
    if (threadIdx.x < 6) sums[threadIdx.x] = 0;
    Totals in_order = {0, 0, 0}, by_length = {0, 0, 0};
    for (u64 first = u64(blockIdx.x) * WINDOW; first < rows; first += u64(gridDim.x) * WINDOW) {
        const u64 place = first + threadIdx.x, start = place < rows ? offsets[place] : 0;
        u64 entries = place < rows ? u64(offsets[place + 1]) - start : 0;
        if (entries > longest) entries = 0;
        i64 low = NONE, high = -NONE;
        if (entries && columns) {
            low = i64(columns[start]) - i64(place);
            high = i64(columns[start + entries - 1]) - i64(place);
        }
        u32 length = u32(entries), row = threadIdx.x;
        // Those of the window before have been read.
        __syncthreads();
        lows[row] = low;
        highs[row] = high;
        starts[row] = start;
        const bool has_section = place / 32 * 32 < rows;
        if (has_section) measure(place / 32, place, length, low, high, columns + start, widths, bases, in_order);
        order_by_length(room, place < rows, length, row);
        if (has_section) measure(place / 32, first + row, length, lows[row], highs[row], columns + starts[row], ordered_widths, ordered_bases, by_length);
    }
    __syncthreads();
    if (lane_id() == 0) {
        atomicAdd(&sums[0], in_order.widths);
        atomicAdd(&sums[1], in_order.quads);
        atomicAdd(&sums[2], in_order.wide_quads);
        atomicAdd(&sums[3], by_length.widths);
        atomicAdd(&sums[4], by_length.quads);
        atomicAdd(&sums[5], by_length.wide_quads);
    }
    __syncthreads();
    if (threadIdx.x < 6) atomicAdd(totals + threadIdx.x, sums[threadIdx.x]);
}

// A block a window.
extern "C" __global__ void __launch_bounds__(WINDOW) slim_order(u64 rows, const I* offsets, u32 longest, u8* order) {
    __shared__ LengthOrder<WINDOW> room;
    const u64 first = u64(blockIdx.x) * WINDOW, place = first + threadIdx.x;
    const u64 entries = place < rows ? u64(offsets[place + 1]) - u64(offsets[place]) : 0;
    u32 length = entries > longest ? 0 : u32(entries), row = threadIdx.x;
    order_by_length(room, place < rows, length, row);
    if (place < rows) order[place] = u8(row);
}

DEVICE u64 warp_upto(u64 value) {
#pragma unroll
    for (u32 by = 1; by < 32; by *= 2) {
        const u64 other = __shfl_up_sync(ALL, value, by);
        if (lane_id() >= by) value += other;
    }
    return value;
}

// A block takes `each` sections, and adds up all before them first. `words` and `wide_words`: words a row and quad, where distances are
// near and where they are far.
extern "C" __global__ void __launch_bounds__(THREADS)
    slim_offsets(u64 sections, u64 each, const u32* widths, u32 words, u32 wide_words, O* place_offsets, O* word_offsets) {
    __shared__ u64 of_warp[2][THREADS / 32];
    const u32 lane = lane_id(), warp = threadIdx.x / 32;
    const u64 first = u64(blockIdx.x) * each, end = min(first + each, sections);
    auto places_of = [&](u32 width) { return u64(width & ~WIDE_BIT) * 32; };
    auto words_of = [&](u32 width) { return u64(((width & ~WIDE_BIT) + 3) / 4) * 32 * (width & WIDE_BIT ? wide_words : words); };
    // Sums of the block up to each thread's values, which become those up to the warps before; and of all.
    auto up_to_warp = [&](u64 (&mine)[2], u64 (&all)[2]) {
        if (lane == 31)
            for (u32 i = 0; i < 2; i++) of_warp[i][warp] = mine[i];
        __syncthreads();
#pragma unroll
        for (u32 i = 0; i < 2; i++) {
            const u64 upto = warp_upto(lane < THREADS / 32 ? of_warp[i][lane] : 0);
            all[i] = __shfl_sync(ALL, upto, 31);
            mine[i] += __shfl_sync(ALL, upto, warp) - of_warp[i][warp];
        }
        __syncthreads();
    };
    u64 mine[2] = {0, 0}, before[2], all[2];
    // `each` is a multiple of four.
#pragma unroll 4
    for (u64 s = threadIdx.x; s < first / 4; s += THREADS) {
        const uint4 four = reinterpret_cast<const uint4*>(widths)[s];
        mine[0] += places_of(four.x) + places_of(four.y) + places_of(four.z) + places_of(four.w);
        mine[1] += words_of(four.x) + words_of(four.y) + words_of(four.z) + words_of(four.w);
    }
    for (u32 i = 0; i < 2; i++) mine[i] = warp_upto(mine[i]);
    up_to_warp(mine, before);
    for (u64 base = first; base < end; base += THREADS) {
        const u64 s = base + threadIdx.x;
        const u32 width = s < end ? widths[s] : 0;
        const u64 places = places_of(width), words_here = words_of(width);
        mine[0] = warp_upto(places);
        mine[1] = warp_upto(words_here);
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

// A thread a long row.
extern "C" __global__ void long_rows(const u64* found, u64 n, u32* rows, u32* lengths) {
    const u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) rows[i] = u32(found[i] >> 32), lengths[i] = u32(found[i]);
}
