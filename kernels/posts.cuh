// Pieces of a sum that blocks of a launch write for another of its blocks: a word has a mark in addition to 32 bits of
// the piece, so that no fence is needed, and the block that reads it resets it to zero for the next launch. Blocks wait
// only for blocks with lower numbers, and the hardware starts blocks in that order (CUB's scans rely on it, too).
#pragma once
#include "lookback.cuh"

// `posts`: sizeof(T) / 4 words per piece, initially zero.
template <typename T> DEVICE void post(u64* posts, u32 at, T piece) {
    constexpr u32 WORDS = sizeof(T) / 4;
    constexpr u64 POSTED = u64(1) << 32;
    const words_of<T> w = split(piece);
    u64* const to = posts + u64(at) * WORDS;
    if constexpr (WORDS == 1) store_relaxed(to, POSTED | w.word[0]);
    else
#pragma unroll
        for (u32 i = 0; i < WORDS; i += 2) store_relaxed(to + i, POSTED | w.word[i], POSTED | w.word[i + 1]);
}
template <typename T> DEVICE T collect(u64* posts, u64 at) {
    constexpr u32 WORDS = sizeof(T) / 4;
    u64* const from = posts + at * WORDS;
    u64 posted[WORDS];
    bool whole = false;
    while (!whole) {
        whole = true;
        if constexpr (WORDS == 1) posted[0] = load_relaxed(from);
        else
#pragma unroll
            for (u32 i = 0; i < WORDS; i += 2) load_relaxed(from + i, posted[i], posted[i + 1]);
#pragma unroll
        for (u32 i = 0; i < WORDS; i++) whole &= bool(posted[i] >> 32);
    }
    words_of<T> w;
#pragma unroll
    for (u32 i = 0; i < WORDS; i++) {
        w.word[i] = u32(posted[i]);
        store_relaxed(from + i, 0);
    }
    return join<T>(w);
}
