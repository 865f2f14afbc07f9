// y = alpha A x + beta y with A a stencil of a point and its neighbours on all points of a grid: nothing of A is read.
//
//     o o o o o o    x of a plane that a thread reads, two points a run (f64), LINES = 2: the runs in its own columns, four of them.
//     o o x x o o    What lies beside them comes from the threads of the warp beside it; its first and last thread have no
//     o o x x o o    points of their own, so that warps overlap by two. Then the thread goes on to the next plane, up to DEPTH of
//     o o o o o o    them: what it read of a plane serves its points there, in the plane before and in the plane after.
//
// Place 9 (p + 1) + 3 (l + 1) + (e + 1) is p planes, l lines and e points away. PLACES has a bit for each that the stencil has,
// so that all loops are unrolled and numbers are operands in constant memory. Sums run from left to right, from zero: two runs give the
// same bits. x is zero beyond the grid, and its number is added zero times: the same bits as where it is left out, for numbers are finite.
// Source: register blocking and marching along planes as in Datta et al. 2008.
//
// Bytes a row: x and y; a step of Chebyshev's iteration (chebyshev.cuh) reads r and the vector that it replaces, too.
//
// Constants: SCALAR (vectors), PLACES, MIRRORED (below), LINES, DEPTH, RUN (runs.cuh; lines are a whole number of runs), THREADS, BLOCKS (a
// multiprocessor, at least, of a product) and FEWER_BLOCKS (of what needs more registers).
#include "block_sum.cuh"
#include "chebyshev.cuh"
#include "product.cuh"
#include "runs.cuh"

typedef SCALAR T;
typedef real_of<T>::type R;
typedef Run<T> Points;

constexpr int READ = LINES + 2;                // lines that a thread reads in a plane
constexpr bool DEEP = PLACES & ~(0x1ffu << 9); // the stencil has neighbours in other planes
constexpr int FIRST = DEEP ? -1 : 0, LAST = DEEP ? DEPTH : DEPTH - 1; // planes that a thread reads, seen from its first point

struct Numbers {
    T of[27];
};

// Points a line, lines a plane, planes; runs a line; warps of a block that have lines beside each other, so that the first-level cache has
// what two of them read; groups of LINES lines for each of these a plane; planes a thread; threads of a warp in such a stack that have points.
struct Grid {
    u32 points, lines, planes, runs, stack, groups, depth, threads;
};

DEVICE constexpr int place_of(int p, int l, int e) { return 9 * (p + 1) + 3 * (l + 1) + e + 1; }
DEVICE constexpr bool has(int p, int l, int e) {
    return p >= -1 && p <= 1 && l >= -1 && l <= 1 && (PLACES >> place_of(p, l, e) & 1);
}
// Whether elements in plane k, line m and `e` beside a thread's points are summed up for any of them.
DEVICE constexpr bool is_needed(int k, int m, int e) {
    for (int q = 0; q < DEPTH; q++)
        for (int r = 0; r < LINES; r++)
            if (has(k - q, m - r, e)) return true;
    return false;
}
// Whether elements of plane k are multiplied for plane `to`. MIRRORED: places on both sides of a point in its line, and of its plane, have one
// number. Then it multiplies the sum of both elements, and what the plane after gets is what the plane before gets.
DEVICE constexpr bool is_summed(int k, int to, int l, int e) {
    return has(k - to, l, e) && to >= 0 && (MIRRORED ? e <= 0 && (to > k || (to == k && to < DEPTH)) : to < DEPTH);
}
DEVICE constexpr bool is_read(int k, int m) { return is_needed(k, m, -1) || is_needed(k, m, 0) || is_needed(k, m, 1); }
// Threads at each end of a warp that have no points of their own: where the stencil has neighbours in the line.
constexpr u32 SIDES = PLACES & ~(0x1249249u << 1) ? 1 : 0, OWN = 32 - 2 * SIDES;

// The runs of one plane.
struct Plane {
    Points of[READ];
};

// What becomes of a run's sums, from `row` on. Their rows' end may need more than the sums: it is asked for before these are
// there, where `in` is set. `own` are the rows' elements of x.
// STAYS: blocks take tile after tile; others end after one.
struct Product {
    static constexpr bool STAYS = false, READS_OWN = false;
    struct Beside {};
    T alpha, beta;
    T* y;

    DEVICE Beside ask(bool, u64) { return {}; }
    DEVICE void take(u64 row, const Points& sum, const Points&, Beside) {
        Points out;
        const Points old = load_run(!is_zero(beta), y + row);
#pragma unroll
        for (int i = 0; i < RUN; i++) out.of[i] = is_zero(beta) ? alpha * sum.of[i] : alpha * sum.of[i] + beta * old.of[i];
        store_run(y + row, out);
    }
};

// y = A x, and x.y of what a thread has.
struct ProductDot {
    static constexpr bool STAYS = true, READS_OWN = true;
    struct Beside {};
    T* y;
    T dot;

    DEVICE Beside ask(bool, u64) { return {}; }
    DEVICE void take(u64 row, const Points& sum, const Points& own, Beside) {
        store_run(y + row, sum);
#pragma unroll
        for (int i = 0; i < RUN; i++) dot = dot + conj(own.of[i]) * sum.of[i];
    }
};

// last = keep z + momentum last + step d .* (r - A z). A vector is never read after it was written: z is not last.
struct Chebyshev {
    static constexpr bool STAYS = false, READS_OWN = true;
    struct Beside {
        Points r, last;
    };
    Step<R> by;
    const R* d;
    const T* r;
    T* last;

    DEVICE Beside ask(bool in, u64 row) { return {load_run(in, r + row), load_run(in && by.momentum != 0, last + row)}; }
    DEVICE void take(u64 row, const Points& sum, const Points& own, const Beside& at) {
        Points out;
#pragma unroll
        for (int i = 0; i < RUN; i++) out.of[i] = stepped(by, d, row + i, at.r.of[i], own.of[i], sum.of[i], at.last.of[i]);
        store_run(last + row, out);
    }
};

template <typename F> DEVICE void sums(const Grid& grid, const Numbers& numbers, const T* x, F& rows) {
    const u64 plane = u64(grid.points) * grid.lines;
    const u32 lane = lane_id(), warp = threadIdx.x / 32, of_block = THREADS / 32 / grid.stack * OWN;
    for (u64 tile = blockIdx.x; tile * of_block < grid.threads; tile += gridDim.x) {
        // The first thread of all has none before it.
        const u64 mine = tile * of_block + warp / grid.stack * OWN + lane - SIDES;
        const bool there = mine < grid.threads, own = there && lane >= SIDES && lane < 32 - SIDES;
        const u32 at = there ? u32(mine) : 0, group = at / grid.runs, point = (at - group * grid.runs) * RUN, slab = group / grid.groups;
        const u32 line = ((group - slab * grid.groups) * grid.stack + warp % grid.stack) * LINES, p = slab * grid.depth;
        const bool left = point > 0, right = point + RUN < grid.points;
        const u64 row = p * plane + u64(line) * grid.points + point;
        bool lines[READ];
#pragma unroll
        for (int m = -1; m <= LINES; m++) lines[m + 1] = there && line + m < grid.lines;

        auto load = [&](int k, Plane& to) {
            const bool in = k <= i32(grid.depth) && p + k < grid.planes;
#pragma unroll
            for (int m = -1; m <= LINES; m++)
                if (is_read(k, m) || (F::READS_OWN && k >= 0 && k < DEPTH && m >= 0 && m < LINES))
                    to.of[m + 1] = load_run(in && lines[m + 1], x + (i64(row) + k * i64(plane) + m * i64(grid.points)));
        };
        Plane planes[3]; // of which the compiler keeps what is still needed
        Points sum[3][LINES] = {};
        load(FIRST, planes[(FIRST + 3) % 3]);
#pragma unroll
        for (int k = FIRST; k <= LAST; k++) {
            const int q = DEEP ? k - 1 : k; // the plane whose sums get their last elements
            const bool ends = q >= 0 && q < i32(grid.depth) && p + q < grid.planes;
            if (k < LAST) load(k + 1, planes[(k + 4) % 3]);
            typename F::Beside found[LINES];
#pragma unroll
            for (int r = 0; r < LINES; r++)
                if (q >= 0) found[r] = rows.ask(ends && own && lines[r + 1], row + q * plane + r * u64(grid.points));
            const Plane& now = planes[(k + 3) % 3];
#pragma unroll
            for (int m = -1; m <= LINES; m++)
                if (is_read(k, m)) {
                    T x_of[RUN + 2];
#pragma unroll
                    for (int i = 0; i < RUN; i++) x_of[i + 1] = now.of[m + 1].of[i];
                    if (is_needed(k, m, -1)) {
                        const T beside = shuffle_up(x_of[RUN], 1);
                        x_of[0] = left ? beside : T();
                    }
                    if (is_needed(k, m, 1)) {
                        const T beside = shuffle_down(x_of[1], 1);
                        x_of[RUN + 1] = right ? beside : T();
                    }
#pragma unroll
                    for (int i = 0; i < RUN; i++)
                        if (MIRRORED && is_needed(k, m, -1)) x_of[i] = x_of[i] + x_of[i + 2];
#pragma unroll
                    for (int e = -1; e <= 1; e++)
#pragma unroll
                        for (int to = k - 1; to <= k + 1; to++)
#pragma unroll
                            for (int r = 0; r < LINES; r++)
                                if (is_summed(k, to, m - r, e))
#pragma unroll
                                    for (int i = 0; i < RUN; i++)
                                        sum[(to + 3) % 3][r].of[i] = sum[(to + 3) % 3][r].of[i] + numbers.of[place_of(k - to, m - r, e)] * (e == 0 ? now.of[m + 1].of[i] : x_of[i + 1 + e]);
                }
            if (q < 0) continue;
#pragma unroll
            for (int r = 0; r < LINES; r++) {
#pragma unroll
                for (int i = 0; i < RUN; i++)
                    if (MIRRORED && DEEP) sum[q % 3][r].of[i] = sum[q % 3][r].of[i] + sum[(k + 1) % 3][r].of[i];
                if (ends && own && lines[r + 1])
                    rows.take(row + q * plane + r * u64(grid.points), sum[q % 3][r], planes[q % 3].of[r + 1], found[r]);
                sum[q % 3][r] = {};
            }
            if (q + 1 == i32(grid.depth)) break;
        }
        if (!F::STAYS) return;
    }
}

#define GRID const __grid_constant__ Grid grid, const __grid_constant__ Numbers numbers

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) slim_grid(GRID, T alpha, const T* x, T beta, T* y) {
    after_predecessors();
    Product rows = {alpha, beta, y};
    sums(grid, numbers, x, rows);
}

extern "C" __global__ void __launch_bounds__(THREADS, FEWER_BLOCKS) slim_grid_dot(GRID, const T* x, T* y, T* xy, T* partials, u32* finished) {
    after_predecessors();
    ProductDot rows = {y, T()};
    sums(grid, numbers, x, rows);
    launch_sum_to<THREADS>(xy, rows.dot, partials, finished);
}

extern "C" __global__ void __launch_bounds__(THREADS, FEWER_BLOCKS)
    slim_grid_chebyshev(GRID, R keep, R momentum, R step, const R* d, const T* r, const T* z, T* last) {
    after_predecessors();
    Chebyshev rows = {{keep, momentum, step}, d, r, last};
    sums(grid, numbers, z, rows);
}
