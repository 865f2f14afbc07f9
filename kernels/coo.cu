// y = alpha A x + beta y with A in coordinates, sorted by row.
//
//     | 1 . 7 . |     rows     0 0 1 2 2 3 3
//     | . . 8 . |     columns  0 2 2 1 2 0 3        tiles of 3 nonzeros: 1 7 8 | 4 3 2 | 1
//     | . 4 3 . |     values   1 7 8 4 3 2 1        row 3 spans tiles: 2 x_0 is in tile 1, 1 x_3 in tile 2
//     | 2 . . 1 |
//
// coo_segmented: a block takes a tile of nonzeros, whatever rows they belong to. Each thread sums runs of equal rows
// among ITEMS consecutive products; a segmented scan over the block joins runs across threads. A row within one tile is
// added to y there; a row that spans tiles leaves one piece per tile, and coo_join adds them up in their order. Two
// runs give the same bits.
//
// coo_atomic: a warp joins runs among its 32 products and adds each to y atomically. It needs no scratch memory and no
// second launch, but the order in which pieces of a row arrive, and with it the last bits, differs from run to run, so
// it is used only on request.
//
// Both add to y, so coo_scale runs before them unless beta is one.
//
// Bytes per nonzero: value + 8 for row and column + accesses to x that miss the caches. y: three times. Sources: PMPP
// 14.2 and exercise; cs378h (segmented scan); Bell and Garland 2008.
//
// Constants: SCALAR (vectors), STORED (values), THREADS, ITEMS (odd, so that shared memory is read without conflicts).
#include "product.cuh"

typedef SCALAR T;
typedef STORED V;
#define TILE (THREADS * ITEMS)

extern "C" __global__ void __launch_bounds__(THREADS) coo_scale(u64 n, T beta, T* y) {
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < n; i += u64(gridDim.x) * THREADS)
        y[i] = is_zero(beta) ? T() : beta * y[i];
}

// The sum of the run that is open at some place, and whether it started at or after the first place examined.
struct Open {
    T sum;
    u32 started;
};
DEVICE Open then(Open a, Open b) { return {b.started ? b.sum : a.sum + b.sum, a.started | b.started}; }

// pieces: two per tile, of the row that continues from the previous tile and of the one that continues in the next.
extern "C" __global__ void __launch_bounds__(THREADS)
    coo_segmented(u64 count, const u32* rows, const u32* columns, const V* values, T alpha, const T* x, T* y, u32 conjugate, T* pieces) {
    __shared__ alignas(16) unsigned char product_bytes[TILE * sizeof(T)], warp_bytes[THREADS / 32 * sizeof(Open)];
    __shared__ u32 row_of[TILE];
    T* const products = reinterpret_cast<T*>(product_bytes);
    Open* const of_warp = reinterpret_cast<Open*>(warp_bytes);
    const u64 start = u64(blockIdx.x) * TILE;
    const u32 n = count - start < TILE ? u32(count - start) : TILE;
    u32 column[ITEMS];
    V value[ITEMS];
    T of_x[ITEMS];
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++) {
        const u32 k = threadIdx.x + i * THREADS;
        if (k < n) {
            column[i] = stream(columns + start + k);
            value[i] = stream(values + start + k);
            row_of[k] = stream(rows + start + k);
        }
    }
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++)
        if (threadIdx.x + i * THREADS < n) of_x[i] = cached(x + column[i]);
#pragma unroll
    for (u32 i = 0; i < ITEMS; i++)
        if (threadIdx.x + i * THREADS < n) products[threadIdx.x + i * THREADS] = entry<T>(value[i], conjugate) * of_x[i];
    __syncthreads();
    const bool comes_in = start > 0 && rows[start - 1] == row_of[0];
    const bool goes_on = start + n < count && rows[start + n] == row_of[n - 1];

    // This thread's places: the run that is open at its start ends at `border`, others end inside or continue.
    const u32 low = threadIdx.x * ITEMS < n ? threadIdx.x * ITEMS : n, high = low + ITEMS < n ? low + ITEMS : n;
    Open mine = {T(), 0};
    T before_border = T();
    u32 border = high;
    for (u32 k = low; k < high; k++) {
        const bool starts = k == 0 ? !comes_in : row_of[k] != row_of[k - 1];
        if (starts) {
            if (!mine.started) {
                before_border = mine.sum;
                border = k;
            } else {
                T* const to = y + row_of[k - 1];
                *to = *to + alpha * mine.sum;
            }
            mine = {T(), 1};
        }
        mine.sum = mine.sum + products[k];
    }
    Open inclusive = mine;
#pragma unroll
    for (u32 by = 1; by < 32; by *= 2) {
        const Open other = shuffle_up(inclusive, by);
        if (lane_id() >= by) inclusive = then(other, inclusive);
    }
    Open before = shuffle_up(inclusive, 1);
    if (lane_id() == 0) before = {T(), 0};
    if (lane_id() == 31) of_warp[threadIdx.x / 32] = inclusive;
    __syncthreads();
    Open warps_before = {T(), 0};
    for (u32 w = 0; w < threadIdx.x / 32; w++) warps_before = then(warps_before, of_warp[w]);
    before = then(warps_before, before);

    // A run that ends here because another starts, and that began in an earlier thread.
    if (mine.started && border > 0 && low < high) {
        const T sum = before.sum + before_border;
        if (before.started) {
            T* const to = y + row_of[border - 1];
            *to = *to + alpha * sum;
        } else {
            pieces[2 * u64(blockIdx.x)] = sum;
        }
    }
    // The run that is open at the end of the tile.
    if (low < high && high == n) {
        const Open last = then(before, mine);
        if (!last.started) pieces[2 * u64(blockIdx.x)] = last.sum;
        else if (goes_on) pieces[2 * u64(blockIdx.x) + 1] = last.sum;
        else {
            T* const to = y + row_of[n - 1];
            *to = *to + alpha * last.sum;
        }
    }
}

// One warp per tile: if a row starts in it and continues, adds up all its pieces.
extern "C" __global__ void __launch_bounds__(THREADS)
    coo_join(u64 count, const u32* rows, T alpha, T* y, const T* pieces) {
    const u64 tiles = (count + TILE - 1) / TILE;
    for (u64 tile = (u64(blockIdx.x) * THREADS + threadIdx.x) / 32; tile + 1 < tiles; tile += u64(gridDim.x) * (THREADS / 32)) {
        const u32 row = rows[(tile + 1) * TILE - 1];
        if (rows[(tile + 1) * TILE] != row || (tile > 0 && rows[tile * TILE - 1] == row)) continue;
        T sum = lane_id() == 0 ? pieces[2 * tile + 1] : T();
        for (u64 next = tile + 1;; next += 32) {
            const u64 t = next + lane_id();
            const bool reached = t < tiles && rows[t * TILE - 1] == row && rows[t * TILE] == row;
            if (reached) sum = sum + pieces[2 * t];
            if (!__all_sync(ALL, reached)) break;
        }
        sum = warp_sum(sum);
        if (lane_id() == 0) y[row] = y[row] + alpha * sum;
    }
}

DEVICE void add(f32* to, f32 v) { atomicAdd(to, v); }
DEVICE void add(f64* to, f64 v) { atomicAdd(to, v); }
DEVICE void add(c32* to, c32 v) { atomicAdd(&to->re, v.re), atomicAdd(&to->im, v.im); }
DEVICE void add(c64* to, c64 v) { atomicAdd(&to->re, v.re), atomicAdd(&to->im, v.im); }

extern "C" __global__ void __launch_bounds__(THREADS)
    coo_atomic(u64 count, const u32* rows, const u32* columns, const V* values, T alpha, const T* x, T* y, u32 conjugate) {
    for (u64 base = u64(blockIdx.x) * THREADS; base < count; base += u64(gridDim.x) * THREADS) {
        const u64 k = base + threadIdx.x;
        const bool there = k < count;
        const u32 row = there ? stream(rows + k) : ~0u;
        T sum = there ? entry<T>(stream(values + k), conjugate) * cached(x + stream(columns + k)) : T();
#pragma unroll
        for (u32 by = 1; by < 32; by *= 2) {
            const T other = shuffle_up(sum, by);
            if (__shfl_up_sync(ALL, row, by) == row && lane_id() >= by) sum = other + sum;
        }
        const u32 next = __shfl_down_sync(ALL, row, 1);
        if (there && (lane_id() == 31 || next != row)) add(y + row, alpha * sum);
    }
}
