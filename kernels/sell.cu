// y = alpha A x + beta y with A in SELL-C-sigma, a thread a row.
//
//     | 1 . 7 . |     C = 2, sigma = 4
//     | . . 8 . |     order    0 2 | 3 1          thread 0 has row 0, thread 1 row 2, thread 2 row 3, thread 3 row 1
//     | . 4 3 . |     lengths  2 2 | 2 1
//     | 2 . . 1 |     offsets  0 4 8
//                     columns  0 1 2 2 | 0 2 3 *  step 0 reads 0 1 and 0 2, step 1 reads 2 2 and 3
//                     values   1 4 7 3 | 2 8 1 *
//
// Entry k of the row at position p is at offsets[p / C] + k * C + p % C: neighbouring threads read neighbouring addresses,
// and x at the columns of neighbouring rows. Padding is told by its column and is not multiplied. So the lengths of rows need not be
// read, which on stencils would be a twentieth of all bytes.
//
// Bytes a nonzero: value + 4 for the column (padding too) + what of x misses the caches. A row: its place in the order where there is
// one, and y. Source: Kreutzer et al. 2014; PMPP 14.6.
//
// Constants: SCALAR (vectors), STORED (values), OFFSET (offsets), HEIGHT (C, or 0: told at the launch), UNROLL (entries a thread
// has under way), THREADS.
#include "block_sum.cuh"
#include "product.cuh"

typedef SCALAR T;
typedef STORED V;
typedef OFFSET I;

// `lengths` where a column may have the number of padding, else null.
DEVICE T position_sum(u64 p, u32 height, const u32* lengths, const I* offsets, const u32* columns, const V* values, const T* x, u32 conjugate) {
    const u32 c = HEIGHT ? HEIGHT : height;
    const u64 section = p / c, begin = offsets[section], base = begin + (p - section * c);
    const u32 width = u32((u64(offsets[section + 1]) - begin) / c);
    T sum = T();
    for (u32 k = 0; k < width; k += UNROLL) {
        u32 column[UNROLL];
        V value[UNROLL];
        T of_x[UNROLL];
        bool there[UNROLL];
#pragma unroll
        for (u32 u = 0; u < UNROLL; u++)
            if (there[u] = k + u < width; there[u]) {
                column[u] = columns[base + u64(k + u) * c];
                value[u] = values[base + u64(k + u) * c];
            }
#pragma unroll
        for (u32 u = 0; u < UNROLL; u++) {
            there[u] = there[u] && (column[u] != PADDING || (lengths && k + u < lengths[p]));
            if (there[u]) of_x[u] = cached(x + column[u]);
        }
#pragma unroll
        for (u32 u = 0; u < UNROLL; u++)
            if (there[u]) sum = sum + entry<T>(value[u], conjugate) * of_x[u];
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    sell(u64 rows, u32 height, const u32* order, const u32* lengths, const I* offsets, const u32* columns, const V* values, T alpha,
         const T* x, T beta, T* y, u32 conjugate) {
    after_predecessors();
    const u64 p = u64(blockIdx.x) * THREADS + threadIdx.x;
    if (p >= rows) return;
    const T sum = position_sum(p, height, lengths, offsets, columns, values, x, conjugate);
    finish(alpha, sum, beta, y + (order ? u64(order[p]) : p));
}

// y = A x and xy = x.y. The grid follows from the matrix, so the sum has the same bits every time.
extern "C" __global__ void __launch_bounds__(THREADS)
    sell_dot(u64 rows, u32 height, const u32* order, const u32* lengths, const I* offsets, const u32* columns, const V* values,
             T one, const T* x, T* y, T* xy, T* partials, u32* finished) {
    after_predecessors();
    const u64 p = u64(blockIdx.x) * THREADS + threadIdx.x;
    T part = T();
    if (p < rows) {
        const T sum = position_sum(p, height, lengths, offsets, columns, values, x, 0);
        const u64 row = order ? u64(order[p]) : p;
        part = conj(x[row]) * finish(one, sum, T(), y + row);
    }
    leave_sum<THREADS>(part, partials, finished, xy);
}
