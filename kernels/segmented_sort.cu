// Sorting many short segments, each by itself, in one launch.
//
//     offsets 0 3 3 5        keys  7 2 7 | | 9 4        sorted  2 7 7 | | 4 9
//
// A block takes the segments that start in its TILE elements: their keys, including up to SHORT after the tile, are
// copied to shared memory, with a bit for each place where a segment starts. One thread per element finds the ends of
// its segment among the bits, and its place in the segment: the number of elements that come before it, which are
// smaller ones and equal ones to its left, so the sort is stable. Lanes of one segment read one word at a time, which
// shared memory broadcasts to all of them. Segments of more than SHORT elements are left to other kernels: they are
// sorted by a block each (merge.cu), the longest by radix sort.
//
// Bytes per element: keys and values read once and written once; one offset per segment.
//
// Sources: Merrill 2011, chapter 5 (ranking a warp's keys by comparison); Knuth 5.2 (sorting by counting).
//
// Constants: KEY, VALUE_BYTES (1, 2, 4, 8, 16), OFFSET (u32 or u64), THREADS, ITEMS, SHORT (a multiple of 32).
#include "common.cuh"

typedef unsigned_of<VALUE_BYTES>::type VALUE;
typedef key_bits<KEY> Ordered;
#define TILE (THREADS * ITEMS)
#define BITS (TILE + SHORT)  // elements of a tile and of the segments that reach beyond it

// counts[c] += number of segments of more than limit c elements, for three ascending limits, and counts[3] += number of
// offsets out of order: they must ascend from 0 to n. `counts` is initially zero. Any grid.
extern "C" __global__ void __launch_bounds__(THREADS)
    segment_classes(const OFFSET* offsets, u64 segments, u64 n, u32 first, u32 second, u32 third, u64* counts) {
    u32 more[4] = {0, 0, 0, 0};
    for (u64 s = u64(blockIdx.x) * THREADS + threadIdx.x; s < segments; s += u64(gridDim.x) * THREADS) {
        const u64 from = offsets[s], to = offsets[s + 1], length = to - from;
        more[0] += length > first, more[1] += length > second, more[2] += length > third;
        more[3] += from > to || (s == 0 && from != 0) || (s == segments - 1 && to != n);
    }
#pragma unroll
    for (int c = 0; c < 4; c++) {
        const u32 sum = warp_sum(more[c]);
        if (lane_id() == 0 && sum) atomicAdd(counts + c, u64(sum));
    }
}

// flags[s] = whether segment s has more than `low` elements and at most `high`. Any grid.
extern "C" __global__ void __launch_bounds__(THREADS) segment_flags(const OFFSET* offsets, u64 segments, u64 low, u64 high, u8* flags) {
    for (u64 s = u64(blockIdx.x) * THREADS + threadIdx.x; s < segments; s += u64(gridDim.x) * THREADS) {
        const u64 length = u64(offsets[s + 1] - offsets[s]);
        flags[s] = length > low && length <= high;
    }
}

// flags[i] = whether the segment of element i has more than `low` elements. Any grid.
extern "C" __global__ void __launch_bounds__(THREADS) element_flags(const OFFSET* offsets, const u32* segment, u64 n, u64 low, u8* flags) {
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < n; i += u64(gridDim.x) * THREADS)
        flags[i] = u64(offsets[segment[i] + 1] - offsets[segment[i]]) > low;
}

// starts[t]: number of segments that start before tile t, for t = 0 .. tiles; one thread each.
extern "C" __global__ void __launch_bounds__(THREADS) short_tiles(const OFFSET* offsets, u64 segments, u64* starts, u64 tiles) {
    const u64 t = u64(blockIdx.x) * THREADS + threadIdx.x;
    if (t > tiles) return;
    u64 low = 0, high = segments;
    while (low < high) {
        const u64 middle = low + (high - low) / 2;
        if (u64(offsets[middle]) < t * TILE) low = middle + 1;
        else high = middle;
    }
    starts[t] = low;
}

// Finds the last set bit at or before `at`, and the first one after it, among the bits 0 .. BITS. Returns false if they
// are more than SHORT apart.
DEVICE bool ends_around(const u32* bits, u32 at, u32& first, u32& last) {
    u32 word = at / 32, found = bits[word] & ((2u << at % 32) - 1);
#pragma unroll
    for (u32 step = 0; step < SHORT / 32; step++)
        if (!found && word) found = bits[--word];
    if (!found) return false;
    first = word * 32 + 31 - __clz(found);
    word = at / 32, found = bits[word] & ~((2u << at % 32) - 1);
#pragma unroll
    for (u32 step = 0; step < SHORT / 32; step++)
        if (!found && word < BITS / 32) found = bits[++word];
    if (!found) return false;
    last = word * 32 + __ffs(found) - 1;
    return last - first <= SHORT;
}

// Elements of longer segments are not written. Not in place. One block per tile.
extern "C" __global__ void __launch_bounds__(THREADS)
    sort_short_segments(const KEY* keys, const VALUE* values, const OFFSET* offsets, const u64* starts, KEY* keys_out,
                        VALUE* values_out, u64 n) {
    __shared__ Ordered::type window[BITS];
    __shared__ u32 bits[BITS / 32 + 1];
    const u64 begin = u64(blockIdx.x) * TILE, first = starts[blockIdx.x], past = starts[blockIdx.x + 1];
    if (first == past) return;
    keys += begin, values += begin, keys_out += begin, values_out += begin;
    const u32 have = u32(min(n - begin, u64(BITS)));
    for (u32 i = threadIdx.x; i <= BITS / 32; i += THREADS) bits[i] = 0;
    for (u32 i = threadIdx.x; i < have; i += THREADS) window[i] = Ordered::to(keys[i]);
    __syncthreads();
    // The start of the segment after the tile's last one gives the end of the latter.
    for (u64 s = first + threadIdx.x; s <= past; s += THREADS) {
        const u64 at = u64(offsets[s]) - begin;
        if (at <= BITS) atomicOr(bits + at / 32, 1u << at % 32);
    }
    __syncthreads();
#pragma unroll 1
    for (u32 i = threadIdx.x; i < have; i += THREADS) {
        u32 a, b;
        if (!ends_around(bits, i, a, b) || a >= TILE) continue;
        const VALUE value = values[i];
        const auto mine = window[i];
        u32 rank = a;
#pragma unroll 4
        for (u32 j = a; j < b; j++) {
            const auto other = window[j];
            rank += other < mine || (other == mine && j < i);
        }
        keys_out[rank] = Ordered::from(mine);
        values_out[rank] = value;
    }
}
