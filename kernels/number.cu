// Arithmetic on whole arrays of numbers.
//
// Constants: NUMBER, THREADS.
#include "common.cuh"

typedef NUMBER T;

extern "C" __global__ void __launch_bounds__(THREADS) add_constant(T value, T* x, u64 n) {
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < n; i += u64(gridDim.x) * THREADS) x[i] = T(x[i] + value);
}
