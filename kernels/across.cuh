// Products whose threads compute neighbouring rows.
//
// Constants: ROWS, which the including file defines.
#pragma once
#include "product.cuh"

// Entry k of ROWS neighbouring rows, read by one load of up to 16 bytes.
template <typename A> struct alignas(sizeof(A) * ROWS > 16 ? 16 : sizeof(A) * ROWS) Across {
    A of[ROWS];
};

// Computes y from the rows' sums; y has `rows` elements, and is not read if beta is zero.
template <typename S> DEVICE void finish_across(S alpha, const S (&sum)[ROWS], S beta, S* y, u64 row, u64 rows) {
    if (ROWS > 1 && is_zero(beta) && row + ROWS <= rows && aligned16(y)) {
        Across<S> of_y;
#pragma unroll
        for (u32 r = 0; r < ROWS; r++) of_y.of[r] = alpha * sum[r];
        *reinterpret_cast<Across<S>*>(y + row) = of_y;
        return;
    }
#pragma unroll
    for (u32 r = 0; r < ROWS; r++)
        if (row + r < rows) finish(alpha, sum[r], beta, y + row + r);
}
