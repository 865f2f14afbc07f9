// What the products y = alpha A x + beta y share: loads by how often they come back, stored values made scalars, the
// last step.
#pragma once
#include "complex.cuh"

// Read once: the matrix. It leaves the caches first, so that x stays there.
template <typename A> DEVICE A stream(const A* p) {
    typedef typename unsigned_of<sizeof(A)>::type U;
    if constexpr (sizeof(A) == 16) return bits<A>(__ldcs(reinterpret_cast<const uint4*>(p)));
    else return bits<A>(U(__ldcs(reinterpret_cast<const U*>(p))));
}
// The same, and the first-level cache never keeps it.
template <typename A> DEVICE A passing(const A* p) {
    typedef typename unsigned_of<sizeof(A)>::type U;
    U v;
    if constexpr (sizeof(A) == 4) asm("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(v) : "l"(p));
    else if constexpr (sizeof(A) == 8) asm("ld.global.nc.L1::no_allocate.u64 %0, [%1];" : "=l"(v) : "l"(p));
    else asm("ld.global.nc.L1::no_allocate.v2.u64 {%0, %1}, [%2];" : "=l"(v.low), "=l"(v.high) : "l"(p));
    return bits<A>(v);
}
// Read often: x. Never written by the same launch.
template <typename A> DEVICE A cached(const A* p) {
    typedef typename unsigned_of<sizeof(A)>::type U;
    if constexpr (sizeof(A) == 16) return bits<A>(__ldg(reinterpret_cast<const uint4*>(p)));
    else return bits<A>(U(__ldg(reinterpret_cast<const U*>(p))));
}

// A stored value as a scalar of the product, conjugated where op(A) is.
template <typename S, typename E> DEVICE S entry(E stored, u32 conjugate) {
    const S value = widen<S>::from(stored);
    return is_complex<S>::value && conjugate ? conj(value) : value;
}

// A row's sum becomes y. Where beta is zero, y is not read.
template <typename S> DEVICE S finish(S alpha, S sum, S beta, S* y) {
    const S value = is_zero(beta) ? alpha * sum : alpha * sum + beta * *y;
    *y = value;
    return value;
}

// Entries of a row, `stride` apart, that a thread has under way at a time. Plain loads: to ask that the matrix leave
// the caches first costs up to a fifth here.
template <u32 AT_ONCE, typename E> struct Entries {
    u32 column[AT_ONCE];
    E value[AT_ONCE];

    // Asks for those from k on, none behind `places`.
    DEVICE void ask(const u32* columns, const E* values, u64 stride, u32 k, u32 places) {
#pragma unroll
        for (u32 u = 0; u < AT_ONCE; u++)
            if (k + u < places) {
                column[u] = columns[u64(k + u) * stride];
                value[u] = values[u64(k + u) * stride];
            }
    }
};

// Sum of a row whose entries lie `stride` apart, in their order. Padding behind `length`, and where PADDED what has the
// column of padding, is not multiplied, and nothing behind `places` is touched: where they are known before the length
// is, no load waits for it. ASKED: the first entries are under way already, since before the launch ahead had ended;
// then x is read by plain loads, which stay behind the wait for that launch.
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
