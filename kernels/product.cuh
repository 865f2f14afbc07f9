// Functions for the products y = alpha A x + beta y: loads according to how often data is reused, conversion of stored
// values to scalars, the last step.
#pragma once
#include "complex.cuh"

// Loads data that is read once, such as the matrix: the caches evict it first, so that x stays there.
template <typename A> DEVICE A stream(const A* p) {
    typedef typename unsigned_of<sizeof(A)>::type U;
    if constexpr (sizeof(A) == 16) return bits<A>(__ldcs(reinterpret_cast<const uint4*>(p)));
    else return bits<A>(U(__ldcs(reinterpret_cast<const U*>(p))));
}
// Loads a value without keeping it in the L1 cache.
template <typename A> DEVICE A passing(const A* p) {
    typedef typename unsigned_of<sizeof(A)>::type U;
    U v;
    if constexpr (sizeof(A) == 4) asm("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(v) : "l"(p));
    else if constexpr (sizeof(A) == 8) asm("ld.global.nc.L1::no_allocate.u64 %0, [%1];" : "=l"(v) : "l"(p));
    else asm("ld.global.nc.L1::no_allocate.v2.u64 {%0, %1}, [%2];" : "=l"(v.low), "=l"(v.high) : "l"(p));
    return bits<A>(v);
}
// Loads data that is read often, such as x, and that the same launch does not write.
template <typename A> DEVICE A cached(const A* p) {
    typedef typename unsigned_of<sizeof(A)>::type U;
    if constexpr (sizeof(A) == 16) return bits<A>(__ldg(reinterpret_cast<const uint4*>(p)));
    else return bits<A>(U(__ldg(reinterpret_cast<const U*>(p))));
}

// Converts a stored value to a scalar of the product, conjugated if op(A) is.
template <typename S, typename E> DEVICE S entry(E stored, u32 conjugate) {
    const S value = widen<S>::from(stored);
    return is_complex<S>::value && conjugate ? conj(value) : value;
}

// Computes y from a row's sum. If beta is zero, y is not read.
template <typename S> DEVICE S finish(S alpha, S sum, S beta, S* y) {
    const S value = is_zero(beta) ? alpha * sum : alpha * sum + beta * *y;
    *y = value;
    return value;
}

// Entries of a row, `stride` apart, that a thread has in flight at a time. Plain loads are used, because evict-first
// loads cost up to a fifth here.
template <u32 AT_ONCE, typename E> struct Entries {
    u32 column[AT_ONCE];
    E value[AT_ONCE];

    // Loads the entries from k on, but none at `places` or later.
    DEVICE void ask(const u32* columns, const E* values, u64 stride, u32 k, u32 places) {
#pragma unroll
        for (u32 u = 0; u < AT_ONCE; u++)
            if (k + u < places) {
                column[u] = columns[u64(k + u) * stride];
                value[u] = values[u64(k + u) * stride];
            }
    }
};

// Sum of a row whose entries are `stride` apart, in their order. Padding after `length`, and if PADDED the column of
// padding, is not multiplied. Nothing at `places` or later is accessed: if `places` is known before the length is, no
// load waits for the length. ASKED: the first entries have been loaded already, before the previous launch had ended; x
// is then read by plain loads, which stay after the wait for that launch.
template <bool PADDED, bool ASKED, u32 AT_ONCE, typename S, typename E>
DEVICE S strided_sum(Entries<AT_ONCE, E>& entries, const u32* columns, const E* values, u64 stride, u32 places, u32 length, const S* x,
                     u32 conjugate) {
    S sum = S();
    for (u32 k = 0; k < places; k += AT_ONCE) {
        if (!ASKED || k > 0) entries.ask(columns, values, stride, k, places);
        bool there[AT_ONCE];
        S of_x[AT_ONCE];
#pragma unroll
        for (u32 u = 0; u < AT_ONCE; u++) {
            there[u] = k + u < length && !(PADDED && entries.column[u] == PADDING);
            if (there[u]) of_x[u] = ASKED ? x[entries.column[u]] : cached(x + entries.column[u]);
        }
#pragma unroll
        for (u32 u = 0; u < AT_ONCE; u++)
            if (there[u]) sum = sum + entry<S>(entries.value[u], conjugate) * of_x[u];
    }
    return sum;
}
