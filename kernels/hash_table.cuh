// Columns in a hash table in shared memory: open addressing, linear probing (Knuth, The Art of Computer Programming 3,
// 6.4).
//
// Constants: GROUP (lanes that share a table).
#pragma once
#include "common.cuh"

// A column of no matrix that gets here.
constexpr u32 FREE = 0xffffffffu;

// The slot of a column; `first` tells whether it was not in the table before. `slots` is a power of two.
DEVICE u32 slot_for(u32* table, u32 slots, u32 column, bool& first) {
    for (u32 slot = (column * 0x9e3779b1u >> 7) & (slots - 1);; slot = (slot + 1) & (slots - 1)) {
        const u32 seen = table[slot], before = seen == FREE ? atomicCAS(table + slot, FREE, column) : seen;
        first = before == FREE;
        if (first || before == column) return slot;
    }
}

// The lanes that share a table with this one.
DEVICE u32 mask_of_group() {
    if (GROUP == 32) return ALL;
    return ((1u << (GROUP & 31)) - 1) << (lane_id() / GROUP * GROUP);
}
