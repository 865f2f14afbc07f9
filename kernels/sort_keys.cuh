// Sorts keys in registers, by GROUP lanes of a warp with COUNT consecutive keys per lane: a bitonic network that first
// mirrors, so that every comparison puts the smaller key first. Comparisons within COUNT neighbours stay in a lane's
// registers.
//
// Source: Batcher, AFIPS 32 (1968).
//
// Constants: GROUP, which like COUNT is a power of two.
#pragma once
#include "common.cuh"

DEVICE void ascend(u32& low, u32& high) {
    const u32 smaller = min(low, high);
    high = max(low, high);
    low = smaller;
}

// The last passes of a merge: keys at a distance of `farthest` are compared, then at half the distance, and so on.
template <u32 COUNT> DEVICE void merge_within_lane(u32 (&keys)[COUNT], u32 farthest) {
#pragma unroll
    for (u32 by = COUNT / 2; by; by /= 2)
        if (by <= farthest)
#pragma unroll
            for (u32 i = 0; i < COUNT; i++)
                if (!(i & by)) ascend(keys[i], keys[i + by]);
}

// `mask`: the lanes that take part, one or more groups.
template <u32 COUNT> DEVICE void sort_keys(u32 (&keys)[COUNT], u32 mask) {
    // Runs of SIZE sorted keys are merged into runs of twice that size.
#pragma unroll
    for (u32 size = 1; size < COUNT; size *= 2) {
#pragma unroll
        for (u32 start = 0; start < COUNT; start += 2 * size)
#pragma unroll
            for (u32 i = 0; i < size; i++) ascend(keys[start + i], keys[start + 2 * size - 1 - i]);
        merge_within_lane(keys, size / 2);
    }
    // The same for runs of several lanes. These loops are not unrolled, because they would be most of the code.
#pragma unroll 1
    for (u32 lanes = 1; lanes < GROUP; lanes *= 2) {
        const bool first = !(lane_id() & lanes);
        u32 theirs[COUNT];
#pragma unroll
        for (u32 i = 0; i < COUNT; i++) theirs[i] = __shfl_xor_sync(mask, keys[i], 2 * lanes - 1);
#pragma unroll
        for (u32 i = 0; i < COUNT; i++) {
            const u32 other = theirs[COUNT - 1 - i];
            keys[i] = first ? min(keys[i], other) : max(keys[i], other);
        }
#pragma unroll 1
        for (u32 by = lanes / 2; by; by /= 2) {
            const bool lower = !(lane_id() & by);
#pragma unroll
            for (u32 i = 0; i < COUNT; i++) {
                const u32 other = __shfl_xor_sync(mask, keys[i], by);
                keys[i] = lower ? min(keys[i], other) : max(keys[i], other);
            }
        }
        merge_within_lane(keys, COUNT / 2);
    }
}
