// Columns in a hash table in shared memory: open addressing, linear probing (Knuth, The Art of Computer Programming 3,
// 6.4). The order in which columns come determines their slots in the table, and nothing else.
//
// All lanes of a warp search for a column together, so that they stay together: after divergence, the following steps
// would be executed one lane at a time.
#pragma once
#include "common.cuh"

// Marks a free slot. No matrix that uses the table has this column.
constexpr u32 FREE = 0xffffffffu;

// The slot at which the search for a column begins, a multiple of BUCKET.
template <u32 BUCKET> DEVICE u32 first_slot(u32 slots, u32 column) {
    return (column * 0x9e3779b1u >> 7) & (slots - BUCKET);
}

// The index of the one of four slots that has the column; 4 if none has it.
DEVICE u32 place_in(uint4 slots, u32 column) {
    return slots.x == column ? 0 : slots.y == column ? 1 : slots.z == column ? 2 : slots.w == column ? 3 : 4;
}

// Returns the slot of a column, and inserts the column if it is not in the table; `first` says whether it was inserted.
// Lanes without `want` get an arbitrary slot. If columns are `known`, none is inserted, and the result for a column
// that is not in the table is a free slot. `slots` is a power of two, and greater than the number of columns.
//
// With BUCKET 4, four slots are read at once, which saves steps in large tables; `table` is aligned to 16 bytes.
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
                    // Another lane may have inserted another column in the meantime: then the bucket is read again.
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

// Returns the slot of a column in the table, or a free one. A lane may call this alone.
template <u32 BUCKET> DEVICE u32 slot_of(const u32* table, u32 slots, u32 column) {
    u32 slot = first_slot<BUCKET>(slots, column);
    while (table[slot] != column && table[slot] != FREE) slot = (slot + 1) & (slots - 1);
    return slot;
}

// A power of two, at least LEAST and at least twice the number of columns.
template <u32 LEAST> DEVICE u32 slots_for(u32 columns) {
    return columns > LEAST / 2 ? 1u << (32 - __clz(2 * columns - 1)) : LEAST;
}
