// Multigrid on grids whose prolongation interpolates: points with only even coordinates are those of the next level,
// and the other points of a box of 2 x 2 x 2 points are between two, four or eight of them.
//
//     0 -- x -- 0 -- x --      Box I has the points 2I + odd. One that is odd along some axes lies between the corners
//     |    |    |    |         I + corner, where the bits of `corner` are among those of `odd`. Its weight for each is
//     y -- c -- y -- c --      weights[number * boxes + I]; numbers begin at first_weight(odd).
//
// A point's weights are such that its row of A, with couplings along axes on which the point is even counted as
// couplings to the point itself, gives zero. Therefore points that are odd along one axis come first: those that are
// odd along two need their weights.
//
// Bytes moved: the matrix once, and 8 weights per box in the plane, 26 in space, for each kernel. Source: Alcouffe,
// Brandt, Dendy and Painter, SIAM J. Sci. Stat. Comput. 2 (1981); Dendy, J. Comput. Phys. 48 (1982).
//
// Constants: SCALAR, THREADS, ROWS (per block; three threads share each). Compiled with --fmad=false, so that the host
// gets the same bits.
#include "dia.cuh"
#include "scalars.cuh"

typedef SCALAR T;
typedef real_of<T>::type R;

// The smallest divisor of weights, relative to the magnitudes of couplings (src/backend/grid.rs).
constexpr f64 LEAST_LEFT = 0.25;

struct Place {
    i32 x, y, z;
};

struct Sizes {
    i32 x, y, z;
    DEVICE bool has(Place p) const { return u32(p.x) < u32(x) && u32(p.y) < u32(y) && u32(p.z) < u32(z); }
    DEVICE u64 number(Place p) const { return p.x + u64(x) * (p.y + u64(y) * p.z); }
    DEVICE Place place(u64 number) const {
        const u32 line = u32(number) / x;
        return {i32(u32(number) % x), i32(line % y), i32(line / y)};
    }
    DEVICE Sizes coarser() const { return {(x + 1) / 2, (y + 1) / 2, (z + 1) / 2}; }
    DEVICE u64 points() const { return u64(x) * y * z; }
};

DEVICE Place moved(Place p, u32 bits) { return {p.x + i32(bits & 1), p.y + i32(bits >> 1 & 1), p.z + i32(bits >> 2)}; }
DEVICE Place moved_back(Place p, u32 bits) {
    return {p.x - i32(bits & 1), p.y - i32(bits >> 1 & 1), p.z - i32(bits >> 2)};
}
DEVICE Place point_of(Place box, u32 odd) { return moved({2 * box.x, 2 * box.y, 2 * box.z}, odd); }

constexpr u32 first_weight(u32 odd) {
    return odd <= 1 ? 0 : odd == 2 ? 2 : odd == 3 ? 4 : odd == 4 ? 8 : odd == 5 ? 10 : odd == 6 ? 14 : 18;
}
// The bits of `corner` at the positions of the set bits of `odd`, packed together.
constexpr u32 weight_number(u32 odd, u32 corner) {
    const u32 x = odd & 1, y = odd >> 1 & 1;
    return first_weight(odd) + (corner & 1 & x) + ((corner >> 1 & y) << x) + ((corner >> 2 & odd >> 2) << (x + y));
}

// The next corner among those whose bits are in `odd`, in ascending order; zero after the last.
DEVICE u32 next_corner(u32 corner, u32 odd) { return (corner - odd) & odd; }

// The weights of the points that are odd along `axes` axes, one thread per point; with one axis, the rows of points
// that are odd along none are checked as well. *unfit becomes 1 if an entry leads out of the grid, or is infinite or
// NaN.
extern "C" __global__ void __launch_bounds__(THREADS)
    grid_weights(u32 nx, u32 ny, u32 nz, u32 neighbours, u32 axes, const T* values, T* weights, u32* unfit) {
    // Sums for a thread's point, by corners, which are known only at run time.
    __shared__ T all_sums[8 * THREADS];
    T* const sums = all_sums + threadIdx.x;
    const Sizes sizes = {i32(nx), i32(ny), i32(nz)}, coarse = sizes.coarser();
    const u64 boxes = coarse.points();
    const u32 count = __popc(neighbours);
    // The kinds of these points of a box, four bits each, and their number. In the plane no point is odd along z.
    const u32 kinds = axes == 1 ? 0x4210 : axes == 2 ? 0x653 : 7;
    const u32 of_kinds = axes == 1 ? 3 + (nz > 1) : axes == 2 && nz > 1 ? 3 : 1;
    for (u64 t = u64(blockIdx.x) * THREADS + threadIdx.x; t < boxes * of_kinds; t += u64(gridDim.x) * THREADS) {
        const u64 kind = t / boxes, number = t - kind * boxes;
        const u32 odd = kinds >> 4 * u32(kind) & 15;
        const Place box = coarse.place(number), point = point_of(box, odd);
        for (u32 corner = 0; corner < 8; corner++) sums[corner * THREADS] = T();
        R left = 0, others = 0;
        const T* row = values + (sizes.has(point) ? first_place(sizes.number(point), count) : 0);
        for (u32 set = sizes.has(point) ? neighbours : 0; set; set &= set - 1, row += SECTION) {
            const i32 bit = __ffs(set) - 1;
            const T value = *row;
            if (is_no_entry(value) || (finite(value) && magnitude(value) == 0)) continue;
            const i32 x = bit % 3 - 1, y = bit / 3 % 3 - 1, z = bit / 9 - 1;
            if (!finite(value) || !sizes.has({point.x + x, point.y + y, point.z + z})) {
                *unfit = 1;
                continue;
            }
            // The odd axes along which the neighbour's coordinate differs, and those along which it is larger.
            const u32 away = odd & (u32(x != 0) | u32(y != 0) << 1 | u32(z != 0) << 2);
            const u32 up = odd & (u32(x > 0) | u32(y > 0) << 1 | u32(z > 0) << 2), still = odd & ~away;
            if (away == 0) {
                left += real_part(value);
                continue;
            }
            others += magnitude(value);
            const T* there = weights + first_weight(still) * boxes + coarse.number(moved(box, up));
            u32 corner = 0;
            do {
                const T weight = still ? *there : from_real<T>(R(1));
                sums[(up | corner) * THREADS] = sums[(up | corner) * THREADS] - value * weight;
                there += boxes;
                corner = next_corner(corner, still);
            } while (corner);
        }
        if (!odd) continue;
        if (!(left > R(LEAST_LEFT) * others)) left = others;
        T* own = weights + first_weight(odd) * boxes + number;
        u32 corner = 0;
        do {
            *own = left > 0 ? T(sums[corner * THREADS] * from_real<T>(R(1) / left)) : T();
            own += boxes;
            corner = next_corner(corner, odd);
        } while (corner);
    }
}

// Returns the weight with which a point of the next level interpolates the point at `offset` (-1, 0 or 1 along each
// axis) from it.
DEVICE T weight_for(const T* weights, u64 boxes, Sizes coarse, Place of, Place offset) {
    const u32 odd = u32(offset.x != 0) | u32(offset.y != 0) << 1 | u32(offset.z != 0) << 2;
    const u32 back = u32(offset.x < 0) | u32(offset.y < 0) << 1 | u32(offset.z < 0) << 2;
    if (!odd) return from_real<T>(R(1));
    return weights[weight_number(odd, back) * boxes + coarse.number(moved_back(of, back))];
}

// values = P^H A P. Three threads share a row: each takes the points with one y coordinate that have weights for the
// row's point and, for each of these, its entries one after another. An entry leads to a point that has weights for the
// corners around it. The sums of the three threads are added in order.
extern "C" __global__ void __launch_bounds__(3 * ROWS)
    grid_interpolated(u32 nx, u32 ny, u32 nz, u32 neighbours, u32 coarse_neighbours, const T* fine, const T* weights,
                      T* values) {
    // Sums by thread, entry of the row, and row.
    __shared__ T all_sums[3 * 27 * ROWS];
    // The beginning of the weights of each kind of point, and the directions of entries, two bits per axis.
    __shared__ u64 begins[8];
    __shared__ u32 steps[27];
    const u32 lane = threadIdx.x % ROWS, part = threadIdx.x / ROWS;
    T* const sums = all_sums + part * 27 * ROWS + lane;
    const Sizes sizes = {i32(nx), i32(ny), i32(nz)}, coarse = sizes.coarser();
    const u64 boxes = coarse.points(), first_row = u64(blockIdx.x) * ROWS, number = first_row + lane;
    const u32 count = __popc(neighbours), entries = __popc(coarse_neighbours);
    const Place at = coarse.place(number);
    if (threadIdx.x < 8) begins[threadIdx.x] = first_weight(threadIdx.x) * boxes;
    if (threadIdx.x < 27 && neighbours >> threadIdx.x & 1) {
        const u32 bit = threadIdx.x;
        steps[__popc(neighbours & ((1u << bit) - 1))] = bit % 3 | bit / 3 % 3 << 2 | bit / 9 << 4;
    }
    for (u32 k = 0; k < 27; k++) sums[k * ROWS] = T();
    __syncthreads();
    for (i32 k = number < boxes ? 0 : 9; k < 9; k++) {
        const Place step = {k % 3 - 1, i32(part) - 1, k / 3 - 1};
        const Place point = {2 * at.x + step.x, 2 * at.y + step.y, 2 * at.z + step.z};
        if (!sizes.has(point)) continue;
        const T here = conj(weight_for(weights, boxes, coarse, at, step));
        const T* row = fine + first_place(sizes.number(point), count);
        for (u32 entry = 0; entry < count; entry++, row += SECTION) {
            const T value = *row;
            if (is_no_entry(value)) continue;
            const u32 by = steps[entry];
            const Place end = {point.x + i32(by & 3) - 1, point.y + i32(by >> 2 & 3) - 1, point.z + i32(by >> 4) - 1};
            if (!sizes.has(end)) continue;
            const u32 odd = u32(end.x & 1) | u32(end.y & 1) << 1 | u32(end.z & 1) << 2;
            // The box of that point is the row's box or a neighbour of it.
            const Place box = {end.x >> 1, end.y >> 1, end.z >> 1};
            T* const sum = sums + (box.x - at.x + 1 + 3 * (box.y - at.y + 1) + 9 * (box.z - at.z + 1)) * i32(ROWS);
            const T* there = weights + begins[odd] + coarse.number(box);
            const T product = here * value;
            u32 corner = 0;
            do {
                const T weight = odd ? *there : from_real<T>(R(1));
                T& of_corner = sum[((corner & 1) + 3 * (corner >> 1 & 1) + 9 * (corner >> 2)) * ROWS];
                of_corner = of_corner + product * weight;
                there += boxes;
                corner = next_corner(corner, odd);
            } while (corner);
        }
    }
    __syncthreads();
    for (u32 item = threadIdx.x; item < entries * ROWS; item += 3 * ROWS) {
        const u32 k = item / ROWS;
        const u64 row = first_row + item % ROWS;
        u32 set = coarse_neighbours;
        for (u32 i = 0; i < k; i++) set &= set - 1;
        const i32 bit = __ffs(set) - 1, dx = bit % 3 - 1, dy = bit / 3 % 3 - 1, dz = bit / 9 - 1;
        T total = T();
        for (u32 i = 0; i < 3; i++) total = total + all_sums[(i * 27 + bit) * ROWS + item % ROWS];
        const Place of_row = coarse.place(row);
        const i64 column = i64(row) + dx + i64(coarse.x) * (dy + i64(coarse.y) * dz);
        T* const value = values + first_place(row, entries) + u64(k) * SECTION;
        const bool there = coarse.has({of_row.x + dx, of_row.y + dy, of_row.z + dz});
        if (row < boxes && column >= 0 && column < i64(boxes)) *value = there ? total : T();
        else memset(value, 255, sizeof(T));
    }
}

// coarse = P^H fine.
extern "C" __global__ void __launch_bounds__(THREADS)
    grid_restrict_weighted(u32 nx, u32 ny, u32 nz, const T* weights, const T* fine, T* coarse) {
    const Sizes sizes = {i32(nx), i32(ny), i32(nz)}, all = sizes.coarser();
    const u64 boxes = all.points();
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < boxes; i += u64(gridDim.x) * THREADS) {
        const Place at = all.place(i);
        T sum = T();
#pragma unroll
        for (i32 z = -1; z <= 1; z++) {
            if (u32(2 * at.z + z) >= nz) continue;
#pragma unroll
            for (i32 y = -1; y <= 1; y++)
#pragma unroll
                for (i32 x = -1; x <= 1; x++) {
                    const Place point = {2 * at.x + x, 2 * at.y + y, 2 * at.z + z};
                    if (!sizes.has(point)) continue;
                    sum = sum + conj(weight_for(weights, boxes, all, at, {x, y, z})) * fine[sizes.number(point)];
                }
        }
        coarse[i] = sum;
    }
}

// fine += P coarse. A thread processes the points of a box.
extern "C" __global__ void __launch_bounds__(THREADS)
    grid_prolong_weighted(u32 nx, u32 ny, u32 nz, const T* weights, const T* coarse, T* fine) {
    const Sizes sizes = {i32(nx), i32(ny), i32(nz)}, all = sizes.coarser();
    const u64 boxes = all.points();
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < boxes; i += u64(gridDim.x) * THREADS) {
        const Place box = all.place(i);
        T corners[8];
#pragma unroll
        for (u32 corner = 0; corner < 8; corner++) {
            const Place to = moved(box, corner);
            corners[corner] = all.has(to) ? coarse[all.number(to)] : T();
        }
#pragma unroll
        for (u32 odd = 0; odd < 8; odd++) {
            const Place point = point_of(box, odd);
            if (!sizes.has(point)) continue;
            T sum = odd ? T() : corners[0];
#pragma unroll
            for (u32 corner = 0; corner < 8; corner++)
                if (odd && !(corner & ~odd)) {
                    sum = sum + weights[weight_number(odd, corner) * boxes + i] * corners[corner];
                }
            const u64 place = sizes.number(point);
            fine[place] = fine[place] + sum;
        }
    }
}
