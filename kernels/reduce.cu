// One number (or two) from a whole array: sums, dot products, norms, extremes. One launch.
//
// The array is divided into chunks of THREADS * UNROLL vectors of 16 bytes; block b takes chunks b, b + grid, ... In a
// chunk, thread t reads vectors t, t + THREADS, ..., all of them before it adds the first, so that many loads are in
// flight at once. A thread keeps one sum; a block combines its threads' sums by a fixed tree of shuffles; the block
// that finishes last combines the blocks' sums, again by a fixed tree. Which block that is changes from run to run, but
// the order of additions does not: the result depends on n and on the grid alone, to the bit. Vectors that are not
// aligned to 16 bytes are read element by element, in the same places of the same tree.
//
// Bytes per element: one read (two for a dot product), which is the minimum.
//
// Sources: PMPP ch. 10 and Merrill 2011, 3.3 (serial work first, then trees); Ansorge 3.7 (128-bit loads).
//
// Constants: IN (element type), ACC (type of the sums), OUT (result), THREADS, UNROLL, OP, one of
//   SUM  x     DOT  conj(x) y     NORM2  |x|^2     NORM1  |x|     NORMINF  max |x|     MIN, MAX  in the order of keys
// (IN real for NORM1, NORMINF, MIN and MAX; ACC = IN for MIN and MAX.) For an empty array, MIN and MAX are the largest
// and the smallest key; every other result is zero.
#include "common.cuh"

#define SUM 0
#define DOT 1
#define NORM2 2
#define NORM1 3
#define NORMINF 4
#define MIN 5
#define MAX 6

#define VEC int(16 / sizeof(IN))
#define CHUNK (u64(THREADS) * UNROLL * VEC)

template <typename A> DEVICE A times_conj(A x, A y) { return x * y; }
DEVICE c32 times_conj(c32 x, c32 y) { return {x.re * y.re + x.im * y.im, x.re * y.im - x.im * y.re}; }
DEVICE c64 times_conj(c64 x, c64 y) { return {x.re * y.re + x.im * y.im, x.re * y.im - x.im * y.re}; }

template <typename To> struct widen {
    template <typename From> static DEVICE To from(From x) { return To(x); }
};
template <> struct widen<c64> {
    static DEVICE c64 from(c32 x) { return {f64(x.re), f64(x.im)}; }
    static DEVICE c64 from(c64 x) { return x; }
};
template <> struct widen<c32> {
    static DEVICE c32 from(c32 x) { return x; }
};

template <typename A> DEVICE A magnitude(A x) { return x < A(0) ? A(-x) : x; }
template <> DEVICE f32 magnitude(f32 x) { return fabsf(x); }
template <> DEVICE f64 magnitude(f64 x) { return fabs(x); }


template <int WHICH, typename A, typename E> DEVICE A term(E x, E y) {
    if constexpr (WHICH == DOT) return times_conj(widen<A>::from(x), widen<A>::from(y));
    else if constexpr (WHICH == NORM2 && is_complex<E>::value) return A(x.re) * A(x.re) + A(x.im) * A(x.im);
    else if constexpr (WHICH == NORM2) return A(x) * A(x);
    else if constexpr (WHICH == NORM1 || WHICH == NORMINF) return magnitude(A(x));
    else return widen<A>::from(x);
}
template <int WHICH, typename A> DEVICE A join_two(A a, A b) {
    if constexpr (WHICH == MIN) return key_bits<A>::to(b) < key_bits<A>::to(a) ? b : a;
    else if constexpr (WHICH == MAX || WHICH == NORMINF) return key_bits<A>::to(b) > key_bits<A>::to(a) ? b : a;
    else return a + b;
}
template <int WHICH, typename A> DEVICE A nothing() {
    typedef key_bits<A> bits;
    if constexpr (WHICH == MIN) return bits::from(typename bits::type(~typename bits::type(0)));
    else if constexpr (WHICH == MAX) return bits::from(0);
    else return A();
}

DEVICE ACC join_block(ACC sum, ACC* shared) {
    for (u32 by = 16; by; by /= 2) sum = join_two<OP>(sum, shuffle_down(sum, by));
    __syncthreads();
    if (lane_id() == 0) shared[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < THREADS / 32 ? shared[threadIdx.x] : nothing<OP, ACC>();
        for (u32 by = 16; by; by /= 2) sum = join_two<OP>(sum, shuffle_down(sum, by));
    }
    return sum;  // complete in thread 0
}

// workspace[0] counts finished blocks and is zero again at the end; the blocks' sums follow from byte 16 on.
extern "C" __global__ void __launch_bounds__(THREADS) reduce(const IN* x, const IN* y, u64 n, OUT* out, u64* workspace) {
    __shared__ ACC shared[32];
    __shared__ bool last;
    ACC* partial = reinterpret_cast<ACC*>(workspace + 2);

    ACC sum = nothing<OP, ACC>();
    const bool vectors = aligned16(x) && (OP != DOT || aligned16(y));
    for (u64 chunk = blockIdx.x; chunk * CHUNK < n; chunk += gridDim.x) {
        const u64 first = chunk * CHUNK + threadIdx.x * VEC;
        IN a[UNROLL][VEC], b[UNROLL][VEC] = {};
        ACC part[UNROLL];
        if (vectors && (chunk + 1) * CHUNK <= n) {
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                load16(x + first + u * THREADS * VEC, a[u]);
                if (OP == DOT) load16(y + first + u * THREADS * VEC, b[u]);
            }
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                part[u] = term<OP, ACC>(a[u][0], b[u][0]);
#pragma unroll
                for (int v = 1; v < VEC; v++) part[u] = join_two<OP>(part[u], term<OP, ACC>(a[u][v], b[u][v]));
            }
        } else {
#pragma unroll
            for (int u = 0; u < UNROLL; u++) {
                part[u] = nothing<OP, ACC>();
#pragma unroll
                for (int v = 0; v < VEC; v++) {
                    u64 i = first + u * THREADS * VEC + v;
                    if (i < n) {
                        ACC t = term<OP, ACC>(x[i], OP == DOT ? y[i] : IN());
                        part[u] = v == 0 ? t : join_two<OP>(part[u], t);
                    }
                }
            }
        }
#pragma unroll
        for (int step = 1; step < UNROLL; step *= 2)
#pragma unroll
            for (int u = 0; u + step < UNROLL; u += 2 * step) part[u] = join_two<OP>(part[u], part[u + step]);
        sum = join_two<OP>(sum, part[0]);
    }
    sum = join_block(sum, shared);

    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
        __threadfence();
        last = atomicAdd(workspace, 1ull) + 1 == gridDim.x;
        __threadfence();
    }
    __syncthreads();
    if (!last) return;
    sum = nothing<OP, ACC>();
    for (u32 b = threadIdx.x; b < gridDim.x; b += THREADS) {
        ACC other;
        const volatile u32* from = reinterpret_cast<const volatile u32*>(partial + b);
        words_of<ACC> w;
#pragma unroll
        for (int i = 0; i < int(sizeof(ACC) / 4); i++) w.word[i] = from[i];
        other = join<ACC>(w);
        sum = join_two<OP>(sum, other);
    }
    sum = join_block(sum, shared);
    if (threadIdx.x == 0) {
        out[0] = OUT(sum);
        workspace[0] = 0;
    }
}
