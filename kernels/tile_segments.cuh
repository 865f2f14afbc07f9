// The segment of each element of a tile, from offsets, which lets a block distribute elements evenly however long
// segments are.
//
//     offsets  0 2 3 3 5        elements  0 1 2 3 4        segments  0 0 1 3 3        (segment 2 is empty)
//
// A separate kernel finds the segment in which each tile starts (one binary search per tile); then the block marks in
// shared memory where its tile's segments start and computes the running maximum.
//
// Constants: THREADS, ITEMS (elements per thread). Tile: THREADS * ITEMS elements.
#pragma once
#include "common.cuh"

#define TILE (THREADS * ITEMS)

// Returns the last of `count` segments that starts at `element` or before.
template <typename I> DEVICE u64 segment_of(const I* offsets, u64 count, u64 element) {
    u64 low = 0, high = count;
    while (low + 1 < high) {
        const u64 middle = low + (high - low) / 2;
        if (u64(offsets[middle]) <= element) low = middle;
        else high = middle;
    }
    return low;
}

struct TileSegments {
    u32 segment[TILE];
    u32 warp_last[THREADS / 32];
};

// `segments.segment[i]` = the segment of element first + i, minus `begin`, for i < have. `begin` and `end` are the
// segments of this tile's first element and of the next tile's. Called by the whole block; it contains barriers, one of
// them at the end.
template <typename I>
DEVICE void mark_segments(const I* offsets, u64 begin, u64 end, u64 first, u32 have, TileSegments& segments) {
    for (u32 i = threadIdx.x; i < TILE; i += THREADS) segments.segment[i] = 0;
    __syncthreads();
    // Empty segments start where the next one does: the last of them has the element.
    for (u64 s = begin + 1 + threadIdx.x; s <= end; s += THREADS) {
        const u64 at = u64(offsets[s]) - first;
        if (at < have) atomicMax(&segments.segment[at], u32(s - begin));
    }
    __syncthreads();
    u32 mine[ITEMS], last = 0;
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) mine[i] = last = max(last, segments.segment[threadIdx.x * ITEMS + i]);
    u32 upto = last;
#pragma unroll
    for (u32 by = 1; by < 32; by *= 2) {
        const u32 other = __shfl_up_sync(ALL, upto, by);
        if (lane_id() >= by) upto = max(upto, other);
    }
    if (lane_id() == 31) segments.warp_last[threadIdx.x / 32] = upto;
    u32 before = __shfl_up_sync(ALL, upto, 1);
    if (lane_id() == 0) before = 0;
    __syncthreads();
    for (u32 w = 0; w < threadIdx.x / 32; w++) before = max(before, segments.warp_last[w]);
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) segments.segment[threadIdx.x * ITEMS + i] = max(before, mine[i]);
    __syncthreads();
}

// Calls what(segment, index within the segment, element) for each of the `n` elements, one block per tile. `starts` has
// the segment in which each tile starts.
template <typename I, typename Do> DEVICE void each_element(const I* offsets, u64 n, const u64* starts, Do what) {
    __shared__ TileSegments segments;
    const u64 first = u64(blockIdx.x) * TILE, begin = starts[blockIdx.x];
    const u32 have = u32(min(u64(TILE), n - first));
    mark_segments(offsets, begin, starts[blockIdx.x + 1], first, have, segments);
#pragma unroll 4
    for (u32 i = threadIdx.x; i < have; i += THREADS) {
        const u64 segment = begin + segments.segment[i];
        what(segment, first + i - u64(offsets[segment]), first + i);
    }
}
