// Definitions for products with a stencil on the points of a grid: which elements of a plane contribute to the sums of
// which planes, and in which order, so that sums have the same bits in each of the kernels; and how the sums are used.
//
// Stencil point 9 (p + 1) + 3 (l + 1) + (e + 1) is p planes, l lines and e points away. PLACES has a bit for each point
// of the stencil, so that all loops are unrolled and coefficients are operands in constant memory. Sums run from left
// to right, from zero, so two runs give the same bits. x is zero beyond the grid, and zero times a coefficient is added
// there: because coefficients are finite, that gives the same bits as leaving it out.
//
// MIRRORED: stencil points on opposite sides of a point in its line, and of its plane, have the same coefficient. It
// then multiplies the sum of both elements, and the plane after gets the same contribution as the plane before.
//
// HOLES: rows may lack more than the points beyond the grid. If HOLES is PARTS, each row has a kind, a byte, which
// stands for a set of stencil points; the others are not added. If it is MARKS, each row has two bits: sums are
// computed as for a grid without holes, the sum of a row with only its own point is replaced by that point's product,
// and rows that lack some points, of which there are few, are in a list and computed separately.
//
// Constants: HOLES, SCALAR (vectors), PLACES, MIRRORED, LINES (a thread has runs of one column in this number of
// neighbouring lines), RUN (runs.cuh; the length of lines is a multiple of it).
#pragma once
#define PARTS 1
#define MARKS 2
#include "product.cuh"
#include "runs.cuh"

typedef SCALAR T;
typedef real_of<T>::type R;
typedef Run<T> Points;

constexpr int READ = LINES + 2; // lines of a plane that a thread reads

struct Numbers {
    T of[27];
};

DEVICE constexpr int place_of(int p, int l, int e) { return 9 * (p + 1) + 3 * (l + 1) + e + 1; }
DEVICE constexpr bool has(int p, int l, int e) {
    return p >= -1 && p <= 1 && l >= -1 && l <= 1 && (PLACES >> place_of(p, l, e) & 1);
}
// The planes to whose sums a plane contributes: the plane before, which has it as the plane after; itself; and the
// plane after.
constexpr int FOR_BEFORE = 1, FOR_ITSELF = 2, FOR_AFTER = 4;
// Returns whether `whom` includes the plane that has this one p planes away.
DEVICE constexpr bool is_for(int whom, int p) { return whom & (p > 0 ? FOR_BEFORE : p < 0 ? FOR_AFTER : FOR_ITSELF); }
// Returns whether elements in a plane's line m, at offset `e` from a thread's points, contribute to any of its sums.
DEVICE constexpr bool is_needed(int whom, int m, int e) {
    for (int p = -1; p <= 1; p++)
        for (int r = 0; r < LINES; r++)
            if (is_for(whom, p) && has(p, m - r, e)) return true;
    return false;
}
DEVICE constexpr bool is_read(int whom, int m) { return is_needed(whom, m, -1) || is_needed(whom, m, 0) || is_needed(whom, m, 1); }
// Returns whether elements of a plane are multiplied for the plane that has them p planes away. MIRRORED: the
// contribution to the plane before is computed as that to the plane after.
DEVICE constexpr bool is_summed(int whom, int p, int l, int e) {
    return has(p, l, e) && (MIRRORED ? e <= 0 && (p < 0 ? whom & (FOR_BEFORE | FOR_AFTER) : p == 0 && whom & FOR_ITSELF) : is_for(whom, p));
}

// The stencil points of rows, as add_run needs them: whether the row at point i of line r, in the plane that has this
// one p planes away, has a stencil point. Here all rows have all.
struct AllPlaces {
    static constexpr bool SOME = false;

    DEVICE bool operator()(int, int, int, int) const { return true; }
};

// Adds a plane's run in line m, with the elements on both sides of it, to the sums of the planes given by `whom`.
template <typename P>
DEVICE void add_run(int whom, int m, const Points& run, T left, T right, const Numbers& numbers, const P& places, Points (&before)[LINES],
                    Points (&itself)[LINES], Points (&after)[LINES]) {
    static_assert(!P::SOME || !MIRRORED, "two elements are added for one place");
    T x_of[RUN + 2];
    x_of[0] = left, x_of[RUN + 1] = right;
#pragma unroll
    for (int i = 0; i < RUN; i++) x_of[i + 1] = run.of[i];
#pragma unroll
    for (int i = 0; i < RUN; i++)
        if (MIRRORED && is_needed(whom, m, -1)) x_of[i] = x_of[i] + x_of[i + 2];
#pragma unroll
    for (int e = -1; e <= 1; e++)
#pragma unroll
        for (int p = 1; p >= -1; p--)
#pragma unroll
            for (int r = 0; r < LINES; r++)
                if (is_summed(whom, p, m - r, e)) {
                    Points& sum = (p > 0 ? before : p < 0 ? after : itself)[r];
                    const int place = place_of(p, m - r, e);
#pragma unroll
                    for (int i = 0; i < RUN; i++) {
                        const T of_x = e == 0 ? run.of[i] : x_of[i + 1 + e];
                        if (!P::SOME || places(p, r, i, place)) sum.of[i] = sum.of[i] + numbers.of[place] * of_x;
                    }
                }
}

// The kind of each row; the stencil points of each kind; and `expected`, which has the kinds of rows without holes,
// four per word, followed by the number of kinds. Entry 3 (3 p + l) + e is the kind of rows in plane p, line l and
// point e, where 0 stands for the first, 2 for the last, and 1 for all between. MARKS: the marks of rows, four per
// byte; the list of row << 32 | stencil points; its length.
struct Expected {
    u32 of[7];
};
typedef unsigned_of<RUN>::type RunKinds;
struct Kinds {
    const u8* of;
    const u32* places_of;
    const u64* list;
    const Expected& expected;

    DEVICE u32 count() const { return expected.of[6] >> 24; }
    DEVICE u32 listed() const { return expected.of[6]; }
    DEVICE u32 at_side(u32 plane, u32 line, u32 point) const {
        const u32 side = 9 * plane + 3 * line + point;
        return expected.of[side / 4] >> 8 * (side % 4) & 255;
    }
};

// MARKS: two bits per row, those of the run that begins at `row` in the lowest bits. Bits of other rows may follow
// above.
constexpr u32 ALONE = 0x55, LISTED = 0xaa;
DEVICE u32 marks_of(u32 byte, u32 row) { return byte >> (RUN < 4 ? 2 * (row & 3) : 0); }
DEVICE bool is_alone(u32 marks, int i) { return marks & ALONE & 3u << 2 * i; }
DEVICE bool is_listed(u32 marks, int i) { return marks & LISTED & 3u << 2 * i; }
// Replaces the sums of rows that have only their own point; `own` are the run's elements of x.
DEVICE void replace_sums(u32 marks, const Numbers& numbers, const Points& own, Points& sum) {
#pragma unroll
    for (int i = 0; i < RUN; i++)
        if (is_alone(marks, i)) sum.of[i] = T() + numbers.of[place_of(0, 0, 0)] * own.of[i];
}
DEVICE bool some_listed(u32 marks) { return HOLES == MARKS && marks & LISTED & ((1u << 2 * RUN) - 1); }
// Stores a run except for listed rows: other threads write those, perhaps now, so that what was read of them may be
// outdated.
DEVICE void store_marked(T* p, const Points& run, u32 marks) {
    if (!some_listed(marks)) return store_run(p, run);
#pragma unroll
    for (int i = 0; i < RUN; i++)
        if (!is_listed(marks, i)) p[i] = run.of[i];
}
// The sum of a row with the given stencil points, from left to right; `own` points to its element of x. All elements of
// x are loaded before the sum begins. It is a separate function because as a part of the kernels, which have few free
// registers, it slowed down the usual case.
__noinline__ __device__ T sum_of(u32 places, const T* own, i64 line, i64 plane, const Numbers& numbers) {
    T of_x[27], sum = T();
#pragma unroll
    for (int place = 0; place < 27; place++)
        if (PLACES >> place & 1) of_x[place] = load_where(places >> place & 1, own + ((place / 9 - 1) * plane + (place / 3 % 3 - 1) * line + place % 3 - 1));
#pragma unroll
    for (int place = 0; place < 27; place++)
        if (PLACES >> place & 1 && places >> place & 1) sum = sum + numbers.of[place] * of_x[place];
    return sum;
}
// Computes the listed rows with `warps` warps of each block, of which this is number `warp`. Groups of 32 rows go to
// the blocks in turn, so that all have about the same number.
template <typename F>
DEVICE void take_listed(const Kinds& kinds, u32 points, u32 lines, const Numbers& numbers, const T* x, u32 warp, u32 warps, F& rows) {
    const i64 line = points, plane = line * lines;
    for (u32 i = (warp * gridDim.x + blockIdx.x) * 32 + lane_id(); i < kinds.listed(); i += warps * gridDim.x * 32) {
        const u32 row = u32(kinds.list[i] >> 32), places = u32(kinds.list[i]);
        rows.take_row(row, sum_of(places, x + row, line, plane, numbers), F::READS_OWN ? x[row] : T());
    }
}

// Says how the sums of a run, whose first row is `row`, are used; listed rows are handled one by one. `ask` loads
// further data of the rows before the sums are complete, if `in` is true. `own` are the rows' elements of x. STAYS:
// blocks take one tile after another; otherwise a block ends after one.
struct Product {
    static constexpr bool STAYS = false, READS_OWN = false;
    struct Beside {};
    T alpha;
    T* y;

    DEVICE Beside ask(bool, u64) { return {}; }
    DEVICE void take(u64 row, const Points& sum, const Points&, Beside, u32 marks) {
        Points out;
#pragma unroll
        for (int i = 0; i < RUN; i++) out.of[i] = alpha * sum.of[i];
        store_marked(y + row, out, marks);
    }
    DEVICE void take_row(u64 row, T sum, T) { y[row] = alpha * sum; }
};

// y = A x, and this thread's part of x.y.
struct ProductDot {
    static constexpr bool STAYS = true, READS_OWN = true;
    struct Beside {};
    T* y;
    T dot;

    DEVICE Beside ask(bool, u64) { return {}; }
    DEVICE void take(u64 row, const Points& sum, const Points& own, Beside, u32 marks) {
        store_marked(y + row, sum, marks);
#pragma unroll
        for (int i = 0; i < RUN; i++)
            if (HOLES != MARKS || !is_listed(marks, i)) dot = dot + conj(own.of[i]) * sum.of[i];
    }
    DEVICE void take_row(u64 row, T sum, T own) {
        y[row] = sum;
        dot = dot + conj(own) * sum;
    }
};
