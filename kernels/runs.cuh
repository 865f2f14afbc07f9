// Runs of RUN neighbouring elements, at most 16 bytes, which begin at a multiple of their size and are loaded and
// stored at once.
//
// Written as assembly. With a branch the compiler would load, wait, and move the result to the registers that otherwise
// hold zero, so that loads would wait for each other; here the loads themselves are predicated. The compiler would also
// split stores if elements are in registers that are not adjacent.
#pragma once
#include "complex.cuh"

template <typename T> struct alignas(RUN * sizeof(T)) Run {
    T of[RUN];
};

// The value at p, of 1, 2, 4, 8 or 16 bytes; zero if `in` is false, in which case p is not accessed.
template <typename A> DEVICE A load_where(bool in, const A* p) {
    const u32 there = in;
    if constexpr (sizeof(A) == 1) {
        u32 v = 0;
        asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.u8 %0, [%1];}" : "+r"(v) : "l"(p), "r"(there));
        return bits<A>(u8(v));
    } else if constexpr (sizeof(A) == 2) {
        u32 v = 0;
        asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.u16 %0, [%1];}" : "+r"(v) : "l"(p), "r"(there));
        return bits<A>(u16(v));
    } else if constexpr (sizeof(A) == 4) {
        u32 v = 0;
        asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.u32 %0, [%1];}" : "+r"(v) : "l"(p), "r"(there));
        return bits<A>(v);
    } else if constexpr (sizeof(A) == 8) {
        u64 v = 0;
        asm volatile("{.reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.u64 %0, [%1];}" : "+l"(v) : "l"(p), "r"(there));
        return bits<A>(v);
    } else {
        u128 v = {};
        asm volatile("{.reg .pred p; setp.ne.u32 p, %3, 0; @p ld.global.v2.u64 {%0, %1}, [%2];}" : "+l"(v.low), "+l"(v.high) : "l"(p), "r"(there));
        return bits<A>(v);
    }
}
template <typename T> DEVICE Run<T> load_run(bool in, const T* p) { return load_where(in, reinterpret_cast<const Run<T>*>(p)); }

template <typename T> DEVICE void store_run(T* p, const Run<T>& run) {
    if constexpr (sizeof(run) == 4) {
        asm volatile("st.global.u32 [%0], %1;" ::"l"(p), "r"(bits<u32>(run)) : "memory");
    } else if constexpr (sizeof(run) == 8) {
        asm volatile("st.global.u64 [%0], %1;" ::"l"(p), "l"(bits<u64>(run)) : "memory");
    } else {
        const u128 v = bits<u128>(run);
        asm volatile("st.global.v2.u64 [%0], {%1, %2};" ::"l"(p), "l"(v.low), "l"(v.high) : "memory");
    }
}
