// What products with a stencil on the points of a grid share: which elements of a plane are summed up for which planes, and in which order,
// so that sums have the same bits whichever kernel made them; and what becomes of them.
//
// Place 9 (p + 1) + 3 (l + 1) + (e + 1) is p planes, l lines and e points away. PLACES has a bit for each that the stencil has,
// so that all loops are unrolled and numbers are operands in constant memory. Sums run from left to right, from zero: two runs give the
// same bits. x is zero beyond the grid, and its number is added zero times: the same bits as where it is left out, for numbers are finite.
//
// MIRRORED: places on both sides of a point in its line, and of its plane, have one number. Then it multiplies the sum of both elements, and
// what the plane after gets is what the plane before gets.
//
// HOLES: rows may lack more than what lies beyond the grid. Each has a kind, a byte. Where HOLES is PARTS it is a set of the stencil's places; what a row does not
// have is not added. Where it is POINTS rows lack nothing, but those of one kind all except their own point: sums are those of a grid without holes, and
// the sum of such a row is replaced by its point's product.
//
// Constants: HOLES, SCALAR (vectors), PLACES, MIRRORED, LINES (a thread has runs of one column in so many lines beside each other), RUN (runs.cuh;
// lines are a whole number of runs).
#pragma once
#define PARTS 1
#define POINTS 2
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
// What a plane is summed up for: the plane before, whose points have it after them, itself, and the plane after.
constexpr int FOR_BEFORE = 1, FOR_ITSELF = 2, FOR_AFTER = 4;
DEVICE constexpr bool is_for(int whom, int p) { return whom & (p > 0 ? FOR_BEFORE : p < 0 ? FOR_AFTER : FOR_ITSELF); }
// Whether elements in a plane's line m and `e` beside a thread's points are summed up for any of them.
DEVICE constexpr bool is_needed(int whom, int m, int e) {
    for (int p = -1; p <= 1; p++)
        for (int r = 0; r < LINES; r++)
            if (is_for(whom, p) && has(p, m - r, e)) return true;
    return false;
}
DEVICE constexpr bool is_read(int whom, int m) { return is_needed(whom, m, -1) || is_needed(whom, m, 0) || is_needed(whom, m, 1); }
// Whether elements of a plane are multiplied for the plane that has them p planes away. MIRRORED: what the plane before gets is found for
// the plane after.
DEVICE constexpr bool is_summed(int whom, int p, int l, int e) {
    return has(p, l, e) && (MIRRORED ? e <= 0 && (p < 0 ? whom & (FOR_BEFORE | FOR_AFTER) : p == 0 && whom & FOR_ITSELF) : is_for(whom, p));
}

// Places of rows, as add_run asks for them: whether the one at point i of line r in the plane that has this one p planes away has a place. All have all.
struct AllPlaces {
    static constexpr bool SOME = false;

    DEVICE bool operator()(int, int, int, int) const { return true; }
};

// Adds a plane's run in line m, with the elements on both sides of it, to the sums of the planes that it is for.
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

// What is known of kinds: that of each row, the places of each, which of them rows without holes have, and how many there are. Four a word; the
// first 27 are 3 (3 p + l) + e with 0 for rows at the first plane, line or point, 2 at the last, 1 between. POINTS: instead of how many, the kind of rows that have
// their own point alone.
struct Expected {
    u32 of[7];
};
struct Kinds {
    const u8* of;
    const u32* places_of;
    const Expected& expected;

    DEVICE u32 count() const { return expected.of[6] >> 24; }
    DEVICE u32 alone() const { return expected.of[6] >> 24; }
    DEVICE u32 at_side(u32 plane, u32 line, u32 point) const {
        const u32 side = 9 * plane + 3 * line + point;
        return expected.of[side / 4] >> 8 * (side % 4) & 255;
    }
};

// POINTS: kinds of a run, turned over so that zero is that of rows that have their own point alone.
DEVICE u32 turned(const Kinds& kinds, u32 of_run) { return of_run ^ kinds.alone() * 0x1010101; }
DEVICE bool is_alone(u32 turned, int i) { return !(turned & 255u << 8 * i); }
// The sums of such rows; `own` are the run's elements of x.
DEVICE void replace_sums(u32 turned, const Numbers& numbers, const Points& own, Points& sum) {
#pragma unroll
    for (int i = 0; i < RUN; i++)
        if (is_alone(turned, i)) sum.of[i] = T() + numbers.of[place_of(0, 0, 0)] * own.of[i];
}

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
