// Numbers of half the precision.
#pragma once
#include "complex.cuh"

template <typename To, typename From> DEVICE To rounded(From a) {
    if constexpr (is_complex<From>::value) {
        To b;
        b.re = a.re;
        b.im = a.im;
        return b;
    } else return To(a);
}
