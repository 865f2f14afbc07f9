// Sums over all ranks, and exchanges of entries and of words of bits: sending, and receiving what other ranks have
// sent.
//
// Constants: SCALAR, and those of peers.cuh.
#include "peers.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    peers_sum(u64 rank, u64 ranks, const u64* windows, u64* state, u64 count, T* sums) {
    const u64 round = state[0] + 1, own = windows[rank];
    bool all = true;
    for (u64 k = threadIdx.x; k < count; k += THREADS) {
        put_sum(windows, rank, ranks, round, k, sums[k]);
        T sum = T();
        for (u64 other = 0; other < ranks; other++) {
            const u64* from = sum_words(own, ranks, round, other, k);
            words_of<T> words;
#pragma unroll
            for (u32 w = 0; w < WORDS; w++) all = word_of(from + w, u32(round), state, words.word[w]) && all;
            const T value = join<T>(words);
            sum = other ? sum + value : value;
        }
        sums[k] = all ? sum : no_number<T>();
    }
    __syncthreads();
    if (threadIdx.x == 0) state[0] = round;
}

// Sends the entries of x that are listed, or all of them if there is no list.
extern "C" __global__ void __launch_bounds__(THREADS)
    peers_send(u64 rank, u64 ranks, const u64* windows, u64* state, u64 room, const u64* starts, const u32* asked,
               const T* send) {
    // Data that was sent and has not been received is no longer needed. No rank overwrites it before all ranks have
    // reached this point.
    const u64 last = state[SENT], round = last + 1, count = starts[ranks];
    if (state[1] < last) all_came(windows[rank], ranks, last, state);
    for (u64 e = u64(blockIdx.x) * THREADS + threadIdx.x; e < count; e += u64(gridDim.x) * THREADS) {
        const u64 to = part_of(starts, ranks, e);
        halo_place(windows[to], ranks, room, round, rank)[e - starts[to]] = send[asked ? asked[e] : e];
    }
    // The entries are visible to other GPUs before any is notified.
    __threadfence_system();
    if (is_last(sent(state), gridDim.x)) {
        if (threadIdx.x == 0) {
            state[1] = last;
            state[SENT] = round;
        }
        for (u64 other = threadIdx.x; other < ranks; other += THREADS) {
            __threadfence_system();
            store_system(halo_flag(windows[other], ranks, rank), round);
        }
    }
}

// Counts data that was sent but is no longer needed as received, before an exchange of another kind begins.
extern "C" __global__ void __launch_bounds__(THREADS) peers_drop(u64 rank, u64 ranks, const u64* windows, u64* state) {
    const u64 last = state[SENT];
    all_came(windows[rank], ranks, last, state);
    if (threadIdx.x == 0) state[1] = last;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    peers_receive(u64 rank, u64 ranks, const u64* windows, u64* state, u64 room, const u64* starts, T* halo) {
    const u64 round = state[1] + 1, count = starts[ranks], own = windows[rank];
    const bool all = all_came(own, ranks, round, state);
    for (u64 e = u64(blockIdx.x) * THREADS + threadIdx.x; e < count; e += u64(gridDim.x) * THREADS) {
        const u64 from = part_of(starts, ranks, e);
        const T value = fresh(halo_place(own, ranks, room, round, from) + (e - starts[from]));
        halo[e] = all ? value : no_number<T>();
    }
    if (is_last(received(state), gridDim.x) && threadIdx.x == 0) state[1] = round;
}

// Sends this rank's words to all others, as an exchange of its own.
extern "C" __global__ void __launch_bounds__(THREADS)
    peers_send_words(u64 rank, u64 ranks, const u64* windows, u64* state, u64 room, u64 count, const u32* words) {
    const u64 round = state[SENT] + 1;
    for (u64 other = 0; other < ranks; other++) {
        if (other == rank) continue;
        u32* to = reinterpret_cast<u32*>(halo_place(windows[other], ranks, room, round, rank));
        for (u64 e = u64(blockIdx.x) * THREADS + threadIdx.x; e < count; e += u64(gridDim.x) * THREADS) to[e] = words[e];
    }
    __threadfence_system();
    if (is_last(sent(state), gridDim.x)) {
        if (threadIdx.x == 0) state[SENT] = round;
        for (u64 other = threadIdx.x; other < ranks; other += THREADS) {
            __threadfence_system();
            store_system(halo_flag(windows[other], ranks, rank), round);
        }
    }
}

// Adds the bits that other ranks have sent to each word. If a rank was given up, the next sum reports it.
extern "C" __global__ void __launch_bounds__(THREADS)
    peers_or_words(u64 rank, u64 ranks, const u64* windows, u64* state, u64 room, u64 count, u32* words) {
    const u64 round = state[1] + 1, own = windows[rank];
    all_came(own, ranks, round, state);
    for (u64 e = u64(blockIdx.x) * THREADS + threadIdx.x; e < count; e += u64(gridDim.x) * THREADS) {
        u32 bits = words[e];
        for (u64 other = 0; other < ranks; other++)
            if (other != rank) bits |= __ldcv(reinterpret_cast<const u32*>(halo_place(own, ranks, room, round, other)) + e);
        words[e] = bits;
    }
    if (is_last(received(state), gridDim.x) && threadIdx.x == 0) state[1] = round;
}

// sums[k] = all[k] + all[count + k] + ..., one rank after another, in the order of ranks.
extern "C" __global__ void __launch_bounds__(THREADS) peers_add(u64 ranks, u64 count, const T* all, T* sums) {
    for (u64 k = threadIdx.x; k < count; k += THREADS) {
        T sum = all[k];
        for (u64 rank = 1; rank < ranks; rank++) sum = sum + all[rank * count + k];
        sums[k] = sum;
    }
}
