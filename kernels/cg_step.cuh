// The scalar computations of a conjugate gradient iteration for one system whose state is at `state`, used for one
// system and for several.
#pragma once
#include "cg_state.cuh"

template <typename A> DEVICE bool all_finite(A a) {
    if constexpr (is_complex<A>::value) return finite(a.re) && finite(a.im);
    else return finite(a);
}
template <typename A> DEVICE A from_real(R a) {
    if constexpr (is_complex<A>::value) return {a, 0};
    else return a;
}

struct alignas(2 * sizeof(R)) Sums {
    R rr, rz;
};
DEVICE Sums operator+(Sums a, Sums b) { return {a.rr + b.rr, a.rz + b.rz}; }

// The step along p that follows from p.q, or the reason why there is none.
struct Step {
    R curvature, alpha;
    int fault;
};
DEVICE Step step_along(T pq, const R* state) {
    const R curvature = real_part(pq), alpha = state[RHO] / curvature;
    int fault = RUNNING;
    if (!all_finite(pq)) fault = NOT_FINITE;
    else if (!(curvature > 0)) fault = NOT_POSITIVE_DEFINITE;
    else if (!finite(alpha)) fault = BREAKDOWN;
    return {curvature, alpha, fault};
}
// Records that no step was taken, though the iteration was running.
DEVICE void refuse(R* state, const Step& step) {
    state[CURVATURE] = step.curvature;
    state[STATUS] = R(step.fault);
}
// Records that the step was taken. rz is null if r.z is summed later.
DEVICE void settle(R* state, T* rz, const Step& step, const Sums& all) {
    state[CURVATURE] = step.curvature;
    state[RR] = all.rr;
    if (rz) *rz = from_real<T>(all.rz);
    const bool good = finite(all.rr);
    state[ALPHA] = good ? step.alpha : R(0);
    if (!good) state[STATUS] = R(NOT_FINITE);
    else if (all.rr <= state[THRESHOLD]) state[STATUS] = R(CONVERGED);
}
// beta of the next direction.
DEVICE R turn(R rho, R old_rho) {
    const R beta = rho / old_rho;
    return finite(beta) ? beta : R(0);
}
DEVICE void turned(R* state, T rz, R rho) {
    state[RHO] = rho;
    if (!(rho > 0 && all_finite(rz)) && state[STATUS] == R(RUNNING)) state[STATUS] = R(BREAKDOWN);
}
