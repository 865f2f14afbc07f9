// Tiles of csr_balanced.cu: THREADS * ITEMS steps of a CSR matrix each. The start of a row is a step and each nonzero
// is one, so row r starts at step offsets[r] + r. A tile has the rows that start in it, and of its last row up to SLACK
// nonzeros more than the steps allow; a row that is longer goes on in the tiles behind, which have nothing else of its
// nonzeros.
#pragma once
#include "common.cuh"

// One a tile, and one for the end.
struct alignas(16) TileStart {
    u64 begin;  // its first nonzero
    u32 row;    // the first row that starts in it or behind it
    u32 since;  // where the row that comes in has started; the tile itself where none comes in
};
