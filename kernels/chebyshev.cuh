// One element of a step of Chebyshev's iteration for A z = r, with t = (A z)[i]:
//
//     last = keep z + momentum last + step d (r - t)          d is null if the diagonal is constant, and part of `step`
//
// If `momentum` is zero, `last` is not read.
#pragma once
#include "complex.cuh"

template <typename R> struct Step {
    R keep, momentum, step;
};

template <typename T, typename R> DEVICE T stepped(Step<R> by, const R* d, u64 i, T r, T z, T t, T last) {
    const R step = d ? by.step * d[i] : by.step;
    const T next = by.keep * z + step * (r - t);
    return by.momentum == 0 ? next : next + by.momentum * last;
}
