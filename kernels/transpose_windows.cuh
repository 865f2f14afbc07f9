// Windows of a transpose's target: the columns that start within the same WINDOW = 2^WINDOW_BITS places of it.
//
//     columns   0 2 | 2 | 1 2 | 0 3      offsets of columns  0 2 3 6 7      WINDOW 4: columns 0 1 2 are window 0, column 3 is window 1
//
// A window has fewer than two times WINDOW entries, unless a column extends to the end of the next window: no other
// column starts there, so the number of that window is free for it.
//
// Within its window a column is named by its number from the window's first column on, if there are few columns;
// otherwise by its first place, since there may be many columns without entries.
#pragma once
#include "common.cuh"

#define WINDOW (1u << WINDOW_BITS)
#define NUMBER_BITS (16 + WINDOW_BITS) // bits of an entry's number: there are at most 2^16 windows
#define FEW_BITS 10 // bits of names by number

DEVICE bool names_by_number(u32 columns) { return columns <= 1u << FEW_BITS; }

// The window of a column that starts and ends at these places of the target.
template <typename C> DEVICE u32 window_of(C start, C end) {
    const u32 window = u32(start >> WINDOW_BITS);
    return window + (u32(end >> WINDOW_BITS) - window >= 2);
}
