// Entries of a compressed matrix in tiles of 2048 in the order of CSR, whatever rows they are in; the last tile is
// padded with zeros. A tile's columns are 16 bits above the smallest of them.
//
// A warp takes a group of 256 entries: lane l has entries l, l + 32, ... l + 224, so that neighbouring lanes read
// neighbouring elements of x. A lane's data is in pieces of 16 bytes: its eight codes, and as many of its values as 16
// bytes hold, lane after lane, then the next ones.
#pragma once
#include "common.cuh"

constexpr u32 EACH = 8, GROUP = 32 * EACH, TILE = THREADS * EACH;

// One per tile, and one for the end.
struct alignas(16) Balanced {
    u32 row;    // the first row that starts in the tile or after it
    u32 since;  // the tile where the row that continues into this one starts; the tile itself if there is none
    u32 base;   // added to its codes
    u32 count;  // number of entries, without padding
};

// The number of 16-byte vectors of a lane's values.
template <typename V> struct lane_values {
    static constexpr u32 IN_ONE = 16 / sizeof(V), VECTORS = EACH / IN_ONE;
    uint4 vector[VECTORS];
};
// The values of a group begin at place `group`; the lane's vectors are 512 bytes apart, from byte 16 `lane` on.
template <typename V> DEVICE const uint4* vectors_of(const V* values, u64 group) { return reinterpret_cast<const uint4*>(values + group) + lane_id(); }
template <typename V> DEVICE uint4* vectors_of(V* values, u64 group) { return reinterpret_cast<uint4*>(values + group) + lane_id(); }
