// y = alpha A x + beta y with A of at most 255 kinds of rows, distances and values included: one byte per row is all
// that is stored of A.
//
//     |  2 -1  .  . |     kinds  0: 0 +1 | 2 -1        1: -1 0 +1 | -1 2 -1        2: -1 0 | -1 2
//     | -1  2 -1  . |     rows   0 1 1 2
//     |  . -1  2 -1 |
//     |  .  . -1  2 |     a stencil with constant coefficients: the kinds are the inside and the boundaries
//
// A thread takes ROWS rows, THREADS apart, so that x and y are read and written in order. If all rows of a warp are of
// one kind, as inside a grid, an entry of the kind is read once for ROWS rows; otherwise rows are computed one by one.
// In both cases sums run from left to right, so two runs give the same bits.
//
// Bytes per row: 1, x and y. The limit is the second-level cache, through which x passes once for each plane of the
// stencil. Source: Kourtis, Goumas and Koziris 2008, applied to rows instead of entries.
//
// Constants: SCALAR (vectors), VALUE (the matrix's values), THREADS, ROWS.
#include "product_dot.cuh"
#include "compressed.cuh"

typedef SCALAR T;
typedef VALUE V;

template <typename F>
DEVICE void sums(u64 rows, const u8* kind_of, u32 kinds, u32 table, const u32* starts, const u32* distances, const V* numbers, u32 conjugate, const T* __restrict__ x, F finish) {
    extern __shared__ u128 memory[];
    T* const number = reinterpret_cast<T*>(memory);
    u32* const distance = reinterpret_cast<u32*>(number + table);
    u32* const start = distance + table;
    for (u32 i = threadIdx.x; i < table; i += THREADS) {
        number[i] = entry<T>(numbers[i], conjugate);
        distance[i] = distances[i];
    }
    for (u32 i = threadIdx.x; i <= kinds; i += THREADS) start[i] = starts[i];
    __syncthreads();
    for (u64 tile = u64(blockIdx.x) * (THREADS * ROWS); tile < rows; tile += u64(gridDim.x) * (THREADS * ROWS)) {
        const u64 first = tile + threadIdx.x;
        u32 kind[ROWS];
        T sum[ROWS] = {};
#pragma unroll
        for (u32 r = 0; r < ROWS; r++) kind[r] = first + r * THREADS < rows ? kind_of[first + r * THREADS] : 255;
        const u32 common = __shfl_sync(ALL, kind[0], 0);
        bool alike = common < 255;
#pragma unroll
        for (u32 r = 0; r < ROWS; r++) alike = alike && kind[r] == common;
        if (__all_sync(ALL, alike)) {
            const u32 end = start[common + 1];
#pragma unroll 4
            for (u32 k = start[common]; k < end; k++) {
                const u32 column = u32(first) + distance[k];
#pragma unroll
                for (u32 r = 0; r < ROWS; r++) sum[r] = sum[r] + number[k] * x[column + r * THREADS];
            }
        } else {
#pragma unroll
            for (u32 r = 0; r < ROWS; r++) {
                if (kind[r] == 255) continue;
                const u32 end = start[kind[r] + 1];
                for (u32 k = start[kind[r]]; k < end; k++) sum[r] = sum[r] + number[k] * x[u32(first) + r * THREADS + distance[k]];
            }
        }
#pragma unroll
        for (u32 r = 0; r < ROWS; r++)
            if (first + r * THREADS < rows) finish(first + r * THREADS, sum[r]);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    compressed_kinds(u64 rows, const u8* kind_of, u32 kinds, u32 table, const u32* starts, const u32* distances, const V* numbers, u32 conjugate, T alpha, const T* x, T beta,
               T* y) {
    after_predecessors();
    sums(rows, kind_of, kinds, table, starts, distances, numbers, conjugate, x, [=](u64 row, T sum) { finish(alpha, sum, beta, y + row); });
}

// y = A x, *xy = x.y.
extern "C" __global__ void __launch_bounds__(THREADS)
    compressed_kinds_dot(u64 rows, const u8* kind_of, u32 kinds, u32 table, const u32* starts, const u32* distances, const V* numbers, const T* x, T* y, T* xy, T* partials, u32* finished) {
    after_predecessors();
    RowsDot<T> dot = {x, y, T()};
    sums(rows, kind_of, kinds, table, starts, distances, numbers, 0, x, [&](u64 row, T sum) { dot.take(row, sum); });
    launch_sum_to<THREADS>(xy, dot.part, partials, finished);
}
