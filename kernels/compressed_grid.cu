// y = alpha A x + beta y with A a stencil of a point and its neighbours on the points of a grid: nothing of A is read
// except, if there are holes, two bits or a byte per row.
//
//   o o o o o o  Elements of x in one plane for a thread, two points per run (f64), LINES = 2. The thread reads four
//   o o x x o o  runs in its own columns and gets the others from neighbouring threads of the warp; its first and last
//   o o x x o o  thread have no points of their own, so that warps overlap by two. It then takes the next plane, up to
//   o o o o o o  DEPTH: the elements of a plane are used for its points there, and in the planes before and after.
//
// Source: register blocking and marching along planes as in Datta et al. 2008.
//
// PARTS: if all rows of a warp have the kinds that rows without holes have at their positions in the grid, as most do,
// the stencil points of their kinds are not looked up.
//
// Bytes per row: x and y; if there are holes, two bits (MARKS) or a byte; and y twice if the product is added to it. A
// step of Chebyshev's iteration (chebyshev.cuh) also reads r and the vector that it replaces.
//
// Constants: those of compressed_grid.cuh, DEPTH, THREADS, BLOCKS (per multiprocessor, at least, for a product) and
// FEWER_BLOCKS (for kernels that need more registers).
#include "block_sum.cuh"
#include "chebyshev.cuh"
#include "compressed_grid.cuh"

constexpr bool DEEP = PLACES & ~(0x1ffu << 9); // the stencil has neighbours in other planes
constexpr int FIRST = DEEP ? -1 : 0, LAST = DEEP ? DEPTH : DEPTH - 1; // planes read, from a thread's first point on

// Points per line, lines per plane, planes; runs per line; warps of a block that have lines next to each other, so that
// two of them share lines in the first-level cache; groups of LINES lines per plane for each of these; planes per
// thread; threads of a warp in such a stack that have points.
struct Grid {
    u32 points, lines, planes, runs, stack, groups, depth, threads;
};

// Bit mask of the planes to whose sums plane k contributes in a thread.
DEVICE constexpr int whom(int k) {
    return (k > 0 ? FOR_BEFORE : 0) | (k >= 0 && k < DEPTH ? FOR_ITSELF : 0) | (k + 1 < DEPTH ? FOR_AFTER : 0);
}
// Number of threads at each end of a warp that have no points of their own, if the stencil has neighbours within the
// line.
constexpr u32 SIDES = PLACES & ~(0x1249249u << 1) ? 1 : 0, OWN = 32 - 2 * SIDES;

// The runs of one plane.
struct Plane {
    Points of[READ];
};

// Kinds of a thread's rows in one plane, with those of a run in one word, and whether no row of its warp has holes; or
// the bytes with their marks.
struct OfPlane {
    u32 kinds[LINES];
    bool whole;
};
// The stencil points of rows in three planes.
struct SomePlaces {
    static constexpr bool SOME = true;
    u32 of[3][LINES][RUN];

    DEVICE bool operator()(int p, int r, int i, int place) const { return of[p + 1][r][i] & 1u << place; }
};

DEVICE u32 side(u32 at, u32 size) { return at == 0 ? 0 : at + 1 == size ? 2 : 1; }
// The kinds of a run without holes.
DEVICE u32 whole_run(const Kinds& kinds, u32 plane_side, u32 line, u32 lines, u32 point, u32 points) {
    constexpr u32 EACH = RUN == 4 ? 0x1010101 : RUN == 2 ? 0x101 : 1, LAST = 8 * (RUN - 1);
    u32 all = kinds.at_side(plane_side, side(line, lines), 1) * EACH;
    if (point == 0) all = (all & ~255u) | kinds.at_side(plane_side, side(line, lines), 0);
    if (point + RUN == points) all = (all & ~(255u << LAST)) | kinds.at_side(plane_side, side(line, lines), 2) << LAST;
    return all;
}

// y = alpha A x + beta y.
struct Sum {
    static constexpr bool STAYS = false, READS_OWN = false;
    typedef Points Beside;
    T alpha, beta;
    T* y;

    DEVICE Beside ask(bool in, u64 row) { return load_run(in, y + row); }
    DEVICE void take(u64 row, const Points& sum, const Points&, const Beside& old, u32 marks) {
        Points out;
#pragma unroll
        for (int i = 0; i < RUN; i++) out.of[i] = alpha * sum.of[i] + beta * old.of[i];
        store_marked(y + row, out, marks);
    }
    DEVICE void take_row(u64 row, T sum, T) { y[row] = alpha * sum + beta * y[row]; }
};

// last = keep z + momentum last + step d .* (r - A z). z and last are different vectors, so none is read after it was
// written.
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
    DEVICE void take(u64 row, const Points& sum, const Points& own, const Beside& at, u32 marks) {
        Points out;
#pragma unroll
        for (int i = 0; i < RUN; i++) out.of[i] = stepped(by, d, row + i, at.r.of[i], own.of[i], sum.of[i], at.last.of[i]);
        store_marked(last + row, out, marks);
    }
    DEVICE void take_row(u64 row, T sum, T own) { last[row] = stepped(by, d, row, r[row], own, sum, by.momentum == 0 ? T() : last[row]); }
};

template <typename F> DEVICE void sums(const Grid& grid, const Numbers& numbers, const Kinds& kinds, const T* x, F& rows) {
    const u64 plane = u64(grid.points) * grid.lines;
    const u32 lane = lane_id(), warp = threadIdx.x / 32, of_block = THREADS / 32 / grid.stack * OWN;
    if (HOLES == MARKS) take_listed(kinds, grid.points, grid.lines, numbers, x, threadIdx.x / 32, THREADS / 32, rows);
    for (u64 tile = blockIdx.x; tile * of_block < grid.threads; tile += gridDim.x) {
        // Wraps around for the very first lane, which then has no points.
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
                if (is_read(whom(k), m) || (F::READS_OWN && k >= 0 && k < DEPTH && m >= 0 && m < LINES))
                    to.of[m + 1] = load_run(in && lines[m + 1], x + (i64(row) + k * i64(plane) + m * i64(grid.points)));
        };
        // The kinds of the rows in plane k are loaded here, and later compared with those of rows without holes.
        auto ask_kinds = [&](int k, OfPlane& to) {
            const bool in = k < i32(grid.depth) && p + k < grid.planes;
#pragma unroll
            for (int r = 0; r < LINES; r++) {
                const u64 first = row + k * plane + r * u64(grid.points);
                if (HOLES == MARKS) to.kinds[r] = load_where(in && own && lines[r + 1], kinds.of + first / 4);
                else to.kinds[r] = load_where(in && own && lines[r + 1], reinterpret_cast<const RunKinds*>(kinds.of + first));
            }
        };
        auto compare_kinds = [&](int k, OfPlane& of) {
            const bool in = k < i32(grid.depth) && p + k < grid.planes;
            const u32 plane_side = DEEP ? side(p + k, grid.planes) : 1;
            of.whole = true;
#pragma unroll
            for (int r = 0; r < LINES; r++) {
                const bool there = in && own && lines[r + 1];
                of.whole = of.whole && (!there || of.kinds[r] == whole_run(kinds, plane_side, line + r, grid.lines, point, grid.points));
            }
            of.whole = __all_sync(ALL, of.whole);
        };
        OfPlane of[4] = {}; // one of them in flight
        Plane planes[3]; // the compiler keeps what is still needed of these
        Points sum[3][LINES] = {};
        if (HOLES) ask_kinds(0, of[0]);
        load(FIRST, planes[(FIRST + 3) % 3]);
#pragma unroll
        for (int k = FIRST; k <= LAST; k++) {
            const int q = DEEP ? k - 1 : k; // the plane whose sums are completed
            const bool ends = q >= 0 && q < i32(grid.depth) && p + q < grid.planes;
            if (HOLES && k + 2 < DEPTH) ask_kinds(k + 2, of[(k + 2) % 4]);
            if (k < LAST) load(k + 1, planes[(k + 4) % 3]);
            typename F::Beside found[LINES];
#pragma unroll
            for (int r = 0; r < LINES; r++)
                if (q >= 0) found[r] = rows.ask(ends && own && lines[r + 1], row + q * plane + r * u64(grid.points));
            const Plane& now = planes[(k + 3) % 3];
            auto add_all = [&](const auto& places) {
#pragma unroll
                for (int m = -1; m <= LINES; m++)
                    if (is_read(whom(k), m)) {
                        const Points& run = now.of[m + 1];
                        T before = T(), after = T();
                        if (is_needed(whom(k), m, -1)) {
                            const T beside = shuffle_up(run.of[RUN - 1], 1);
                            before = left ? beside : T();
                        }
                        if (is_needed(whom(k), m, 1)) {
                            const T beside = shuffle_down(run.of[0], 1);
                            after = right ? beside : T();
                        }
                        add_run(whom(k), m, run, before, after, numbers, places, sum[(k + 2) % 3], sum[(k + 3) % 3], sum[(k + 4) % 3]);
                    }
            };
            bool whole = true;
            if (HOLES == PARTS) {
                const int next = DEEP ? k + 1 : k; // the last plane to whose sums this one contributes
                if (next < DEPTH) compare_kinds(next, of[next % 4]);
#pragma unroll
                for (int p = -1; p <= 1; p++)
                    if (is_for(whom(k), p)) whole = whole && of[(k - p + 4) % 4].whole;
            }
            if (HOLES == PARTS && !whole) {
                SomePlaces places;
#pragma unroll
                for (int p = -1; p <= 1; p++)
#pragma unroll
                    for (int r = 0; r < LINES; r++)
#pragma unroll
                        for (int i = 0; i < RUN; i++)
                            if (is_for(whom(k), p)) places.of[p + 1][r][i] = kinds.places_of[of[(k - p + 4) % 4].kinds[r] >> 8 * i & 255];
                if constexpr (HOLES == PARTS) add_all(places);
            } else add_all(AllPlaces());
            if (q < 0) continue;
#pragma unroll
            for (int r = 0; r < LINES; r++) {
#pragma unroll
                for (int i = 0; i < RUN; i++)
                    if (MIRRORED && DEEP) sum[q % 3][r].of[i] = sum[q % 3][r].of[i] + sum[(k + 1) % 3][r].of[i];
                const u64 first = row + q * plane + r * u64(grid.points);
                const u32 marks = HOLES == MARKS ? marks_of(of[q % 4].kinds[r], u32(first)) : 0;
                replace_sums(marks, numbers, planes[q % 3].of[r + 1], sum[q % 3][r]);
                if (ends && own && lines[r + 1]) rows.take(first, sum[q % 3][r], planes[q % 3].of[r + 1], found[r], marks);
                sum[q % 3][r] = {};
            }
            if (q + 1 == i32(grid.depth)) break;
        }
        if (!F::STAYS) return;
    }
}

#define GRID const __grid_constant__ Grid grid, const __grid_constant__ Numbers numbers, const u8 *kind_of, const u32 *places_of, const u64 *list, const __grid_constant__ Expected expected
#define KINDS \
    Kinds { kind_of, places_of, list, expected }

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) compressed_grid(GRID, T alpha, const T* x, T* y) {
    after_predecessors();
    Product rows = {alpha, y};
    sums(grid, numbers, KINDS, x, rows);
}

extern "C" __global__ void __launch_bounds__(THREADS, FEWER_BLOCKS) compressed_grid_add(GRID, T alpha, const T* x, T beta, T* y) {
    after_predecessors();
    Sum rows = {alpha, beta, y};
    sums(grid, numbers, KINDS, x, rows);
}

extern "C" __global__ void __launch_bounds__(THREADS, FEWER_BLOCKS) compressed_grid_dot(GRID, const T* x, T* y, T* xy, T* partials, u32* finished) {
    after_predecessors();
    ProductDot rows = {y, T()};
    sums(grid, numbers, KINDS, x, rows);
    launch_sum_to<THREADS>(xy, rows.dot, partials, finished);
}

extern "C" __global__ void __launch_bounds__(THREADS, FEWER_BLOCKS)
    compressed_grid_chebyshev(GRID, R keep, R momentum, R step, const R* d, const T* r, const T* z, T* last) {
    after_predecessors();
    Chebyshev rows = {{keep, momentum, step}, d, r, last};
    sums(grid, numbers, KINDS, z, rows);
}
