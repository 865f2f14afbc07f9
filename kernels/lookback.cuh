// Decoupled look-back (Merrill and Garland 2016): computes the prefix of a tile from what its predecessors have
// published.
//
// A tile first publishes its aggregate. Then one warp walks back over the tiles before it, adding aggregates until it
// meets a tile that has already published its inclusive prefix; then it publishes its own. The kernels publish a tile's
// aggregate one tile before they walk for it, so that almost everything has been published when the walk starts.
//
// Data is published in 64-bit words, each with 32 bits of payload below and a tag above. A word is written and read as
// a whole, so no fence is needed: a value is accepted when all of its words carry the same tag. A tag holds the state
// (two bits) and the number of the launch, so that the words of earlier launches read as "nothing yet" and the
// workspace is cleared once in its life, not once per call.
//
//     workspace:  [0] next tile   [1] blocks done   [2] launch number   [3] words that follow the header
//                 [4 ...] descriptor of tile 0, tile 1, ...
//
// Tiles are numbered by a ticket when a block takes them, so a tile's predecessors are all in progress or done: the
// walk cannot wait for a block that has not started. The last block to finish resets the header for the next launch.
#pragma once
#include "common.cuh"

#define HEADER_WORDS 4
enum : u32 { NOTHING = 0, AGGREGATE = 1, PREFIX = 2 };

DEVICE void store_relaxed(u64* p, u64 v) { asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory"); }
DEVICE void store_relaxed(u64* p, u64 a, u64 b) {
    asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(p), "l"(a), "l"(b) : "memory");
}
DEVICE u64 load_relaxed(const u64* p) {
    u64 v;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}
DEVICE void load_relaxed(const u64* p, u64& a, u64& b) {
    asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(a), "=l"(b) : "l"(p) : "memory");
}

// One launch's view of the workspace. Only one thread per block calls take() and leave().
struct Tickets {
    u64* workspace;
    DEVICE u64 take() const { return atomicAdd(workspace, 1ull); }
    DEVICE u32 launch() const { return u32(load_relaxed(workspace + 2)); }
    // Called when the block takes no further ticket and publishes nothing more.
    DEVICE void leave() const {
        __threadfence();
        if (atomicAdd(workspace + 1, 1ull) + 1 < gridDim.x) return;
        u64 launch = (load_relaxed(workspace + 2) + 1) & 0x3fffffff;
        if (launch == 0)  // the numbers start again: clear the words of 2^30 launches ago
            for (u64 i = 0, words = workspace[3]; i < words; i++) store_relaxed(workspace + HEADER_WORDS + i, 0);
        store_relaxed(workspace, 0);
        store_relaxed(workspace + 1, 0);
        store_relaxed(workspace + 2, launch);
    }
};

template <typename V> struct Descriptors {
    static constexpr int WORDS = (sizeof(V) + 3) / 4;
    static_assert(WORDS == 1 || WORDS % 2 == 0, "descriptors are one word or pairs of words");
    u64* first;
    u32 launch;

    DEVICE Descriptors(u64* workspace, u32 launch) : first(workspace + HEADER_WORDS), launch(launch) {}

    DEVICE void publish(u64 tile, V value, u32 state) const {
        u64 tag = u64(launch << 2 | state) << 32;
        words_of<V> w = split(value);
        u64* at = first + tile * WORDS;
        if constexpr (WORDS == 1) store_relaxed(at, tag | w.word[0]);
        else
#pragma unroll
            for (int i = 0; i < WORDS; i += 2) store_relaxed(at + i, tag | w.word[i], tag | w.word[i + 1]);
    }

    // Returns the state of `tile`; unless that is NOTHING, sets `value` to the tile's value.
    DEVICE u32 look(u64 tile, V& value) const {
        const u64* at = first + tile * WORDS;
        u64 raw[WORDS];
        if constexpr (WORDS == 1) raw[0] = load_relaxed(at);
        else
#pragma unroll
            for (int i = 0; i < WORDS; i += 2) load_relaxed(at + i, raw[i], raw[i + 1]);
        u32 tag = u32(raw[0] >> 32);
        bool whole = tag >> 2 == launch;
        words_of<V> w;
#pragma unroll
        for (int i = 0; i < WORDS; i++) {
            w.word[i] = u32(raw[i]);
            whole &= u32(raw[i] >> 32) == tag;
        }
        value = join<V>(w);
        return whole ? tag & 3 : u32(NOTHING);
    }

    // Called by a whole warp: passes the tiles up to `last` to `take`, 32 at a time, newest group first and newest tile
    // in lane 0, up to the nearest prefix, waiting for what is not yet published. take(value, state, nearest, last):
    // lane i has tile last - i; `nearest` is the lane of the nearest prefix (then it is the last call), or 32. Tiles
    // before the first read as a prefix of `zero`.
    template <typename Take> DEVICE void walk(i64 last, V zero, Take take) const {
        while (true) {
            V value;
            u32 state;
            u32 nearest = group(last, zero, value, state);
            take(value, state, nearest, last);
            if (nearest < 32) return;
            last -= 32;
        }
    }

    // One group of 32 tiles: value and state by lane. Returns the lane of the nearest prefix, or 32; waits until all
    // tiles up to there have published, reading again only those that have not.
    DEVICE u32 group(i64 last, V zero, V& value, u32& state) const {
        i64 mine = last - i64(lane_id());
        state = mine < 0 ? PREFIX : NOTHING;
        value = zero;
        while (true) {
            if (state == NOTHING) state = look(u64(mine), value);
            u32 prefixes = __ballot_sync(ALL, state == PREFIX);
            u32 missing = __ballot_sync(ALL, state == NOTHING);
            u32 nearest = prefixes ? __ffs(prefixes) - 1 : 32;
            u32 needed = nearest >= 31 ? ALL : (2u << nearest) - 1;
            if (!(missing & needed)) return nearest;
            __nanosleep(40);
        }
    }
};

// Returns the sum before `tile`, whose aggregate must have been published; called by a whole warp, with the result in
// every lane. Publishes the tile's prefix. Tile 0 needs no walk: it has published its aggregate as a prefix from the
// beginning. Integers are added in the order of the walk. Floating-point sums are folded from the left, tile by tile,
// from the prefix that was found; since every prefix is itself such a fold, the bits do not depend on where the walk
// ended.
template <typename V, bool IN_ORDER> DEVICE V exclusive_prefix(const Descriptors<V>& descriptors, u64 tile, V aggregate, V zero) {
    if (tile == 0) return zero;
    V before = zero;
    const i64 newest = i64(tile) - 1;
    if (!IN_ORDER) {
        V mine = zero;
        descriptors.walk(newest, zero, [&](V value, u32 state, u32 nearest, i64 last) {
            if (lane_id() <= nearest) mine = mine + value;
        });
        before = warp_sum(mine);
    } else {
        i64 at;
        u32 from, state;
        V value;
        descriptors.walk(newest, zero, [&](V found, u32 state, u32 nearest, i64 last) { at = last, from = nearest, value = found; });
        before = shuffle(value, from);
        while (true) {
            for (i32 lane = i32(from) - 1; lane >= 0; lane--) before = before + shuffle(value, u32(lane));
            if (at == newest) break;
            at += 32;
            from = descriptors.group(at, zero, value, state);  // there may be a prefix by now, with the same bits
            if (from < 32) before = shuffle(value, from);
        }
    }
    if (lane_id() == 0) descriptors.publish(tile, before + aggregate, PREFIX);
    return before;
}
