// y = alpha A x + beta y with A a stencil on all points of a grid: nothing of A is read. stencil_rows.cuh draws it.
//
// A thread's place tells what lies beyond the grid. There x is zero, and its number is added zero times: the same bits as where
// it is left out, for sums start from zero, and numbers are finite.
//
// Bytes a row: those of stencil_rows.cuh.
//
// Constants: SCALAR (vectors), PLACES, ROWS, THREADS, BLOCKS (a multiprocessor, at least).
#include "stencil_rows.cuh"

constexpr u32 WHOLE_LINES = (1u << LINES) - 1;
constexpr bool DEEP = PLACES & ~(0x1ffu << 9); // the stencil has neighbours in other planes

// Points a line, lines a plane, planes; groups of ROWS lines a plane; threads.
struct Grid {
    i64 points, lines, planes, groups, threads;
};

struct Points {
    const Grid& grid;
    const Numbers& numbers;

    template <typename G, typename F> DEVICE void sums(const T* __restrict__ x, G beside, F finish) const {
        const u32 points = u32(grid.points), groups = u32(grid.groups);
        const i64 plane = grid.points * grid.lines;
        for (u64 tile = u64(blockIdx.x) * THREADS; tile < u64(grid.threads); tile += u64(gridDim.x) * THREADS) {
            const u32 mine = u32(tile) + threadIdx.x, group = mine / points, point = mine - group * points, p = group / groups;
            const u32 line = (group - p * groups) * ROWS;
            const i64 first = i64(p) * plane + i64(line) * points + point;
            const bool there = mine < grid.threads, left = there && point > 0, right = there && point + 1 < points;
            // Bits: which of the lines and planes that the thread reads lie in the grid.
            u32 lines = 0, planes = there ? u32(p > 0) | 2 | u32(p + 1 < grid.planes) << 2 : 0;
#pragma unroll
            for (int m = -1; m <= ROWS; m++) lines |= u32(line + m < grid.lines) << (m + 1);
            auto has = [&](u32 r) { return there && (lines >> (r + 1) & 1); };
            decltype(beside(u64(first))) found[ROWS];
#pragma unroll
            for (u32 r = 0; r < ROWS; r++)
                if (has(r)) found[r] = beside(first + r * points);
            Rows all = {};
            const u32 every[ROWS] = {};
            auto element = [&](int p, int m, int e) { return x + (first + p * plane + m * i64(points)) + e; };
            auto inside = [&](int p) {
                all.load(p, [&](int m, int e) { return (e == 0 || (e < 0 ? left : right)) ? *element(p, m, e) : T(); });
            };
            auto at_border = [&](int p) {
                all.load(p, [&](int m, int e) {
                    const bool in = (e == 0 || (e < 0 ? left : right)) && (lines >> (m + 1) & planes >> (p + 1) & 1);
                    return in ? *element(p, m, e) : T();
                });
            };
            // Two planes are on their way before anything is added.
            if (__all_sync(ALL, lines == WHOLE_LINES && (DEEP ? planes == 7 : there))) {
                inside(-1);
                inside(0);
                all.add<true>(-1, numbers, every);
                inside(1);
            } else {
                at_border(-1);
                at_border(0);
                all.add<true>(-1, numbers, every);
                at_border(1);
            }
            all.add<true>(0, numbers, every);
            all.add<true>(1, numbers, every);
#pragma unroll
            for (u32 r = 0; r < ROWS; r++)
                if (has(r)) finish(first + r * points, all.sum[r], found[r], all.element[1][r + 1][1]);
        }
    }
};

#define GRID const __grid_constant__ Grid grid, const __grid_constant__ Numbers numbers

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) slim_grid(GRID, T alpha, const T* x, T beta, T* y) {
    after_predecessors();
    product(Points{grid, numbers}, alpha, x, beta, y);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) slim_grid_dot(GRID, const T* x, T* y, T* xy, T* partials, u32* finished) {
    after_predecessors();
    product_dot(Points{grid, numbers}, x, y, xy, partials, finished);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    slim_grid_chebyshev(GRID, R keep, R momentum, R step, const R* d, const T* r, const T* z, T* last) {
    after_predecessors();
    product_chebyshev(Points{grid, numbers}, Step<R>{keep, momentum, step}, d, r, z, last);
}
