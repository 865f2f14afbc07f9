// Windows between GPUs: memory of each GPU that the others can write. Rounds are counted on the device, so that a
// recording may contain them, and the data of a round is in one of two places that are used alternately: a rank writes
// round n + 2 only when it has finished round n + 1, for which it needed all ranks, which had finished round n by then.
//
//     window:  a word for each rank, unused | a flag of halos for each rank | sums of two rounds, MOST scalars for each
//              rank | halos of two rounds, `room` bytes for each rank
//     state:   rounds of sums | rounds of halos received | blocks or entries sent | blocks that have received | given up |
//              rounds of halos sent | ... | partial sums of blocks from word PARTIALS on
//
// A sum takes one store to each rank and a wait for the slowest; values are added in the order of ranks, so that all
// ranks have the same bits. Each word of a sum has the number of the round next to it, so that no fence is needed
// between the two (as in the protocol LL of NCCL); halos are fenced, and announced by a flag.
//
// Constants: SCALAR, THREADS, MOST (maximum number of scalars of a sum), PATIENCE (seconds until a rank is given up).
#pragma once
#include "several_sums.cuh"

typedef SCALAR T;

constexpr u64 PARTIALS = 8;
constexpr u64 SENT = 5;
constexpr u32 WORDS = sizeof(T) / 4;
constexpr u64 SLOT = 32; // bytes of a scalar of a sum: 4 for each 4 of it and 4 for the round

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

// Counters: blocks (or entries) that have been sent, and blocks that have received.
DEVICE u32* sent(u64* state) { return reinterpret_cast<u32*>(state + 2); }
DEVICE u32* received(u64* state) { return reinterpret_cast<u32*>(state + 3); }

DEVICE u64* halo_flag(u64 window, u64 ranks, u64 source) { return reinterpret_cast<u64*>(window) + ranks + source; }
DEVICE u64* sum_words(u64 window, u64 ranks, u64 round, u64 source, u64 k) {
    return reinterpret_cast<u64*>(window + 16 * ranks + (((round % 2) * ranks + source) * MOST + k) * SLOT);
}
DEVICE T* halo_place(u64 window, u64 ranks, u64 room, u64 round, u64 source) {
    return reinterpret_cast<T*>(window + 16 * ranks + 2 * ranks * MOST * SLOT + ((round % 2) * ranks + source) * room);
}

// A rank that waits too long gives up, so that it does not hang if another rank has died; the host notices because it
// reads NaN.
struct Patience {
    u64* state;
    u64 start = 0;
    u32 turn = 0;

    DEVICE explicit Patience(u64* state) : state(state) {}

    DEVICE bool over() {
        if (++turn % 1024) return false;
        if (*static_cast<volatile u64*>(state + 4)) return true;
        const u64 now = nanoseconds();
        if (!start) start = now;
        if (now - start <= PATIENCE * 1000000000ull) return false;
        state[4] = 1;
        return true;
    }
};

DEVICE void put_word(u64* p, u64 v) { asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory"); }

// Writes this rank's contribution to a sum to the windows of all ranks.
DEVICE void put_sum(const u64* windows, u64 rank, u64 ranks, u64 round, u64 k, T value) {
    const words_of<T> mine = split(value);
    for (u64 other = 0; other < ranks; other++) {
        u64* to = sum_words(windows[other], ranks, round, rank, k);
#pragma unroll
        for (u32 w = 0; w < WORDS; w++) put_word(to + w, round << 32 | mine.word[w]);
    }
}

// Waits until a word of this round has arrived, and reads it. Returns false if the rank gives up.
DEVICE bool word_of(const u64* p, u32 round, u64* state, u32& word) {
    Patience patience(state);
    while (true) {
        u64 v;
        asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
        word = u32(v);
        if (u32(v >> 32) == round) return true;
        if (patience.over()) return false;
    }
}

// Waits until a source has reached a round. Returns false if the rank gives up.
DEVICE bool came(const u64* flag, u64 round, u64* state) {
    Patience patience(state);
    while (load_system(flag) < round)
        if (patience.over()) return false;
    return true;
}

// Waits, with all threads of the block, until all ranks have reached a round of halos.
DEVICE bool all_came(u64 window, u64 ranks, u64 round, u64* state) {
    bool all = true;
    for (u64 other = threadIdx.x; other < ranks; other += THREADS) all = came(halo_flag(window, ranks, other), round, state) && all;
    return __syncthreads_and(all);
}

template <typename A> DEVICE A no_number() {
    const typename real_of<A>::type zero = 0;
    if constexpr (is_complex<A>::value) return {zero / zero, zero / zero};
    else return zero / zero;
}

// Data written by another GPU is read from memory.
DEVICE f32 fresh(const f32* p) { return __ldcv(p); }
DEVICE f64 fresh(const f64* p) { return __ldcv(p); }
DEVICE c32 fresh(const c32* p) { return {__ldcv(&p->re), __ldcv(&p->im)}; }
DEVICE c64 fresh(const c64* p) { return {__ldcv(&p->re), __ldcv(&p->im)}; }

// Entry e belongs to the rank p with starts[p] <= e < starts[p + 1].
DEVICE u64 part_of(const u64* starts, u64 ranks, u64 e) {
    u64 part = 0;
    while (part + 1 < ranks && starts[part + 1] <= e) part++;
    return part;
}
