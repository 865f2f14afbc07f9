// out[i] = x[index[i]], and out[index[i]] = x[i], one thread per element: the indices are read in order, and the result
// is written in order (gather) or the input read in order (scatter); the other side is accessed at random, element by
// element.
//
// Bytes per element: sizeof(INDEX) + 2 * ITEM_BYTES, and up to 32 for the random side if neighbours are not used
// together. Indices are checked: those not below `m` are left out, and counted in `misses` unless it is null.
//
// Source: PMPP ch. 10 (coalescing).
//
// Constants: ITEM_BYTES (1, 2, 4, 8, 16), INDEX (u32 or u64), THREADS, ITEMS.
#include "common.cuh"

typedef unsigned_of<ITEM_BYTES>::type ITEM;

// out has n elements, x has m. Grid: ceil(n / (THREADS * ITEMS)).
extern "C" __global__ void __launch_bounds__(THREADS) gather(const ITEM* x, u64 m, const INDEX* index, ITEM* out, u64 n, u32* misses) {
    const u64 first = u64(blockIdx.x) * (THREADS * ITEMS) + threadIdx.x;
    INDEX at[ITEMS];
    ITEM item[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; i++) at[i] = first + i * THREADS < n ? index[first + i * THREADS] : 0;
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        if (first + i * THREADS < n && at[i] < m) item[i] = x[at[i]];
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        if (first + i * THREADS < n) {
            if (at[i] < m) out[first + i * THREADS] = item[i];
            else if (misses) atomicAdd(misses, 1);
        }
}

// x has n elements, out has m. If an index occurs twice, one of the elements is written, and it is not defined which.
extern "C" __global__ void __launch_bounds__(THREADS) scatter(const ITEM* x, u64 n, const INDEX* index, ITEM* out, u64 m, u32* misses) {
    const u64 first = u64(blockIdx.x) * (THREADS * ITEMS) + threadIdx.x;
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        u64 from = first + i * THREADS;
        if (from >= n) continue;
        INDEX at = index[from];
        if (at < m) out[at] = x[from];
        else if (misses) atomicAdd(misses, 1);
    }
}
