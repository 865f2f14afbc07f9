// Elements in tiles, each in the order of buckets: a tile's elements for one bucket are a run, and contiguous. A kernel
// that sums elements from all over memory (tile_sum.cu) can then copy the runs of a bucket to shared memory as a whole,
// and gather there.
//
//     buckets of elements  1 0 0 | 1 1 0     tiles of 3, units of 2     slots  2 0 1 | 2 3 0     ordered  e1 e2 e0 . | e5 . e3 e4
//
// A run takes whole units of 16 bytes (for the type that a plan was made for), so that copies have 16 bytes; the
// padding after a run's last element is undefined. A tile is ordered in shared memory and leaves it by one bulk copy,
// so that memory is only streamed: writing the runs of thousands of buckets each to its own place would take two thirds
// longer (f64).
//
// Planning: order_tile, with one block per tile, counts the tile's elements for each bucket and assigns slots;
// order_bucket, with one block per bucket, computes the position in the bucket of each tile's run, and looks up the new
// places of the sources of sums.
//
// Bytes per element: 2 ITEM_BYTES and a slot of 2.
//
// Constants: ITEM_BYTES (4, 8, 16), THREADS (a multiple of 128), SHARED (0: a tile is ordered in global memory, for
// types of another size than planned).
#include "block_before.cuh"
#include "bulk.cuh"

typedef unsigned_of<ITEM_BYTES>::type ITEM;
#define NONE 0xffffu

// starts[b * tiles + t]: the unit of tile t in which its run for bucket b starts, for b up to `buckets`, where the last
// run ends. most[0]: at least the number of units of a tile. Shared memory: one word per bucket. One block per tile.
extern "C" __global__ void __launch_bounds__(THREADS)
    order_tile(const u32* bucket_of, u64 n, u32 tile, u32 buckets, u32 unit, u16* slots, u16* starts, u32* most) {
    extern __shared__ u32 next[];
    const u64 first = u64(blockIdx.x) * tile, tiles = gridDim.x;
    const u32 have = u32(min(u64(tile), n - first));
    for (u32 b = threadIdx.x; b < buckets; b += THREADS) next[b] = 0;
    __syncthreads();
    for (u32 k = threadIdx.x; k < have; k += THREADS) atomicAdd(next + min(bucket_of[first + k], buckets - 1), 1u);
    __syncthreads();
    u32 before = 0;
    for (u32 at = 0; at < buckets; at += THREADS) {
        const u32 b = at + threadIdx.x, own = b < buckets ? (next[b] + unit - 1) / unit : 0;
        u32 all;
        const u32 start = before + block_before<THREADS>(own, all);
        if (b < buckets) starts[b * tiles + blockIdx.x] = u16(start), next[b] = start * unit;
        before += all;
    }
    if (threadIdx.x == 0) starts[buckets * tiles + blockIdx.x] = u16(before), atomicMax(most, before);
    __syncthreads();
    for (u32 k = threadIdx.x; k < have; k += THREADS) slots[first + k] = u16(atomicAdd(next + min(bucket_of[first + k], buckets - 1), 1u));
}

// For bucket b, whose sums are [first_run[b], first_run[b + 1]): bases[b * chunks + c], the number of its units in
// tiles before 32 c, and the places of the sources of its sums among its elements. A word of `pairs` has one or two of
// them, with 0xffff in the upper half for none; for a sum with more, it has 0xffff in the lower half, and in the upper
// half the word of the bucket's part of `rest` at which its list starts. That part starts at rest_starts[first_run[b]];
// a list is the number of sources, then these, two per word. most[1], most[2]: at least the numbers of units and words
// of a bucket. rest and rest_starts are null if no sum has a list. Shared memory: one word per tile. One block per
// bucket.
extern "C" __global__ void __launch_bounds__(THREADS)
    order_bucket(const u16* starts, u32 tiles, const u16* slots, u32 tile, u32 unit, const u32* sources, u64 n, const u32* run_starts, u64 runs, const u32* first_run, u32 mark,
                 const u32* rest_starts, u16* bases, u32* pairs, u32* rest, u32* most) {
    extern __shared__ u32 shift[];
    const u64 b = blockIdx.x;
    const u16 *const here = starts + b * tiles, *const there = here + tiles;
    const u32 chunks = (tiles + 31) / 32;
    u32 before = 0;
    for (u32 at = 0; at < tiles; at += THREADS) {
        const u32 t = at + threadIdx.x;
        u32 all;
        const u32 own = before + block_before<THREADS>(t < tiles ? u32(there[t]) - here[t] : 0u, all);
        if (t < tiles) {
            shift[t] = (own - here[t]) * unit;
            if (t % 32 == 0) bases[b * chunks + t / 32] = u16(own);
        }
        before += all;
    }
    const u64 first = first_run[b], last = first_run[b + 1];
    if (threadIdx.x == 0) {
        atomicMax(most + 1, before);
        if (rest != nullptr) atomicMax(most + 2, rest_starts[last] - rest_starts[first]);
    }
    __syncthreads();
    const auto place = [&](u64 k) {
        const u32 i = sources[k] & ~mark;
        return (slots[i] + shift[i / tile]) & 0xffff;
    };
    for (u64 run = first + threadIdx.x; run < last; run += THREADS) {
        const u64 start = run_starts[run], end = run + 1 < runs ? run_starts[run + 1] : n;
        if (end - start <= 2) {
            pairs[run] = place(start) | (start + 1 < end ? place(start + 1) : NONE) << 16;
            continue;
        }
        const u32 at = rest_starts[run] - rest_starts[first];
        pairs[run] = NONE | at << 16;
        u32* const list = rest + rest_starts[run];
        u32 word = u32(end - start);
        for (u64 k = start; k < end; k++) {
            if ((k - start) % 2) word = place(k);
            else list[(k - start) / 2] = word | place(k) << 16;
        }
        if ((end - start) % 2 == 0) list[(end - start) / 2] = word;
    }
}

// words[run]: number of words of its list.
extern "C" __global__ void __launch_bounds__(THREADS) list_words(const u32* run_starts, u64 runs, u64 n, u32* words) {
    for (u64 run = u64(blockIdx.x) * THREADS + threadIdx.x; run < runs; run += u64(gridDim.x) * THREADS) {
        const u32 length = u32((run + 1 < runs ? run_starts[run + 1] : n) - run_starts[run]);
        words[run] = length > 2 ? length / 2 + 1 : 0;
    }
}

struct Group {
    ITEM item[4];
    ushort4 slot;
};

// Tile t starts at out[t * stride]. Shared memory: the units of the fullest tile. Blocks take one tile after another.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    to_tiles(const ITEM* x, u64 n, const u16* slots, u32 tile, u32 tiles, const u16* ends, u32 stride, ITEM* out) {
#if SHARED
    extern __shared__ __align__(128) u8 memory[];
    ITEM* const own = reinterpret_cast<ITEM*>(memory);
    const bool whole = aligned16(x);
    Group group;
    const auto have = [&](u32 t) { return t < tiles ? u32(min(u64(tile), n - u64(t) * tile)) : 0; };
    const auto fetch = [&](u32 t, u32 at) {
        if (!whole || at + 4 > have(t)) return;
        const u64 from = u64(t) * tile + at;
        group.slot = __ldcs(reinterpret_cast<const ushort4*>(slots + from));
#pragma unroll
        for (u32 part = 0; part < ITEM_BYTES / 4; part++) {
            const uint4 raw = __ldcs(reinterpret_cast<const uint4*>(x + from) + part);
            memcpy(reinterpret_cast<u8*>(group.item) + 16 * part, &raw, 16);
        }
    };
    fetch(blockIdx.x, threadIdx.x * 4);
    for (u32 t = blockIdx.x; t < tiles; t += gridDim.x) {
        // The previous tile has been written.
        if (threadIdx.x == 0) bulk_stores_read();
        __syncthreads();
        if (whole) {
            for (u32 at = threadIdx.x * 4; at + 4 <= have(t); at += THREADS * 4) {
                own[group.slot.x] = group.item[0];
                own[group.slot.y] = group.item[1];
                own[group.slot.z] = group.item[2];
                own[group.slot.w] = group.item[3];
                fetch(t, at + THREADS * 4);
            }
        }
        for (u32 k = (whole ? have(t) / 4 * 4 : 0) + threadIdx.x; k < have(t); k += THREADS) own[slots[u64(t) * tile + k]] = x[u64(t) * tile + k];
        bulk_sees_writes();
        __syncthreads();
        const u32 bytes = ends[t] * 16;
#if BULK
        if (threadIdx.x == 0) bulk_store(out + u64(t) * stride, own, bytes);
        fetch(t + gridDim.x, threadIdx.x * 4);
#else
        fetch(t + gridDim.x, threadIdx.x * 4);
        for (u32 k = threadIdx.x; k < bytes / 16; k += THREADS) reinterpret_cast<uint4*>(out + u64(t) * stride)[k] = reinterpret_cast<const uint4*>(own)[k];
#endif
    }
    if (threadIdx.x == 0) bulk_stores_read();
#else
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < n; i += u64(gridDim.x) * THREADS) out[i / tile * stride + slots[i]] = x[i];
#endif
}
