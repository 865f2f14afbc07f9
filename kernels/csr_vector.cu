// y = alpha A x + beta y with A in compressed sparse rows, LANES threads a row.
//
//     | 1 . 7 . |     offsets  0   2   3   5   7
//     | . . 8 . |     columns  0 2 | 2 | 1 2 | 0 3          LANES = 2: threads 0 and 1 take row 0, 2 and 3 row 1 ...
//     | . 4 3 . |     values   1 7 | 8 | 4 3 | 2 1
//     | 2 . . 1 |
//
// The lanes of a row take its nonzeros in turn, so neighbouring lanes read neighbouring addresses, and add their sums
// in a fixed tree: two runs give the same bits. Right for every matrix; fast where rows are of similar length.
//
// Bytes a nonzero: value + 4 for the column + what of x misses the caches. A row: its offset, and y.
// Source: Bell and Garland 2008 (CSR vector).
//
// Constants: SCALAR (vectors), STORED (values), OFFSET (offsets), LANES (1 to 32, a power of two), UNROLL (nonzeros a lane has under
// way), AHEAD (1: the first nonzeros are asked for before the launch ahead has ended), THREADS.
#include "product.cuh"

typedef SCALAR T;
typedef STORED V;
typedef OFFSET I;

extern "C" __global__ void __launch_bounds__(THREADS)
    csr(u64 rows, const I* offsets, const u32* columns, const V* values, T alpha, const T* x, T beta, T* y, u32 conjugate, u32 settled) {
    before_matrix(AHEAD && settled);
    const u64 row = u64(blockIdx.x) * (THREADS / LANES) + threadIdx.x / LANES;
    Entries<UNROLL, V> entries;
    u32 length = 0;
    if (row < rows) {
        const u64 begin = u64(offsets[row]) + threadIdx.x % LANES, end = offsets[row + 1];
        length = begin < end ? u32((end - begin + LANES - 1) / LANES) : 0;
        columns += begin;
        values += begin;
        if (AHEAD) entries.ask(columns, values, LANES, 0, length);
    }
    before_vectors(AHEAD && settled);
    T sum = strided_sum<false, AHEAD>(entries, columns, values, LANES, length, length, x, conjugate);
#pragma unroll
    for (u32 with = LANES / 2; with; with /= 2) sum = sum + shuffle_xor(sum, with);
    if (row < rows && threadIdx.x % LANES == 0) finish(alpha, sum, beta, y + row);
}
