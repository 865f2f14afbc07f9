// The steps of krylov.cu for k systems with one matrix, interleaved: entry i of system j is at i * k + j, and its
// scalars are at state + j * SLOTS. Each system has its own alpha, beta and status. A system that has ended is not
// written any more, and its intermediate values are ignored.
//
//     k = 3, n = 3 rows:   r0 s0 t0 | r1 s1 t1 | r2 s2 t2     (threads stride by a multiple of k, keeping systems)
//
// Bytes per row, with one entry of the diagonal in addition:
//
//     cg_residuals    alpha = rho / p.q;  r -= alpha q;  r.r, r.z                3 k scalars
//     cg_directions   x += alpha p;  beta = r.z / rho;  p = z + beta p           5 k scalars
//
// Constants: as for krylov.cu; k is 2 to 32.
#include "cg_step.cuh"
#include "column_sums.cuh"
#include "lanes16.cuh"

// The diagonal's entries for VEC places from place i on, given the row and column of the first.
DEVICE void get_rows(const D* d, u64 rows, u64 row, u32 column, u32 k, D (&w)[VEC]) {
#pragma unroll
    for (int v = 0; v < VEC; v++) {
        w[v] = row < rows ? d[row] : D();
        if (++column == k) {
            column = 0;
            row++;
        }
    }
}

template <bool WEIGHTED>
DEVICE void descend(u32 k, u64 n, const R (&alpha)[VEC], const bool (&goes)[VEC], const D* d, const T* q, T* r, Sums (&sum)[VEC]) {
    const u32 active = of_whole_rows<SUM_THREADS>(k);
    if (threadIdx.x >= active) return;
    const u64 step = u64(active) * VEC, tile = step * SUM_UNROLL, rows = n / k;
    const u32 place = threadIdx.x * VEC, row_in_step = place / k, column = place % k;
    const u64 rows_a_step = step / k;
    const bool aligned = aligned16(q) && aligned16(r);
    for (u64 start = blockIdx.x * tile; start < n; start += gridDim.x * tile) {
        const bool wide = aligned && start + tile <= n;
        const u64 first_row = start / k + row_in_step;
        T a[SUM_UNROLL][VEC], b[SUM_UNROLL][VEC];
        D w[SUM_UNROLL][VEC];
#pragma unroll
        for (int u = 0; u < SUM_UNROLL; u++) {
            get(wide, r, start + u * step + place, n, a[u]);
            get(wide, q, start + u * step + place, n, b[u]);
            if (WEIGHTED) get_rows(d, rows, first_row + u * rows_a_step, column, k, w[u]);
        }
#pragma unroll
        for (int u = 0; u < SUM_UNROLL; u++) {
#pragma unroll
            for (int v = 0; v < VEC; v++) {
                if (goes[v]) a[u][v] = a[u][v] - alpha[v] * b[u][v];
                const R rr = abs2(a[u][v]);
                sum[v] = sum[v] + Sums{rr, WEIGHTED ? R(w[u][v]) * rr : rr};
            }
            put(wide, r, start + u * step + place, n, a[u]);
        }
    }
}

// d is null unless the inverse is a diagonal; rz is null if it is neither that nor the identity. n is k times the
// number of rows.
extern "C" __global__ void __launch_bounds__(SUM_THREADS)
    cg_residuals(u32 k, const D* d, const T* pq, const T* q, T* r, T* rz, R* state, u64 n, Sums* partials, u32* finished) {
    // Statuses change when all blocks have read them.
    const bool running = threadIdx.x < k && state[threadIdx.x * SLOTS + STATUS] == R(RUNNING);
    if (!__syncthreads_or(running)) {
        if (blockIdx.x == 0 && threadIdx.x < k) state[threadIdx.x * SLOTS + ALPHA] = 0;
        return;
    }
    R alpha[VEC];
    bool goes[VEC];
    Sums sum[VEC] = {};
#pragma unroll
    for (int v = 0; v < VEC; v++) {
        const u32 system = (threadIdx.x * VEC + v) % k;
        const Step step = step_along(pq[system], state + system * SLOTS);
        alpha[v] = step.alpha;
        goes[v] = state[system * SLOTS + STATUS] == R(RUNNING) && step.fault == RUNNING;
    }
    if (d) descend<true>(k, n, alpha, goes, d, q, r, sum);
    else descend<false>(k, n, alpha, goes, d, q, r, sum);
    launch_column_sums<SUM_THREADS>(sum, k, partials, finished, [=](u32 system, const Sums& all) {
        R* const own = state + system * SLOTS;
        const Step step = step_along(pq[system], own);
        const bool running = own[STATUS] == R(RUNNING);
        own[ALPHA] = 0;
        if (running && step.fault == RUNNING) settle(own, rz ? rz + system : nullptr, step, all);
        else if (running) refuse(own, step);
    });
}

template <bool WEIGHTED>
DEVICE void advance(u32 k, u64 n, const R (&alpha)[VEC], const R (&beta)[VEC], const D* d, const T* z, T* p, T* x) {
    const u32 active = of_whole_rows<THREADS>(k);
    if (threadIdx.x >= active) return;
    const u64 step = u64(active) * VEC, start = blockIdx.x * step * UNROLL, rows = n / k, rows_a_step = step / k;
    const u32 place = threadIdx.x * VEC, column = place % k;
    const u64 first_row = start / k + place / k;
    const bool wide = aligned16(z) && aligned16(p) && aligned16(x) && start + step * UNROLL <= n;
    T a[UNROLL][VEC], b[UNROLL][VEC], c[UNROLL][VEC];
    D w[UNROLL][VEC];
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        get(wide, z, start + u * step + place, n, a[u]);
        get(wide, p, start + u * step + place, n, b[u]);
        get(wide, x, start + u * step + place, n, c[u]);
        if (WEIGHTED) get_rows(d, rows, first_row + u * rows_a_step, column, k, w[u]);
    }
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
#pragma unroll
        for (int v = 0; v < VEC; v++) {
            if (alpha[v] == 0) continue;
            c[u][v] = c[u][v] + alpha[v] * b[u][v];
            if (WEIGHTED) a[u][v] = R(w[u][v]) * a[u][v];
            b[u][v] = a[u][v] + beta[v] * b[u][v];
        }
        put(wide, x, start + u * step + place, n, c[u]);
        put(wide, p, start + u * step + place, n, b[u]);
    }
}

// z is r if the inverse is the identity or a diagonal; d is null unless it is a diagonal. One block per tile of UNROLL
// steps.
extern "C" __global__ void __launch_bounds__(THREADS)
    cg_directions(u32 k, const D* d, const T* z, const T* rz, T* p, T* x, R* state, u64 n, u32* finished) {
    __shared__ R alphas[COLUMNS], betas[COLUMNS];
    const u32 t = threadIdx.x;
    R* const own = state + t * SLOTS;
    R rho = 0;
    if (t < k) {
        rho = real_part(rz[t]);
        alphas[t] = own[ALPHA];
        betas[t] = turn(rho, own[RHO]);
    }
    // No alpha changes in this launch, so either all blocks return here or none.
    if (!__syncthreads_or(t < k && alphas[t] != 0)) return;
    R alpha[VEC], beta[VEC];
#pragma unroll
    for (int v = 0; v < VEC; v++) {
        alpha[v] = alphas[(t * VEC + v) % k];
        beta[v] = betas[(t * VEC + v) % k];
    }
    if (d) advance<true>(k, n, alpha, beta, d, z, p, x);
    else advance<false>(k, n, alpha, beta, d, z, p, x);
    if (t >= 32) return;
    // The first warp has read the scalars for this block. The last one to get here changes them.
    u32 place = 0;
    if (t == 0) {
        __threadfence();
        place = atomicAdd(finished, 1u);
    }
    if (shuffle(place, 0) != gridDim.x - 1) return;
    if (t < k && alphas[t] != 0) turned(own, rz[t], rho);
    if (t == 0) *finished = 0;
}
