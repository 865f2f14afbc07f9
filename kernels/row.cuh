// A vertex's row in one word: first edge << 29 | neighbours except itself << 1 | whether it is listed itself. One read
// of eight bytes therefore gives the place of a vertex's neighbours and its degree. Limits: fewer than 2^28 vertices
// and 2^35 neighbours.
#pragma once
#include "common.cuh"

DEVICE u64 row_word(u64 start, u64 length, u32 degree) { return start << 29 | u64(degree) << 1 | (length - degree); }
DEVICE u64 row_start(u64 row) { return row >> 29; }
DEVICE u32 row_degree(u64 row) { return u32(row >> 1) & 0xfffffff; }
DEVICE u32 row_length(u64 row) { return row_degree(row) + (u32(row) & 1); }
