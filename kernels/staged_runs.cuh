// Runs of sources for sums through shared memory: parts of PART slots, a warp each; BLOCK_PARTS of them share a list of pieces of
// PIECE elements, which a block brings to shared memory whole. A code says where there: (number of the piece in the list) PIECE + place
// in it. Its highest bit says that a run starts; no run crosses parts, and slots behind the last run start runs that nobody asks for.
//
//     runs     0 17 | 1 16 | 2        pieces of 4   0 4        codes  0* 5 | 1* 4 | 2* | * ...        (* highest bit)
//
// before[p] is the number of runs before part p; counts[b] the pieces of block b, whose list starts at b MOST_PIECES.
//
// Constants: PART (a multiple of 32), BLOCK_PARTS, PIECE, MOST_PIECES.
#pragma once
#include "complex.cuh"

#define TILE (PART * BLOCK_PARTS)
#define CODE_HEAD 0x8000u
