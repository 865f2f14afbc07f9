// y = alpha A x + beta y with A of kinds of rows that are parts of one stencil: a byte a row is all of A. stencil_rows.cuh
// draws it.
//
// A kind is a set of the stencil's places. Elements of x are asked for before it is known which kinds they are for: none of the
// loads waits for another. What a kind does not have is not added. Where all rows of a warp are the whole stencil, as inside of a
// grid, nothing is asked. Where the matrix is a grid without holes, slim_grid.cu needs no kinds.
//
// Bytes a row: 1, and those of stencil_rows.cuh.
//
// Constants: SCALAR (vectors), PLACES, ROWS, THREADS, BLOCKS (a multiprocessor, at least).
#include "stencil_rows.cuh"

// Of the grid: rows from a line to the next; threads, one for each row of every ROWS-th line; from where to where a thread reads
// x, seen from its first row, and where the lines that it reads start.
struct Grid {
    i64 line, threads, low, high, lines[3 * LINES];
};

struct Kinds {
    u64 rows, columns;
    const u8* kind_of;
    u32 whole;
    const u32* places_of;
    const Grid& grid;
    const Numbers& numbers;

    // Where `inside` is not set, what lies beyond x is zero: no row has it.
    DEVICE void load(Rows& all, int p, bool inside, const T* x, u64 first) const {
        all.load(p, [&](int m, int e) {
            const u64 at = first + u64(grid.lines[LINES * (p + 1) + m + 1] + e);
            return inside || at < columns ? x[at] : T();
        });
    }

    template <typename G, typename F> DEVICE void sums(const T* __restrict__ x, G beside, F finish) const {
        for (u64 tile = u64(blockIdx.x) * THREADS; tile < u64(grid.threads); tile += u64(gridDim.x) * THREADS) {
            const u32 mine = u32(tile) + threadIdx.x, line = u32(grid.line);
            const u64 first = u64(mine / line) * ((ROWS - 1) * u64(line)) + mine;
            u32 kind[ROWS];
#pragma unroll
            for (u32 r = 0; r < ROWS; r++) kind[r] = mine < grid.threads && first + r * u64(line) < rows ? kind_of[first + r * u64(line)] : 255;
            decltype(beside(first)) found[ROWS];
#pragma unroll
            for (u32 r = 0; r < ROWS; r++)
                if (kind[r] < 255) found[r] = beside(first + r * u64(line));
            const bool inside = __all_sync(ALL, i64(first) + grid.low >= 0 && i64(first) + grid.high < i64(columns));
            Rows all = {};
            // Two planes are on their way before the kinds are looked at.
            if (inside) {
                load(all, -1, true, x, first);
                load(all, 0, true, x, first);
            } else {
                load(all, -1, false, x, first);
                load(all, 0, false, x, first);
            }
            bool complete = inside;
#pragma unroll
            for (u32 r = 0; r < ROWS; r++) complete = complete && kind[r] == whole;
            u32 has[ROWS] = {};
            if (__all_sync(ALL, complete)) {
                all.add<true>(-1, numbers, has);
                load(all, 1, true, x, first);
                all.add<true>(0, numbers, has);
                all.add<true>(1, numbers, has);
            } else {
#pragma unroll
                for (u32 r = 0; r < ROWS; r++) has[r] = kind[r] < 255 ? places_of[kind[r]] : 0;
                all.add<false>(-1, numbers, has);
                load(all, 1, false, x, first);
                all.add<false>(0, numbers, has);
                all.add<false>(1, numbers, has);
            }
#pragma unroll
            for (u32 r = 0; r < ROWS; r++)
                if (kind[r] < 255) finish(first + r * u64(line), all.sum[r], found[r], all.element[1][r + 1][1]);
        }
    }
};

#define KINDS u64 rows, u64 columns, const u8 *kind_of, u32 whole, const u32 *places_of, const __grid_constant__ Grid grid, const __grid_constant__ Numbers numbers
#define WALK \
    Kinds { rows, columns, kind_of, whole, places_of, grid, numbers }

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) slim_stencil(KINDS, T alpha, const T* x, T beta, T* y) {
    after_predecessors();
    product(WALK, alpha, x, beta, y);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) slim_stencil_dot(KINDS, const T* x, T* y, T* xy, T* partials, u32* finished) {
    after_predecessors();
    product_dot(WALK, x, y, xy, partials, finished);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    slim_stencil_chebyshev(KINDS, R keep, R momentum, R step, const R* d, const T* r, const T* z, T* last) {
    after_predecessors();
    product_chebyshev(WALK, Step<R>{keep, momentum, step}, d, r, z, last);
}
