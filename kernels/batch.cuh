// Shared by the kernels for many small systems: entries as doubles, powers of two, and the verdict on an x.
//
// Elimination works on F A y = s F b. F and s are powers of two that bring the largest entry of each row, and that of
// the right-hand side, near one (src/backend/host/batch/judge.rs has the same steps, and the reasons). Everything is
// computed in double precision, even if entries are single precision.
//
// Constants: SCALAR (values and vectors), POWERS, REFINEMENTS, BESIDE, NORM_UNITS, LIMITED.
#pragma once
#include "complex.cuh"

template <typename S> struct double_of { typedef f64 type; };
template <> struct double_of<c32> { typedef c64 type; };
template <> struct double_of<c64> { typedef c64 type; };

DEVICE f64 to_double(f32 a) { return a; }
DEVICE f64 to_double(f64 a) { return a; }
DEVICE c64 to_double(c32 a) { return {a.re, a.im}; }
DEVICE c64 to_double(c64 a) { return a; }
DEVICE void to_scalar(f64 a, f32& x) { x = f32(a); }
DEVICE void to_scalar(f64 a, f64& x) { x = a; }
DEVICE void to_scalar(c64 a, c32& x) { x = {f32(a.re), f32(a.im)}; }
DEVICE void to_scalar(c64 a, c64& x) { x = a; }
DEVICE f64 inverse(f64 a) { return 1 / a; }
DEVICE c64 inverse(c64 a) {
    const f64 square = a.re * a.re + a.im * a.im;
    return {a.re / square, -a.im / square};
}
DEVICE f64 one_of(f64) { return 1; }
DEVICE c64 one_of(c64) { return {1, 0}; }

// The size by which pivots are compared: |re| + |im|.
DEVICE f64 size_of(f64 a) { return fabs(a); }
DEVICE f64 size_of(c64 a) { return fabs(a.re) + fabs(a.im); }
DEVICE bool is_finite(f64 a) { return a - a == 0; }
DEVICE bool is_finite(c64 a) { return is_finite(a.re) && is_finite(a.im); }

DEVICE f64 power(i32 exponent) { return __longlong_as_double(i64(exponent + 1023) << 52); }
DEVICE i32 exponent_of(f64 size) { return i32(__double_as_longlong(size) >> 52) - 1023; }
DEVICE bool in_range(i32 exponent) { return exponent >= -POWERS && exponent <= POWERS; }
DEVICE i32 into_range(i32 exponent) { return max(-POWERS, min(POWERS, exponent)); }

// What x has to fulfil.
struct Goal {
    f64 relative, absolute;
};

// The arguments of a kernel (src/backend/cuda/batch.rs has the same). Systems are dense (no offsets), or compressed
// rows of one pattern (no starts) or of patterns of their own. Right-hand sides have `vectors` numbers per row.
struct Systems {
    u64 count, entries_each;
    const u64 *starts, *offsets;
    const u32* columns;
    const SCALAR *values, *b;
    SCALAR* x;
    u32* steps;
    f64* residuals;
    u32* worst;
    Goal goal;
    u32 row_wise, size, vectors;
    // Whether only those systems are solved that are uncertain so far.
    u32 uncertain_only;

    DEVICE u64 first_row(u64 system) const { return starts ? starts[system] : system * size; }
    DEVICE u32 rows(u64 system) const { return starts ? u32(starts[system + 1] - starts[system]) : size; }
    DEVICE bool is_asked(u64 system) const { return !uncertain_only || steps[system] == ~0u; }
    // Calls f(column, entry) for every `stride`-th entry of a row, beginning with number `first`.
    template <typename F> DEVICE void entries(u64 system, u32 n, u32 row, u32 first, u32 stride, F f) const {
        if (!offsets) {
            const SCALAR* own = values + system * entries_each + u64(row) * n;
            for (u32 j = first; j < n; j += stride) f(j, to_double(own[j]));
        } else {
            const u64 at = starts ? starts[system] + row : row;
            const SCALAR* own = values + (starts ? 0 : system * entries_each);
            for (u64 k = offsets[at] + first; k < offsets[at + 1]; k += stride) f(columns[k], to_double(own[k]));
        }
    }
    DEVICE u32 terms(u64 system, u32 n, u32 row) const {
        if (!offsets) return n;
        const u64 at = starts ? starts[system] + row : row;
        return u32(offsets[at + 1] - offsets[at]);
    }
};

// A sum and its accumulated rounding errors (Ogita, Rump, Oishi, SIAM J. Sci. Comput. 26, 2005, algorithm 5.3).
struct Compensated {
    f64 sum, error;
    DEVICE void add(f64 term, f64 term_error) {
        const f64 next = __dadd_rn(sum, term), moved = __dsub_rn(next, sum);
        const f64 lost = __dadd_rn(__dsub_rn(sum, __dsub_rn(next, moved)), __dsub_rn(term, moved));
        error = __dadd_rn(error, __dadd_rn(term_error, lost));
        sum = next;
    }
    DEVICE void add_product(f64 a, f64 b) {
        const f64 product = __dmul_rn(a, b);
        add(product, __fma_rn(a, b, -product));
    }
    DEVICE f64 value() const { return __dadd_rn(sum, error); }
};
template <typename D> struct CompensatedOf {
    Compensated re = {0, 0};
    DEVICE void start(f64 b) { re = {b, 0}; }
    DEVICE void subtract(f64 a, f64 y) { re.add_product(-a, y); }
    DEVICE f64 value() const { return re.value(); }
    // Adds the sum of another lane, so that both lanes have the same.
    DEVICE void merge(u32 with) {
        const f64 sum = shuffle_xor(re.sum, with), error = shuffle_xor(re.error, with);
        const bool low = (lane_id() & with) == 0;
        Compensated first = low ? re : Compensated{sum, error};
        first.add(low ? sum : re.sum, low ? error : re.error);
        re = first;
    }
};
template <> struct CompensatedOf<c64> {
    CompensatedOf<f64> re, im;
    DEVICE void start(c64 b) { re.start(b.re), im.start(b.im); }
    DEVICE void subtract(c64 a, c64 y) {
        re.subtract(a.re, y.re), re.subtract(-a.im, y.im);
        im.subtract(a.re, y.im), im.subtract(a.im, y.re);
    }
    DEVICE c64 value() const { return {re.value(), im.value()}; }
    DEVICE void merge(u32 with) { re.merge(with), im.merge(with); }
};

// Units of one right-hand side: the exponent of s, and that of its largest entry as the caller has it.
struct Units {
    i32 shift, largest;
};

// Sums of squares for the norms of the verdict: of the residual, of its error and of the right-hand side, first
// plainly, then with each row divided by its norm.
struct Squares {
    f64 of[6];
    bool sound;
};
template <typename D>
DEVICE void row_squares(Squares& sums, D residual, D right, f64 norm, i32 exponent, u32 terms, f64 y_norm,
                        const Units& units, bool accurate) {
    const f64 epsilon = 2.220446049250313e-16, vanished = 1e-140;
    const f64 unit = (terms + BESIDE) * (is_complex<D>::value ? 4 : 1) * epsilon;
    const f64 r = sqrt(abs2(residual)), b = sqrt(abs2(right)), sizes = norm * y_norm + b;
    const f64 error = vanished + (accurate ? epsilon * r + unit * unit * sizes : unit * sizes);
    const i32 back = -exponent - units.shift - units.largest;
    sums.sound = sums.sound && back <= POWERS;
    const f64 weights[2] = {power(into_range(back)), 1 / norm};
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const f64 values[3] = {weights[k] * r, weights[k] * error, weights[k] * b};
#pragma unroll
        for (int i = 0; i < 3; i++) sums.of[3 * k + i] += values[i] * values[i];
    }
}

struct Judged {
    bool met;
    f64 relative, excess;
};
DEVICE bool is_met(const f64* squares, f64 threshold) {
    const f64 norm = sqrt(squares[0]);
    return norm + sqrt(squares[1]) + (NORM_UNITS + 1.0) * 2.220446049250313e-16 * (norm + threshold) <= threshold;
}
DEVICE Judged judged(const Squares& sums, const Units& units, const Systems& systems) {
    const Goal& goal = systems.goal;
    const f64 size = sqrt(sums.of[2]), r = sqrt(sums.of[0]);
    const f64 threshold = max(goal.relative * size, goal.absolute * power(into_range(-units.largest)));
    const f64 of_rows = threshold / size * sqrt(sums.of[5]);
    Judged told;
    told.relative = r / size;
    told.excess = r / threshold;
    const f64 excess_of_rows = sqrt(sums.of[3]) / of_rows;
    if (systems.row_wise && !(excess_of_rows <= told.excess)) told.excess = excess_of_rows;
    told.met = sums.sound && size > 0 && is_met(sums.of, threshold);
    told.met = told.met && (!systems.row_wise || is_met(sums.of + 3, of_rows));
    return told;
}

// x is y rounded to the caller's type, and y becomes the same number; false if that overflows.
template <typename D> DEVICE bool rounded(D& y, const Units& units, SCALAR& x) {
    to_scalar(power(-units.shift) * y, x);
    y = power(units.shift) * to_double(x);
    return is_finite(to_double(x)) && size_of(y) < 1e140;
}
