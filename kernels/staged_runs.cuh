// Runs of sources for sums through shared memory: parts of PART slots, a warp each; BLOCK_PARTS of them share a list of
// pieces of PIECE elements, which a block brings to shared memory whole. A code says where there: (number of the piece
// in the list) PIECE + place in it. Its highest bit says that a run starts; no run crosses parts, and slots behind the
// last run start runs that nobody asks for.
//
//     runs     0 17 | 1 16 | 2        pieces of 4   0 4        codes  0* 5 | 1* 4 | 2* | * ...        (* highest bit)
//
// Codes have 12 bits. A lane's LANE of them are three words, of which a part has all first ones, then all second, then
// all third: four low bytes, four more, and the eight upper halves of a byte.
//
//     codes of a lane  0x123 0x145 0x867 0x189 | 0x2ab 0x9cd 0x3ef 0x401        words  0x89674523 0x01efcdab 0x43921811
//
// before[p] is the number of runs before part p; counts[b] the pieces of block b, whose list starts at b MOST_PIECES,
// ascends, and has its largest in its last place too.
//
// Constants: PART (32 LANE), BLOCK_PARTS, PIECE, MOST_PIECES (PIECE times that is at most 2048).
#pragma once
#include "complex.cuh"

#define LANE 8
#define WORDS 3 // of a lane
#define TILE (PART * BLOCK_PARTS)
#define CODE_HEAD 0x800u

static_assert(PART == 32 * LANE && PIECE * MOST_PIECES <= CODE_HEAD, "what a code holds");
