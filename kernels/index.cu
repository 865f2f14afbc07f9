// Offsets of segments, and what follows from them.
//
//     segments  0 0 2 2 2 3        offsets  0 2 2 5 6        heads  1 0 1 0 0 1
//
// Constants: OFFSET (u32 or u64), THREADS.
#include "common.cuh"

typedef OFFSET I;
#define EACH(i, n) for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < (n); i += u64(gridDim.x) * THREADS)

// Element i ends the segments before its own: the offsets of (segment of i - 1, segment of i] are i.
extern "C" __global__ void __launch_bounds__(THREADS) offsets_of_sorted(const u32* segments, u64 n, I* offsets, u64 count) {
    EACH(i, n + 1) {
        u64 from = i == 0 ? 0 : u64(segments[i - 1]) + 1;
        u64 to = i == n ? count : u64(segments[i]);
        for (u64 s = from; s <= to && s <= count; s++) offsets[s] = I(i);
    }
}

// The last segment that does not start behind i.
extern "C" __global__ void __launch_bounds__(THREADS) expand_offsets(const I* offsets, u64 count, u32* segments, u64 n) {
    EACH(i, n) {
        u64 low = 0, high = count;
        while (low + 1 < high) {
            const u64 middle = low + (high - low) / 2;
            if (u64(offsets[middle]) <= i) low = middle;
            else high = middle;
        }
        segments[i] = u32(low);
    }
}

// heads holds zeros before.
extern "C" __global__ void __launch_bounds__(THREADS) head_flags(const I* offsets, u64 count, u8* heads, u64 n) {
    EACH(s, count) if (offsets[s] < offsets[s + 1] && offsets[s] < n) heads[offsets[s]] = 1;
}

extern "C" __global__ void __launch_bounds__(THREADS) sequence(I* out, u64 n) { EACH(i, n) out[i] = I(i); }

// The total behind an exclusive scan. One thread.
extern "C" __global__ void total(const u32* x, I* out, u64 n) { out[n] = out[n - 1] + x[n - 1]; }
