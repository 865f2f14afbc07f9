// Functions for the products y = A x that also compute x.y: how a row's sum is used, and each thread's part of x.y.
#pragma once
#include "block_sum.cuh"
#include "product.cuh"

// A thread's rows: y is computed from their sums, and `part` is their part of x.y.
template <typename T> struct RowsDot {
    const T* x;
    T* y;
    T part;

    DEVICE void take(u64 row, T sum) {
        y[row] = sum;
        part = part + conj(x[row]) * sum;
    }
};
