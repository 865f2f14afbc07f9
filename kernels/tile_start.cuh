// Tiles of csr_balanced.cu: THREADS * ITEMS steps of a CSR matrix each. The start of a row is a step and each nonzero
// is one, so row r starts at step offsets[r] + r. A tile has the rows that start in it, and up to SLACK more nonzeros
// of its last row than the steps allow; a longer row continues in later tiles.
#pragma once
#include "common.cuh"

// One per tile, and one for the end.
struct alignas(16) TileStart {
    u64 begin;  // its first nonzero
    u32 row;    // the first row that starts in it or after it
    u32 since;  // where the row that continues into the tile has started; the tile itself if there is none
};
