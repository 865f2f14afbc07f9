// Sorts the numbers of a CSR matrix's entries by the windows of their columns (transpose_windows.cuh), stably: a radix
// sort in two passes, the first of which reads columns. The name of a column within its window is carried along.
//
//     window_starts   where each window and its first column start, and the number of entries of each lower digit; it
//                     follows from windows without reading entries; clears the workspaces
//     column_keys     the window of each column, and its name there
//     digit_starts    where each digit starts
//     sort_low        sorts by the lower 8 bits of the window
//     sort_high       sorts by the upper 8 bits
//
// One word per entry is passed from the first pass to the second: its place in its tile, the column's name, the upper
// digit. The tile that it comes from follows from its position: `sources` holds, digit after digit, where each tile's
// entries of the digit start.
//
//     word of sort_low     place in the tile (24 - WINDOW_BITS bits) | name (WINDOW_BITS) | upper digit (8)
//     word of sort_high    lower bits of the name (16 - WINDOW_BITS) | number (16 + WINDOW_BITS); the rest in a byte
//
// Bytes per entry: column read (and its key, from the cache), word written, word read, word and byte written.
// Workspaces: a ticket, then look-back words.
//
// Constants: CURSOR (offsets of columns), WINDOW_BITS, THREADS (at least 256), ITEMS, MIN_BLOCKS, LOOK_AT_ONCE,
// MATCH_HARDWARE.
#define LOOK u32 // there are at most 2^16 windows of 2^12 entries
#include "radix_tile.cuh"
#include "transpose_windows.cuh"

typedef CURSOR C;

static_assert(TILE <= 1 << (24 - WINDOW_BITS), "a place in a tile has the bits that name and digit leave");

// Where each window starts, and its first column, followed by the ends; counts[d]: number of entries with lower digit
// d, initially zero. THREADS - 1 windows per block.
extern "C" __global__ void __launch_bounds__(THREADS)
    window_starts(const C* starts, u64 columns, u32* begin, u32* first_columns, u32 windows, u32* counts, u32* low, u32* high, u64 words) {
    __shared__ u32 at[THREADS];
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < words; i += u64(gridDim.x) * THREADS) low[i] = high[i] = 0;
    const u32 w = blockIdx.x * (THREADS - 1) + threadIdx.x;
    u64 from = 0, to = columns;
    while (from < to) {
        const u64 middle = from + (to - from) / 2;
        if (window_of(starts[middle], starts[middle + 1]) < w) from = middle + 1;
        else to = middle;
    }
    at[threadIdx.x] = u32(starts[from]);
    if (w <= windows) {
        begin[w] = at[threadIdx.x];
        first_columns[w] = u32(from);
    }
    __syncthreads();
    if (threadIdx.x == THREADS - 1 || w >= windows) return;
    const u32 size = at[threadIdx.x + 1] - at[threadIdx.x];
    if (size) atomicAdd(counts + w % RADIX, size);
}

// For each column, its window followed by its name there (transpose_windows.cuh).
extern "C" __global__ void __launch_bounds__(THREADS) column_keys(const C* starts, u64 columns, const u32* first_columns, u32* keys) {
    const u64 c = u64(blockIdx.x) * THREADS + threadIdx.x;
    if (c >= columns) return;
    const C start = starts[c];
    const u32 window = window_of(start, starts[c + 1]), first = first_columns[window];
    const u32 name = names_by_number(first_columns[window + 1] - first) ? u32(c) - first : u32(start) & (WINDOW - 1);
    keys[c] = window << WINDOW_BITS | name;
}

// Replaces the counts of each lower digit by where its entries start in the first pass's result, followed by the same
// for each upper digit in the second's. One block.
extern "C" __global__ void __launch_bounds__(THREADS) digit_starts(const u32* begin, u32 windows, u32* digits) {
    __shared__ u32 warp_sums[RADIX / 32];
    const u32 digit = threadIdx.x;
    const u32 start = digit_exclusive_sum(digit < RADIX ? digits[digit] : 0, warp_sums);
    if (digit >= RADIX) return;
    digits[digit] = start;
    digits[RADIX + digit] = begin[min(digit * RADIX, windows)];
}

// The part common to both passes: sorts the tile by 8 bits of the keys from `shift` on; put(place in the sorted tile,
// which key) stores what take(place, global start of the digits' keys) then writes to its place in the result.
// begins(global start of the tile's keys with the thread's digit, their number) is called by the first 256 threads.
template <bool MOSTLY_ALIKE, typename Keys, typename Put, typename Take, typename Begins>
DEVICE void sort_tile(Keys& key, u32 shift, u32 tile, u32 have, u32* places, const u32* digits, u32* words, Put put, Take take,
                      Begins begins) {
    __shared__ u32 warp_sums[RADIX / 32];
    __shared__ u32 out_start[RADIX];
    u32 total, start;
    count_digits(key, shift, RADIX - 1, places, warp_sums, total, start);
    if (threadIdx.x < RADIX) publish(words + threadIdx.x, tile, total);
    u32* mine = places + threadIdx.x / 32 * RADIX;
#pragma unroll
    for (u32& one : key) forget(one);
#pragma unroll
    for (int i = 0; i < ITEMS; i++) put(place_key<MOSTLY_ALIKE>(digit_of(key[i], shift, RADIX - 1), mine), i);
    if (threadIdx.x < RADIX) {
        const u32 from = digits[threadIdx.x] + keys_before(words + threadIdx.x, tile, total);
        out_start[threadIdx.x] = from - start;
        begins(from, total);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const u32 j = threadIdx.x + i * THREADS;
        if (j < have) take(j, out_start);
    }
}

DEVICE u32 take_ticket(u32* ticket) {
    __shared__ u32 mine;
    if (threadIdx.x == 0) mine = atomicAdd(ticket, 1u);
    __syncthreads();
    return mine;
}

// One block per tile. `sources`: where each tile's entries of each digit start, one digit after another;
// `first_sources`: which of these has the first entry of each tile of the second pass. Dynamic shared memory: WARPS *
// RADIX * 4 + TILE * 5.
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    sort_low(const u32* keys, const u32* columns, u64 n, const u32* digits, u32* workspace, u32* words, u32* sources, u32* first_sources) {
    extern __shared__ uint4 dynamic[];
    u32 *places = reinterpret_cast<u32*>(dynamic), *sorted = places + WARPS * RADIX;
    u8* sorted_digits = reinterpret_cast<u8*>(sorted + TILE);
    const u32 tile = take_ticket(workspace), first = tile * TILE, have = u32(min(u64(TILE), n - first));
    const u32 at = threadIdx.x / 32 * (32 * ITEMS) + lane_id();
    u32 key[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; i++) key[i] = at + i * 32 < have ? columns[first + at + i * 32] : 0;
    // Elements beyond the end get the largest window, which is sorted after every entry.
#pragma unroll
    for (int i = 0; i < ITEMS; i++) key[i] = at + i * 32 < have ? keys[key[i]] : ~0u;
    sort_tile<false>(
        key, WINDOW_BITS, tile, have, places, digits, workspace + 1,
        [&](u32 place, int i) {
            sorted[place] = (at + i * 32) << (WINDOW_BITS + RADIX_BITS) | (key[i] & (WINDOW - 1)) << RADIX_BITS |
                            (key[i] >> (WINDOW_BITS + RADIX_BITS) & (RADIX - 1));
            sorted_digits[place] = u8(key[i] >> WINDOW_BITS);
        },
        [&](u32 j, const u32* out_start) { words[out_start[sorted_digits[j]] + j] = sorted[j]; },
        [&](u32 from, u32 count) {
            const u32 source = threadIdx.x * gridDim.x + tile, boundary = (from + TILE - 1) / TILE;
            sources[source] = from;
            // Tiles of both passes have the same size, so at most one begins here.
            if (u64(boundary) * TILE < u64(from) + count) first_sources[boundary] = source;
        });
}

// Keys of 16 bits, two per register.
struct Halves {
    u32 two[ITEMS / 2];
    DEVICE u32* begin() { return two; }
    DEVICE u32* end() { return two + ITEMS / 2; }
    DEVICE u32 operator[](int i) const { return two[i / 2] >> i % 2 * 16 & 0xffff; }
    DEVICE void set(int i, u32 key) { two[i / 2] = i % 2 ? two[i / 2] | key << 16 : key; }
};

// One block per tile. Dynamic shared memory: WARPS * RADIX * 4 + TILE * 6.
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    sort_high(const u32* words, u64 n, const u32* sources, const u32* first_sources, const u32* digits, u32* workspace,
              u32* to_numbers, u8* to_names) {
    extern __shared__ uint4 dynamic[];
    __shared__ u32 begins[TILE / 32]; // a bit where another source begins; source_tile has its tile
    u32 *places = reinterpret_cast<u32*>(dynamic), *sorted = places + WARPS * RADIX;
    u8 *sorted_digits = reinterpret_cast<u8*>(sorted + TILE), *sorted_names = sorted_digits + TILE;
    u16* source_tile = reinterpret_cast<u16*>(sorted); // until numbers are stored there
    const u32 tile = take_ticket(workspace), first = tile * TILE, have = u32(min(u64(TILE), n - first)), tiles = gridDim.x;
    const u32 at = threadIdx.x / 32 * (32 * ITEMS) + lane_id();
    u32 number[ITEMS]; // words at first
    Halves key;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) number[i] = at + i * 32 < have ? words[first + at + i * 32] : ~0u;
    for (u32 i = threadIdx.x; i < TILE / 32; i += THREADS) begins[i] = 0;
    __syncthreads();
    u32 base = first_sources[tile];
    for (bool more = true; more;) {
        const u32 source = base + threadIdx.x;
        const u32 start = source < RADIX * tiles ? sources[source] : u32(n),
                  end = source + 1 < RADIX * tiles ? sources[source + 1] : u32(n);
        if (start < end && end > first && start < first + have) {
            const u32 place = max(start, first) - first;
            atomicOr(begins + place / 32, 1u << place % 32);
            source_tile[place] = u16(source % tiles);
        }
        more = __syncthreads_or(threadIdx.x == THREADS - 1 && start < first + have);
        base += THREADS;
        // A digit without entries may have as many sources as one with many entries.
        if (more)
            for (u32 digit = base / tiles; digit < RADIX && digits[digit] == (digit + 1 < RADIX ? digits[digit + 1] : u32(n));
                 digit++)
                base = (digit + 1) * tiles;
    }
    // The beginning of the last source before this warp's entries.
    u32 last = 0;
    for (u32 i = lane_id(); i < threadIdx.x / 32 * ITEMS; i += 32)
        if (begins[i]) last = 32 * i + 31 - __clz(begins[i]);
    last = most_of_lanes(last);
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const u32 piece = threadIdx.x / 32 * ITEMS + i, all = begins[piece], upto = all & ((2u << lane_id()) - 1);
        const u32 place = upto ? 32 * piece + 31 - __clz(upto) : last;
        if (all) last = 32 * piece + 31 - __clz(all);
        const u32 word = number[i], name = word >> RADIX_BITS & (WINDOW - 1);
        number[i] = source_tile[place] * TILE + (word >> (WINDOW_BITS + RADIX_BITS)) | name << NUMBER_BITS;
        // The rest of the name is above the digit.
        key.set(i, (word & (RADIX - 1)) | name >> (32 - NUMBER_BITS) << RADIX_BITS);
    }
    // Entries of neighbouring rows in the windows of one lower digit are mostly in one window.
    sort_tile<true>(
        key, 0, tile, have, places, digits + RADIX, workspace + 1,
        [&](u32 place, int i) {
            sorted[place] = number[i];
            sorted_digits[place] = u8(key[i]);
            sorted_names[place] = u8(key[i] >> RADIX_BITS);
        },
        [&](u32 j, const u32* out_start) {
            const u32 out = out_start[sorted_digits[j]] + j;
            to_numbers[out] = sorted[j];
            to_names[out] = sorted_names[j];
        },
        [](u32, u32) {});
}
