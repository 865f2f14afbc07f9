// What the products y = A x share that give x.y too: what becomes of a row's sum, and of what the threads have of x.y.
#pragma once
#include "block_sum.cuh"
#include "product.cuh"

// A thread's rows: their sums become y, and `part` is what they are of x.y.
template <typename T> struct RowsDot {
    const T* x;
    T* y;
    T part;

    DEVICE void take(u64 row, T sum) {
        y[row] = sum;
        part = part + conj(x[row]) * sum;
    }
};
