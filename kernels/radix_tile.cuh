// Sorts a tile of THREADS * ITEMS keys by a digit, and computes the global place of each digit's keys: the part common
// to passes of radix sorts. sort.cu explains how it works.
//
// Constants: THREADS (at least 256), ITEMS, LOOK (u32 below 2^30 keys, else u64), LOOK_AT_ONCE (predecessors that are
// read together), MATCH_HARDWARE (0, 1).
#pragma once
#include "lookback.cuh"
#include "votes.cuh"

#define RADIX_BITS 8
#define RADIX 256
#define WARPS (THREADS / 32)
#define TILE (THREADS * ITEMS)

// ---- exclusive sum over the first RADIX threads, in thread order; called by the whole block ------------------------
DEVICE u32 digit_exclusive_sum(u32 value, u32* warp_sums) {
    u32 inclusive = warp_inclusive_sum(value);
    if (lane_id() == 31 && threadIdx.x < RADIX) warp_sums[threadIdx.x / 32] = inclusive;
    __syncthreads();
    u32 before = 0;
#pragma unroll
    for (u32 w = 0; w < RADIX / 32; w++)
        if (w < threadIdx.x / 32) before += warp_sums[w];
    return before + inclusive - value;
}
DEVICE u64 digit_exclusive_sum(u64 value, u64* warp_sums) {
    u64 inclusive = warp_inclusive_sum(value);
    __syncthreads();
    if (lane_id() == 31 && threadIdx.x < RADIX) warp_sums[threadIdx.x / 32] = inclusive;
    __syncthreads();
    u64 before = 0;
    for (u32 w = 0; w < RADIX / 32; w++)
        if (w < threadIdx.x / 32) before += warp_sums[w];
    return before + inclusive - value;
}

// ---- places inside one tile ----------------------------------------------------------------------------------------

// Hides from the compiler that a key has been used before: it would otherwise keep every digit in a register of its
// own.
DEVICE void forget(u32& x) { asm volatile("" : "+r"(x)); }
DEVICE void forget(u64& x) { asm volatile("" : "+l"(x)); }
DEVICE void forget(u16&) {}
DEVICE void forget(u8&) {}

template <typename Bits> DEVICE u32 digit_of(Bits key, u32 shift, u32 mask) { return u32(key >> shift) & mask; }

// Counts the digits of the tile: `places` (WARPS * RADIX words) becomes the start in the sorted tile of the keys of
// each warp and digit. Thread d < RADIX gets the number of keys with digit d and their start. It contains barriers, one
// of them at the end.
template <typename Keys>
DEVICE void count_digits(const Keys& key, u32 shift, u32 mask, u32* places, u32* warp_sums, u32& total, u32& start) {
    u32* mine = places + threadIdx.x / 32 * RADIX;
    for (u32 i = lane_id(); i < RADIX / 4; i += 32) reinterpret_cast<uint4*>(mine)[i] = {0, 0, 0, 0};
    __syncwarp();
#pragma unroll
    for (int i = 0; i < ITEMS; i++) atomicAdd(mine + digit_of(key[i], shift, mask), 1);
    __syncthreads();
    u32 in_warp[WARPS];
    total = 0;
    if (threadIdx.x < RADIX) {
#pragma unroll
        for (int w = 0; w < WARPS; w++) in_warp[w] = places[w * RADIX + threadIdx.x];
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            u32 c = in_warp[w];
            in_warp[w] = total;
            total += c;
        }
    }
    start = digit_exclusive_sum(total, warp_sums);
    if (threadIdx.x < RADIX)
#pragma unroll
        for (int w = 0; w < WARPS; w++) places[w * RADIX + threadIdx.x] = in_warp[w] + start;
    __syncthreads();
}

// Returns the place of one key in the sorted tile. All lanes of the warp call this together, row by row. `mine`: this
// warp's part of `places`. MOSTLY_ALIKE: whether to test first if all lanes have the same digit.
template <bool MOSTLY_ALIKE = false> DEVICE u32 place_key(u32 digit, u32* mine) {
    u32 equal = ALL;
    if (!MOSTLY_ALIKE || !__all_sync(ALL, digit == __shfl_sync(ALL, digit, 0)))
#if MATCH_HARDWARE
        equal = __match_any_sync(ALL, digit);
#else
        equal = equal_lanes<RADIX_BITS>(digit);
#endif
    u32 below = __popc(equal & lanes_below());
    u32 place = mine[digit] + below;
    __syncwarp();
    if (below == 0) mine[digit] = place + __popc(equal);
    __syncwarp();
    return place;
}

// ---- one digit -----------------------------------------------------------------------------------------------------

DEVICE void store_look(LOOK* p, LOOK v) {
    if constexpr (sizeof(LOOK) == 4) asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(u32(v)) : "memory");
    else asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(u64(v)) : "memory");
}
DEVICE LOOK load_look(const LOOK* p) {
    if constexpr (sizeof(LOOK) == 4) {
        u32 v;
        asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
        return LOOK(v);
    } else {
        u64 v;
        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
        return LOOK(v);
    }
}
#define STATE_SHIFT (8 * sizeof(LOOK) - 2)
#define COUNT_MASK ((LOOK(1) << STATE_SHIFT) - 1)

// Publishes this tile's count of one digit. `words`: tile 0's word.
DEVICE void publish(LOOK* words, u64 tile, LOOK count) {
    store_look(words + tile * RADIX, count | LOOK(tile == 0 ? PREFIX : AGGREGATE) << STATE_SHIFT);
}

// Returns the number of keys with the digit in earlier tiles, and publishes the sum up to this tile.
DEVICE LOOK keys_before(LOOK* words, u64 tile, LOOK count) {
    if (tile == 0) return 0;
    LOOK before = 0;
    i64 at = i64(tile) - 1;
    bool found = false;
    while (!found) {
        LOOK word[LOOK_AT_ONCE];
#pragma unroll
        for (int j = 0; j < LOOK_AT_ONCE; j++) word[j] = load_look(words + (at >= j ? at - j : 0) * RADIX);
        bool open = true;
#pragma unroll
        for (int j = 0; j < LOOK_AT_ONCE; j++) {
            u32 state = u32(word[j] >> STATE_SHIFT);
            open = open && state != NOTHING && !found;
            if (open) {
                before += word[j] & COUNT_MASK;
                found = state == PREFIX;
                at--;
            }
        }
    }
    store_look(words + tile * RADIX, (before + count) | LOOK(PREFIX) << STATE_SHIFT);
    return before;
}
