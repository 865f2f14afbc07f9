// Runs of sources in tiles, for sums whose values are fetched in the order in which they lie in memory, whatever the order of the runs: each is
// brought to its slot in shared memory, and runs are summed there.
//
//     runs  0 3 6 | 1 4 7 | 2    ascending  0 1 2 3 4 6 7    slots  0 3 6 1 4 2 5
//
// Sources that ascend are told by how far they lie behind the first of their chunk of 32, a warp's: a code is that, 11 bits, above a slot, 13 bits. A chunk
// whose next source is further away ends early, with codes NONE. Four chunks are a group, whose codes a lane has in three words:
//
//     codes of a lane  0x111111 0x222222 0x333333 0x444444        words  0x22221111 0x44443333 0x44332211
//
// Tile t has the runs from before[t] up to before[t + 1], at most SLOTS - 1 sources, and room for GROUPS groups. shapes[t]: groups that it has, and
// its slots above 16 bits. bases: the first source of each chunk. heads: a bit a slot, set where a run starts; null where each run has one source.
//
// Constants: SLOTS, LENGTH (the sources that a tile starts runs of; runs have up to SLOTS - LENGTH), GROUPS.
#pragma once
#include "common.cuh"

#define SLOT_BITS 13
#define SPAN (1u << (24 - SLOT_BITS)) // of the sources of a chunk
#define NONE 0xffffffu
#define HEAD_WORDS (SLOTS / 32)

static_assert(SLOTS <= 1 << SLOT_BITS && LENGTH < SLOTS && LENGTH % 32 == 0, "what a code holds");
