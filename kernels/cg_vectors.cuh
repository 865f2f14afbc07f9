// The vector half of a conjugate gradient iteration, element by element: r -= alpha q with r.r and r.z, and x += alpha
// p with p = z + beta p. Used by the steps for whole vectors and for those of one of several ranks.
//
// Constants: those of krylov.cu.
#pragma once
#include "block_sum.cuh"
#include "cg_step.cuh"
#include "lanes16.cuh"

// r -= alpha q, with this block's part of r.r and r.z. `step(alpha)` sets alpha and returns whether there is a step;
// all threads call it once, when their first loads are in flight.
template <bool WEIGHTED, typename F> DEVICE bool descend(u64 n, const D* d, const T* q, T* r, Sums& total, F step) {
    const u64 tile = u64(SUM_THREADS) * SUM_UNROLL * VEC;
    const bool aligned = aligned16(q) && aligned16(r) && (!WEIGHTED || aligned16(d));
    T a[SUM_UNROLL][VEC], b[SUM_UNROLL][VEC];
    D w[SUM_UNROLL][VEC];
    const auto load = [&](u64 start) {
        const bool wide = aligned && start + tile <= n;
        const u64 first = start + threadIdx.x * VEC;
#pragma unroll
        for (int u = 0; u < SUM_UNROLL; u++) {
            get(wide, r, first + u * SUM_THREADS * VEC, n, a[u]);
            get(wide, q, first + u * SUM_THREADS * VEC, n, b[u]);
            if (WEIGHTED) get(wide, d, first + u * SUM_THREADS * VEC, n, w[u]);
        }
    };
    u64 start = blockIdx.x * tile;
    load(start);
    R alpha;
    if (!step(alpha)) return false;
    Sums sum[SUM_UNROLL] = {};
    while (start < n) {
        const bool wide = aligned && start + tile <= n;
        const u64 first = start + threadIdx.x * VEC;
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
        start += gridDim.x * tile;
        if (start < n) load(start);
    }
#pragma unroll
    for (int u = 1; u < SUM_UNROLL; u++) sum[0] = sum[0] + sum[u];
    total = sum[0];
    return true;
}

// x += alpha p, p = z + beta p, by the block with this number. `scalars(alpha, beta)` sets both and returns whether
// there is a step; all threads call it once, when their first loads are in flight.
template <bool WEIGHTED, typename F>
DEVICE void advance(u64 block, u64 n, const D* d, const T* z, T* p, T* x, F scalars) {
    const u64 stride = u64(gridDim.x) * THREADS * VEC;
    const bool aligned = aligned16(z) && aligned16(p) && aligned16(x) && (!WEIGHTED || aligned16(d));
    T a[UNROLL][VEC], b[UNROLL][VEC], c[UNROLL][VEC];
    D w[UNROLL][VEC];
    const auto load = [&](u64 first) {
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
    };
    u64 first = (block * THREADS + threadIdx.x) * VEC;
    load(first);
    R alpha, beta;
    if (!scalars(alpha, beta)) return;
    while (first < n) {
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
        first += stride * UNROLL;
        if (first < n) load(first);
    }
}
