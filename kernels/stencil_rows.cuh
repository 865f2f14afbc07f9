// Products with a stencil of a point and its neighbours within a step along each of three directions: x is read from near memory
// once for several rows.
//
//     places of a plane       a thread's rows, ROWS = 2, and what it loads of x for them
//     6 7 8                   x x x
//     3 4 5                   x o x      a line apart: 12 elements for 18 products
//     0 1 2                   x o x
//                             x x x
//
// Place 9 (p + 1) + 3 (l + 1) + (e + 1) is p planes, l lines and e rows away. PLACES has a bit for each that the stencil has,
// so that all loops are unrolled and numbers are operands in constant memory. Sums run from left to right: two runs give the same bits.
// Source: register blocking of stencils as in Datta et al. 2008.
//
// Bytes a row: x and y; a step of Chebyshev's iteration (chebyshev.cuh) reads r and the vector that it replaces, too.
//
// Constants: SCALAR (vectors), PLACES, ROWS, THREADS.
#pragma once
#include "block_sum.cuh"
#include "chebyshev.cuh"
#include "product.cuh"

typedef SCALAR T;
typedef real_of<T>::type R;

constexpr int LINES = ROWS + 2; // that a thread reads in each plane

struct Numbers {
    T of[27];
};

// The place of the element in plane p, line m from a thread's first row, and e beside it, seen from its row r; 32 where it has none.
DEVICE constexpr int place_of(int p, int m, int e, int r) {
    const int l = m - r, place = 9 * (p + 1) + 3 * (l + 1) + e + 1;
    return l >= -1 && l <= 1 && (PLACES >> place & 1) ? place : 32;
}
DEVICE constexpr bool is_needed(int p, int m, int e) {
    for (int r = 0; r < ROWS; r++)
        if (place_of(p, m, e, r) < 32) return true;
    return false;
}

// What a thread reads of x and sums up, plane by plane, from left to right for each row.
struct Rows {
    T element[3][LINES][3], sum[ROWS];

    // `at` gives the element in a line, seen from the thread's first row, and e beside it.
    template <typename F> DEVICE void load(int p, F at) {
#pragma unroll
        for (int m = -1; m < LINES - 1; m++)
#pragma unroll
            for (int e = -1; e <= 1; e++)
                if (is_needed(p, m, e)) element[p + 1][m + 1][e + 1] = at(m, e);
    }
    // Of each row the places that its kind has; where it is the whole stencil, all.
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

// What a row's end needs besides its sum: it is asked for before the sum is there.
struct Nothing {
    DEVICE Nothing operator()(u64) const { return {}; }
};

struct Beside {
    T r, last;
};

// What becomes of the sums. A walk goes over the rows: walk.sums(x, beside, finish), where finish(row, sum, beside(row), x of the row)
// is called once a row.
template <typename W> DEVICE void product(const W& walk, T alpha, const T* x, T beta, T* y) {
    walk.sums(x, Nothing(), [=](u64 row, T sum, Nothing, T) { y[row] = is_zero(beta) ? alpha * sum : alpha * sum + beta * y[row]; });
}

// y = A x, *xy = x.y.
template <typename W> DEVICE void product_dot(const W& walk, const T* x, T* y, T* xy, T* partials, u32* finished) {
    T dot = T();
    walk.sums(x, Nothing(), [&](u64 row, T sum, Nothing, T) {
        y[row] = sum;
        dot = dot + conj(x[row]) * sum;
    });
    launch_sum<THREADS>(dot, partials, finished, [=](T all) { *xy = all; });
}

// last = keep z + momentum last + step d .* (r - A z). A vector is never read after it was written: z is not last. A row's own z is
// among what was read for its sum, where the stencil has a diagonal.
template <typename W> DEVICE void product_chebyshev(const W& walk, const Step<R>& by, const R* d, const T* r, const T* z, T* last) {
    walk.sums(
        z, [=](u64 row) { return Beside{r[row], by.momentum == 0 ? T() : last[row]}; },
        [=](u64 row, T sum, Beside at, T own) { last[row] = stepped(by, d, row, at.r, PLACES >> 13 & 1 ? own : z[row], sum, at.last); });
}
