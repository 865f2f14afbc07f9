// The next two vectors of a basis after a pair of Arnoldi steps (src/backend/pairs.rs), and linear combinations of a
// basis.
//
//     v_count       = (w_1 - V h_1) / s_1                      rounded to the type in which the basis is stored
//     v_(count + 1) = (w_2 - V h_2 - r v_count) / s_2
//
// bytes: the basis and w_1, w_2 read once, the two vectors and a wide copy of the second written. A thread has ITEMS
// rows, and AT_ONCE vectors of them in flight.
//
// Sums are computed in an order that depends on the shape of the launch alone, so they have the same bits in every run.
//
// Constants: SCALAR (vectors), STORED (the basis), THREADS, ITEMS, AT_ONCE, BLOCKS (per multiprocessor).
#include "rounded.cuh"
#include "several_sums.cuh"

typedef SCALAR T;
typedef STORED V;
typedef real_of<T>::type R;

#define MOST 32

template <typename A> DEVICE A from_real(R a) {
    if constexpr (is_complex<A>::value) return {a, 0};
    else return a;
}
template <typename A> DEVICE R real_part(A a) {
    if constexpr (is_complex<A>::value) return a.re;
    else return a;
}

// Adds up COMBINED linear combinations of the vectors, for the rows from `at` on in steps of THREADS.
template <int COMBINED>
DEVICE void combine(const V* basis, u32 count, const T (*factors)[MOST], u64 at, u64 n, const bool (&there)[ITEMS],
                    T (&sum)[COMBINED][ITEMS]) {
    const V* v = basis + at;
    for (u32 c = 0; c < count; c += AT_ONCE, v += AT_ONCE * n) {
        V items[AT_ONCE][ITEMS];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
#pragma unroll
            for (int u = 0; u < ITEMS; u++) items[k][u] = there[u] && c + k < count ? v[k * n + u * THREADS] : V();
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            if (c + k >= count) break;
#pragma unroll
            for (int f = 0; f < COMBINED; f++) {
                const T by = factors[f][c + k];
#pragma unroll
                for (int u = 0; u < ITEMS; u++) sum[f][u] = sum[f][u] + by * widen<T>::from(items[k][u]);
            }
        }
    }
}

// factors: h_1 and h_2, `width` apart, r, s_1, s_2. squares: ||v_count||^2 and ||v_(count + 1)||^2. count <= 30.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    pair_update(V* basis, u32 count, const T* w1, const T* w2, const T* factors, u32 width, T* v, u64 n, T* squares,
                R* partials, u32* finished) {
    after_predecessors();
    __shared__ T minus[2][MOST], behind[3];
    __shared__ R totals[2];
    if (threadIdx.x < count) {
        minus[0][threadIdx.x] = from_real<T>(-1) * factors[threadIdx.x];
        minus[1][threadIdx.x] = from_real<T>(-1) * factors[width + threadIdx.x];
    }
    if (threadIdx.x < 3)
        behind[threadIdx.x] =
            threadIdx.x ? from_real<T>(1 / real_part(factors[2 * width + threadIdx.x])) : factors[2 * width];
    __syncthreads();
    V* const one = basis + count * n;
    V* const two = one + n;
    const u64 tile = u64(THREADS) * ITEMS;
    R sum[2] = {};
    for (u64 start = blockIdx.x * tile; start < n; start += gridDim.x * tile) {
        const u64 at = start + threadIdx.x;
        T x[2][ITEMS];
        bool there[ITEMS];
#pragma unroll
        for (int u = 0; u < ITEMS; u++) {
            there[u] = at + u * THREADS < n;
            x[0][u] = there[u] ? w1[at + u * THREADS] : T();
            x[1][u] = there[u] ? w2[at + u * THREADS] : T();
        }
        combine<2>(basis, count, minus, at, n, there, x);
#pragma unroll
        for (int u = 0; u < ITEMS; u++) {
            if (!there[u]) break;
            const V first = rounded<V>(x[0][u] * behind[1]);
            const T a = widen<T>::from(first);
            const V second = rounded<V>((x[1][u] - behind[0] * a) * behind[2]);
            const T b = widen<T>::from(second);
            one[at + u * THREADS] = first;
            two[at + u * THREADS] = second;
            v[at + u * THREADS] = b;
            sum[0] = sum[0] + abs2(a);
            sum[1] = sum[1] + abs2(b);
        }
    }
    if (!launch_sums<THREADS>(sum, totals, partials, finished, [] {})) return;
    if (threadIdx.x < 2) squares[threadIdx.x] = from_real<T>(totals[threadIdx.x]);
}

// x = V c. count <= 32.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) basis_combination(const V* basis, u32 count, const T* c, T* x, u64 n) {
    after_predecessors();
    __shared__ T factors[1][MOST];
    if (threadIdx.x < count) factors[0][threadIdx.x] = c[threadIdx.x];
    __syncthreads();
    const u64 tile = u64(THREADS) * ITEMS;
    for (u64 start = blockIdx.x * tile; start < n; start += gridDim.x * tile) {
        const u64 at = start + threadIdx.x;
        bool there[ITEMS];
#pragma unroll
        for (int u = 0; u < ITEMS; u++) there[u] = at + u * THREADS < n;
        T sum[1][ITEMS] = {};
        combine<1>(basis, count, factors, at, n, there, sum);
#pragma unroll
        for (int u = 0; u < ITEMS; u++)
            if (there[u]) x[at + u * THREADS] = sum[0][u];
    }
}
