// y = alpha A x + beta y with A in ELLPACK, one thread per row.
//
//     | 1 . 7 . |     lengths  2 1 2 2
//     | . . 8 . |     columns  0 2 1 0 | 2 * 2 3      step 0 reads 0 2 1 0, step 1 reads 2 2 3 (* is padding)
//     | . 4 3 . |     values   1 8 4 2 | 7 * 3 1
//     | 2 . . 1 |
//
// Entry k of row i is at k * rows + i, so neighbouring threads read neighbouring addresses. A thread stops at the
// length of its row, so padding is not multiplied and, if whole warps are done, not read. EAGER threads also load
// padding, together with the length instead of after it, and before the previous launch has ended: for small matrices
// the number of dependent loads matters.
//
// Bytes per stored entry: value + 4 for the column + accesses to x that miss the caches. Per row: its length, and y.
// Source: PMPP 14.3, extended to y = alpha A x + beta y.
//
// Constants: SCALAR (vectors), STORED (values), UNROLL (entries in flight per thread), EAGER (0, 1), THREADS.
#include "product.cuh"

typedef SCALAR T;
typedef STORED V;

extern "C" __global__ void __launch_bounds__(THREADS)
    ell(u64 rows, u32 width, const u32* lengths, const u32* columns, const V* values, T alpha, const T* x, T beta, T* y, u32 conjugate,
        u32 settled) {
    before_matrix(EAGER && settled);
    const u64 row = u64(blockIdx.x) * THREADS + threadIdx.x;
    Entries<UNROLL, V> entries;
    const u32 length = row < rows ? stream(lengths + row) : 0;
    if (EAGER && row < rows) entries.ask(columns + row, values + row, rows, 0, width);
    before_vectors(EAGER && settled);
    if (row >= rows) return;
    const T sum = strided_sum<false, EAGER>(entries, columns + row, values + row, rows, EAGER ? width : length, length, x, conjugate);
    finish(alpha, sum, beta, y + row);
}
