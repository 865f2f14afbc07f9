// Columns in a hash table in shared memory: open addressing, linear probing (Knuth, The Art of Computer Programming 3,
// 6.4). Which of several columns comes first decides where they lie in the table, and nothing else.
//
// All lanes of a warp look for a column together, so that they stay together: where each went its own way, they would
// take the steps behind one by one.
#pragma once
#include "common.cuh"

// A column of no matrix that gets here.
constexpr u32 FREE = 0xffffffffu;

// Where the search for a column begins, in steps of BUCKET slots.
template <u32 BUCKET> DEVICE u32 first_slot(u32 slots, u32 column) {
    return (column * 0x9e3779b1u >> 7) & (slots - BUCKET);
}

// Which of four slots has a column; 4 where none has it.
DEVICE u32 place_in(uint4 slots, u32 column) {
    return slots.x == column ? 0 : slots.y == column ? 1 : slots.z == column ? 2 : slots.w == column ? 3 : 4;
}

// The slot of a column, which becomes its own where it is not in the table yet; `first` tells whether that is so. Lanes
// that do not `want` a slot get any one. Where columns are `known`, none is added, and a free slot is told for a column
// that the table does not have. `slots` is a power of two, and more than the columns that come.
//
// With BUCKET 4 four slots are read at once, which saves steps in tables that are large; `table` is aligned to 16
// bytes.
template <u32 BUCKET> DEVICE u32 slot_for(u32* table, u32 slots, u32 column, bool want, bool known, bool& first) {
    u32 at = first_slot<BUCKET>(slots, column);
    first = false;
    while (__any_sync(ALL, want))
        if (want) {
            if (BUCKET == 1) {
                const u32 before = known ? table[at] : atomicCAS(table + at, FREE, column);
                first = before == FREE;
                want = !first && before != column;
                if (want) at = (at + 1) & (slots - 1);
            } else {
                const uint4 here = *reinterpret_cast<const uint4*>(table + at);
                const u32 found = place_in(here, column), unused = place_in(here, FREE);
                if (found < 4) {
                    at += found;
                    want = false;
                } else if (unused == 4) {
                    at = (at + 4) & (slots - 1);
                } else {
                    // Another lane may be ahead with another column: then the bucket is looked at again.
                    const u32 before = known ? FREE : atomicCAS(table + at + unused, FREE, column);
                    first = before == FREE;
                    if (first || before == column) {
                        at += unused;
                        want = false;
                    }
                }
            }
        }
    return at;
}

// The slot of a column that the table has, or a free one, for one lane by itself.
template <u32 BUCKET> DEVICE u32 slot_of(const u32* table, u32 slots, u32 column) {
    u32 slot = first_slot<BUCKET>(slots, column);
    while (table[slot] != column && table[slot] != FREE) slot = (slot + 1) & (slots - 1);
    return slot;
}

// A power of two, and twice the columns or more: LEAST at least.
template <u32 LEAST> DEVICE u32 slots_for(u32 columns) {
    return columns > LEAST / 2 ? 1u << (32 - __clz(2 * columns - 1)) : LEAST;
}
