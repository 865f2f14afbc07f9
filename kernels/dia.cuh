// Diagonals in sections: the place of an entry, and the value for a missing entry.
#pragma once
#include "common.cuh"

// Rows of a section.
#define SECTION 32

// The place of the first diagonal's entry; diagonal k is k * SECTION places later.
DEVICE u64 first_place(u64 row, u32 diagonals) { return row / SECTION * (u64(diagonals) * SECTION) + row % SECTION; }

// A missing entry has all bits set, so no separate bits say which entries exist.
template <typename A> DEVICE bool is_no_entry(A value) {
    const words_of<A> bits = split(value);
    u32 all = ALL;
#pragma unroll
    for (u32 word : bits.word) all &= word;
    return all == ALL;
}
