// Bands of rows swept in the order of columns: how an entry is held.
#pragma once
#include "common.cuh"

// Column less the step's base and row within the band: as few bits as number the band's rows, and what is left for the column.
DEVICE u32 row_bits(u32 height) { return max(1, 32 - __clz(height - 1)); }
DEVICE u32 to_place(u32 row, u32 column, u32 bits) { return column << bits | row; }
DEVICE u32 row_in_band(u32 place, u32 bits) { return place & ((1u << bits) - 1); }
DEVICE u32 column_in_reach(u32 place, u32 bits) { return place >> bits; }
