// Solves with large fronts (fronts.cuh, fronts_solve.cu), which many blocks of threads share. Up to GROUP blocks of
// pivots form a group, and within a group, V and E are replaced by those of the inverses of L and U (join_rows in
// fronts.cu). So a group takes two products instead of two for each block:
//
//     up     gather      y = b + u of the children
//            group_up    z = L^-1 y          for each group
//            rows_up     y_below -= V z
//     down   rest        y = z - E x         with x of the rows below the own ones
//            group_down  x = U^-1 y          for each group, the last first
//            rows_down   y_above -= E x
//
// A block of threads adds up ROWS rows of a product, with all threads on the columns: products are small and have to
// load as much as possible at the same time. It does so for up to VECTORS vectors, for which an entry is loaded once.
// z is stored in the place of x. As in fronts_solve.cu, kernels start early.
//
// Constants: SCALAR, THREADS, GROUP, VECTORS.
#include "fronts.cuh"

typedef SCALAR T;
typedef real_of<T>::type R;
// The number of rows of a front that a block gathers, and of those it adds up.
constexpr u32 PART = THREADS, ROWS = 8;
constexpr u32 ACROSS = THREADS / ROWS, WARPS = THREADS / 32;

// y = b, scaled, in the order of elimination.
extern "C" __global__ void __launch_bounds__(THREADS)
    gather_vectors(u64 n, u64 count, const u32* from, const f64* scales, const T* b, T* y) {
    after_predecessors();
    for (u64 at = u64(blockIdx.x) * THREADS + threadIdx.x; at < n * count; at += u64(gridDim.x) * THREADS) {
        const u64 k = at % n;
        const T value = b[at - k + from[k]];
        y[at] = scales ? R(scales[k]) * value : value;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    scatter_vectors(u64 n, u64 count, const u32* to, const f64* scales, const T* y, T* x) {
    after_predecessors();
    for (u64 at = u64(blockIdx.x) * THREADS + threadIdx.x; at < n * count; at += u64(gridDim.x) * THREADS) {
        const u64 k = at % n;
        x[at - k + to[k]] = scales ? R(scales[k]) * y[at] : y[at];
    }
}

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
    after_predecessors();
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

// A group of blocks in a front.
struct Group {
    Front front;
    u32 begin, end;      // its columns
    u32 first, last;     // its blocks
    u32 row;             // the first row of the block of threads
    u64 vector;          // the first vector, and their number
    u32 vectors;
};

DEVICE Group group_here(u32 first, u32 fronts_here, const u32* starts, u32 group, u32 count, const Front* fronts,
                        const u32* steps) {
    const u32 chunks = (count + VECTORS - 1) / VECTORS;
    const u32 block = blockIdx.x / chunks, number = find_start(starts, fronts_here, block);
    Group here;
    here.front = fronts[first + number];
    here.first = group * GROUP;
    here.last = min(here.first + GROUP, here.front.step_count);
    here.begin = steps[here.front.steps + here.first];
    here.end = steps[here.front.steps + here.last];
    here.row = (block - starts[number]) * ROWS + threadIdx.x % ROWS;
    here.vector = blockIdx.x % chunks * VECTORS;
    here.vectors = min(count - u32(here.vector), VECTORS);
    return here;
}

// Adds up *entry(j) value(j, v) for j in begin .. end and each of `vectors` vectors v, and calls told(v, sum). A thread
// has row threadIdx.x % ROWS, which may have limits of its own. All threads of a block call this once. Vectors are read
// after the previous launch, for which it waits; entries are prefetched before.
template <u32 MOST, typename E, typename V, typename F>
DEVICE void add_up(T (*parts)[WARPS][ROWS], u32 vectors, u32 begin, u32 end, E entry, V value, F told) {
    T sums[MOST];
#pragma unroll
    for (u32 v = 0; v < MOST; v++) sums[v] = T();
#pragma unroll 8
    for (u32 j = begin + threadIdx.x / ROWS; j < end; j += ACROSS) {
        const T factor = *entry(j);
#pragma unroll
        for (u32 v = 0; v < MOST; v++)
            if (v < vectors) sums[v] = fused(factor, value(j, v), sums[v]);
    }
#pragma unroll
    for (u32 v = 0; v < MOST; v++) {
#pragma unroll
        for (u32 with = ROWS; with < 32; with *= 2) sums[v] = sums[v] + shuffle_xor(sums[v], with);
        if (lane_id() < ROWS) parts[v][threadIdx.x / 32][lane_id()] = sums[v];
    }
    __syncthreads();
    const u32 row = threadIdx.x % ROWS, v = threadIdx.x / ROWS;
    if (v >= vectors) return;
    T sum = T();
#pragma unroll
    for (u32 warp = 0; warp < WARPS; warp++) sum = sum + parts[v][warp][row];
    told(v, sum);
}

template <typename E, typename V, typename F>
DEVICE void add_up(u32 vectors, u32 begin, u32 end, E entry, V value, F told) {
    __shared__ T parts[VECTORS][WARPS][ROWS];
    // Rows of a column are side by side, in one line or in two.
    if (threadIdx.x % ROWS == 0 || threadIdx.x % ROWS == ROWS - 1)
        for (u32 j = begin + threadIdx.x / ROWS; j < end; j += ACROSS) prefetch(entry(j));
    after_predecessors();
    if (vectors == 1) add_up<1>(parts, 1, begin, end, entry, value, told);
    else add_up<VECTORS>(parts, vectors, begin, end, entry, value, told);
}

// The first column of the block of pivots in which a column lies.
DEVICE u32 block_of(const Group& here, const u32* steps, u32 column) {
    u32 begin = here.begin;
#pragma unroll
    for (u32 k = 1; k < GROUP; k++)
        if (here.first + k < here.last && steps[here.front.steps + here.first + k] <= column)
            begin = steps[here.front.steps + here.first + k];
    return begin;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    group_up(u32 first, u32 fronts_here, const u32* starts, u32 group, u32 count, const Front* fronts,
             const u32* steps, const T* factors, u64 n, const T* y, T* z) {
    const Group here = group_here(first, fronts_here, starts, group, count, fronts, steps);
    const u32 i = here.begin + here.row;
    const bool is_own = i < here.end;
    const u64 m = here.front.height, at = here.vector * n + here.front.begin;
    const T* row = factors + here.front.panel + i;
    add_up(here.vectors, here.begin, is_own ? block_of(here, steps, i) : here.begin,
           [=](u32 j) { return row + j * m; }, [=](u32 j, u32 v) { return y[at + v * n + j]; },
           [=](u32 v, T sum) {
               if (is_own) z[at + v * n + i] = y[at + v * n + i] + sum;
           });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    rows_up(u32 first, u32 fronts_here, const u32* starts, u32 group, u32 count, const Front* fronts,
            const u32* steps, const T* factors, u64 n, u64 all_rows, T* y, T* u, const T* z) {
    const Group here = group_here(first, fronts_here, starts, group, count, fronts, steps);
    const Front& front = here.front;
    const u32 i = here.end + here.row;
    const u64 m = front.height, at = here.vector * n + front.begin;
    const T* row = factors + front.panel + i;
    const bool is_row = i < m;
    add_up(here.vectors, here.begin, is_row ? here.end : here.begin, [=](u32 j) { return row + j * m; },
           [=](u32 j, u32 v) { return z[at + v * n + j]; },
           [=](u32 v, T sum) {
               if (!is_row) return;
               T* target = row_of(front, y + (here.vector + v) * n, u + (here.vector + v) * all_rows, i);
               *target = *target - sum;
           });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    rest_down(u32 first, u32 fronts_here, const u32* starts, u32 count, const Front* fronts, const u32* rows,
              const u32* steps, const T* factors, u64 n, T* y, const T* x) {
    const Group here = group_here(first, fronts_here, starts, 0, count, fronts, steps);
    const Front& front = here.front;
    const u32 i = here.row, w = front.width, r = front.height - w;
    const bool is_own = i < w;
    const u64 base = here.vector * n, at = base + front.begin + i;
    const T* row = factors + front.upper + i;
    const u32* below = rows + front.rows;
    add_up(here.vectors, 0, is_own ? r : 0, [=](u32 j) { return row + u64(j) * w; },
           [=](u32 j, u32 v) { return x[base + v * n + below[j]]; },
           [=](u32 v, T sum) {
               if (is_own) y[at + v * n] = x[at + v * n] - sum;
           });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    group_down(u32 first, u32 fronts_here, const u32* starts, u32 group, u32 count, const Front* fronts,
               const u32* steps, const T* factors, u64 n, const T* y, T* x) {
    const Group here = group_here(first, fronts_here, starts, group, count, fronts, steps);
    const u32 i = here.begin + here.row;
    const bool is_own = i < here.end;
    const u64 m = here.front.height, at = here.vector * n + here.front.begin;
    const T* row = factors + here.front.panel + i;
    add_up(here.vectors, is_own ? block_of(here, steps, i) : here.end, here.end,
           [=](u32 j) { return row + j * m; }, [=](u32 j, u32 v) { return y[at + v * n + j]; },
           [=](u32 v, T sum) {
               if (is_own) x[at + v * n + i] = sum;
           });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    rows_down(u32 first, u32 fronts_here, const u32* starts, u32 group, u32 count, const Front* fronts,
              const u32* steps, const T* factors, u64 n, T* y, const T* x) {
    const Group here = group_here(first, fronts_here, starts, group, count, fronts, steps);
    const u32 i = here.row;
    const bool is_row = i < here.begin;
    const u64 m = here.front.height, at = here.vector * n + here.front.begin;
    const T* row = factors + here.front.panel + i;
    add_up(here.vectors, here.begin, is_row ? here.end : here.begin, [=](u32 j) { return row + j * m; },
           [=](u32 j, u32 v) { return x[at + v * n + j]; },
           [=](u32 v, T sum) {
               if (is_row) y[at + v * n + i] = y[at + v * n + i] - sum;
           });
}
