// Elements to buckets of places: out[place] = x[i]. A bucket has 1 << bits places, and the elements of a tile of TILE
// that go to one bucket get consecutive places. The moves are planned once.
//
//     places  5 0 3 6 | 2 7 1 4    tiles of 4, buckets of 4    slots  2 0 1 3 | 1 2 0 3    (any order in a bucket)
//     runs (a pair for each tile and bucket: the first place, the first slot)    0 0, 4 2 | 2 0, 6 2
//
// Planning: if places are the result of a sort by pairs, rank_places finds the bucket of an element among the pairs at
// which buckets start, so that no place needs to be scattered to its element. Then bucket_counts counts the elements of
// each tile for each bucket, bucket by bucket, and an exclusive scan of the counts gives their places; bucket_slots
// assigns the slots. Moving: a block has its tile in shared memory, in the order of slots, and a warp writes the run of
// one bucket, so that whole lines are read and written.
//
// Bytes per element: 2 ITEM_BYTES and a slot of 2; 8 for each tile and bucket.
//
// Constants: ITEM_BYTES (4, 8, 16), TILE (a multiple of 4 THREADS, at most 65536), THREADS, BLOCKS (per multiprocessor,
// at least), BUCKETS (maximum; no more than 31 per warp).
#include "common.cuh"

#define WARPS (THREADS / 32)
#define EACH (TILE / (THREADS * 4)) // groups of four elements per thread

typedef unsigned_of<ITEM_BYTES>::type ITEM;

// The bucket of a place. A place beyond the last bucket is assigned to that one, and counted in `misses`.
DEVICE u32 bucket_of(u32 place, u32 bits, u32 buckets) { return min(place >> bits, buckets - 1); }

// out[i] = the number of bounds not greater than (high[i], low[i], i), times 1 << bits. Bounds are triples in ascending
// order. Shared memory: 12 bytes per bound.
extern "C" __global__ void __launch_bounds__(THREADS)
    rank_places(const u32* high, const u32* low, u64 n, const u32* bound_high, const u32* bound_low, const u32* bound_number,
                u32 bounds, u32 bits, u32* out) {
    extern __shared__ __align__(16) u8 memory[];
    u64* const key = reinterpret_cast<u64*>(memory);
    u32* const number = reinterpret_cast<u32*>(key + bounds);
    for (u32 b = threadIdx.x; b < bounds; b += THREADS) key[b] = u64(bound_high[b]) << 32 | bound_low[b], number[b] = bound_number[b];
    __syncthreads();
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < n; i += u64(gridDim.x) * THREADS) {
        const u64 own = u64(high[i]) << 32 | low[i];
        u32 first = 0, last = bounds;
        while (first < last) {
            const u32 middle = (first + last) / 2;
            if (key[middle] < own || (key[middle] == own && number[middle] <= i)) first = middle + 1;
            else last = middle;
        }
        out[i] = first << bits;
    }
}

// counts[b * tiles + t] = number of elements of tile t for bucket b. One block per tile.
extern "C" __global__ void __launch_bounds__(THREADS)
    bucket_counts(const u32* places, u64 n, u32 bits, u32 buckets, u32* counts, u64 tiles, u32* misses) {
    __shared__ u32 count[BUCKETS];
    const u64 first = u64(blockIdx.x) * TILE;
    const u32 have = u32(min(u64(TILE), n - first));
    for (u32 b = threadIdx.x; b < buckets; b += THREADS) count[b] = 0;
    __syncthreads();
    for (u32 k = threadIdx.x; k < have; k += THREADS) {
        const u32 place = places[first + k];
        if (place >> bits >= buckets) atomicAdd(misses, 1u);
        atomicAdd(count + bucket_of(place, bits, buckets), 1u);
    }
    __syncthreads();
    for (u32 b = threadIdx.x; b < buckets; b += THREADS) counts[b * tiles + blockIdx.x] = count[b];
}

// With the scan of the counts: writes slots and runs, and replaces each place by the one that its element gets. One
// block per tile.
extern "C" __global__ void __launch_bounds__(THREADS)
    bucket_slots(u32* places, u64 n, u32 bits, u32 buckets, const u32* firsts, u64 tiles, u16* slots, u32* runs) {
    __shared__ u32 next[BUCKETS], start[BUCKETS], place[BUCKETS];
    const u64 first = u64(blockIdx.x) * TILE;
    const u32 have = u32(min(u64(TILE), n - first));
    for (u32 b = threadIdx.x; b < buckets; b += THREADS) next[b] = 0, place[b] = firsts[b * tiles + blockIdx.x];
    __syncthreads();
    for (u32 k = threadIdx.x; k < have; k += THREADS) atomicAdd(next + bucket_of(places[first + k], bits, buckets), 1u);
    __syncthreads();
    if (threadIdx.x < 32) {
        u32 before = 0;
        for (u32 b = threadIdx.x; b < BUCKETS; b += 32) {
            const u32 own = b < buckets ? next[b] : 0, upto = warp_inclusive_sum(own);
            if (b < buckets) start[b] = before + upto - own;
            before += __shfl_sync(ALL, upto, 31);
        }
    }
    __syncthreads();
    u32* const own_runs = runs + u64(blockIdx.x) * buckets * 2;
    for (u32 b = threadIdx.x; b < buckets; b += THREADS) next[b] = start[b], own_runs[2 * b] = place[b], own_runs[2 * b + 1] = start[b];
    __syncthreads();
    for (u32 k = threadIdx.x; k < have; k += THREADS) {
        const u32 b = bucket_of(places[first + k], bits, buckets), slot = atomicAdd(next + b, 1u);
        slots[first + k] = u16(slot);
        places[first + k] = place[b] + slot - start[b];
    }
}

// Shared memory: TILE elements. One block per tile.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    to_buckets(const ITEM* x, u64 n, const u16* slots, const u32* runs, u32 buckets, ITEM* out) {
    extern __shared__ __align__(16) u8 memory[];
    ITEM* const tile = reinterpret_cast<ITEM*>(memory);
    const u64 first = u64(blockIdx.x) * TILE;
    const u32 have = u32(min(u64(TILE), n - first)), lane = lane_id(), warp = threadIdx.x / 32;
    // Each lane holds one of its warp's runs, and also the run after the last: a run ends where the next one starts.
    const u32 each = (buckets + WARPS - 1) / WARPS, bucket = warp * each + lane;
    uint2 run = make_uint2(0, have);
    if (lane <= each && bucket < buckets) run = reinterpret_cast<const uint2*>(runs)[u64(blockIdx.x) * buckets + bucket];
    if (have == TILE && aligned16(x)) {
        ushort4 slot[EACH];
        ITEM item[EACH][4];
#pragma unroll
        for (u32 i = 0; i < EACH; i++) {
            const u64 at = first + (i * THREADS + threadIdx.x) * 4;
            slot[i] = __ldcs(reinterpret_cast<const ushort4*>(slots + at));
#pragma unroll
            for (u32 part = 0; part < ITEM_BYTES / 4; part++) {
                const uint4 raw = __ldcs(reinterpret_cast<const uint4*>(x + at) + part);
                memcpy(reinterpret_cast<u8*>(item[i]) + 16 * part, &raw, 16);
            }
        }
        // Keeps the loads together; without it the compiler makes one wait for the other.
        __syncthreads();
#pragma unroll
        for (u32 i = 0; i < EACH; i++) {
            const u32 to[4] = {slot[i].x, slot[i].y, slot[i].z, slot[i].w};
#pragma unroll
            for (u32 j = 0; j < 4; j++)
                if (to[j] < TILE) tile[to[j]] = item[i][j];
        }
    } else {
        for (u32 k = threadIdx.x; k < have; k += THREADS)
            if (slots[first + k] < have) tile[slots[first + k]] = x[first + k];
    }
    __syncthreads();
    for (u32 e = 0; e < each; e++) {
        const u32 place = __shfl_sync(ALL, run.x, e), from = __shfl_sync(ALL, run.y, e), end = min(have, __shfl_sync(ALL, run.y, e + 1));
        if (warp * each + e >= buckets) break;
        for (u32 k = from + lane; k < end; k += 32)
            if (place + (k - from) < n) out[place + (k - from)] = tile[k];
    }
}
