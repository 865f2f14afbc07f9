// Offsets of segments, and arrays computed from them.
//
//     segments  0 0 2 2 2 3        offsets  0 2 2 5 6        heads  1 0 1 0 0 1
//
// Constants: OFFSET (u32 or u64), THREADS, ITEMS (elements per thread of a tile).
#include "tile_segments.cuh"

typedef OFFSET I;
#define EACH(i, n) for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < (n); i += u64(gridDim.x) * THREADS)

// Element i determines the offsets of the segments after that of element i - 1, up to its own: they are i. Long gaps
// between segments are written by the whole warp.
extern "C" __global__ void __launch_bounds__(THREADS) offsets_of_sorted(const u32* segments, u64 n, I* offsets, u64 count) {
    for (u64 first = u64(blockIdx.x) * THREADS; first <= n; first += u64(gridDim.x) * THREADS) {
        const u64 i = first + threadIdx.x;
        u64 from = 1, to = 0;
        if (i <= n) {
            from = i == 0 ? 0 : u64(segments[i - 1]) + 1;
            to = min(count, i == n ? count : u64(segments[i]));
        }
        const bool wide = to + 1 > from + 32;
        if (!wide)
            for (u64 s = from; s <= to; s++) offsets[s] = I(i);
        for (u32 lanes = __ballot_sync(ALL, wide); lanes; lanes &= lanes - 1) {
            const u32 lane = __ffs(lanes) - 1;
            const u64 start = shuffle(from, lane), end = shuffle(to, lane), at = shuffle(i, lane);
            for (u64 s = start + lane_id(); s <= end; s += 32) offsets[s] = I(at);
        }
    }
}

// Like offsets_of_sorted, for fewer elements than segments: each offset is the number of elements below its segment.
extern "C" __global__ void __launch_bounds__(THREADS) offsets_by_search(const u32* segments, u64 n, I* offsets, u64 count) {
    EACH(s, count + 1) {
        u64 low = 0, high = n;
        while (low < high) {
            const u64 middle = low + (high - low) / 2;
            if (u64(segments[middle]) < s) low = middle + 1;
            else high = middle;
        }
        offsets[s] = I(low);
    }
}

// The segment in which each tile of `n` elements starts; at least tiles + 1 threads.
extern "C" __global__ void __launch_bounds__(THREADS) tile_starts(const I* offsets, u64 count, u64 n, u64* starts, u64 tiles) {
    const u64 tile = u64(blockIdx.x) * THREADS + threadIdx.x;
    if (tile <= tiles) starts[tile] = segment_of(offsets, count, min(tile * TILE, n - 1));
}

// One block per tile.
extern "C" __global__ void __launch_bounds__(THREADS) expand_offsets(const I* offsets, u64 n, const u64* starts, u32* segments) {
    __shared__ TileSegments tile;
    const u64 first = u64(blockIdx.x) * TILE, begin = starts[blockIdx.x];
    const u32 have = u32(min(u64(TILE), n - first));
    mark_segments(offsets, begin, starts[blockIdx.x + 1], first, have, tile);
    for (u32 i = threadIdx.x; i < have; i += THREADS) segments[first + i] = u32(begin + tile.segment[i]);
}

// heads must be zero initially.
extern "C" __global__ void __launch_bounds__(THREADS) head_flags(const I* offsets, u64 count, u8* heads, u64 n) {
    EACH(s, count) if (offsets[s] < offsets[s + 1] && offsets[s] < n) heads[offsets[s]] = 1;
}

extern "C" __global__ void __launch_bounds__(THREADS) sequence(I* out, u64 n) { EACH(i, n) out[i] = I(i); }

// Marks the first source of each run in its highest bit, and counts the runs that start before each tile.
extern "C" __global__ void __launch_bounds__(THREADS)
    mark_runs(const I* starts, u64 runs, I* sources, u64 n, I* before, u64 tiles, u64 tile, u32* misses) {
    EACH(run, runs) {
        const I start = starts[run];
        if (start < n) sources[start] |= I(1) << (8 * sizeof(I) - 1);
        else atomicAdd(misses, 1u);
    }
    EACH(t, tiles) {
        u64 low = 0, high = runs;
        while (low < high) {
            const u64 middle = low + (high - low) / 2;
            if (u64(starts[middle]) < t * tile) low = middle + 1;
            else high = middle;
        }
        before[t] = I(low);
    }
}
