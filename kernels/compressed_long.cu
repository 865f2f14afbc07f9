// y = y + alpha A x for the long rows of a compressed matrix, in CSR, with one block per row: each thread sums every
// THREADS-th entry, then the block sums over its threads in a fixed order. It runs after the sections' product, which
// set these rows to beta y.
//
// Bytes per nonzero: value + 4.
//
// Constants: SCALAR (vectors), VALUE (values), OFFSET (offsets), THREADS.
#include "block_sum.cuh"
#include "product.cuh"

typedef SCALAR T;
typedef VALUE V;
typedef OFFSET I;

extern "C" __global__ void __launch_bounds__(THREADS) add_long(const u32* long_rows, const I* offsets, const u32* columns, const V* values, u32 conjugate, T alpha, const T* x, T* y) {
    T sum = T();
    const u64 end = offsets[blockIdx.x + 1];
    for (u64 k = offsets[blockIdx.x] + threadIdx.x; k < end; k += THREADS) sum = sum + entry<T>(values[k], conjugate) * x[columns[k]];
    sum = block_sum<THREADS>(sum);
    if (threadIdx.x == 0) {
        const u32 row = long_rows[blockIdx.x];
        y[row] = y[row] + alpha * sum;
    }
}
