// Runs of sources in tiles, for sums whose values are fetched in the order in which they lie in memory, whatever the
// order of the runs: each is brought to its slot in shared memory, and runs are summed there.
//
//     runs  0 3 6 | 1 4 7 | 2    ascending  0 1 2 3 4 6 7    slots  0 3 6 1 4 2 5
//
// Sources that ascend are told one by one by how far each lies behind the one before it, less one: GAP_BITS of a code,
// 5 or 7, above a slot of 13 bits. Where that is SKIP or more, one or two codes of SKIP come first, which fetch
// nothing: in place of a slot they have 12 bits of how many times SKIP lie between, and above these whether they are
// the upper 12 bits.
//
// Codes are in groups of 16 chunks of 32. A warp takes a group, and a lane has a code of each chunk, in WORDS words:
// the lower 16 bits of each two codes, then what is above them of all.
//
//     codes of a lane (7 bits)  0x31111 0x52222 0x03333 ...        words  0x22221111 0x...3333 ... 0x.....053 0x........
//
// Tile t has the runs from before[t] up to before[t + 1], at most SLOTS - 1 sources, and room for GROUPS groups.
// shapes[t]: groups that it has, and its slots above 16 bits. bases: the source from which on a group counts. heads: a
// bit a slot, set where a run starts and behind the last; null where each run has one source.
//
// Constants: GAP_BITS, SLOTS, LENGTH (the sources that a tile starts runs of; runs have up to SLOTS - LENGTH), GROUPS.
#pragma once
#include "common.cuh"

#define SLOT_BITS 13
#define CHUNKS 16u
#define GROUP (32 * CHUNKS)
#define UPPER (GAP_BITS + SLOT_BITS - 16) // bits of a code above 16
#define WORDS (CHUNKS / 2 + CHUNKS * UPPER / 32)
#define SKIP ((1u << GAP_BITS) - 1)
#define HALF 12
#define HEAD_WORDS (SLOTS / 32)

// How far a code's source lies behind the one before, if `gap` is its upper part and `slot` the lower.
DEVICE u32 advance(u32 gap, u32 slot) {
    return gap == SKIP ? (slot & ((1 << HALF) - 1)) * SKIP << (slot >> HALF) * HALF : gap + 1;
}

static_assert(SLOTS <= 1 << SLOT_BITS && LENGTH < SLOTS && LENGTH % 32 == 0, "what a code holds");
