// The end of an exchange: rows that need entries of x owned by other GPUs read them from the window and add their
// products, y[i] += alpha d[i] (row k of H) halo for i = rows[k], with one thread per row and d = 1 if it is null; and,
// if requested, their part of x.y. With `publish`, this rank's part of x.y is written to the windows of all ranks in
// the same launch.
//
// Constants: SCALAR, OFFSET, and those of peers.cuh.
#include "peers.cuh"
#include "scalars.cuh"

typedef OFFSET I;

extern "C" __global__ void __launch_bounds__(THREADS)
    peers_rows(u64 rank, u64 ranks, const u64* windows, u64* state, u64 room, const u64* starts, u64 count,
               const u32* rows, const I* offsets, const u32* columns, const T* values, T alpha,
               const real_of<T>::type* d, const T* x, T* y, T* xy, u64 publish) {
    after_predecessors();
    const u64 round = state[1] + 1, own = windows[rank], next = state[0] + 1;
    const u64 stride = u64(gridDim.x) * THREADS;
    T share = T(), value = T(), of_x = T(), old = T(), times = alpha;
    u64 k = u64(blockIdx.x) * THREADS + threadIdx.x, row = 0, at = 0, end = 0, column = 0;
    const auto entry = [&] {
        column = columns[at];
        value = values[at];
    };
    const auto load = [&] {
        row = rows[k];
        at = offsets[k];
        end = offsets[k + 1];
        old = y[row];
        if (x) of_x = x[row];
        if (d) times = alpha * from_real<T>(d[row]);
        if (at < end) entry();
    };
    // Everything except the halo is loaded before any wait.
    if (k < count) load();
    const bool all = all_came(own, ranks, round, state);
    while (k < count) {
        T sum = all ? T() : no_number<T>();
        while (at < end) {
            const u64 from = part_of(starts, ranks, column);
            sum = fused(value, fresh(halo_place(own, ranks, room, round, from) + (column - starts[from])), sum);
            if (++at < end) entry();
        }
        sum = times * sum;
        y[row] = old + sum;
        share = fused(conj(of_x), sum, share);
        k += stride;
        if (k < count) load();
    }
    launch_sum<THREADS>(share, reinterpret_cast<T*>(state + PARTIALS), received(state), [=](T sum) {
        state[1] = round;
        if (!x) return;
        const T whole = xy[0] + sum;
        xy[0] = whole;
        if (publish) {
            put_sum(windows, rank, ranks, next, 0, whole);
            state[0] = next;
        }
    });
}
