// y = alpha A x + beta y with A in compressed sections whose columns are given by kinds of rows and whose values are
// stored, as for grids with variable coefficients.
//
//     | 1 . 7 . |     kinds    0 1 2 3, a byte per row        distances (column - row) of each    0 2 | 1 | -1 0 | -3 0
//     | . . 8 . |     values, all rows side by side           1 8 4 2 | 7 - 3 1
//     | . 4 3 . |
//     | 2 . . 1 |
//
// A section is 32 rows; a warp takes one, with one thread per row (compressed_row.cuh), and the distances of kinds are
// in shared memory.
//
// Bytes per nonzero: 4 or 8 (twice that if complex) for the value, including padding. Per row: y, x, 1/4 byte of
// offsets, one of its kind, one of order. Source: as for compressed.cu.
//
// Constants: SCALAR (vectors), STORED (values as stored), OFFSET (offsets), THREADS, UNROLL, MIN_BLOCKS.
#include "common.cuh"

typedef SCALAR T;
typedef STORED S;
typedef OFFSET I;
#include "compressed_row.cuh"

#define KINDS u64 rows, const u8 *order, const u8 *kind_of, u32 kinds, u32 table, const u32 *starts, const u32 *distances, const I *entries, const S *values
#define OF_KINDS rows, order, kind_of, kinds, table, starts, distances, entries, values

// Calls finish(row, sum) for every row of this thread's sections.
template <typename F> DEVICE void sums(KINDS, u32 conjugate, const T* x, F finish) {
    extern __shared__ u32 distance[];
    u32* const start = distance + table;
    for (u32 i = threadIdx.x; i < table; i += THREADS) distance[i] = distances[i];
    for (u32 i = threadIdx.x; i <= kinds; i += THREADS) start[i] = starts[i];
    __syncthreads();
    for (u64 place = u64(blockIdx.x) * THREADS + threadIdx.x; place < rows; place += u64(gridDim.x) * THREADS) {
        const u64 section = place / 32, first = entries[section];
        const u32 width = u32(u64(entries[section + 1]) - first) / 32, row = u32(row_at(order, place)), kind = kind_of[row];
        const Kind columns = {distance + start[kind], row, start[kind + 1] - start[kind]};
        finish(row, row_sum<UNROLL>(width, columns, Stored<S>{values + first + lane_id(), conjugate}, x));
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) compressed_kinds_stored(KINDS, u32 conjugate, T alpha, const T* x, T beta, T* y) {
    after_predecessors();
    sums(OF_KINDS, conjugate, x, [=](u32 row, T sum) { finish(alpha, sum, beta, y + row); });
}

// y = A x, *xy = x.y.
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS) compressed_kinds_stored_dot(KINDS, const T* x, T* y, T* xy, T* partials, u32* finished) {
    after_predecessors();
    RowsDot<T> dot = {x, y, T()};
    sums(OF_KINDS, 0, x, [&](u32 row, T sum) { dot.take(row, sum); });
    launch_sum_to<THREADS>(xy, dot.part, partials, finished);
}
