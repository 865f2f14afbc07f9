// The scalars of a conjugate gradient iteration: their places in the state between launches, and the meaning of its
// values (CgSlot and CgStatus in src/backend/krylov.rs).
//
// Constants: SCALAR (vectors), DIAGONAL (a diagonal inverse).
#pragma once
#include "complex.cuh"

typedef SCALAR T;
typedef real_of<T>::type R;
typedef DIAGONAL D;

enum : int { STATUS, RR, CURVATURE, RHO, ALPHA, THRESHOLD };
enum : int { MESSAGE = 3, SLOTS = 6 };
enum : int { RUNNING, CONVERGED, NOT_POSITIVE_DEFINITE, NOT_FINITE, BREAKDOWN };

DEVICE bool finite(R a) { return a - a == 0; }
template <typename A> DEVICE R real_part(A a) {
    if constexpr (is_complex<A>::value) return a.re;
    else return a;
}
