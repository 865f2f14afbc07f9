// Vectors of half the precision: y = scale x rounded, y = x and y += scale x with x of the narrower type, and whether
// rounding changes x. Each reads and writes its vectors once, in order.
//
// Constants: SCALAR (the wide type), NARROW (the narrower one), THREADS.
#include "rounded.cuh"

typedef SCALAR T;
typedef NARROW N;
typedef real_of<T>::type R;

extern "C" __global__ void __launch_bounds__(THREADS) narrow(R scale, const T* x, N* y, u64 n) {
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < n; i += u64(gridDim.x) * THREADS) y[i] = rounded<N, T>(scale * x[i]);
}

extern "C" __global__ void __launch_bounds__(THREADS) widened(const N* x, T* y, u64 n) {
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < n; i += u64(gridDim.x) * THREADS) y[i] = widen<T>::from(x[i]);
}

extern "C" __global__ void __launch_bounds__(THREADS) add_narrow(R scale, const N* x, T* y, u64 n) {
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < n; i += u64(gridDim.x) * THREADS)
        y[i] = y[i] + scale * widen<T>::from(x[i]);
}

// Returns whether the conversion back gives the same bits, including the sign of zero.
template <typename A, typename B> DEVICE bool unchanged(A a, B b) {
    if constexpr (is_complex<A>::value) return unchanged(a.re, b.re) && unchanged(a.im, b.im);
    else if constexpr (sizeof(A) == 8) return bits<u64>(a) == bits<u64>(A(b));
    else return bits<u32>(a) == bits<u32>(A(b));
}

// *changed, initially zero, becomes 1 if an element cannot be represented in the narrower type.
extern "C" __global__ void __launch_bounds__(THREADS) changes(const T* x, u32* changed, u64 n) {
    bool mine = false;
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < n; i += u64(gridDim.x) * THREADS)
        mine |= !unchanged(x[i], rounded<N, T>(x[i]));
    // Once per block, because stores to one word are serialised.
    if (__syncthreads_or(mine) && threadIdx.x == 0) *changed = 1;
}
