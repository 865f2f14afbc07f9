// The scalars of a conjugate gradient recurrence in kernels that do many iterations: every thread of every block holds
// them and computes them from the same sums, so that all threads reach the same verdict and take the same branches.
// Constants: THREADS, and those of cg_state.cuh.
#pragma once
#include "cg_state.cuh"

struct Recurrence {
    R status, rr, curvature, rho, threshold, alpha, beta;

    DEVICE explicit Recurrence(const R* state)
        : status(state[STATUS]), rr(state[RR]), curvature(state[CURVATURE]), rho(state[RHO]), threshold(state[THRESHOLD]), alpha(0), beta(0) {}
    DEVICE bool running() const { return status == R(RUNNING); }

    // Called when p.q is known: computes alpha, or ends the recurrence with alpha = 0.
    DEVICE void step(f64 pq) {
        curvature = R(pq);
        alpha = rho / curvature;
        if (!finite(curvature)) status = R(NOT_FINITE);
        else if (!(curvature > 0)) status = R(NOT_POSITIVE_DEFINITE);
        else if (!finite(alpha)) status = R(BREAKDOWN);
        if (!running()) alpha = 0;
    }
    // Called when r.r and r.z are known: computes beta, or ends the recurrence. Returns whether x and p are to be
    // updated.
    DEVICE bool turn(f64 r_r, f64 r_z) {
        rr = R(r_r);
        const R rz = R(r_z);
        if (!finite(rr)) {
            status = R(NOT_FINITE);
            alpha = 0;
            return false;
        }
        if (rr <= threshold) status = R(CONVERGED);
        else if (!(rz > 0 && finite(rz))) status = R(BREAKDOWN);
        beta = rz / rho;
        if (!finite(beta)) beta = 0;
        rho = rz;
        return true;
    }

    // Called by one thread: writes the message of an iteration, and the state for the next launch.
    DEVICE void tell(R* message) const {
        message[0] = status;
        message[1] = rr;
        message[2] = curvature;
    }
    // Called by the first block if the recurrence was over before the launch: repeats the status in the messages of all
    // iterations.
    DEVICE void repeat_status(R* messages, u32 count) const {
        if (blockIdx.x == 0)
            for (u32 i = threadIdx.x; i < count; i += THREADS) messages[MESSAGE * i] = status;
    }
    DEVICE void store(R* state) const {
        state[STATUS] = status;
        state[RR] = rr;
        state[CURVATURE] = curvature;
        state[RHO] = rho;
        state[ALPHA] = alpha;
    }
};
