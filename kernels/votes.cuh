// Finds lanes of a warp with the same number by votes, one ballot per bit. (`__match_any_sync` does it in one
// instruction, but takes several times as long.)
#pragma once
#include "common.cuh"

// equal &= ballot(bit) ^ (bit ? 0 : all). As PTX, because the compiler would test the bit twice.
DEVICE void vote(u32& equal, u32 number, u32 bit) {
    asm volatile(
        "{ .reg .pred p; .reg .b32 bit, votes, flip;\n\t"
        "and.b32 bit, %1, %2;\n\t"
        "setp.ne.u32 p, bit, 0;\n\t"
        "vote.sync.ballot.b32 votes, p, 0xffffffff;\n\t"
        "selp.b32 flip, 0, 0xffffffff, p;\n\t"
        "lop3.b32 %0, %0, votes, flip, 0x60; }"
        : "+r"(equal)
        : "r"(number), "r"(bit));
}

// Returns the lanes whose number has the same lowest BITS bits as this lane's.
template <int BITS> DEVICE u32 equal_lanes(u32 number) {
    u32 equal = ALL;
#pragma unroll
    for (int b = 0; b < BITS; b++) vote(equal, number, 1u << b);
    return equal;
}
