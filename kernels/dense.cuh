// Small dense Hermitian systems, one per warp: lane i owns row i. The matrix is in shared memory, column after column,
// SPREAD apart so that a row and a column are both read without bank conflicts.
#pragma once
#include "complex.cuh"

#define DENSE_LIMIT 32
#define SPREAD 33

template <typename T> struct Dense {
    T entry[DENSE_LIMIT * SPREAD];
    DEVICE T& operator()(u32 i, u32 j) { return entry[j * SPREAD + i]; }
};

template <typename A> DEVICE typename real_of<A>::type real_part(A a) {
    if constexpr (is_complex<A>::value) return a.re;
    else return a;
}
template <typename A> DEVICE bool all_finite(A a) {
    if constexpr (is_complex<A>::value) return a.re - a.re == 0 && a.im - a.im == 0;
    else return a - a == 0;
}
template <typename A> DEVICE A from_real(typename real_of<A>::type re) {
    if constexpr (is_complex<A>::value) return {re, 0};
    else return re;
}

// Returns whether a pivot is possible for a positive definite matrix.
template <typename A> DEVICE bool is_pivot(A pivot) {
    auto re = real_part(pivot), reciprocal = 1 / re;
    return re > 0 && reciprocal - reciprocal == 0 && all_finite(pivot);
}
