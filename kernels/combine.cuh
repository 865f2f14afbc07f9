// The operations of scans and reductions, as in src/scalar/combine.rs. OP names one of the templates.
#pragma once
#include "common.cuh"

template <typename T> struct op_sum {
    static DEVICE T identity() { return T(); }
    static DEVICE T of(T a, T b) { return T(a + b); }
};
template <typename T> struct op_min {
    static DEVICE T identity() { return key_bits<T>::from(typename key_bits<T>::type(~typename key_bits<T>::type(0))); }
    static DEVICE T of(T a, T b) { return key_bits<T>::to(b) < key_bits<T>::to(a) ? b : a; }
};
template <typename T> struct op_max {
    static DEVICE T identity() { return key_bits<T>::from(typename key_bits<T>::type(0)); }
    static DEVICE T of(T a, T b) { return key_bits<T>::to(a) < key_bits<T>::to(b) ? b : a; }
};
