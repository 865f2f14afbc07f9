// Diagonals in sections: where an entry is, and what stands where there is none.
#pragma once
#include "common.cuh"

// Rows of a section.
#define SECTION 32

// Entry of the first diagonal; diagonal k is k * SECTION places behind.
DEVICE u64 first_place(u64 row, u32 diagonals) { return row / SECTION * (u64(diagonals) * SECTION) + row % SECTION; }

// Every bit set is no entry. So no bits are spent on what is there and what is not.
template <typename A> DEVICE bool is_no_entry(A value) {
    const words_of<A> bits = split(value);
    u32 all = ALL;
#pragma unroll
    for (u32 word : bits.word) all &= word;
    return all == ALL;
}
