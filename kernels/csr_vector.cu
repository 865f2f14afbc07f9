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
// Constants: SCALAR (vectors), STORED (values), OFFSET (offsets), LANES (2 to 32, a power of two), THREADS.
#include "complex.cuh"

typedef SCALAR T;
typedef STORED V;
typedef OFFSET I;

extern "C" __global__ void __launch_bounds__(THREADS)
    csr(u64 rows, const I* offsets, const u32* columns, const V* values, T alpha, const T* x, T beta, T* y) {
    const u32 rows_a_block = THREADS / LANES;
    const u32 lane = threadIdx.x % LANES;
    for (u64 base = u64(blockIdx.x) * rows_a_block; base < rows; base += u64(gridDim.x) * rows_a_block) {
        const u64 row = base + threadIdx.x / LANES;
        T sum = T();
        if (row < rows)
            for (u64 k = offsets[row] + lane, end = offsets[row + 1]; k < end; k += LANES)
                sum = sum + widen<T>::from(values[k]) * x[columns[k]];
#pragma unroll
        for (u32 with = LANES / 2; with; with /= 2) sum = sum + shuffle_xor(sum, with);
        if (row < rows && lane == 0) y[row] = is_zero(beta) ? alpha * sum : alpha * sum + beta * y[row];
    }
}
