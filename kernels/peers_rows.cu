// The end of an exchange: rows that need entries of x which other GPUs own take them from the window and add their
// products, y[rows[k]] += alpha (row k of H) halo, a thread a row; and their share of x.y, if that is asked for.
// Blocks leave partial sums in the state, and the last one adds them in order, so that the same bits come out each
// time.
//
// Constants: SCALAR, OFFSET, and those of peers.cuh.
#include "peers.cuh"

typedef OFFSET I;

extern "C" __global__ void __launch_bounds__(THREADS)
    peers_rows(u64 rank, u64 ranks, const u64* windows, u64* state, u64 room, const u64* starts, u64 count, const u32* rows,
               const I* offsets, const u32* columns, const T* values, T alpha, const T* x, T* y, T* xy) {
    const u64 round = state[1] + 1, own = windows[rank];
    bool all = true;
    for (u64 other = threadIdx.x; other < ranks; other += THREADS) all = came(halo_flag(own, ranks, other), round, state) && all;
    all = __syncthreads_and(all);
    T share = T();
    for (u64 k = u64(blockIdx.x) * THREADS + threadIdx.x; k < count; k += u64(gridDim.x) * THREADS) {
        T sum = all ? T() : no_number<T>();
        for (u64 at = offsets[k]; at < offsets[k + 1]; at++) {
            const u64 e = columns[at], from = part_of(starts, ranks, e);
            sum = fused(values[at], fresh(halo_place(own, ranks, room, round, from) + (e - starts[from])), sum);
        }
        const u64 row = rows[k];
        sum = alpha * sum;
        y[row] = y[row] + sum;
        if (x) share = fused(conj(x[row]), sum, share);
    }
    T* partial = reinterpret_cast<T*>(state + PARTIALS);
    if (x) {
        __shared__ T of_warps[THREADS / 32];
        share = warp_sum(share);
        if (lane_id() == 0) of_warps[threadIdx.x / 32] = share;
        __syncthreads();
        if (threadIdx.x == 0) {
            T sum = of_warps[0];
            for (u32 warp = 1; warp < THREADS / 32; warp++) sum = sum + of_warps[warp];
            partial[blockIdx.x] = sum;
        }
    }
    if (last_block(state + 3) && threadIdx.x == 0) {
        state[1] = round;
        if (x) {
            T sum = xy[0];
            for (u32 block = 0; block < gridDim.x; block++) sum = sum + of_block(partial + block);
            xy[0] = sum;
        }
    }
}
