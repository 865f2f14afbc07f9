// The numbers of a CSR matrix's entries by the windows of their columns (transpose_windows.cuh), stably: a radix sort in two passes, the
// first of which reads columns.
//
//     column_keys     the window and the place in it of each column
//     window_starts   where each window starts in the target, and how many entries there are of each lower digit: windows tell, no entry
//                     is read for it; clears the workspace
//     digit_starts    where each digit starts
//     sort_low        by the lower 8 bits of the window; its upper bits go along, in a byte
//     sort_high       by those
//
// With CARRY the place in the window goes along as well, 16 bits.
// Bytes an entry: column read (and its key, from the cache), number and upper digit written, read, number written; with CARRY 8 more.
// Workspace: a ticket a pass, then look-back words, a pass's behind the other's.
//
// Constants: CURSOR (offsets of columns), WINDOW_BITS, CARRY (0, 1), THREADS (at least 256), ITEMS, MIN_BLOCKS, LOOK_AT_ONCE, MATCH_HARDWARE.
#define LOOK u32 // there are at most 2^16 windows of 2^12 entries
#include "radix_tile.cuh"
#include "transpose_windows.cuh"

typedef CURSOR C;

#define PASSES 2

// Of each column, its window and behind that its place there: where it starts, but for long columns, whose window is the next.
extern "C" __global__ void __launch_bounds__(THREADS) column_keys(const C* starts, u64 columns, u32* keys) {
    const u64 c = u64(blockIdx.x) * THREADS + threadIdx.x;
    if (c >= columns) return;
    const C start = starts[c];
    keys[c] = window_of(start, starts[c + 1]) << WINDOW_BITS | u32(start) & (WINDOW - 1);
}

// Where each window starts, and the end behind; counts[d]: entries of lower digit d, zero before. THREADS - 1 windows a block.
extern "C" __global__ void __launch_bounds__(THREADS)
    window_starts(const C* starts, u64 columns, u32* begin, u32 windows, u32* counts, u32* workspace, u64 words) {
    __shared__ u32 at[THREADS];
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < words; i += u64(gridDim.x) * THREADS) workspace[i] = 0;
    const u32 w = blockIdx.x * (THREADS - 1) + threadIdx.x;
    u64 low = 0, high = columns;
    while (low < high) {
        const u64 middle = low + (high - low) / 2;
        if (window_of(starts[middle], starts[middle + 1]) < w) low = middle + 1;
        else high = middle;
    }
    at[threadIdx.x] = u32(starts[low]);
    if (w <= windows) begin[w] = at[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == THREADS - 1 || w >= windows) return;
    const u32 size = at[threadIdx.x + 1] - at[threadIdx.x];
    if (size) atomicAdd(counts + w % RADIX, size);
}

// Where the entries of each lower digit start in the first pass's result, in place of their counts, and behind that those of each upper
// digit in the second's. One block.
extern "C" __global__ void __launch_bounds__(THREADS) digit_starts(const u32* begin, u32 windows, u32* digits) {
    __shared__ u32 warp_sums[RADIX / 32];
    const u32 digit = threadIdx.x;
    const u32 start = digit_exclusive_sum(digit < RADIX ? digits[digit] : 0, warp_sums);
    if (digit >= RADIX) return;
    digits[digit] = start;
    digits[RADIX + digit] = begin[min(digit * RADIX, windows)];
}

// What both passes do: 8 bits of the keys from `shift` on sort the tile; put(place in the sorted tile, which key) leaves there what
// take(place, where the digits' keys go) then writes to its place in the whole.
template <typename Put, typename Take>
DEVICE void sort_tile(u32 pass, const u32 (&key)[ITEMS], u32 shift, u32 tile, u32 have, u32* places, const u32* digits, u32* workspace, Put put, Take take) {
    __shared__ u32 warp_sums[RADIX / 32];
    __shared__ u32 out_start[RADIX];
    u32 total, start;
    count_digits(key, shift, RADIX - 1, places, warp_sums, total, start);
    LOOK* words = workspace + PASSES + pass * gridDim.x * RADIX + threadIdx.x;
    if (threadIdx.x < RADIX) publish(words, tile, total);
    u32* mine = places + threadIdx.x / 32 * RADIX;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) put(place_key(digit_of(key[i], shift, RADIX - 1), mine), i);
    if (threadIdx.x < RADIX) out_start[threadIdx.x] = digits[pass * RADIX + threadIdx.x] + keys_before(words, tile, total) - start;
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

// A block a tile. Dynamic shared memory: WARPS * RADIX * 4 + TILE * (4 + 2 * CARRY).
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    sort_low(const u32* keys, const u32* columns, u64 n, const u32* digits, u32* workspace, u32* numbers, u8* upper, u16* places_in) {
    extern __shared__ uint4 dynamic[];
    static_assert(TILE <= 1 << 16, "a key's place in its tile has 16 bits beside the window's 16");
    u32 *places = reinterpret_cast<u32*>(dynamic), *sorted = places + WARPS * RADIX;
    u16* sorted_places = reinterpret_cast<u16*>(sorted + TILE);
    const u32 tile = take_ticket(workspace), first = tile * TILE, have = u32(min(u64(TILE), n - first));
    const u32 at = threadIdx.x / 32 * (32 * ITEMS) + lane_id();
    u32 key[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; i++) key[i] = at + i * 32 < have ? columns[first + at + i * 32] : 0;
    // Past the end: the largest window, which ranks behind every entry.
#pragma unroll
    for (int i = 0; i < ITEMS; i++) key[i] = at + i * 32 < have ? keys[key[i]] : ~0u;
    sort_tile(
        0, key, WINDOW_BITS, tile, have, places, digits, workspace,
        [&](u32 place, int i) {
            sorted[place] = (key[i] >> WINDOW_BITS & 0xffff) | (at + i * 32) << 16;
            if (CARRY) sorted_places[place] = u16(key[i] & (WINDOW - 1));
        },
        [&](u32 j, const u32* out_start) {
            const u32 k = sorted[j], out = out_start[k & (RADIX - 1)] + j;
            numbers[out] = first + (k >> 16);
            upper[out] = u8(k >> 8);
            if (CARRY) places_in[out] = sorted_places[j];
        });
}

// A block a tile. Dynamic shared memory: WARPS * RADIX * 4 + TILE * (5 + 2 * CARRY).
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    sort_high(const u32* numbers, const u8* upper, const u16* places_in, u64 n, const u32* digits, u32* workspace, u32* to_numbers, u16* to_places) {
    extern __shared__ uint4 dynamic[];
    u32 *places = reinterpret_cast<u32*>(dynamic), *sorted = places + WARPS * RADIX;
    u16* sorted_places = reinterpret_cast<u16*>(sorted + TILE);
    u8* sorted_digits = reinterpret_cast<u8*>(sorted_places + CARRY * TILE);
    const u32 tile = take_ticket(workspace + 1), first = tile * TILE, have = u32(min(u64(TILE), n - first));
    const u32 at = threadIdx.x / 32 * (32 * ITEMS) + lane_id();
    u32 key[ITEMS], number[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; i++) key[i] = at + i * 32 < have ? upper[first + at + i * 32] : RADIX - 1;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) number[i] = numbers[first + min(at + i * 32, have - 1)];
    // What goes along lies above the digit.
    if (CARRY)
#pragma unroll
        for (int i = 0; i < ITEMS; i++) key[i] |= u32(places_in[first + min(at + i * 32, have - 1)]) << RADIX_BITS;
    sort_tile(
        1, key, 0, tile, have, places, digits, workspace,
        [&](u32 place, int i) {
            sorted[place] = number[i];
            sorted_digits[place] = u8(key[i]);
            if (CARRY) sorted_places[place] = u16(key[i] >> RADIX_BITS);
        },
        [&](u32 j, const u32* out_start) {
            const u32 out = out_start[sorted_digits[j]] + j;
            to_numbers[out] = sorted[j];
            if (CARRY) to_places[out] = sorted_places[j];
        });
}
