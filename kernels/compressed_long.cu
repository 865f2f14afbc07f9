// y = y + alpha A x for the long rows of a compressed matrix, in CSR, a block a row: each thread sums every THREADS-th
// entry, then the block its threads, in a fixed order. Runs behind the sections' product, which gave these rows nothing
// but beta y.
//
// Bytes a nonzero: value + 4.
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
