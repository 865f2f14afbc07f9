// Vectors of half the precision: y = scale x rounded, and y += scale x of the narrower type. Both are streams.
//
// Constants: SCALAR (the wide type), NARROW (the narrower one), THREADS.
#include "complex.cuh"

typedef SCALAR T;
typedef NARROW N;
typedef real_of<T>::type R;

template <typename To, typename From> DEVICE To rounded(From a) {
    if constexpr (is_complex<From>::value) {
        To b;
        b.re = a.re;
        b.im = a.im;
        return b;
    } else return To(a);
}

extern "C" __global__ void __launch_bounds__(THREADS) narrow(R scale, const T* x, N* y, u64 n) {
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < n; i += u64(gridDim.x) * THREADS) y[i] = rounded<N, T>(scale * x[i]);
}

extern "C" __global__ void __launch_bounds__(THREADS) add_narrow(R scale, const N* x, T* y, u64 n) {
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < n; i += u64(gridDim.x) * THREADS)
        y[i] = y[i] + scale * widen<T>::from(x[i]);
}
