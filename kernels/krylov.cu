// The vector half of a conjugate gradient iteration in two launches, with its scalars on the device.
//
//     state    0 status | 1 r.r | 2 p.Ap | 3 rho = r.z | 4 alpha | 5 threshold          (CgSlot in src/backend/krylov.rs)
//
// cg_residual    alpha = rho / p.q;  r -= alpha q;  r.r, r.z                bytes an element: 3 vectors
// cg_direction   x += alpha p;  beta = r.z / rho;  p = z + beta p           bytes an element: 5 vectors
//
// Every block reads the scalars when it starts and none may change them before all have: the block that finishes last
// writes them. Where the status is not "running" nothing changes, so replays beyond the end do no harm.
//
// Sums: as in block_sum.cuh, the same bits in every run. Source: PMPP 17.4 (fuse the vector work of CG).
//
// Constants: SCALAR (element type), DIAGONAL (a diagonal inverse), THREADS, UNROLL (cg_direction), SUM_THREADS,
// SUM_UNROLL (cg_residual).
#include "block_sum.cuh"
#include "cg_step.cuh"
#include "lanes16.cuh"

template <bool WEIGHTED> DEVICE Sums descend(u64 n, R alpha, const D* d, const T* q, T* r) {
    const u64 tile = u64(SUM_THREADS) * SUM_UNROLL * VEC;
    const bool aligned = aligned16(q) && aligned16(r) && (!WEIGHTED || aligned16(d));
    Sums sum[SUM_UNROLL] = {};
    for (u64 start = blockIdx.x * tile; start < n; start += gridDim.x * tile) {
        const bool wide = aligned && start + tile <= n;
        const u64 first = start + threadIdx.x * VEC;
        T a[SUM_UNROLL][VEC], b[SUM_UNROLL][VEC];
        D w[SUM_UNROLL][VEC];
#pragma unroll
        for (int u = 0; u < SUM_UNROLL; u++) {
            get(wide, r, first + u * SUM_THREADS * VEC, n, a[u]);
            get(wide, q, first + u * SUM_THREADS * VEC, n, b[u]);
            if (WEIGHTED) get(wide, d, first + u * SUM_THREADS * VEC, n, w[u]);
        }
#pragma unroll
        for (int u = 0; u < SUM_UNROLL; u++) {
#pragma unroll
            for (int v = 0; v < VEC; v++) {
                a[u][v] = a[u][v] - alpha * b[u][v];
                R rr = abs2(a[u][v]);
                sum[u] = sum[u] + Sums{rr, WEIGHTED ? R(w[u][v]) * rr : rr};
            }
            put(wide, r, first + u * SUM_THREADS * VEC, n, a[u]);
        }
    }
#pragma unroll
    for (int u = 1; u < SUM_UNROLL; u++) sum[0] = sum[0] + sum[u];
    return sum[0];
}

// d is null but for a diagonal inverse; rz is null for a general one, whose r.z is summed later.
extern "C" __global__ void __launch_bounds__(SUM_THREADS)
    cg_residual(const D* d, const T* pq, const T* q, T* r, T* rz, R* state, u64 n, Sums* partials, u32* finished) {
    const Step step = step_along(pq[0], state);
    // Every block comes to the same verdict, also one that starts after the first has written it down.
    const bool running = state[STATUS] == R(RUNNING);
    if (!running || step.fault != RUNNING) {
        if (blockIdx.x == 0 && threadIdx.x == 0) {
            state[ALPHA] = 0;
            if (running) refuse(state, step);
        }
        return;
    }
    Sums sums = d ? descend<true>(n, step.alpha, d, q, r) : descend<false>(n, step.alpha, d, q, r);
    launch_sum<SUM_THREADS>(sums, partials, finished, [=](Sums all) { settle(state, rz, step, all); });
}

template <bool WEIGHTED> DEVICE void advance(u64 n, R alpha, R beta, const D* d, const T* z, T* p, T* x) {
    const u64 stride = u64(gridDim.x) * THREADS * VEC;
    const bool aligned = aligned16(z) && aligned16(p) && aligned16(x) && (!WEIGHTED || aligned16(d));
    for (u64 first = (u64(blockIdx.x) * THREADS + threadIdx.x) * VEC; first < n; first += stride * UNROLL) {
        T a[UNROLL][VEC], b[UNROLL][VEC], c[UNROLL][VEC];
        D w[UNROLL][VEC];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            const u64 i = first + u * stride;
            if (i >= n) continue;
            const bool wide = aligned && i + VEC <= n;
            get(wide, z, i, n, a[u]);
            get(wide, p, i, n, b[u]);
            get(wide, x, i, n, c[u]);
            if (WEIGHTED) get(wide, d, i, n, w[u]);
        }
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            const u64 i = first + u * stride;
            if (i >= n) continue;
            const bool wide = aligned && i + VEC <= n;
#pragma unroll
            for (int v = 0; v < VEC; v++) {
                c[u][v] = c[u][v] + alpha * b[u][v];
                if (WEIGHTED) a[u][v] = R(w[u][v]) * a[u][v];
                b[u][v] = a[u][v] + beta * b[u][v];
            }
            put(wide, x, i, n, c[u]);
            put(wide, p, i, n, b[u]);
        }
    }
}

// z is r for an identity or diagonal inverse; d is null but for a diagonal one.
extern "C" __global__ void __launch_bounds__(THREADS)
    cg_direction(const D* d, const T* z, const T* rz, T* p, T* x, R* state, u64 n, u32* finished) {
    __shared__ R alpha, old_rho;
    if (threadIdx.x == 0) {
        alpha = state[ALPHA];
        old_rho = state[RHO];
    }
    __syncthreads();
    // alpha does not change in this launch, so all blocks leave here or none.
    if (alpha == 0) return;
    const R rho = real_part(rz[0]);
    const R beta = turn(rho, old_rho);
    if (d) advance<true>(n, alpha, beta, d, z, p, x);
    else advance<false>(n, alpha, beta, d, z, p, x);
    if (threadIdx.x == 0) {
        // This block has read the scalars. The last one to come here changes them.
        __threadfence();
        if (atomicAdd(finished, 1u) == gridDim.x - 1) {
            turned(state, rz[0], rho);
            *finished = 0;
        }
    }
}
