// Tiles for sums whose values are read in ascending order of address, whatever the order of the runs: each value is
// copied to its slot in shared memory, and runs are summed there.
//
//     runs  0 3 6 | 1 4 7 | 2    ascending  0 1 2 3 4 6 7    slots  0 3 6 1 4 2 5
//
// Ascending sources are coded one by one by their distance from the source before, minus one: GAP_BITS of a code, 5 or
// 7, above a slot of 13 bits. If the distance is SKIP or more, one or two codes of SKIP come first, which read nothing:
// instead of a slot they have 12 bits of how many times SKIP is skipped, and above these a bit for whether they are the
// upper 12 bits.
//
// Codes are in groups of 16 chunks of 32. A warp takes a group, and a lane has one code of each chunk, in WORDS words:
// first the lower 16 bits of each pair of codes, then the upper bits of all of them.
//
//     codes of a lane (7 bits)  0x31111 0x52222 0x03333 ...        words  0x22221111 0x...3333 ... 0x.....053 0x........
//
// Tile t has the runs from before[t] up to before[t + 1], at most SLOTS - 1 sources, and room for GROUPS groups.
// shapes[t]: its number of groups and, above 16 bits, of slots. bases: the source from which distances in a group
// count. heads: one bit per slot, set where a run starts and after the last slot; null if each run has one source.
//
// Constants: GAP_BITS, SLOTS, LENGTH (a tile has the runs that start within this many sources; runs have up to SLOTS -
// LENGTH), GROUPS.
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

// The distance of a code's source from the one before, where `gap` is the code's upper part and `slot` the lower.
DEVICE u32 advance(u32 gap, u32 slot) {
    return gap == SKIP ? (slot & ((1 << HALF) - 1)) * SKIP << (slot >> HALF) * HALF : gap + 1;
}

static_assert(SLOTS <= 1 << SLOT_BITS && LENGTH < SLOTS && LENGTH % 32 == 0, "what a code holds");
