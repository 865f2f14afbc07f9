// y = alpha A x + beta y where the kinds of A's rows are parts of one stencil - a point and its neighbours within one
// step in each of three directions: one byte per row is all that is stored of A, and an element of x is loaded once for
// several rows.
//
//     places of a plane       a thread's rows, ROWS = 2, and what it loads of x for them
//     6 7 8                   x x x
//     3 4 5                   x o x      a line apart: 12 elements for 18 products
//     0 1 2                   x o x
//                             x x x
//
// Stencil point 9 (p + 1) + 3 (l + 1) + (e + 1) is p planes, l lines and e rows away. PLACES has a bit for each point
// of the stencil, so that all loops are unrolled and coefficients are operands in constant memory. Sums run from left
// to right, so two runs give the same bits.
//
// A kind is a set of stencil points. Elements of x are loaded before it is known which kinds need them, so that no load
// waits for another; points that a kind lacks are not added. If all rows of a warp have the whole stencil, as inside a
// grid, nothing is tested. For grids compressed_grid.cu and compressed_march.cu are faster; this kernel is for bands,
// which have no lines, and for grids with holes and few points or complex numbers. Source: register blocking of
// stencils as in Datta et al. 2008.
//
// Bytes per row: 1, x and y; a step of Chebyshev's iteration (chebyshev.cuh) also reads r and the vector that it
// replaces.
//
// Constants: SCALAR (vectors), PLACES, ROWS, THREADS, BLOCKS (per multiprocessor, at least).
#include "chebyshev.cuh"
#include "product_dot.cuh"

typedef SCALAR T;
typedef real_of<T>::type R;

constexpr int LINES = ROWS + 2; // lines that a thread reads in each plane

struct Numbers {
    T of[27];
};

// The stencil point of the element in plane p, line m from a thread's first row, and offset e, relative to its row r;
// 32 if the stencil has none there.
DEVICE constexpr int place_of(int p, int m, int e, int r) {
    const int l = m - r, place = 9 * (p + 1) + 3 * (l + 1) + e + 1;
    return l >= -1 && l <= 1 && (PLACES >> place & 1) ? place : 32;
}
DEVICE constexpr bool is_needed(int p, int m, int e) {
    for (int r = 0; r < ROWS; r++)
        if (place_of(p, m, e, r) < 32) return true;
    return false;
}

// What a thread reads of x, and its sums, which run plane by plane and from left to right for each row.
struct Rows {
    T element[3][LINES][3], sum[ROWS];

    // `at` returns the element in a line, relative to the thread's first row, and at offset e.
    template <typename F> DEVICE void load(int p, F at) {
#pragma unroll
        for (int m = -1; m < LINES - 1; m++)
#pragma unroll
            for (int e = -1; e <= 1; e++)
                if (is_needed(p, m, e)) element[p + 1][m + 1][e + 1] = at(m, e);
    }
    // Adds a plane's elements to each row whose kind has the stencil point; if WHOLE, to all rows.
    template <bool WHOLE>
    DEVICE void add(int p, const Numbers& numbers, const u32 (&has)[ROWS]) {
#pragma unroll
        for (int m = -1; m < LINES - 1; m++)
#pragma unroll
            for (int e = -1; e <= 1; e++)
#pragma unroll
                for (int r = 0; r < ROWS; r++)
                    if (place_of(p, m, e, r) < 32 && (WHOLE || (has[r] >> place_of(p, m, e, r) & 1)))
                        sum[r] = sum[r] + numbers.of[place_of(p, m, e, r)] * element[p + 1][m + 1][e + 1];
    }
};

// Further data that is needed with a row's sum, loaded before the sum is complete.
struct Nothing {
    DEVICE Nothing operator()(u64) const { return {}; }
};

struct Beside {
    T r, last;
};

// The grid: distance in rows from one line to the next; number of threads, one for each row of every ROWS-th line; the
// range of x that a thread reads, relative to its first row, and the starts of the lines that it reads.
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

    // If `inside` is false, elements beyond x are zero: no row has a point there.
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
            // Two planes are in flight before the kinds are read.
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

// What is done with the sums: finish(row, sum, further data of the row, x of the row) is called once per row.
DEVICE void product(const Kinds& kinds, T alpha, const T* x, T beta, T* y) {
    kinds.sums(x, Nothing(), [=](u64 row, T sum, Nothing, T) { finish(alpha, sum, beta, y + row); });
}

// y = A x, *xy = x.y.
DEVICE void product_dot(const Kinds& kinds, const T* x, T* y, T* xy, T* partials, u32* finished) {
    RowsDot<T> dot = {x, y, T()};
    kinds.sums(x, Nothing(), [&](u64 row, T sum, Nothing, T) { dot.take(row, sum); });
    launch_sum_to<THREADS>(xy, dot.part, partials, finished);
}

// last = keep z + momentum last + step d .* (r - A z). z and last are different vectors, so none is read after it was
// written. A row's own z was read for its sum if the stencil has a diagonal.
DEVICE void product_chebyshev(const Kinds& kinds, const Step<R>& by, const R* d, const T* r, const T* z, T* last) {
    kinds.sums(
        z, [=](u64 row) { return Beside{r[row], by.momentum == 0 ? T() : last[row]}; },
        [=](u64 row, T sum, Beside at, T own) { last[row] = stepped(by, d, row, at.r, PLACES >> 13 & 1 ? own : z[row], sum, at.last); });
}

#define KINDS u64 rows, u64 columns, const u8 *kind_of, u32 whole, const u32 *places_of, const __grid_constant__ Grid grid, const __grid_constant__ Numbers numbers
#define OF_KINDS \
    Kinds { rows, columns, kind_of, whole, places_of, grid, numbers }

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) compressed_stencil(KINDS, T alpha, const T* x, T beta, T* y) {
    after_predecessors();
    product(OF_KINDS, alpha, x, beta, y);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) compressed_stencil_dot(KINDS, const T* x, T* y, T* xy, T* partials, u32* finished) {
    after_predecessors();
    product_dot(OF_KINDS, x, y, xy, partials, finished);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    compressed_stencil_chebyshev(KINDS, R keep, R momentum, R step, const R* d, const T* r, const T* z, T* last) {
    after_predecessors();
    product_chebyshev(OF_KINDS, Step<R>{keep, momentum, step}, d, r, z, last);
}
