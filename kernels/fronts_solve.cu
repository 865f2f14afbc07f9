// Solves with the factors in fronts (fronts.cuh), level by level: on the way up the tree, y is what remains of b, and u
// what fronts pass to their parents; on the way down, x is computed from y and from x in the rows below.
//
//     up     y = b + u of the children, then for each block y_below -= V y
//     down   for each block, the last first: x = D^-1 (y - E x_below)
//
// One block processes a front up to a certain size; larger fronts need a launch for each step, with one block for each
// part of their rows. Vectors are in the order of elimination, one after another; block b of a launch has vector b %
// count.
//
// Constants: SCALAR, THREADS.
#include "fronts.cuh"

typedef SCALAR T;
typedef real_of<T>::type R;
// The number of rows in a part of a large front: PART if one thread adds up a row, FEW if several threads do.
constexpr u32 PART = THREADS, FEW = 32, GROUPS = THREADS / FEW;

// y = b, scaled, in the order of elimination.
extern "C" __global__ void __launch_bounds__(THREADS)
    gather_vectors(u64 n, u64 count, const u32* from, const f64* scales, const T* b, T* y) {
    for (u64 at = u64(blockIdx.x) * THREADS + threadIdx.x; at < n * count; at += u64(gridDim.x) * THREADS) {
        const u64 k = at % n;
        const T value = b[at - k + from[k]];
        y[at] = scales ? R(scales[k]) * value : value;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    scatter_vectors(u64 n, u64 count, const u32* to, const f64* scales, const T* y, T* x) {
    for (u64 at = u64(blockIdx.x) * THREADS + threadIdx.x; at < n * count; at += u64(gridDim.x) * THREADS) {
        const u64 k = at % n;
        x[at - k + to[k]] = scales ? R(scales[k]) * y[at] : y[at];
    }
}

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
    for (u32 i = threadIdx.x; i < m; i += THREADS) t[i] = i < w ? y[i] : x[rows[front.rows + i - w]];
    __syncthreads();
    for (u32 step = front.step_count; step-- > 0;) {
        const u32 begin = steps[front.steps + step], end = steps[front.steps + step + 1], own = end - begin;
        u32 across = 4;
        while (across < own) across *= 2;
        const u32 k = threadIdx.x % across, group = threadIdx.x / across, groups = THREADS / across;
        T sum = T();
        if (k < own)
            for (u32 j = end + group; j < m; j += groups) {
                const T entry = j < w ? panel[begin + k + u64(j) * m] : upper[begin + k + u64(j - w) * w];
                sum = fused(entry, t[j], sum);
            }
        parts[threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.x < own) left[threadIdx.x] = t[begin + threadIdx.x] - sum_of(parts, threadIdx.x, across, groups);
        __syncthreads();
        sum = T();
        if (k < own)
            for (u32 j = group; j < own; j += groups) sum = fused(panel[begin + k + u64(begin + j) * m], left[j], sum);
        parts[threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.x < own) t[begin + threadIdx.x] = sum_of(parts, threadIdx.x, across, groups);
        __syncthreads();
    }
    for (u32 i = threadIdx.x; i < w; i += THREADS) x[front.begin + i] = t[i];
}

// ---- fronts that are larger: row i of a front is an entry of y, or of u from the row `width` on ---------------------

DEVICE T* row_of(const Front& front, T* y, T* u, u32 i) {
    return i < front.width ? y + front.begin + i : u + front.rows + (i - front.width);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    large_gather(u32 first, u32 fronts_here, const u32* starts, u32 count, const Front* fronts, const u32* children,
                 const u32* places, u64 n, u64 all_rows, T* y, T* u) {
    const u32 block = blockIdx.x / count, number = find_start(starts, fronts_here, block);
    const u64 vector = blockIdx.x % count;
    const Front front = fronts[first + number];
    const u32 begin = (block - starts[number]) * PART, end = min(begin + PART, front.height);
    y += vector * n;
    u += vector * all_rows;
    for (u32 i = begin + threadIdx.x; i < end; i += THREADS)
        if (i >= front.width) *row_of(front, y, u, i) = T();
    __syncthreads();
    for (u32 child = front.children; child < front.children_end; child++) {
        const Front from = fronts[children[child]];
        const u32 rows = from.height - from.width;
        const u32* place = places + from.rows;
        const u32 last = count_below(place, rows, end);
        for (u32 i = count_below(place, rows, begin) + threadIdx.x; i < last; i += THREADS) {
            T* row = row_of(front, y, u, place[i]);
            *row = *row + u[from.rows + i];
        }
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    large_up(u32 first, u32 fronts_here, const u32* starts, u32 step, u32 count, const Front* fronts, const u32* steps,
             const T* factors, u64 n, u64 all_rows, T* y, T* u) {
    __shared__ T known[64];
    const u32 block = blockIdx.x / count, number = find_start(starts, fronts_here, block);
    const u64 vector = blockIdx.x % count;
    const Front front = fronts[first + number];
    const u32 begin = steps[front.steps + step], end = steps[front.steps + step + 1], m = front.height;
    y += vector * n;
    u += vector * all_rows;
    if (threadIdx.x < end - begin) known[threadIdx.x] = y[front.begin + begin + threadIdx.x];
    __syncthreads();
    const u32 i = end + (block - starts[number]) * PART + threadIdx.x;
    if (i >= m) return;
    const T* panel = factors + front.panel + u64(begin) * m + i;
    T sum = T();
    for (u32 k = 0; k < end - begin; k++) sum = fused(panel[u64(k) * m], known[k], sum);
    T* row = row_of(front, y, u, i);
    *row = *row - sum;
}

// y -= E x, with x of the rows below.
extern "C" __global__ void __launch_bounds__(THREADS)
    large_rest(u32 first, u32 fronts_here, const u32* starts, u32 count, const Front* fronts, const u32* rows,
               const T* factors, u64 n, T* y, const T* x) {
    __shared__ T parts[THREADS];
    const u32 block = blockIdx.x / count, number = find_start(starts, fronts_here, block);
    const u64 vector = blockIdx.x % count;
    const Front front = fronts[first + number];
    const u32 w = front.width, r = front.height - w, k = threadIdx.x % FEW;
    const u32 i = (block - starts[number]) * FEW + k;
    x += vector * n;
    T sum = T();
    if (i < w)
        for (u32 j = threadIdx.x / FEW; j < r; j += GROUPS)
            sum = fused(factors[front.upper + i + u64(j) * w], x[rows[front.rows + j]], sum);
    parts[threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.x < FEW && i < w) {
        T* row = y + vector * n + front.begin + i;
        *row = *row - sum_of(parts, k, FEW, GROUPS);
    }
}

// x of a block, which each part computes for itself, and y -= E x for the rows before it. y of the block is only read.
extern "C" __global__ void __launch_bounds__(THREADS)
    large_down(u32 first, u32 fronts_here, const u32* starts, u32 step, u32 count, const Front* fronts,
               const u32* steps, const T* factors, u64 n, T* y, T* x) {
    __shared__ T left[64], known[64];
    const u32 block = blockIdx.x / count, number = find_start(starts, fronts_here, block);
    const u64 vector = blockIdx.x % count;
    const Front front = fronts[first + number];
    const u32 begin = steps[front.steps + step], own = steps[front.steps + step + 1] - begin;
    const u64 m = front.height;
    const T* columns = factors + front.panel + begin * m;
    y += vector * n + front.begin;
    if (threadIdx.x < own) left[threadIdx.x] = y[begin + threadIdx.x];
    __syncthreads();
    if (threadIdx.x < own) {
        T sum = T();
        for (u32 k = 0; k < own; k++) sum = fused(columns[begin + threadIdx.x + k * m], left[k], sum);
        known[threadIdx.x] = sum;
        if (block == starts[number]) x[vector * n + front.begin + begin + threadIdx.x] = sum;
    }
    __syncthreads();
    const u32 i = (block - starts[number]) * PART + threadIdx.x;
    if (i >= begin) return;
    T sum = T();
    for (u32 k = 0; k < own; k++) sum = fused(columns[i + k * m], known[k], sum);
    y[i] = y[i] - sum;
}
