// The end of a step of the QR factorisation of a Hessenberg matrix, by one thread: the new rotation, after the earlier
// ones have been applied (Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., 6.5.3).
#pragma once
#include "scalars.cuh"

DEVICE f32 unit_roundoff(f32) { return 1.1920929e-7f; }
DEVICE f64 unit_roundoff(f64) { return 2.220446049250313e-16; }

// `above` and `below` are the last two entries of column j, `size` is the norm of the column. Writes R's diagonal
// entry, the rotation, g and r.r; the status becomes converged if r.r is at most the threshold. Returns RUNNING, or the
// fault of the column, and then writes nothing.
template <typename T, typename R>
DEVICE u32 rotate(u32 j, T above, R below, R size, T* column, T* rotations, T* g, T* state, R threshold) {
    const R along = magnitude(above), hypotenuse = length(along, below);
    if (!finite(size)) return NOT_FINITE;
    if (hypotenuse <= size * unit_roundoff(size)) return BREAKDOWN;
    const T phase = along > 0 ? above * from_real<T>(1 / along) : from_real<T>(1);
    const T c = from_real<T>(along / hypotenuse), s = phase * from_real<T>(below / hypotenuse);
    rotations[2 * j] = c;
    rotations[2 * j + 1] = s;
    column[j] = phase * from_real<T>(hypotenuse);
    const T right = g[j];
    const T rest = -conj(s) * right;
    g[j + 1] = rest;
    g[j] = c * right;
    const R rr = abs2(rest);
    state[RR] = from_real<T>(rr);
    if (rr <= threshold) state[STATUS] = from_real<T>(R(CONVERGED));
    return RUNNING;
}
