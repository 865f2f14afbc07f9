// The vector half of a conjugate gradient iteration in two launches, with its scalars on the device.
//
//     state    0 status | 1 r.r | 2 p.Ap | 3 rho = r.z | 4 alpha | 5 threshold          (CgSlot in src/backend/krylov.rs)
//
//     cg_residual    alpha = rho / p.q;  r -= alpha q;  r.r, r.z                bytes: 3 vectors
//     cg_direction   x += alpha p;  beta = r.z / rho;  p = z + beta p           bytes: 5 vectors
//
// Every block reads the scalars when it starts, and none may change them before all have read them: the block that
// finishes last writes them. If the status is not "running" nothing changes, so replays beyond the end do no harm.
//
// Sums: as in block_sum.cuh, the same bits in every run. Source: PMPP 17.4 (fuse the vector work of CG).
//
// Constants: SCALAR (element type), DIAGONAL (a diagonal inverse), THREADS, UNROLL (cg_direction), SUM_THREADS,
// SUM_UNROLL (cg_residual).
#include "cg_vectors.cuh"

// d is null unless the inverse is a diagonal; rz is null if it is neither that nor the identity, and r.z is then summed
// later.
extern "C" __global__ void __launch_bounds__(SUM_THREADS)
    cg_residual(const D* d, const T* pq, const T* q, T* r, T* rz, R* state, u64 n, Sums* partials, u32* finished) {
    const Step step = step_along(pq[0], state);
    // Every block comes to the same result, even one that starts after the first has written its status.
    const bool running = state[STATUS] == R(RUNNING);
    if (!running || step.fault != RUNNING) {
        if (blockIdx.x == 0 && threadIdx.x == 0) {
            state[ALPHA] = 0;
            if (running) refuse(state, step);
        }
        return;
    }
    const auto alpha = [&](R& to) {
        to = step.alpha;
        return true;
    };
    Sums sums = {};
    if (d) descend<true>(n, d, q, r, sums, alpha);
    else descend<false>(n, d, q, r, sums, alpha);
    launch_sum<SUM_THREADS>(sums, partials, finished, [=](Sums all) { settle(state, rz, step, all); });
}

// z is r if the inverse is the identity or a diagonal; d is null unless it is a diagonal.
extern "C" __global__ void __launch_bounds__(THREADS)
    cg_direction(const D* d, const T* z, const T* rz, T* p, T* x, R* state, u64 n, u32* finished) {
    __shared__ R alpha, old_rho;
    if (threadIdx.x == 0) {
        alpha = state[ALPHA];
        old_rho = state[RHO];
    }
    __syncthreads();
    // alpha does not change in this launch, so either all blocks return here or none.
    if (alpha == 0) return;
    const R rho = real_part(rz[0]);
    const R beta = turn(rho, old_rho);
    const auto scalars = [&](R& a, R& b) {
        a = alpha;
        b = beta;
        return true;
    };
    if (d) advance<true>(blockIdx.x, n, d, z, p, x, scalars);
    else advance<false>(blockIdx.x, n, d, z, p, x, scalars);
    if (threadIdx.x == 0) {
        // This block has read the scalars. The last one to get here changes them.
        __threadfence();
        if (atomicAdd(finished, 1u) == gridDim.x - 1) {
            turned(state, rz[0], rho);
            *finished = 0;
        }
    }
}
