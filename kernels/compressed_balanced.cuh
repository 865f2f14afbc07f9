// Entries of a compressed matrix dealt out evenly, whatever rows they are in: tiles of 2048 in the order of CSR, the
// last filled up with zeros. A tile's columns are 16 bits above the smallest of them.
//
// A warp takes a group of 256: lane l its entries l, l + 32, ... l + 224, so that neighbours read x beside each other.
// What a lane takes lies together, 16 bytes at a time: its eight codes, and of its values as many as 16 bytes hold,
// lane beside lane, then the next ones.
#pragma once
#include "common.cuh"

constexpr u32 EACH = 8, GROUP = 32 * EACH, TILE = THREADS * EACH;

// One a tile, and one for the end.
struct alignas(16) Balanced {
    u32 row;    // the first row that starts in it or behind it
    u32 since;  // the tile where the row that comes in has started; the tile itself where none comes in
    u32 base;   // what is added to its codes
    u32 count;  // entries, without filling
};

// Vectors of 16 bytes of a lane's values.
template <typename V> struct lane_values {
    static constexpr u32 IN_ONE = 16 / sizeof(V), VECTORS = EACH / IN_ONE;
    uint4 vector[VECTORS];
};
// Its group's are the places from `group` on, of this lane the vectors from 16 `lane` bytes on, 512 bytes apart.
template <typename V> DEVICE const uint4* vectors_of(const V* values, u64 group) { return reinterpret_cast<const uint4*>(values + group) + lane_id(); }
template <typename V> DEVICE uint4* vectors_of(V* values, u64 group) { return reinterpret_cast<uint4*>(values + group) + lane_id(); }
