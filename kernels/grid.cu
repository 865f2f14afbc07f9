// Multigrid on grids whose next level has one point for each box of 2 x 2 x 2 points: the matrix of the boxes, scales
// for smoothing, and vectors from points to boxes and back.
//
// A matrix couples a point to neighbours: bit (dx + 1) + 3 (dy + 1) + 9 (dz + 1) of `neighbours` is set if entries may
// be (dx, dy, dz) away. Entry k of a row belongs to the k-th set bit (layout: dia.cuh).
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

// The number of entries of the points of a box that may contribute to an entry of the box's row: 8 points, 27
// neighbours.
constexpr u32 ITEMS = 8 * 27;

// A point of a box, and one of its entries.
struct Item {
    u32 within, entry;
    i32 by[3];
};

DEVICE i32 step_of(u32 bit, u32 axis) { return i32(axis == 0 ? bit % 3 : axis == 1 ? bit / 3 % 3 : bit / 9) - 1; }

// Packs the arguments and the step into one word: 3 bits, 5 bits, and 2 bits per direction of the step.
DEVICE u32 packed(u32 within, u32 entry, u32 bit) {
    return within | entry << 3 | u32(step_of(bit, 0) + 1) << 8 | u32(step_of(bit, 1) + 1) << 10 | u32(step_of(bit, 2) + 1) << 12;
}
DEVICE Item unpacked(u32 word) {
    return {word & 7, word >> 3 & 31, {i32(word >> 8 & 3) - 1, i32(word >> 10 & 3) - 1, i32(word >> 12 & 3) - 1}};
}

// The k-th set bit.
DEVICE u32 bit_of(u32 set, u32 k) {
    for (u32 i = 0; i < k; i++) set &= set - 1;
    return __ffs(set) - 1;
}

// values = P^T A P. A thread computes one entry: the sum of those between the points of its box and of another, in the
// order of points and, for each point, of entries. These are the same for all boxes, so a block first builds a list of
// them. *unfit becomes 1 if an entry leads out of the grid to another line, or is infinite or NaN.
extern "C" __global__ void __launch_bounds__(THREADS)
    grid_coarser(u32 nx, u32 ny, u32 nz, u32 neighbours, const T* fine, T* values, u32* unfit) {
    __shared__ u32 items[ITEMS], starts[28];
    __shared__ u8 entry_of[ITEMS];
    const u32 sizes[3] = {nx, ny, nz}, count = __popc(neighbours);
    for (u32 t = threadIdx.x; t < 8 * count; t += THREADS) {
        const u32 other = bit_of(neighbours, t % count);
        u32 to = 0;
        // The box that a step from an even or odd coordinate leads to, rounded down.
        for (u32 axis = 0, each = 1; axis < 3; axis++, each *= 3)
            to += each * (u32(i32(t / count >> axis & 1) + step_of(other, axis) + 2) / 2);
        entry_of[t] = u8(__popc(neighbours & ((1u << to) - 1)));
    }
    __syncthreads();
    // The items of an entry follow those of the entries before, in their own order.
    for (u32 t = threadIdx.x; t < 8 * count; t += THREADS) {
        u32 place = 0;
        for (u32 i = 0; i < 8 * count; i++) place += entry_of[i] < entry_of[t] || (entry_of[i] == entry_of[t] && i < t);
        items[place] = packed(t / count, t % count, bit_of(neighbours, t % count));
    }
    for (u32 k = threadIdx.x; k <= count; k += THREADS) {
        u32 before = 0;
        for (u32 i = 0; i < 8 * count; i++) before += entry_of[i] < k;
        starts[k] = before;
    }
    __syncthreads();
    const u32 cx = (nx + 1) / 2, cy = (ny + 1) / 2, cz = (nz + 1) / 2;
    const u64 boxes = u64(cx) * cy * cz, sections = (boxes + SECTION - 1) / SECTION;
    const u64 entries = sections * SECTION * count;
    for (u64 e = u64(blockIdx.x) * THREADS + threadIdx.x; e < entries; e += u64(gridDim.x) * THREADS) {
        // Lanes of a warp have the same entry of neighbouring rows.
        const u64 section = e / SECTION / count, row = section * SECTION + e % SECTION;
        const u32 k = u32(e / SECTION - section * count), bit = bit_of(neighbours, k);
        const i64 column = i64(row) + step_of(bit, 0) + i64(cx) * (step_of(bit, 1) + i64(cy) * step_of(bit, 2));
        T sum = T();
        if (row < boxes) {
            const Point box = point_of(row, cx, cy);
            u32 last = 8;
            u64 from = 0;
            Point point;
            bool inside = false;
            for (u32 at = starts[k]; at < starts[k + 1]; at++) {
                const Item item = unpacked(items[at]);
                if (item.within != last) {
                    last = item.within;
                    inside = true;
                    for (u32 axis = 0; axis < 3; axis++) {
                        point.at[axis] = 2 * box.at[axis] + (last >> axis & 1);
                        inside &= point.at[axis] < sizes[axis];
                    }
                    from = first_place(number_of(point, nx, ny), count);
                }
                if (!inside) continue;
                const T value = fine[from + u64(item.entry) * SECTION];
                if (is_no_entry(value)) continue;
                bool there = true;
                for (u32 axis = 0; axis < 3; axis++) there &= u32(i32(point.at[axis]) + item.by[axis]) < sizes[axis];
                if (!finite(value) || (!there && magnitude(value) != 0)) *unfit = 1;
                sum = sum + value;
            }
        }
        if (row < boxes && column >= 0 && column < i64(boxes)) values[e] = sum;
        else memset(values + e, 255, sizeof(T));
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

// Copies rows from `first` on of one matrix to rows from `place` on of another. If nx is not zero, entries that lead
// out of the other matrix' grid are left out.
extern "C" __global__ void __launch_bounds__(THREADS)
    grid_rows(u64 rows, u64 first, u64 place, u32 neighbours, u32 nx, u32 ny, u32 nz, const T* from, T* to) {
    const u32 count = __popc(neighbours), sizes[3] = {nx, ny, nz};
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < rows; i += u64(gridDim.x) * THREADS) {
        const T* source = from + first_place(first + i, count);
        T* target = to + first_place(place + i, count);
        const Point point = nx ? point_of(place + i, nx, ny) : Point{};
        for (u32 set = neighbours; set; set &= set - 1, source += SECTION, target += SECTION) {
            bool there = true;
            for (u32 axis = 0; nx && axis < 3; axis++) {
                there &= u32(i32(point.at[axis]) + step_of(__ffs(set) - 1, axis)) < sizes[axis];
            }
            if (there) *target = *source;
            else memset(target, 255, sizeof(T));
        }
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
