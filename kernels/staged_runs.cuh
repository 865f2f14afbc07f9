// Runs of sources for sums through shared memory: there are parts of PART slots, with one warp each; BLOCK_PARTS of
// them share a list of pieces of PIECE elements, which a block copies to shared memory as a whole. A code gives the
// place there: (number of the piece in the list) PIECE + place in it. Its highest bit says that a run starts; no run
// crosses parts, and slots after the last run start runs that are never used.
//
//     runs     0 17 | 1 16 | 2        pieces of 4   0 4        codes  0* 5 | 1* 4 | 2* | * ...        (* highest bit)
//
// Codes have 12 bits. The LANE codes of a lane are three words, of which a part has all first ones, then all second,
// then all third: four low bytes, four more, and the eight upper halves of a byte.
//
//     codes of a lane  0x123 0x145 0x867 0x189 | 0x2ab 0x9cd 0x3ef 0x401        words  0x89674523 0x01efcdab 0x43921811
//
// before[p] is the number of runs before part p; counts[b] is the number of pieces of block b, whose list starts at b
// MOST_PIECES, ascends, and has its largest piece in its last place too.
//
// Constants: PART (32 LANE), BLOCK_PARTS, PIECE, MOST_PIECES (times PIECE, at most 2048).
#pragma once
#include "complex.cuh"

#define LANE 8
#define WORDS 3 // per lane
#define TILE (PART * BLOCK_PARTS)
#define CODE_HEAD 0x800u

static_assert(PART == 32 * LANE && PIECE * MOST_PIECES <= CODE_HEAD, "what a code holds");
