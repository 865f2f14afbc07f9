// Matrices of constant-coefficient stencils on a box of points, row by row as CSR: `diagonal` in the middle, `other` at
// the neighbours, which are those along the axes (7-point) or, if `box` is not 0, all around (27-point). Point (x, y,
// z) is row x + nx * (y + ny * z). They are generated on the device, for measurements, and for tests of matrices that
// are too large to copy: `rows` rows from row `begin` on, which one of several ranks has.
//
// Constants: SCALAR, OFFSET (u32 or u64), THREADS.
#include "complex.cuh"

#define EACH(i, n) for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < (n); i += u64(gridDim.x) * THREADS)

struct Point {
    i64 x, y, z;
};
DEVICE Point point_of(u64 row, u32 nx, u32 ny) { return {i64(row % nx), i64(row / nx % ny), i64(row / nx / ny)}; }

// Calls visit(column) for every neighbour inside the box, in ascending order.
template <typename Visit> DEVICE void neighbours(Point p, u32 nx, u32 ny, u32 nz, u32 box, Visit visit) {
    for (i64 dz = -1; dz <= 1; dz++)
        for (i64 dy = -1; dy <= 1; dy++)
            for (i64 dx = -1; dx <= 1; dx++) {
                const i64 x = p.x + dx, y = p.y + dy, z = p.z + dz;
                if (x < 0 || x >= nx || y < 0 || y >= ny || z < 0 || z >= nz) continue;
                if (!box && (dx != 0) + (dy != 0) + (dz != 0) > 1) continue;
                visit(u64(x) + u64(nx) * (u64(y) + u64(ny) * u64(z)));
            }
}

extern "C" __global__ void __launch_bounds__(THREADS)
stencil_lengths(u32 nx, u32 ny, u32 nz, u64 begin, u64 rows, u32 box, u32* lengths) {
    EACH(i, rows) {
        u32 length = 0;
        neighbours(point_of(begin + i, nx, ny), nx, ny, nz, box, [&](u64) { length++; });
        lengths[i] = length;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
stencil_fill(u32 nx, u32 ny, u32 nz, u64 begin, u64 rows, u32 box, SCALAR diagonal, SCALAR other, const OFFSET* offsets,
             u32* columns, SCALAR* values) {
    EACH(i, rows) {
        const u64 row = begin + i;
        u64 at = offsets[i];
        neighbours(point_of(row, nx, ny), nx, ny, nz, box, [&](u64 column) {
            columns[at] = u32(column);
            values[at] = column == row ? diagonal : other;
            at++;
        });
    }
}
