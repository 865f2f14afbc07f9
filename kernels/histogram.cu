// Counts how often each bin number occurs: counts[x[i]] += 1. Numbers not below `bins` are left out.
//
// Three ways, of which the caller chooses by the number of bins:
//
//     histogram           bins fit in shared memory: every block counts its part there and adds its counts to the
//                         global ones at the end. One read of x.
//     histogram_cached    any number of bins: a block keeps a table in shared memory; slot = bin modulo CACHE except
//                         for the bank (a row of a grid has columns that differ by multiples of 32, which would all be
//                         in one bank). The first bin that comes to a slot owns it for a part of the input. Owned bins
//                         are counted in shared memory, the others directly in global memory. Frequent bins come early
//                         and are owned, so a power law does not serialise on few addresses; bins that occur near each
//                         other, as the columns of a grid's rows, are counted there too; a uniform distribution goes
//                         directly to the atomics of the second-level cache.
//    histogram_by_tiles  many bins, with x already grouped by the upper bits of the bin number (sort_pass in sort.cu on
//                         those bits): a block counts a window of WINDOW bins in shared memory and moves the window as
//                         the groups go by.
//
// Equal neighbours of a thread are added together. Counts are integers, so the result does not depend on any order.
//
// Sources: Merrill 2011, 4.5, and PMPP ch. 9 (privatisation, aggregation).
//
// Constants: COUNT (u32 or u64), THREADS, ITEMS (a multiple of 4), CACHE (slots, a power of two), WINDOW (a power of
// two).
#include "common.cuh"

#define VEC 4
#define STRETCH (4 * CACHE)

// Calls count(bin, how often) for the bins of this block's share of x, equal neighbours together.
template <typename Count> DEVICE void each_run(const u32* x, u64 n, u64 begin, u64 end, Count count) {
    const bool vectors = aligned16(x) && begin % VEC == 0;
    for (u64 first = begin; first < end; first += u64(THREADS) * ITEMS) {
        u32 bin[ITEMS];
        if (vectors && first + u64(THREADS) * ITEMS <= end) {
#pragma unroll
            for (int i = 0; i < ITEMS / VEC; i++) {
                u32 four[VEC];
                load16(x + first + (u64(i) * THREADS + threadIdx.x) * VEC, four);
#pragma unroll
                for (int v = 0; v < VEC; v++) bin[i * VEC + v] = four[v];
            }
        } else {
#pragma unroll
            for (int i = 0; i < ITEMS; i++) {
                u64 at = first + u64(i) * THREADS + threadIdx.x;
                bin[i] = at < end ? x[at] : ~0u;
            }
        }
        u32 run = 0;
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            run++;
            if (i == ITEMS - 1 || bin[i] != bin[i + 1 < ITEMS ? i + 1 : i]) {
                count(bin[i], run);
                run = 0;
            }
        }
    }
}

// A block's contiguous share, cut at multiples of a tile.
DEVICE void share(u64 n, u64& begin, u64& end) {
    const u64 tile = u64(THREADS) * ITEMS, tiles = (n + tile - 1) / tile;
    begin = tiles * blockIdx.x / gridDim.x * tile;
    end = tiles * (blockIdx.x + 1) / gridDim.x * tile;
    if (end > n) end = n;
}

// Adds to counts[0 .. bins). Dynamic shared memory: bins * 4.
extern "C" __global__ void __launch_bounds__(THREADS) histogram(const u32* x, u64 n, COUNT* counts, u32 bins) {
    extern __shared__ u32 mine[];
    for (u32 b = threadIdx.x; b < bins; b += THREADS) mine[b] = 0;
    __syncthreads();
    u64 begin, end;
    share(n, begin, end);
    each_run(x, n, begin, end, [&](u32 bin, u32 run) {
        if (bin < bins) atomicAdd(mine + bin, run);
    });
    __syncthreads();
    for (u32 b = threadIdx.x; b < bins; b += THREADS)
        if (mine[b]) atomicAdd(counts + b, COUNT(mine[b]));
}

// Adds to counts[0 .. bins). Dynamic shared memory: CACHE * 8.
extern "C" __global__ void __launch_bounds__(THREADS) histogram_cached(const u32* x, u64 n, COUNT* counts, u32 bins) {
    extern __shared__ u32 table[];
    u32 *owner = table, *mine = table + CACHE;
    const u32 FREE = ~0u;
    for (u32 s = threadIdx.x; s < CACHE; s += THREADS) {
        owner[s] = FREE;
        mine[s] = 0;
    }
    __syncthreads();
    u64 begin, end;
    share(n, begin, end);
    for (u64 first = begin; first < end; first += STRETCH) {
        each_run(x, n, first, min(first + STRETCH, end), [&](u32 bin, u32 run) {
            if (bin >= bins) return;
            u32 slot = (bin ^ ((bin >> 5 ^ bin >> 10 ^ bin >> 15) & 31)) & (CACHE - 1);
            u32 who = *(volatile u32*)(owner + slot);
            if (who == FREE) {
                who = atomicCAS(owner + slot, FREE, bin);
                if (who == FREE) who = bin;
            }
            if (who == bin) atomicAdd(mine + slot, run);
            else atomicAdd(counts + bin, COUNT(run));
        });
        __syncthreads();
        for (u32 s = threadIdx.x; s < CACHE; s += THREADS)
            if (mine[s]) {
                atomicAdd(counts + owner[s], COUNT(mine[s]));
                owner[s] = FREE;
                mine[s] = 0;
            }
        __syncthreads();
    }
}

// Adds to counts[0 .. bins). Dynamic shared memory: WINDOW * 4. x is grouped such that a tile has bins of few windows.
extern "C" __global__ void __launch_bounds__(THREADS) histogram_by_tiles(const u32* x, u64 n, COUNT* counts, u32 bins) {
    extern __shared__ u32 mine[];
    __shared__ u32 lowest;
    for (u32 b = threadIdx.x; b < WINDOW; b += THREADS) mine[b] = 0;
    u64 begin, end;
    share(n, begin, end);
    const u64 tile = u64(THREADS) * ITEMS;
    u32 window = ~0u;  // the bins window * WINDOW .. + WINDOW are in shared memory
    auto flush = [&]() {
        __syncthreads();
        if (window != ~0u)
            for (u32 b = threadIdx.x; b < WINDOW; b += THREADS) {
                u32 c = mine[b];
                if (c) {
                    atomicAdd(counts + u64(window) * WINDOW + b, COUNT(c));
                    mine[b] = 0;
                }
            }
        __syncthreads();
    };
    for (u64 first = begin; first < end; first += tile) {
        u32 bin[ITEMS];
        const bool whole = first + tile <= end && aligned16(x);
#pragma unroll
        for (int i = 0; i < ITEMS / VEC; i++) {
            u64 at = first + (u64(i) * THREADS + threadIdx.x) * VEC;
            u32 four[VEC];
            if (whole) load16(x + at, four);
            else
#pragma unroll
                for (int v = 0; v < VEC; v++) four[v] = at + v < end ? x[at + v] : ~0u;
#pragma unroll
            for (int v = 0; v < VEC; v++) bin[i * VEC + v] = four[v] < bins ? four[v] : ~0u;
        }
        // Windows of this tile, in ascending order; mostly it is the one already held.
        u32 done = 0;  // windows below are counted
        while (true) {
            u32 low = ~0u;
            bool other = false;
#pragma unroll
            for (int i = 0; i < ITEMS; i++) {
                u32 w = bin[i] == ~0u ? ~0u : bin[i] / WINDOW;
                if (w >= done && w < low) low = w;
                other |= w != ~0u && w >= done && w != window;
            }
            if (!__syncthreads_or(other)) {
#pragma unroll
                for (int i = 0; i < ITEMS; i++)
                    if (bin[i] != ~0u && bin[i] / WINDOW >= done) atomicAdd(mine + bin[i] % WINDOW, 1);
                break;
            }
            if (threadIdx.x == 0) lowest = ~0u;
            __syncthreads();
            low = least_of_lanes(low);
            if (lane_id() == 0) atomicMin(&lowest, low);
            __syncthreads();
            low = lowest;
            if (low != window) {
                flush();
                window = low;
            }
#pragma unroll
            for (int i = 0; i < ITEMS; i++)
                if (bin[i] != ~0u && bin[i] / WINDOW == low) atomicAdd(mine + bin[i] % WINDOW, 1);
            done = low + 1;
            __syncthreads();
        }
    }
    flush();
}
