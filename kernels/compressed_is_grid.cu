// Checks whether the kinds of rows are those of a stencil on the points of a grid, where each row lacks the points
// beyond the grid; whether any row lacks more (bit 1 of *found); and how many rows have neither all points nor only
// their own (found[1]). In that case products may read marks of two bits per row, and a list of these rows.
//
//     places_of 110 111 011 010   3 points per line  kind_of  0 1 2   0 1 2   a grid
//                                                             0 1 2   3 3 2   holes: bit 1 of *found; marks 0 0 0 1 1 0
//                                                             0 2 2   0 1 2   second row listed: marks 0 2 0 0 0 0
//                                                             0 1 1   2 1 2   no grid: bit 0 of *found
//
// Bytes per row: 1; with marks 2 1/4.
//
// Constants: THREADS.
#include "common.cuh"

// The stencil points one step back in each direction (points, lines, planes), and those one step ahead.
constexpr u32 BACK[3] = {0x1249249, 0x1c0e07, 0x1ff}, AHEAD[3] = {0x1249249 << 2, 0x1c0e07 << 6, 0x1ff << 18};
constexpr u32 OWN_POINT = 1 << 13;

// The stencil's points; points per line, lines per plane, planes.
struct Grid {
    u32 places, points, lines, planes;
};

// The stencil points of a row that are inside the grid.
DEVICE u32 expected_of(u32 row, const Grid& grid) {
    const u32 line = row / grid.points, place[3] = {row % grid.points, line % grid.lines, line / grid.lines}, size[3] = {grid.points, grid.lines, grid.planes};
    u32 places = grid.places;
#pragma unroll
    for (u32 d = 0; d < 3; d++) {
        if (place[d] == 0) places &= ~BACK[d];
        if (place[d] + 1 == size[d]) places &= ~AHEAD[d];
    }
    return places;
}

extern "C" __global__ void __launch_bounds__(THREADS) compressed_is_grid(u64 rows, const u8* kind_of, const u32* places_of, const __grid_constant__ Grid grid, u32* found) {
    bool beyond = false, lacking = false;
    u32 parts = 0;
    for (u64 row = u64(blockIdx.x) * THREADS + threadIdx.x; row < rows; row += u64(gridDim.x) * THREADS) {
        const u32 expected = expected_of(u32(row), grid), has = places_of[kind_of[row]];
        beyond = beyond || has & ~expected;
        lacking = lacking || expected & ~has;
        parts += has != expected && has != OWN_POINT;
    }
    // Each flag is written by itself: ptxas of CUDA 13.0 takes (a ? 1 : 0) | (b ? 2 : 0) for zero if both are set.
    const bool any_beyond = __any_sync(ALL, beyond), any_lacking = __any_sync(ALL, lacking);
    parts = warp_sum(parts);
    if (lane_id() != 0) return;
    if (any_beyond) atomicOr(found, 1);
    if (any_lacking) atomicOr(found, 2);
    if (parts) atomicAdd(found + 1, parts);
}

// Marks, four rows per byte, the first in the lowest bits: 1 for a row with only its own point, 2 for a listed row. The
// list, in any order, has row << 32 | stencil points; *count, initially zero, becomes its length.
extern "C" __global__ void __launch_bounds__(THREADS)
    compressed_mark(u64 rows, const u8* kind_of, const u32* places_of, const __grid_constant__ Grid grid, u8* marks, u64* list, u32* count) {
    for (u64 first = u64(blockIdx.x) * THREADS + threadIdx.x / 32 * 32; first < rows; first += u64(gridDim.x) * THREADS) {
        const u64 row = first + lane_id();
        const u32 expected = expected_of(u32(row), grid), has = row < rows ? places_of[kind_of[row]] : expected;
        const bool less = has != expected, is_listed = less && has != OWN_POINT;
        const u32 alone = __ballot_sync(ALL, less && !is_listed), listed = __ballot_sync(ALL, is_listed);
        if (lane_id() < 8 && first + 4 * lane_id() < rows) {
            u32 byte = 0;
#pragma unroll
            for (u32 i = 0; i < 4; i++) byte |= ((alone >> (4 * lane_id() + i) & 1) | (listed >> (4 * lane_id() + i) & 1) << 1) << 2 * i;
            marks[first / 4 + lane_id()] = u8(byte);
        }
        if (!listed) continue;
        const u32 begin = __shfl_sync(ALL, lane_id() == 0 ? atomicAdd(count, u32(__popc(listed))) : 0, 0);
        if (is_listed) list[begin + __popc(listed & lanes_below())] = row << 32 | has;
    }
}
