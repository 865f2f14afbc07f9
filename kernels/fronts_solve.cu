// Solves with the factors in fronts (fronts.cuh), level by level: on the way up the tree, y is what remains of b, and u
// what fronts pass to their parents; on the way down, x is computed from y and from x in the rows below.
//
//     up     y = b + u of the children, then for each block y_below -= V y
//     down   for each block, the last first: x = D^-1 (y - E x_below)
//
// One block of threads processes a front; fronts_solve_large.cu has the larger ones. Vectors are in the order of
// elimination, one after another; block b of a launch has vector b % count. Kernels start early: before they wait for
// the previous launch, they read the structure and prefetch factors, which no solve writes.
//
// Constants: SCALAR, THREADS.
#include "fronts.cuh"

typedef SCALAR T;

extern "C" __global__ void __launch_bounds__(THREADS)
    fronts_up(u32 first, u32 count, const Front* fronts, const u32* children, const u32* places, const u32* steps,
              const T* factors, u64 n, u64 all_rows, T* y, T* u) {
    extern __shared__ __align__(16) u8 room[];
    T* t = reinterpret_cast<T*>(room);
    const Front front = fronts[first + blockIdx.x / count];
    const u64 vector = blockIdx.x % count;
    const u32 w = front.width, m = front.height;
    const T* panel = factors + front.panel;
    y += vector * n + front.begin;
    u += vector * all_rows;
    if (vector == 0) prefetch(panel, u64(w) * m);
    after_predecessors();
    for (u32 i = threadIdx.x; i < m; i += THREADS) t[i] = i < w ? y[i] : T();
    __syncthreads();
    for (u32 child = front.children; child < front.children_end; child++) {
        const Front from = fronts[children[child]];
        for (u32 i = threadIdx.x; i < from.height - from.width; i += THREADS) {
            const u32 place = places[from.rows + i];
            t[place] = t[place] + u[from.rows + i];
        }
        __syncthreads();
    }
    for (u32 step = 0; step < front.step_count; step++) {
        const u32 begin = steps[front.steps + step], end = steps[front.steps + step + 1];
        for (u32 i = end + threadIdx.x; i < m; i += THREADS) {
            T sum = T();
#pragma unroll 16
            for (u32 k = begin; k < end; k++) sum = fused(panel[i + u64(k) * m], t[k], sum);
            t[i] = t[i] - sum;
        }
        __syncthreads();
    }
    for (u32 i = threadIdx.x; i < m; i += THREADS)
        if (i < w) y[i] = t[i];
        else u[front.rows + i - w] = t[i];
}

// Adds up, in their order, what the groups have computed for a row.
DEVICE T sum_of(const T* parts, u32 row, u32 rows, u32 groups) {
    T sum = T();
    for (u32 group = 0; group < groups; group++) sum = sum + parts[group * rows + row];
    return sum;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    fronts_down(u32 first, u32 count, const Front* fronts, const u32* rows, const u32* steps, const T* factors, u64 n,
                const T* y, T* x) {
    extern __shared__ __align__(16) u8 room[];
    __shared__ T parts[THREADS], left[64];
    T* t = reinterpret_cast<T*>(room);
    const Front front = fronts[first + blockIdx.x / count];
    const u64 vector = blockIdx.x % count;
    const u32 w = front.width, m = front.height;
    const T *panel = factors + front.panel, *upper = factors + front.upper;
    y += vector * n + front.begin;
    x += vector * n;
    if (vector == 0) prefetch(panel, u64(w) * (2 * m - w));
    after_predecessors();
    for (u32 i = threadIdx.x; i < m; i += THREADS) t[i] = i < w ? y[i] : x[rows[front.rows + i - w]];
    __syncthreads();
    for (u32 step = front.step_count; step-- > 0;) {
        const u32 begin = steps[front.steps + step], end = steps[front.steps + step + 1], own = end - begin;
        u32 across = 4;
        while (across < own) across *= 2;
        const u32 k = threadIdx.x % across, group = threadIdx.x / across, groups = THREADS / across;
        T sum = T();
        if (k < own) {
#pragma unroll 8
            for (u32 j = end + group; j < m; j += groups) {
                const T* entry = j < w ? panel + begin + k + u64(j) * m : upper + begin + k + u64(j - w) * w;
                sum = fused(*entry, t[j], sum);
            }
        }
        parts[threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.x < own) left[threadIdx.x] = t[begin + threadIdx.x] - sum_of(parts, threadIdx.x, across, groups);
        __syncthreads();
        sum = T();
        if (k < own)
#pragma unroll 8
            for (u32 j = group; j < own; j += groups) sum = fused(panel[begin + k + u64(begin + j) * m], left[j], sum);
        parts[threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.x < own) t[begin + threadIdx.x] = sum_of(parts, threadIdx.x, across, groups);
        __syncthreads();
    }
    for (u32 i = threadIdx.x; i < w; i += THREADS) x[front.begin + i] = t[i];
}
