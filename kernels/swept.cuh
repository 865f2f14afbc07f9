// Bands of rows swept in the order of columns: how an entry is held.
#pragma once
#include "common.cuh"

// Column less the step's base and row within the band: as few bits as number the band's rows, and what is left for the
// column.
DEVICE u32 row_bits(u32 height) { return max(1, 32 - __clz(height - 1)); }
DEVICE u32 to_place(u32 row, u32 column, u32 bits) { return column << bits | row; }
DEVICE u32 row_in_band(u32 place, u32 bits) { return place & ((1u << bits) - 1); }
DEVICE u32 column_in_reach(u32 place, u32 bits) { return place >> bits; }

// What is left to do with a step's entries, above where it starts within its band.
#define IN_ORDER 0u
#define BY_COLUMNS (1u << 30)
#define BY_ROWS (2u << 30)
#define ORDERS (3u << 30)

// What a conversion tells the host: places for notes that were asked for, the longest row where that is refused, steps,
// whether a band has more than it asked for, and whether there are steps that are not in order; and then itself: how
// many of these are not a warp's.
struct Told {
    u64 notes;
    u32 finished, longest, steps, more, unordered, by_columns, by_rows;
};
