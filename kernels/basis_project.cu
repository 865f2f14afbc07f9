// w -= V h, and V^H w with the new w, where V is a basis of at most VECTORS vectors stored one after another: the
// update of one pass of Gram-Schmidt and the products of the next, reading V once.
//
// bytes: V once, w read and written. A thread keeps element i of every vector in registers for its row i, in both
// steps.
//
//     thread    v_0 v_1 ... v_(count-1)  in row i, all read at once
//               w = w - sum_j h_j v_j,   sums_j = sums_j + conj(v_j) w        then its next row
//
// Sums are computed in an order that depends on the shape of the launch alone, so they have the same bits in every run.
// Ending with `launch_sums` was tried: GMRES(30) took 5 % longer (H200, 256^3, a run of its own), and racecheck
// reported hazards.
//
// Constants: SCALAR (element type), THREADS, VECTORS (maximum number of vectors).
#include "several_sums.cuh"

typedef SCALAR T;

extern "C" __global__ void __launch_bounds__(THREADS)
    basis_project(const T* basis, u32 count, const T* h, T* w, u64 n, T* out, T* partials, u32* finished) {
    after_predecessors();
    constexpr u32 WARPS = THREADS / 32;
    __shared__ T factors[VECTORS], of_warp[VECTORS][WARPS];
    const u32 warp = threadIdx.x / 32, lane = lane_id();
    if (threadIdx.x < count) factors[threadIdx.x] = h[threadIdx.x];
    __syncthreads();
    T sums[VECTORS];
#pragma unroll
    for (int j = 0; j < VECTORS; j++) sums[j] = T();
    for (u64 at = u64(blockIdx.x) * THREADS + threadIdx.x; at < n; at += u64(gridDim.x) * THREADS) {
        T v[VECTORS];
#pragma unroll
        for (int j = 0; j < VECTORS; j++) v[j] = j < count ? basis[j * n + at] : T();
        T x = w[at];
#pragma unroll
        for (int j = 0; j < VECTORS; j++)
            if (j < count) x = x - factors[j] * v[j];
        w[at] = x;
#pragma unroll
        for (int j = 0; j < VECTORS; j++) sums[j] = sums[j] + conj(v[j]) * x;
    }
#pragma unroll
    for (int j = 0; j < VECTORS; j++) {
        const T sum = warp_sum(sums[j]);
        if (lane == 0) of_warp[j][warp] = sum;
    }
    __syncthreads();
    if (threadIdx.x < count) {
        T sum = of_warp[threadIdx.x][0];
        for (u32 other = 1; other < WARPS; other++) sum = sum + of_warp[threadIdx.x][other];
        if (gridDim.x == 1) {
            out[threadIdx.x] = sum;
        } else {
            partials[threadIdx.x * gridDim.x + blockIdx.x] = sum;
            __threadfence();
        }
    }
    if (gridDim.x == 1 || !is_last(finished, gridDim.x)) return;
    for (u32 j = warp; j < count; j += WARPS) {
        T sum = T();
        for (u32 part = lane; part < gridDim.x; part += 32) sum = sum + load_shared_result(partials + j * gridDim.x + part);
        sum = warp_sum(sum);
        if (lane == 0) out[j] = sum;
    }
}
