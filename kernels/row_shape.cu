// What decides how a product goes through the rows of a CSR matrix: out[0] the longest row, out[1] the most nonzeros in
// 32 rows that follow one another, counted from a multiple of 32. out holds zeros before. Bytes a row: its offset.
//
// Constants: OFFSET (u32 or u64), THREADS.
#include "common.cuh"

typedef OFFSET I;

DEVICE u64 warp_max(u64 v) {
#pragma unroll
    for (u32 with = 16; with; with /= 2) {
        const u64 other = shuffle_xor(v, with);
        v = other > v ? other : v;
    }
    return v;
}

extern "C" __global__ void __launch_bounds__(THREADS) row_shape(u64 rows, const I* offsets, u64* out) {
    u64 longest = 0, fullest = 0;
    for (u64 base = u64(blockIdx.x) * THREADS; base < rows; base += u64(gridDim.x) * THREADS) {
        const u64 row = base + threadIdx.x;
        u64 length = row < rows ? u64(offsets[row + 1]) - u64(offsets[row]) : 0;
        longest = length > longest ? length : longest;
        length = warp_sum(length);
        fullest = length > fullest ? length : fullest;
    }
    longest = warp_max(longest);
    fullest = warp_max(fullest);
    if (lane_id() == 0) {
        atomicMax(out, longest);
        atomicMax(out + 1, fullest);
    }
}
