// Sizes needed by conversions, from row offsets and row lengths.
//
// Constants: OFFSET (u32 or u64), THREADS, LANES (a power of two).
#include "common.cuh"

typedef OFFSET I;
#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS)
#define EACH(i, n) for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < (n); i += u64(gridDim.x) * THREADS)

// The number of entries of each row after the first `skip`, at most `most`.
KERNEL row_lengths(const I* offsets, u64 rows, u64 skip, u64 most, u32* lengths) {
    EACH(i, rows) {
        const u64 length = u64(offsets[i + 1]) - u64(offsets[i]);
        lengths[i] = u32(min(length - min(length, skip), most));
    }
}

// Keys in ascending order of (window, descending length), and the rows that they belong to.
KERNEL order_keys(const u32* lengths, u64 rows, u64 window, u32 longest, u32 bits, I* keys, u32* order) {
    EACH(i, rows) {
        keys[i] = I(i / window << bits | u64(longest - lengths[i]));
        order[i] = u32(i);
    }
}

// The lengths of ordered rows; moved becomes 1 if a row is not in its original place.
KERNEL ordered_lengths(const u32* lengths, u64 rows, const u32* order, u32* sorted, u64* moved) {
    bool any = false;
    EACH(i, rows) {
        sorted[i] = lengths[order[i]];
        any = any || order[i] != i;
    }
    if (__syncthreads_or(any) && threadIdx.x == 0) atomicMax(moved, 1ull);
}

// The number of places of each section, which is as wide as its longest row; the sum is added to found[0], which may
// wrap if I is too narrow. found[1] becomes the length of the longest row of all. LANES lanes per section.
KERNEL section_places(const u32* lengths, u64 rows, u64 height, I* places, u64 sections, u64* found) {
    __shared__ u64 of_block;
    __shared__ u32 widest;
    if (threadIdx.x == 0) of_block = widest = 0;
    __syncthreads();
    u64 all = 0;
    u32 longest = 0;
    const u32 lane = threadIdx.x % LANES;
    for (u64 base = u64(blockIdx.x) * (THREADS / LANES); base < sections; base += u64(gridDim.x) * (THREADS / LANES)) {
        const u64 s = base + threadIdx.x / LANES, first = s * height;
        u32 width = 0;
        if (s < sections)
#pragma unroll 4
            for (u64 i = first + lane, end = min(rows, first + height); i < end; i += LANES) width = max(width, lengths[i]);
        __syncwarp();
#pragma unroll
        for (u32 with = LANES / 2; with; with /= 2) width = max(width, __shfl_xor_sync(ALL, width, with));
        if (s >= sections || lane != 0) continue;
        places[s] = I(width * height);
        all += width * height;
        longest = max(longest, width);
    }
    __syncwarp();
    all = warp_sum(all);
    longest = most_of_lanes(longest);
    if (lane_id() == 0) {
        atomicAdd(&of_block, all);
        atomicMax(&widest, longest);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd(found, of_block);
        atomicMax(found + 1, u64(widest));
    }
}

// Rows get shorter along the order, so those with more than k entries come first.
KERNEL jagged_reach(const u32* lengths, const u32* order, u64 rows, u32* reach, u64 count) {
    EACH(k, count) {
        u64 low = 0, high = rows;
        while (low < high) {
            const u64 p = low + (high - low) / 2;
            if (lengths[order[p]] > k) low = p + 1;
            else high = p;
        }
        reach[k] = u32(low);
    }
}

// Diagonals get shorter, so those that reach position p come first.
KERNEL jagged_lengths(const u32* order, u64 rows, const I* diagonals, u64 count, u32* lengths) {
    EACH(p, rows) {
        u64 low = 0, high = count;
        while (low < high) {
            const u64 k = low + (high - low) / 2;
            if (u64(diagonals[k + 1]) - u64(diagonals[k]) > p) low = k + 1;
            else high = k;
        }
        lengths[order[p]] = u32(low);
    }
}
