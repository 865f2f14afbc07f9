// Whether the kinds of rows are those of a stencil on the points of a grid: each lacks what lies beyond the grid; and whether any lacks more: all but its own point
// (bit 1 of *found) or less than that (bits 1 and 2).
//
//     places_of 110 111 011 010    3 points a line    kind_of  0 1 2   0 1 2    a grid
//                                                              0 1 2   3 3 2    one with holes: *found is 2
//                                                              0 1 1   2 1 2    none: bit 0 of *found is set
//
// Bytes a row: 1.
//
// Constants: THREADS.
#include "common.cuh"

// The places one step back along each direction (points, lines, planes), and those one step ahead.
constexpr u32 BACK[3] = {0x1249249, 0x1c0e07, 0x1ff}, AHEAD[3] = {0x1249249 << 2, 0x1c0e07 << 6, 0x1ff << 18};

extern "C" __global__ void __launch_bounds__(THREADS) slim_is_grid(u64 rows, const u8* kind_of, const u32* places_of, u32 places, u32 points, u32 lines, u32 planes, u32* found) {
    bool beyond = false, lacking = false, parts = false;
    for (u64 row = u64(blockIdx.x) * THREADS + threadIdx.x; row < rows; row += u64(gridDim.x) * THREADS) {
        const u32 line = u32(row) / points, place[3] = {u32(row) % points, line % lines, line / lines}, size[3] = {points, lines, planes};
        u32 expected = places;
#pragma unroll
        for (u32 d = 0; d < 3; d++) {
            if (place[d] == 0) expected &= ~BACK[d];
            if (place[d] + 1 == size[d]) expected &= ~AHEAD[d];
        }
        const u32 has = places_of[kind_of[row]];
        beyond = beyond || has & ~expected;
        lacking = lacking || expected & ~has;
        parts = parts || (expected & ~has && has != 1 << 13);
    }
    const u32 all = (__any_sync(ALL, beyond) ? 1 : 0) | (__any_sync(ALL, lacking) ? 2 : 0) | (__any_sync(ALL, parts) ? 4 : 0);
    if (all && lane_id() == 0) atomicOr(found, all);
}
