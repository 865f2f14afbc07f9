// y = alpha A x + beta y with A in SELL-C-sigma, a thread for ROWS neighbouring rows (here ROWS = 1).
//
//     | 1 . 7 . |     C = 2, sigma = 4
//     | . . 8 . |     order    0 2 | 3 1          thread 0 has row 0, thread 1 row 2, thread 2 row 3, thread 3 row 1
//     | . 4 3 . |     lengths  2 2 | 2 1
//     | 2 . . 1 |     offsets  0 4 8
//                     columns  0 1 2 2 | 0 2 3 *  step 0 reads 0 1 and 0 2, step 1 reads 2 2 and 3
//                     values   1 4 7 3 | 2 8 1 *
//
// Entry k of the row at position p is at offsets[p / C] + k * C + p % C: neighbouring threads read neighbouring
// addresses, and x at the columns of neighbouring rows. Padding is recognised by its column and is not multiplied, so
// the lengths of rows need not be read, which on stencils would be a twentieth of all bytes.
//
// Bytes per nonzero: value + 4 for the column (including padding) + accesses to x that miss the caches. Per row: its
// place in the order if there is one, and y. Source: Kreutzer et al. 2014; PMPP 14.6.
//
// Constants: SCALAR (vectors), STORED (values), OFFSET (offsets), HEIGHT (C, a multiple of ROWS; or 0: an argument of
// the launch), ROWS (neighbouring rows per thread: their entries are one load), UNROLL (entries per row in flight),
// WIDE (1: rows have so many entries that the first-level cache is kept for x), AHEAD (1: a thread has one row, without
// `lengths`, and loads its first entries before the previous launch has ended), THREADS.
#include "across.cuh"
#include "product_dot.cuh"

typedef SCALAR T;
typedef STORED V;
typedef OFFSET I;
static_assert(!AHEAD || (ROWS == 1 && !WIDE), "threads that ask ahead have one row of few entries");

// Adds N entries of each row. There is no branch between the loads, so all are in flight at once: for padding, x_0 is
// read and not used.
template <u32 N>
DEVICE void add_entries(T (&sum)[ROWS], const u32* columns, const V* values, u64 stride, const T* x, u32 conjugate) {
    Across<u32> column[N];
    Across<V> value[N];
    T of_x[N][ROWS];
#pragma unroll
    for (u32 u = 0; u < N; u++) {
        const auto* of_columns = reinterpret_cast<const Across<u32>*>(columns + u * stride);
        const auto* of_values = reinterpret_cast<const Across<V>*>(values + u * stride);
        column[u] = WIDE ? passing(of_columns) : *of_columns;
        value[u] = WIDE ? passing(of_values) : *of_values;
    }
#pragma unroll
    for (u32 u = 0; u < N; u++)
#pragma unroll
        for (u32 r = 0; r < ROWS; r++) of_x[u][r] = cached(x + (column[u].of[r] == PADDING ? 0 : column[u].of[r]));
#pragma unroll
    for (u32 u = 0; u < N; u++)
#pragma unroll
        for (u32 r = 0; r < ROWS; r++) {
            const T more = sum[r] + entry<T>(value[u].of[r], conjugate) * of_x[u][r];
            sum[r] = column[u].of[r] == PADDING ? sum[r] : more;
        }
}
// Adds the remaining entries, fewer than N.
template <u32 N>
DEVICE void add_rest(u32 left, T (&sum)[ROWS], const u32* columns, const V* values, u64 stride, const T* x, u32 conjugate) {
    if constexpr (N > 1) {
        if (left == N - 1) add_entries<N - 1>(sum, columns, values, stride, x, conjugate);
        else add_rest<N - 1>(left, sum, columns, values, stride, x, conjugate);
    }
}

// Sums of the rows at positions p .. p + ROWS. `lengths` is given if a column may have the number of padding, else
// null.
DEVICE void position_sums(T (&sum)[ROWS], u64 p, u64 rows, u32 height, const u32* lengths, const I* offsets, const u32* columns,
                          const V* values, const T* x, u32 conjugate) {
    const u32 c = HEIGHT ? HEIGHT : height;
    const u64 chunk = p / c, begin = offsets[chunk], base = begin + (p - chunk * c);
#pragma unroll
    for (u32 r = 0; r < ROWS; r++) sum[r] = T();
    if (lengths) {
        Entries<UNROLL, V> entries;
        for (u32 r = 0; r < ROWS && p + r < rows; r++)
            sum[r] = strided_sum<false, false>(entries, columns + base + r, values + base + r, c, lengths[p + r], lengths[p + r],
                                               x, conjugate);
        return;
    }
    const u32 width = u32((u64(offsets[chunk + 1]) - begin) / c);
    u32 k = 0;
    for (; k + UNROLL <= width; k += UNROLL)
        add_entries<UNROLL>(sum, columns + base + u64(k) * c, values + base + u64(k) * c, c, x, conjugate);
    add_rest<UNROLL>(width - k, sum, columns + base + u64(k) * c, values + base + u64(k) * c, c, x, conjugate);
}

// Computes the sum of the row at position p. Its first entries are loaded before the previous launch has ended.
DEVICE void sum_ahead(T (&sum)[ROWS], u64 p, u64 rows, u32 height, const I* offsets, const u32* columns, const V* values, const T* x,
                      u32 conjugate, u32 settled) {
    const u32 c = HEIGHT ? HEIGHT : height;
    Entries<UNROLL, V> entries;
    u32 width = 0;
    if (p < rows) {
        const u64 chunk = p / c, begin = offsets[chunk], base = begin + (p - chunk * c);
        width = u32((u64(offsets[chunk + 1]) - begin) / c);
        columns += base;
        values += base;
        entries.ask(columns, values, c, 0, width);
    }
    before_vectors(settled);
    sum[0] = strided_sum<true, true>(entries, columns, values, c, width, width, x, conjugate);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    sell(u64 rows, u32 height, const u32* order, const u32* lengths, const I* offsets, const u32* columns, const V* values, T alpha,
         const T* x, T beta, T* y, u32 conjugate, u32 settled) {
    before_matrix(AHEAD && settled);
    const u64 p = (u64(blockIdx.x) * THREADS + threadIdx.x) * ROWS;
    T sum[ROWS];
    if (AHEAD) sum_ahead(sum, p, rows, height, offsets, columns, values, x, conjugate, settled);
    if (p >= rows) return;
    if (!AHEAD) position_sums(sum, p, rows, height, lengths, offsets, columns, values, x, conjugate);
    if (!order) return finish_across(alpha, sum, beta, y, p, rows);
#pragma unroll
    for (u32 r = 0; r < ROWS; r++)
        if (p + r < rows) finish(alpha, sum[r], beta, y + order[p + r]);
}

// y = A x and xy = x.y. The grid follows from the matrix, so the sum has the same bits every time.
extern "C" __global__ void __launch_bounds__(THREADS)
    sell_dot(u64 rows, u32 height, const u32* order, const u32* lengths, const I* offsets, const u32* columns, const V* values,
             T one, const T* x, T* y, T* xy, T* partials, u32* finished) {
    after_predecessors();
    const u64 p = (u64(blockIdx.x) * THREADS + threadIdx.x) * ROWS;
    RowsDot<T> dot = {x, y, T()};
    if (p < rows) {
        T sum[ROWS];
        position_sums(sum, p, rows, height, lengths, offsets, columns, values, x, 0);
#pragma unroll
        for (u32 r = 0; r < ROWS; r++)
            if (p + r < rows) dot.take(order ? u64(order[p + r]) : p + r, one * sum[r]);
    }
    leave_sum<THREADS>(xy, dot.part, partials, finished);
}
