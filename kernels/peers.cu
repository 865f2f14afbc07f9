// Sums over all ranks and halos, through windows: memory of each GPU that the others can write. Rounds are counted on
// the device, so that a recording may hold them, and what a round leaves lies in one of two places that take turns: a
// rank writes round n + 2 only when it has ended round n + 1, for which it needed everybody, who had ended round n by
// then.
//
//     window:  flags of sums, one a source | flags of halos | sums of two rounds, MOST a source | halos of two rounds
//     state:   rounds of sums | rounds of halos | blocks that have sent | blocks that have received | given up
//
// A sum costs a store to each rank and a wait for the slowest; values are added in the order of ranks, so that all of
// them have the same bits.
//
// Constants: SCALAR, THREADS, MOST (scalars of a sum), PATIENCE (seconds until a rank is given up).
#include "complex.cuh"

typedef SCALAR T;

constexpr u64 SLOT = 16; // bytes of a scalar in the window

DEVICE u64 load_system(const u64* p) {
    u64 v;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}
DEVICE void store_system(u64* p, u64 v) { asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory"); }
DEVICE u64 nanoseconds() {
    u64 v;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(v));
    return v;
}

DEVICE u64* sum_flag(u64 window, u64 source) { return reinterpret_cast<u64*>(window) + source; }
DEVICE u64* halo_flag(u64 window, u64 ranks, u64 source) { return reinterpret_cast<u64*>(window) + ranks + source; }
DEVICE T* sum_slot(u64 window, u64 ranks, u64 round, u64 source, u64 k) {
    return reinterpret_cast<T*>(window + 16 * ranks + (((round % 2) * ranks + source) * MOST + k) * SLOT);
}
DEVICE T* halo_place(u64 window, u64 ranks, u64 room, u64 round, u64 source) {
    return reinterpret_cast<T*>(window + 16 * ranks + 2 * ranks * MOST * SLOT + ((round % 2) * ranks + source) * room);
}

// Waits until a source has come to a round. Whoever waits too long gives up, so that a rank that has died leaves nobody
// behind: the host is told by what it reads, which is no number.
DEVICE bool came(const u64* flag, u64 round, u64* state) {
    u64 start = 0;
    for (u32 turn = 1; load_system(flag) < round; turn++) {
        if (turn % 1024) continue;
        const u64 now = nanoseconds();
        if (!start) start = now;
        if (now - start > PATIENCE * 1000000000ull) {
            state[4] = 1;
            return false;
        }
        if (*static_cast<volatile u64*>(state + 4)) return false;
    }
    return true;
}

template <typename A> DEVICE A no_number() {
    const typename real_of<A>::type zero = 0;
    if constexpr (is_complex<A>::value) return {zero / zero, zero / zero};
    else return zero / zero;
}

// What another GPU has written is read from memory.
DEVICE f32 fresh(const f32* p) { return __ldcv(p); }
DEVICE f64 fresh(const f64* p) { return __ldcv(p); }
DEVICE c32 fresh(const c32* p) { return {__ldcv(&p->re), __ldcv(&p->im)}; }
DEVICE c64 fresh(const c64* p) { return {__ldcv(&p->re), __ldcv(&p->im)}; }

extern "C" __global__ void __launch_bounds__(THREADS)
    peers_sum(u64 rank, u64 ranks, const u64* windows, u64* state, u64 count, T* sums) {
    const u64 round = state[0] + 1, own = windows[rank];
    for (u64 k = threadIdx.x; k < count; k += THREADS) {
        const T value = sums[k];
        for (u64 other = 0; other < ranks; other++) *sum_slot(windows[other], ranks, round, rank, k) = value;
    }
    __threadfence_system();
    __syncthreads();
    bool all = true;
    for (u64 other = threadIdx.x; other < ranks; other += THREADS) store_system(sum_flag(windows[other], rank), round);
    for (u64 other = threadIdx.x; other < ranks; other += THREADS) all = came(sum_flag(own, other), round, state) && all;
    all = __syncthreads_and(all);
    for (u64 k = threadIdx.x; k < count; k += THREADS) {
        T sum = T();
        for (u64 other = 0; other < ranks; other++) {
            const T value = fresh(sum_slot(own, ranks, round, other, k));
            sum = other ? sum + value : value;
        }
        sums[k] = all ? sum : no_number<T>();
    }
    if (threadIdx.x == 0) state[0] = round;
}

// Whether this is the last block to come here; counts on from zero again.
DEVICE bool last_block(u64* counter) {
    __shared__ bool last;
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(counter, 1) == gridDim.x - 1;
        if (last) *counter = 0;
    }
    __syncthreads();
    return last;
}

// Entry e belongs to the part p with starts[p] <= e < starts[p + 1].
DEVICE u64 part_of(const u64* starts, u64 ranks, u64 e) {
    u64 part = 0;
    while (part + 1 < ranks && starts[part + 1] <= e) part++;
    return part;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    peers_send(u64 rank, u64 ranks, const u64* windows, u64* state, u64 room, const u64* starts, const T* send) {
    const u64 round = state[1] + 1, count = starts[ranks];
    for (u64 e = u64(blockIdx.x) * THREADS + threadIdx.x; e < count; e += u64(gridDim.x) * THREADS) {
        const u64 to = part_of(starts, ranks, e);
        halo_place(windows[to], ranks, room, round, rank)[e - starts[to]] = send[e];
    }
    if (last_block(reinterpret_cast<u64*>(state + 2)))
        for (u64 other = threadIdx.x; other < ranks; other += THREADS) {
            __threadfence_system();
            store_system(halo_flag(windows[other], ranks, rank), round);
        }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    peers_receive(u64 rank, u64 ranks, const u64* windows, u64* state, u64 room, const u64* starts, T* halo) {
    const u64 round = state[1] + 1, count = starts[ranks], own = windows[rank];
    bool all = true;
    for (u64 other = threadIdx.x; other < ranks; other += THREADS) all = came(halo_flag(own, ranks, other), round, state) && all;
    all = __syncthreads_and(all);
    for (u64 e = u64(blockIdx.x) * THREADS + threadIdx.x; e < count; e += u64(gridDim.x) * THREADS) {
        const u64 from = part_of(starts, ranks, e);
        const T value = fresh(halo_place(own, ranks, room, round, from) + (e - starts[from]));
        halo[e] = all ? value : no_number<T>();
    }
    if (last_block(reinterpret_cast<u64*>(state + 3)) && threadIdx.x == 0) state[1] = round;
}
