// Triangular systems T x = r, with rows stored by levels and each solved by LANES lanes, which wait for the unknowns
// that they need (without a barrier between levels: Liu, Li, Hogg, Duff and Vinter, A synchronization-free algorithm
// for parallel sparse triangular solves, Euro-Par 2016; they work by columns, this by rows, so that sums are added in a
// fixed order). Moves the entries with their columns once, reads r and writes x, and reads x once more for each entry
// from the L2 cache.
//
// Constants: SCALAR, OFFSET, THREADS, LANES (per row).
#include "awaited.cuh"

typedef SCALAR T;
typedef OFFSET I;
constexpr u32 ROWS = 32 / LANES; // rows per warp
constexpr u32 MANY = 4;          // entries in flight per lane

// Launched before a solve: marks all unknowns as not computed, and no turn as taken. x has n + 1 elements.
extern "C" __global__ void __launch_bounds__(THREADS) triangular_start(u64 n, T* x) {
    for (u64 k = u64(blockIdx.x) * THREADS + threadIdx.x; k <= n; k += u64(gridDim.x) * THREADS)
        x[k] = k < n ? nothing_of<T>::get() : T();
}

extern "C" __global__ void __launch_bounds__(THREADS)
    triangular_solve(u64 n, const u32* sources, const I* offsets, const u32* columns, const T* values,
                     const T* inverses, const T* r, T* x) {
    const u32 lane = lane_id() % LANES;
    u32* turns = reinterpret_cast<u32*>(x + n);
    while (true) {
        const u64 first = next_turn(turns) * ROWS;
        if (first >= n) return;
        const u64 k = first + lane_id() / LANES;
        u64 at = 0, end = 0;
        T sum = T(), inverse = T();
        if (k < n) {
            at = u64(offsets[k]) + lane;
            end = offsets[k + 1];
            if (lane == 0) {
                sum = -r[sources[k]];
                if (inverses) inverse = inverses[k];
            }
        }
        bool done = k >= n;
        u32 column[MANY];
        T value[MANY], unknown[MANY];
        bool fresh = true;
        // All lanes of the warp loop together, because a row may need an unknown of another lane's row.
        while (true) {
            if (fresh) {
                fresh = false;
#pragma unroll
                for (u32 j = 0; j < MANY; j++)
                    if (at + j * LANES < end) {
                        column[j] = columns[at + j * LANES];
                        value[j] = values[at + j * LANES];
                        unknown[j] = nothing_of<T>::get();
                    } else {
                        column[j] = 0;
                        value[j] = T();
                        unknown[j] = T();
                    }
            }
            bool all = true;
#pragma unroll
            for (u32 j = 0; j < MANY; j++)
                if (absent(unknown[j])) {
                    unknown[j] = load_now(x + column[j]);
                    all = all && !absent(unknown[j]);
                }
            if (all && at < end) {
#pragma unroll
                for (u32 j = 0; j < MANY; j++)
                    if (at + j * LANES < end) sum = fused(value[j], unknown[j], sum);
                at += MANY * LANES;
                fresh = at < end;
            }
            const bool complete = in_group<LANES>(at >= end) && !done;
            if (__any_sync(ALL, complete)) {
                T total = sum;
#pragma unroll
                for (u32 with = LANES / 2; with; with /= 2) total = total + shuffle_xor(total, with);
                if (complete && lane == 0) hand_on(x + k, inverses ? -(total * inverse) : -total);
                done = done || complete;
            }
            if (__all_sync(ALL, done)) break;
        }
    }
}
