// Sorting many short segments, each by itself, in one launch.
//
//     offsets 0 3 3 5        keys  7 2 7 | | 9 4        sorted  2 7 7 | | 4 9
//
// One thread an element: its place in a segment of at most SHORT elements is the number of elements of the segment that
// come before it, smaller ones and equal ones to its left, so the sort is stable. A block takes TILE elements and up to
// SHORT - 1 more on either side to shared memory; lanes of one segment read one word at a time, which shared memory
// hands to all of them at once. Longer segments are sorted by a block each (merge.cu), the longest by radix sort.
//
// Bytes an element: keys and values once in, once out; 4 for the segment's number; an offset.
//
// Sources: Merrill 2011, chapter 5 (a warp's keys ranked by comparison); Knuth 5.2 (sorting by counting).
//
// Constants: KEY, VALUE_BYTES (1, 2, 4, 8, 16), OFFSET (u32 or u64), THREADS, ITEMS, SHORT.
#include "common.cuh"

typedef unsigned_of<VALUE_BYTES>::type VALUE;
typedef key_bits<KEY> Ordered;
#define TILE (THREADS * ITEMS)

// counts[c] += segments of more than limit c elements, for three limits that ascend; `counts` is zero before. Any grid.
extern "C" __global__ void __launch_bounds__(THREADS) segment_classes(const OFFSET* offsets, u64 segments, u32 first, u32 second, u32 third, u64* counts) {
    u32 more[3] = {0, 0, 0};
    for (u64 s = u64(blockIdx.x) * THREADS + threadIdx.x; s < segments; s += u64(gridDim.x) * THREADS) {
        const u64 length = u64(offsets[s + 1] - offsets[s]);
        more[0] += length > first, more[1] += length > second, more[2] += length > third;
    }
#pragma unroll
    for (int c = 0; c < 3; c++) {
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

// The same for elements: whether an element's segment has more than `low`. Any grid.
extern "C" __global__ void __launch_bounds__(THREADS) element_flags(const OFFSET* offsets, const u32* segment, u64 n, u64 low, u8* flags) {
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < n; i += u64(gridDim.x) * THREADS)
        flags[i] = u64(offsets[segment[i] + 1] - offsets[segment[i]]) > low;
}

// segment[i]: number of element i's segment. Elements of longer segments are not written. Not in place. One block a tile.
extern "C" __global__ void __launch_bounds__(THREADS)
sort_short_segments(const KEY* keys, const VALUE* values, const OFFSET* offsets, const u32* segment, KEY* keys_out, VALUE* values_out, u64 n) {
    __shared__ Ordered::type window[TILE + 2 * SHORT];
    const u64 begin = u64(blockIdx.x) * TILE, end = begin + TILE < n ? begin + TILE : n;
    const u64 from = begin < SHORT ? 0 : begin - SHORT, to = end + SHORT < n ? end + SHORT : n;
    for (u64 i = from + threadIdx.x; i < to; i += THREADS) window[i - from] = Ordered::to(keys[i]);
    __syncthreads();
#pragma unroll 1
    for (u64 i = begin + threadIdx.x; i < end; i += THREADS) {
        const u32 s = segment[i];
        const u64 first = offsets[s], last = offsets[s + 1];
        if (last - first > SHORT) continue;
        const auto mine = window[i - from];
        const u32 at = u32(i - from), a = u32(first - from), b = u32(last - from);
        u32 rank = 0;
        for (u32 j = a; j < at; j++) rank += window[j] <= mine;
        for (u32 j = at + 1; j < b; j++) rank += window[j] < mine;
        keys_out[first + rank] = Ordered::from(mine);
        values_out[first + rank] = values[i];
    }
}
