// The end of an exchange: rows that need entries of x which other GPUs own take them from the window and add their
// products, y[rows[k]] += alpha (row k of H) halo, a thread a row; and their share of x.y, if that is asked for. With
// `publish`, this rank's share of x.y goes to the windows of all in the same launch.
//
// Constants: SCALAR, OFFSET, and those of peers.cuh.
#include "peers.cuh"

typedef OFFSET I;

extern "C" __global__ void __launch_bounds__(THREADS)
    peers_rows(u64 rank, u64 ranks, const u64* windows, u64* state, u64 room, const u64* starts, u64 count, const u32* rows,
               const I* offsets, const u32* columns, const T* values, T alpha, const T* x, T* y, T* xy,
               u64 publish) {
    after_predecessors();
    const u64 round = state[1] + 1, own = windows[rank];
    const bool all = all_came(own, ranks, round, state);
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
    launch_sum<THREADS>(share, reinterpret_cast<T*>(state + PARTIALS), received(state), [=](T sum) {
        state[1] = round;
        if (!x) return;
        const T whole = xy[0] + sum;
        xy[0] = whole;
        if (publish) {
            const u64 next = state[0] + 1;
            put_sum(windows, rank, ranks, next, 0, whole);
            state[0] = next;
        }
    });
}
