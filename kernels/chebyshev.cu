// One step of a Chebyshev iteration: residual -= t; direction = momentum direction + step d .* residual; z += direction.
// Moves t, d, and residual, direction, z in and out. The first step takes t for the residual, and reads nothing else.
// Source: Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., algorithm 12.1.
//
// Constants: SCALAR (vectors), THREADS.
#include "complex.cuh"

typedef SCALAR T;
typedef real_of<T>::type R;

extern "C" __global__ void __launch_bounds__(THREADS)
    chebyshev_step(u32 first, R momentum, R step, const R* d, const T* t, T* residual, T* direction, T* z, u64 n) {
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < n; i += u64(gridDim.x) * THREADS) {
        if (first) {
            const T r = t[i], p = (step * d[i]) * r;
            residual[i] = r;
            direction[i] = p;
            z[i] = p;
        } else {
            const T r = residual[i] - t[i], p = momentum * direction[i] + (step * d[i]) * r;
            residual[i] = r;
            direction[i] = p;
            z[i] = z[i] + p;
        }
    }
}
