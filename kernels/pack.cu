// Pairs of row and column numbers: as one key and back, mirrored, and the starts of runs of equal pairs.
//
// Constants: THREADS.
#include "common.cuh"

#define EACH(i, n) for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < (n); i += u64(gridDim.x) * THREADS)

extern "C" __global__ void __launch_bounds__(THREADS) pack(const u32* high, const u32* low, u32 shift, u64* out, u64 n) {
    EACH(i, n) out[i] = u64(high[i]) << shift | low[i];
}

// Both mirror images of each place, one after another; on the diagonal the second is (beyond, 0).
extern "C" __global__ void __launch_bounds__(THREADS)
    mirror(const u32* high, const u32* low, u32 beyond, u32* out_high, u32* out_low, u64 n) {
    EACH(i, n) {
        const u32 h = high[i], l = low[i];
        out_high[2 * i] = h, out_low[2 * i] = l;
        out_high[2 * i + 1] = h == l ? beyond : l, out_low[2 * i + 1] = h == l ? 0 : h;
    }
}

// Flags the pairs that differ from the previous one, and counts them. count: initially zero.
extern "C" __global__ void __launch_bounds__(THREADS) pair_heads(const u32* high, const u32* low, u64 n, u8* heads, u64* count) {
    u64 found = 0;
    EACH(i, n) {
        const bool head = i == 0 || high[i] != high[i - 1] || low[i] != low[i - 1];
        heads[i] = head;
        found += head;
    }
    found = warp_sum(found);
    if (lane_id() == 0 && found) atomicAdd(count, found);
}

extern "C" __global__ void __launch_bounds__(THREADS) unpack(const u64* packed, u32 shift, u32* high, u32* low, u64 n) {
    const u64 mask = (u64(1) << shift) - 1;
    EACH(i, n) {
        high[i] = u32(packed[i] >> shift);
        low[i] = u32(packed[i] & mask);
    }
}
