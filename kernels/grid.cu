// Multigrid on grids, where the next level has a point for each box of 2 x 2 x 2 points: the matrix of the boxes,
// scales for smoothing, and vectors from points to boxes and back.
//
// A matrix couples a point to neighbours: bit (dx + 1) + 3 (dy + 1) + 9 (dz + 1) of `neighbours` is set where entries
// may be (dx, dy, dz) away. Entry k of a row is that of the k-th bit (layout: dia.cuh).
//
// Source: Braess, Towards algebraic multigrid for elliptic problems of second order, Computing 55 (1995), for plain
// aggregates as levels.
//
// Constants: SCALAR, THREADS.
#include "dia.cuh"
#include "scalars.cuh"

typedef SCALAR T;
typedef real_of<T>::type R;

struct Point {
    u32 at[3];
};

// Numbers of points are columns, so they have 32 bits.
DEVICE Point point_of(u64 number, u32 nx, u32 ny) {
    const u32 line = u32(number) / nx;
    return {{u32(number) % nx, line % ny, line / ny}};
}

DEVICE u64 number_of(Point p, u32 nx, u32 ny) { return p.at[0] + u64(nx) * (p.at[1] + u64(ny) * p.at[2]); }

// values = P^T A P. A thread has one entry: the sum of those between the points of its box and of another. *unfit
// becomes 1 where an entry leads out of the grid to another line, or is infinite or NaN.
extern "C" __global__ void __launch_bounds__(THREADS)
    grid_coarser(u32 nx, u32 ny, u32 nz, u32 neighbours, const T* fine, T* values, u32* unfit) {
    const u32 sizes[3] = {nx, ny, nz};
    const u32 cx = (nx + 1) / 2, cy = (ny + 1) / 2, cz = (nz + 1) / 2, count = __popc(neighbours);
    const u64 boxes = u64(cx) * cy * cz, sections = (boxes + SECTION - 1) / SECTION;
    const u64 entries = sections * SECTION * count;
    for (u64 e = u64(blockIdx.x) * THREADS + threadIdx.x; e < entries; e += u64(gridDim.x) * THREADS) {
        const u64 row = e / (u64(SECTION) * count) * SECTION + e % SECTION;
        const u32 k = u32(e / SECTION % count);
        // The k-th bit that is set.
        u32 rest = neighbours;
        for (u32 i = 0; i < k; i++) rest &= rest - 1;
        const u32 bit = __ffs(rest) - 1;
        const i32 to[3] = {i32(bit % 3) - 1, i32(bit / 3 % 3) - 1, i32(bit / 9) - 1};
        const i64 column = i64(row) + to[0] + i64(cx) * (to[1] + i64(cy) * to[2]);
        if (row >= boxes || column < 0 || column >= i64(boxes)) {
            memset(values + e, 255, sizeof(T));
            continue;
        }
        const bool diagonal = bit == 13;
        const Point box = point_of(row, cx, cy);
        T sum = T();
        for (u32 within = 0; within < 8; within++) {
            Point point;
            bool inside = true;
            for (u32 axis = 0; axis < 3; axis++) {
                point.at[axis] = 2 * box.at[axis] + (within >> axis & 1);
                inside &= point.at[axis] < sizes[axis];
            }
            if (!inside) continue;
            const u64 from = first_place(number_of(point, nx, ny), count);
            u32 left = neighbours;
            for (u32 i = 0; left; i++, left &= left - 1) {
                const u32 other = __ffs(left) - 1;
                const i32 by[3] = {i32(other % 3) - 1, i32(other / 3 % 3) - 1, i32(other / 9) - 1};
                bool same = true, there = true;
                for (u32 axis = 0; axis < 3; axis++) {
                    // Which box a step from an even or odd place leads to, rounded down.
                    same &= ((i32(within >> axis & 1) + by[axis] + 2) / 2 - 1) == to[axis];
                    there &= u32(i32(point.at[axis]) + by[axis]) < sizes[axis];
                }
                // The diagonal's thread looks at every entry once.
                if (!same && !diagonal) continue;
                const T value = fine[from + u64(i) * SECTION];
                if (is_no_entry(value)) continue;
                if (diagonal && (!finite(value) || (!there && magnitude(value) != 0))) *unfit = 1;
                if (same) sum = sum + value;
            }
        }
        values[e] = sum;
    }
}

// scales = reciprocals of the sums of magnitudes of rows.
extern "C" __global__ void __launch_bounds__(THREADS) grid_scales(u64 rows, u32 count, const T* values, R* scales) {
    for (u64 row = u64(blockIdx.x) * THREADS + threadIdx.x; row < rows; row += u64(gridDim.x) * THREADS) {
        const T* of_row = values + first_place(row, count);
        R sum = 0;
        for (u32 k = 0; k < count; k++) {
            const T value = of_row[u64(k) * SECTION];
            if (!is_no_entry(value)) sum += magnitude(value);
        }
        const R inverse = R(1) / sum;
        scales[row] = finite(inverse) ? inverse : R(0);
    }
}

// coarse = the sum over each box.
extern "C" __global__ void __launch_bounds__(THREADS)
    grid_restrict(u32 nx, u32 ny, u32 nz, const T* fine, T* coarse) {
    const u32 cx = (nx + 1) / 2, cy = (ny + 1) / 2, cz = (nz + 1) / 2;
    const u64 boxes = u64(cx) * cy * cz;
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < boxes; i += u64(gridDim.x) * THREADS) {
        const Point box = point_of(i, cx, cy);
        T sum = T();
        for (u32 within = 0; within < 8; within++) {
            const Point point = {{2 * box.at[0] + (within & 1), 2 * box.at[1] + (within >> 1 & 1),
                                  2 * box.at[2] + (within >> 2)}};
            if (point.at[0] < nx && point.at[1] < ny && point.at[2] < nz) {
                sum = sum + fine[number_of(point, nx, ny)];
            }
        }
        coarse[i] = sum;
    }
}

// fine += the value of the box.
extern "C" __global__ void __launch_bounds__(THREADS)
    grid_prolong(u32 nx, u32 ny, u32 nz, const T* coarse, T* fine) {
    const u32 cx = (nx + 1) / 2, cy = (ny + 1) / 2;
    const u64 points = u64(nx) * ny * nz;
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < points; i += u64(gridDim.x) * THREADS) {
        Point p = point_of(i, nx, ny);
        for (u32& at : p.at) at /= 2;
        fine[i] = fine[i] + coarse[number_of(p, cx, cy)];
    }
}
