// out[s] = the sum of the sources of s, from left to right, if the elements are in tiles, each in the order of buckets
// (tile_runs.cu), and the sources of consecutive sums are in one bucket. A block copies the runs of a bucket, one of
// each tile, to shared memory, and gathers there. Blocks that run at a time take consecutive buckets, whose runs are
// adjacent: together they read contiguous parts of each tile.
//
// A warp takes 32 tiles; LANES lanes copy a run, 16 bytes each. A warp has looked up before where the first runs of a
// bucket are. A thread has the first two sources of its sums in registers before the bucket arrives, and loads those of
// the next bucket as it uses them: otherwise each sum would wait for memory while nothing else is in flight, because a
// block has all of the shared memory.
//
// Bytes: an element and 2 per source, 4 for each tile and bucket, one element per sum.
//
// Constants: SCALAR, THREADS, HELD (sums whose sources a thread holds), LANES, SHARED (0: elements of another size than
// planned are read in global memory).
#include "bulk.cuh"
#include "complex.cuh"

typedef SCALAR T;
#define WARPS (THREADS / 32)
#define NONE 0xffffu

// first_rest[b]: number of words of `rest` before those of bucket b; both are null if no sum has more than two sources.
// Shared memory: the units of the fullest bucket, or half a word per tile. Blocks take one bucket after another.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    tile_sum(const T* x, u32 stride, u32 unit, u32 tiles, const u16* starts, const u16* bases, const u32* pairs, const u32* rest, const u32* first_rest, const u32* first_run, u32 buckets,
             T* out) {
    extern __shared__ __align__(16) u8 memory[];
    const u32 lane = lane_id(), warp = threadIdx.x / 32, chunks = (tiles + 31) / 32;
#if SHARED
    const T* const bucket = reinterpret_cast<const T*>(memory);
    const auto value = [&](u32, u32 place) { return bucket[place]; };
#else
    // For each tile, the number of units of the bucket before it.
    u16* const before = reinterpret_cast<u16*>(memory);
    const auto value = [&](u32 b, u32 place) {
        u32 first = 0, behind = tiles;
        while (behind - first > 1) {
            const u32 middle = (first + behind) / 2;
            if (before[middle] <= place / unit) first = middle;
            else behind = middle;
        }
        return x[u64(first) * stride + starts[u64(b) * tiles + first] * unit + (place - before[first] * unit)];
    };
#endif
    u32 held[HELD], first = first_run[blockIdx.x], last = first_run[blockIdx.x + 1];
    const auto hold = [&](u32 i, u32 from, u32 to) {
        const u32 sum = from + i * THREADS + threadIdx.x;
        held[i] = sum < to ? __ldcs(pairs + sum) : 0;
    };
#pragma unroll
    for (u32 i = 0; i < HELD; i++) hold(i, first, last);
    // For a lane's tile: the place of its run, and the number of units of the bucket before the warp's tiles.
    u32 start = 0, length = 0, base = 0;
    const auto look = [&](u32 b, u32 chunk) {
        const u32 t = chunk * 32 + lane;
        start = length = 0;
        if (b < buckets && t < tiles) start = starts[u64(b) * tiles + t], length = starts[u64(b + 1) * tiles + t] - start;
        if (b < buckets && chunk < chunks) base = bases[u64(b) * chunks + chunk];
    };
    look(blockIdx.x, warp);
    for (u32 b = blockIdx.x; b < buckets; b += gridDim.x) {
        for (u32 chunk = warp; chunk < chunks; chunk += WARPS) {
            const u32 to = base + warp_inclusive_sum(length) - length;
#if SHARED
            const u32 from = start, many = length;
            look(b, chunk + WARPS);
#pragma unroll 2
            for (u32 e = 0; e < 32; e += 32 / LANES) {
                const u32 run = e + lane / LANES, units = __shfl_sync(ALL, many, run);
                const uint4* const source = reinterpret_cast<const uint4*>(x + u64(chunk * 32 + run) * stride) + __shfl_sync(ALL, from, run);
                uint4* const target = reinterpret_cast<uint4*>(memory) + __shfl_sync(ALL, to, run);
#pragma unroll 1
                for (u32 k = lane % LANES; k < units; k += LANES) copy16(in_shared(target + k), source + k);
            }
#else
            if (chunk * 32 + lane < tiles) before[chunk * 32 + lane] = u16(to);
            look(b, chunk + WARPS);
#endif
        }
#if SHARED
        copies_done();
#endif
        __syncthreads();
        look(b + gridDim.x, warp);
        const u32 next = b + gridDim.x, next_first = next < buckets ? first_run[next] : 0, next_last = next < buckets ? first_run[next + 1] : 0;
        u32 late = 0; // those of the held sums that have lists
#pragma unroll
        for (u32 i = 0; i < HELD; i++) {
            const u32 sum = first + i * THREADS + threadIdx.x, one = held[i] & 0xffff, two = held[i] >> 16;
            hold(i, next_first, next_last);
            if (sum >= last) continue;
            if (one == NONE) {
                late |= 1u << i;
                continue;
            }
            T all = value(b, one);
            if (two != NONE) all = all + value(b, two);
            out[sum] = all;
        }
        // One at a time: sums with lists, and those after the held ones.
        for (u32 sum = first + HELD * THREADS + threadIdx.x; late || sum < last;) {
            u32 own = sum;
            if (late) own = first + (__ffs(late) - 1) * THREADS + threadIdx.x, late &= late - 1;
            else sum += THREADS;
            const u32 pair = pairs[own];
            const bool listed = (pair & 0xffff) == NONE;
            const u32* const list = rest + (listed ? first_rest[b] + (pair >> 16) : 0);
            u32 word = listed ? list[0] : pair << 16 | (pair >> 16 == NONE ? 1 : 2);
            const u32 count = word & 0xffff;
            T all = value(b, word >> 16);
#pragma unroll 1
            for (u32 k = 1; k < count; k++) {
                if (k % 2) word = listed ? list[(k + 1) / 2] : pair >> 16;
                all = all + value(b, k % 2 ? word & 0xffff : word >> 16);
            }
            out[own] = all;
        }
        first = next_first, last = next_last;
        __syncthreads();
    }
}
