// Operations on dense vectors. Each reads its vectors in order, so it matters that all of a chip's memory channels are
// busy; therefore a thread has several loads of 16 bytes in flight before it uses the first.
//
//     bytes per element  dot: 2 reads   norm2: 1 read   axpby: 2 reads, 1 write (beta = 0: 1 and 1)   multiply: 2 and 1
//
// A part of a vector need not start at a multiple of 16 bytes. If it does not, elements are read one by one, by the
// same threads in the same order, so that the bits of a sum do not depend on the address of a vector.
//
// Constants: SCALAR (element type), THREADS, UNROLL (elementwise), SUM_THREADS, SUM_UNROLL, MAX_PARTIALS (reductions).
#include "block_sum.cuh"

typedef SCALAR T;
typedef real_of<T>::type R;
#define VEC int(16 / sizeof(T))

DEVICE void read16(const T* p, T (&v)[VEC]) {
    uint4 raw = *reinterpret_cast<const uint4*>(p);
    memcpy(v, &raw, 16);
}
DEVICE void write16(T* p, const T (&v)[VEC]) {
    uint4 raw;
    memcpy(&raw, v, 16);
    *reinterpret_cast<uint4*>(p) = raw;
}

// ---- sums ----------------------------------------------------------------------------------------------------------
// A tile is SUM_THREADS * SUM_UNROLL vectors of 16 bytes; block b takes tiles b, b + blocks, ... In a tile, thread t
// takes vectors t, t + SUM_THREADS, ..., one running sum for each.

template <typename S, typename F> DEVICE S sum_of(u64 n, const T* x, const T* y, F term) {
    const u64 tile = u64(SUM_THREADS) * SUM_UNROLL * VEC;
    const bool aligned = aligned16(x) && aligned16(y);
    S sum[SUM_UNROLL] = {};
    for (u64 start = blockIdx.x * tile; start < n; start += gridDim.x * tile) {
        const u64 first = start + threadIdx.x * VEC;
        T a[SUM_UNROLL][VEC], b[SUM_UNROLL][VEC];
        if (aligned && start + tile <= n) {
#pragma unroll
            for (int u = 0; u < SUM_UNROLL; u++) {
                read16(x + first + u * SUM_THREADS * VEC, a[u]);
                read16(y + first + u * SUM_THREADS * VEC, b[u]);
            }
        } else {
#pragma unroll
            for (int u = 0; u < SUM_UNROLL; u++)
#pragma unroll
                for (int v = 0; v < VEC; v++) {
                    const u64 i = first + u * SUM_THREADS * VEC + v;
                    a[u][v] = i < n ? x[i] : T();
                    b[u][v] = i < n ? y[i] : T();
                }
        }
#pragma unroll
        for (int u = 0; u < SUM_UNROLL; u++)
#pragma unroll
            for (int v = 0; v < VEC; v++) sum[u] = sum[u] + term(a[u][v], b[u][v]);
    }
#pragma unroll
    for (int u = 1; u < SUM_UNROLL; u++) sum[0] = sum[0] + sum[u];
    return sum[0];
}

// *out = sum of conj(x[i]) y[i].
extern "C" __global__ void __launch_bounds__(SUM_THREADS) dot(const T* x, const T* y, u64 n, T* out, T* partials, u32* finished) {
    T sum = sum_of<T>(n, x, y, [](T a, T b) { return conj(a) * b; });
    launch_sum_to<SUM_THREADS>(out, sum, partials, finished);
}

// *out = sum of |x[i]|^2. Both operands are the same, so the compiler drops the second loads.
extern "C" __global__ void __launch_bounds__(SUM_THREADS) norm2_squared(const T* x, u64 n, R* out, R* partials, u32* finished) {
    R sum = sum_of<R>(n, x, x, [](T a, T) { return abs2(a); });
    launch_sum_to<SUM_THREADS>(out, sum, partials, finished);
}

// *out = sum of x[i]: adds up the partial sums of x.y that a product's blocks left.
extern "C" __global__ void __launch_bounds__(SUM_THREADS) sum(const T* x, u64 n, T* out, T* partials, u32* finished) {
    T sum = sum_of<T>(n, x, x, [](T a, T) { return a; });
    launch_sum_to<SUM_THREADS>(out, sum, partials, finished);
}

// ---- element by element --------------------------------------------------------------------------------------------

// z[i] = f(x[i], y[i]); y is not read if READ_Y is false. z may be x or y.
template <bool READ_Y, typename F> DEVICE void map(u64 n, const T* x, const T* y, T* z, F f) {
    const u64 stride = u64(gridDim.x) * THREADS;
    const u64 thread = u64(blockIdx.x) * THREADS + threadIdx.x;
    const u64 vectors = aligned16(x) && aligned16(z) && (!READ_Y || aligned16(y)) ? n / VEC : 0;
    for (u64 base = thread; base < vectors; base += stride * UNROLL) {
        T a[UNROLL][VEC], b[UNROLL][VEC] = {};
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            if (base + u * stride < vectors) {
                read16(x + (base + u * stride) * VEC, a[u]);
                if (READ_Y) read16(y + (base + u * stride) * VEC, b[u]);
            }
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
            if (base + u * stride < vectors) {
#pragma unroll
                for (int v = 0; v < VEC; v++) a[u][v] = f(a[u][v], b[u][v]);
                write16(z + (base + u * stride) * VEC, a[u]);
            }
    }
    for (u64 i = vectors * VEC + thread; i < n; i += stride) z[i] = f(x[i], READ_Y ? y[i] : T());
}

// y = alpha x + beta y; if beta is zero, y is not read.
extern "C" __global__ void __launch_bounds__(THREADS) axpby(T alpha, const T* x, T beta, T* y, u64 n) {
    if (is_zero(beta)) map<false>(n, x, y, y, [=](T a, T) { return alpha * a; });
    else map<true>(n, x, y, y, [=](T a, T b) { return alpha * a + beta * b; });
}

// x = alpha x.
extern "C" __global__ void __launch_bounds__(THREADS) scale_in_place(T alpha, T* x, u64 n) {
    map<false>(n, x, x, x, [=](T a, T) { return alpha * a; });
}

// z = x .* y.
extern "C" __global__ void __launch_bounds__(THREADS) multiply(const T* x, const T* y, T* z, u64 n) {
    map<true>(n, x, y, z, [](T a, T b) { return a * b; });
}

// z = d .* x with a real d: bytes as for multiply, but half for d if T is complex.
template <typename D> DEVICE void scale_by(const D* d, const T* x, T* z, u64 n) {
    if constexpr (same<T, D>::value) map<true>(n, x, d, z, [](T a, T b) { return b * a; });
    else
        for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < n; i += u64(gridDim.x) * THREADS) z[i] = d[i] * x[i];
}
extern "C" __global__ void __launch_bounds__(THREADS) scale(const R* d, const T* x, T* z, u64 n) { scale_by<R>(d, x, z, n); }
