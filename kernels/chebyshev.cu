// One step of Chebyshev's iteration when A z has been computed: last = keep z + momentum last + step d .* (r - A z).
// The first step, from z = 0, has neither z nor A z (null): last = step d .* r.
//
// Reads r, z, A z, last (the first step r alone), and d unless it is null; writes last. If the product includes this
// step, less is moved: compressed_stencil.cu. Source: Saad, Iterative Methods for Sparse Linear Systems, 2nd ed.,
// algorithm 12.1, whose direction is z - last.
//
// Constants: SCALAR (vectors), THREADS.
#include "chebyshev.cuh"

typedef SCALAR T;
typedef real_of<T>::type R;

extern "C" __global__ void __launch_bounds__(THREADS)
    chebyshev_step(R keep, R momentum, R step, const R* d, const T* r, const T* z, const T* t, T* last, u64 n) {
    const Step<R> by = {keep, momentum, step};
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < n; i += u64(gridDim.x) * THREADS) {
        const T before = momentum == 0 ? T() : last[i];
        last[i] = stepped(by, d, i, r[i], z ? z[i] : T(), t ? t[i] : T(), before);
    }
}
