// Numbers the points of a grid whose unknowns are in any order, from their distances to three of its corners.
//
// The distance from the corner (0, 0, 0) is x + y + z; from those across y and z it is x + (Y - 1 - y) + z and x + y +
// (Z - 1 - z). Therefore 2 y is the first distance plus Y - 1 minus the second, and likewise for z; x is the first
// distance minus y and z. Points in the plane of 4 x 3, and their distances from the lower left and upper left corners:
//
//     y                                2 3 4 5     0 1 2 3
//     2   8  9 10 11    number         1 2 3 4     1 2 3 4
//     1   4  5  6  7                   0 1 2 3     2 3 4 5
//     0   0  1  2  3
//         0  1  2  3  x
//
// Whatever the distances are, everything is verified: that each number belongs to one vertex (each vertex writes itself
// at its number, and the next launch checks whether it is still there, which fails for one of two with the same
// number), and that each edge joins two points that are neighbours along an axis. *faults, initially zero, becomes 1 if
// one of these fails.
//
// Bytes: numbers 12 n read and 4 n written in order, 4 n scattered; edges the pattern in order, and one gathered number
// per entry and vertex.
//
// Constants: OFFSET, THREADS (a multiple of LANES), LANES (threads per row: a power of two).
#include "common.cuh"

typedef OFFSET I;
#define UNREACHED 0xffffffffu

// The coordinate along an axis, from the distances to both of its ends; a value beyond the side if there is none.
DEVICE u32 along(u32 first, u32 across, u32 size) {
    const u64 twice = u64(first) + size - 1 - across; // 64 bits: a negative value is beyond any side
    return first == UNREACHED || across == UNREACHED || twice & 1 || twice / 2 >= size ? size : u32(twice / 2);
}

// One thread per vertex. A vertex that is not a point of the grid is a fault, and keeps its own number, so that the
// next launch reads nothing beyond the arrays.
extern "C" __global__ void __launch_bounds__(THREADS)
    grid_numbers(u64 n, const u32* first, const u32* across_y, const u32* across_z, u32 sx, u32 sy, u32 sz, u32* new_to_old,
                 u32* old_to_new, u32* faults) {
    for (u64 v = u64(blockIdx.x) * THREADS + threadIdx.x; v < n; v += u64(gridDim.x) * THREADS) {
        const u32 sum = first[v], y = along(sum, across_y[v], sy), z = along(sum, across_z[v], sz);
        const u64 beside = u64(y) + z;
        const bool is_point = y < sy && z < sz && beside <= sum && sum - beside < sx;
        const u64 number = is_point ? sum - beside + u64(sx) * (y + u64(sy) * z) : v;
        old_to_new[v] = u32(number);
        new_to_old[number] = u32(v);
        if (!is_point) *faults = 1;
    }
}

// LANES threads per row.
extern "C" __global__ void __launch_bounds__(THREADS)
    grid_edges(u64 rows, const I* offsets, const u32* indices, u32 sx, u32 sy, u32 sz, const u32* new_to_old,
               const u32* old_to_new, u32* faults) {
    const u32 lane = threadIdx.x % LANES, plane = sx * sy;
    for (u64 row = u64(blockIdx.x) * (THREADS / LANES) + threadIdx.x / LANES; row < rows;
         row += u64(gridDim.x) * (THREADS / LANES)) {
        const u32 here = old_to_new[row], line = here / sx;
        const u32 x = here % sx, y = line % sy, z = line / sy;
        bool fits = new_to_old[here] == u32(row);
        for (u64 k = offsets[row] + lane, end = offsets[row + 1]; k < end; k += LANES) {
            const u32 w = indices[k];
            if (w == u32(row)) continue;
            const u32 there = old_to_new[w];
            const u32 apart = there > here ? there - here : here - there;
            const bool up = there > here;
            fits &= (apart == 1 && (up ? x + 1 < sx : x > 0)) || (apart == sx && (up ? y + 1 < sy : y > 0)) ||
                    (apart == plane && (up ? z + 1 < sz : z > 0));
        }
        if (!fits) *faults = 1;
    }
}
