// Bands of rows swept in the order of columns: how an entry is held.
#pragma once
#include "common.cuh"

// Entries of a step at most, and bits that number them.
#define STEP 2048
#define STEP_BITS 11
// Columns that a step reaches.
#define REACH 65536

// Row within the band and column within the step's reach.
DEVICE u32 to_place(u32 row, u32 column) { return row << 16 | column; }
DEVICE u32 row_in_band(u32 place) { return place >> 16; }
DEVICE u32 column_in_reach(u32 place) { return place & 0xffff; }
