// out[s] = x[sources[j]] summed over the run s of sources, from left to right: the values of a matrix from those of its
// triplets. The highest bit of a source says that a run starts there; before[t] is the number of runs that start before
// tile t, with TILE sources each.
//
//     runs     1 | 0 2 | 3        sources  1* 0* 2 3*        (* highest bit)        TILE 2: before 0 2
//
// A block takes a tile. A thread loads all of its sources at once, then their elements of x, which are written to
// shared memory together with the starts of runs; then each thread sums a run. A run belongs to the tile in which it
// starts, and its thread reads what is in later tiles. This takes two dependent loads; a list of starts would add a
// third, and 4 bytes per run.
//
// Bytes: a source and an element of x, and an element written per run. Sums are always from left to right.
//
// Sources are checked: those beyond x add nothing, and are counted in `misses`.
//
// Constants: SCALAR, SOURCE, THREADS, ITEMS (sources per thread), BLOCKS (per multiprocessor, at least); TILE is
// THREADS * ITEMS.
#include "complex.cuh"

#define TILE (THREADS * ITEMS)
#define WARPS (THREADS / 32)
#define GROUPS (ITEMS * WARPS) // of 32 sources
#define HEAD (SOURCE(1) << (8 * sizeof(SOURCE) - 1))

typedef SCALAR T;

// The element of a source. With half of a matrix stored, it is unchanged, negated or conjugated.
template <bool HALF> DEVICE SOURCE place(SOURCE source) { return (source & ~HEAD) >> HALF; }
template <bool HALF> DEVICE T mirrored(T value, SOURCE source, u32 symmetry) {
    if (!HALF || source % 2 == 0) return value;
    return symmetry == 2 ? T(-value) : symmetry == 3 ? conj(value) : value;
}

// Adds the part of a run in later tiles, from source j on.
template <bool HALF> DEVICE void add_rest(T& sum, u32 symmetry, const T* x, u64 length, const SOURCE* sources, u64 j, u64 n) {
    for (; j < n && !(sources[j] & HEAD); j++) {
        const SOURCE at = place<HALF>(sources[j]);
        if (at < length) sum = sum + mirrored<HALF>(x[at], sources[j], symmetry);
    }
}

template <bool HALF>
DEVICE void sums(u32 symmetry, const T* x, u64 length, const SOURCE* sources, u64 n, const SOURCE* before, T* out, u64 runs, u32* misses) {
    __shared__ __align__(16) u8 memory[TILE * sizeof(T)];
    __shared__ u16 starts[TILE + 1];
    __shared__ u32 counts[GROUPS];
    T* const value = reinterpret_cast<T*>(memory);
    const u64 first = u64(blockIdx.x) * TILE;
    const u32 have = u32(min(u64(TILE), n - first)), lane = lane_id(), warp = threadIdx.x / 32;
    SOURCE source[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        const u32 at = i * THREADS + threadIdx.x;
        source[i] = at < have ? __ldcs(sources + first + at) : SOURCE(0);
    }
    const u64 earlier_tiles = before[blockIdx.x];
    T mine[ITEMS];
    bool missed = false;
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        const SOURCE at = place<HALF>(source[i]);
        missed = missed || at >= length;
        mine[i] = at < length ? x[at] : T();
    }
    u32 heads[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        heads[i] = __ballot_sync(ALL, (source[i] & HEAD) != 0);
        if (lane == 0) counts[i * WARPS + warp] = __popc(heads[i]);
    }
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) value[i * THREADS + threadIdx.x] = mirrored<HALF>(mine[i], source[i], symmetry);
    if (missed) atomicAdd(misses, 1u);
    __syncthreads();
    // The number of runs that start before each group, computed by every warp for itself.
    constexpr u32 EACH = (GROUPS + 31) / 32;
    u32 own = 0, earlier[EACH];
#pragma unroll
    for (u32 e = 0; e < EACH; e++) {
        earlier[e] = own;
        if (lane * EACH + e < GROUPS) own += counts[lane * EACH + e];
    }
    const u32 upto = warp_inclusive_sum(own), all = __shfl_sync(ALL, upto, 31);
#pragma unroll
    for (u32 e = 0; e < EACH; e++) earlier[e] += upto - own;
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        const u32 group = i * WARPS + warp;
        u32 rank = 0;
#pragma unroll
        for (u32 e = 0; e < EACH; e++) {
            const u32 candidate = __shfl_sync(ALL, earlier[e], group / EACH);
            if (group % EACH == e) rank = candidate;
        }
        if (source[i] & HEAD) starts[rank + __popc(heads[i] & lanes_below())] = u16(i * THREADS + threadIdx.x);
    }
    if (threadIdx.x == 0) starts[all] = u16(have);
    __syncthreads();
    for (u32 run = threadIdx.x; run < all; run += THREADS) {
        u32 k = starts[run];
        const u32 end = starts[run + 1];
        T sum = value[k];
        for (k++; k < end; k++) sum = sum + value[k];
        if (run + 1 == all) add_rest<HALF>(sum, symmetry, x, length, sources, first + have, n);
        if (earlier_tiles + run < runs) out[earlier_tiles + run] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    gather_sum(const T* x, u64 length, const SOURCE* sources, u64 n, const SOURCE* before, T* out, u64 runs, u32* misses) {
    sums<false>(0, x, length, sources, n, before, out, runs, misses);
}

// A source is 2 i + m, and x[i] is mirrored if m is 1: unchanged (1), negated (2), conjugated (3).
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    gather_sum_of_half(u32 symmetry, const T* x, u64 length, const SOURCE* sources, u64 n, const SOURCE* before, T* out, u64 runs,
                       u32* misses) {
    sums<true>(symmetry, x, length, sources, n, before, out, runs, misses);
}
