// Operations on a CSR matrix that Krylov solvers need besides products: the reciprocal diagonal, b - A x in twice the
// precision, and the distance between A and its transpose.
//
// residual: LANES threads per row as in csr_vector.cu. Each sum is a pair high + low of reals, exact to twice the
// digits: products are split by fused multiply-add, sums by Knuth's two-sum, and the result is rounded once at the end.
// Source: Ogita, Rump and Oishi 2005 (dot product in twice the precision).
//
// Constants: SCALAR (vectors), STORED (values), OFFSET (offsets), LANES (a power of two), THREADS.
#include "columns.cuh"
#include "complex.cuh"

typedef SCALAR T;
typedef STORED V;
typedef OFFSET I;
typedef real_of<T>::type R;

template <typename A> DEVICE R real_part(A a) {
    if constexpr (is_complex<A>::value) return a.re;
    else return a;
}
template <typename A> DEVICE R imaginary_part(A a) {
    if constexpr (is_complex<A>::value) return a.im;
    else return 0;
}
DEVICE bool finite(R a) { return a - a == 0; }

// ---- pairs of reals: never contracted, so that the algebra gives the rounding errors --------------------------------

DEVICE f64 times(f64 a, f64 b) { return __dmul_rn(a, b); }
DEVICE f32 times(f32 a, f32 b) { return __fmul_rn(a, b); }
DEVICE f64 plus(f64 a, f64 b) { return __dadd_rn(a, b); }
DEVICE f32 plus(f32 a, f32 b) { return __fadd_rn(a, b); }

struct alignas(2 * sizeof(R)) Pair {
    R high, low;
};
DEVICE Pair two_sum(R a, R b) {
    R s = plus(a, b), t = plus(s, -a);
    return {s, plus(plus(a, -plus(s, -t)), plus(b, -t))};
}
DEVICE Pair operator+(Pair a, Pair b) {
    Pair s = two_sum(a.high, b.high);
    R low = plus(s.low, plus(a.low, b.low));
    return two_sum(s.high, low);
}
DEVICE Pair product(R a, R b) {
    R p = times(a, b);
    return {p, fused(a, b, -p)};
}
DEVICE Pair product(R a, Pair b) {
    Pair p = product(a, b.high);
    return {p.high, fused(a, b.low, p.low)};
}
// An infinity or a NaN makes the low part NaN; then the high part alone is the result.
DEVICE R rounded(Pair a) { return finite(a.low) ? plus(a.high, a.low) : a.high; }

template <typename A> DEVICE A scaled(A scale, Pair re, Pair im) {
    if constexpr (is_complex<A>::value)
        return {rounded(product(scale.re, re) + product(-scale.im, im)), rounded(product(scale.re, im) + product(scale.im, re))};
    else return rounded(product(scale, re));
}

extern "C" __global__ void __launch_bounds__(THREADS)
    residual(u64 rows, const I* offsets, const u32* columns, const V* values, T scale, const T* b, const T* x, T* r) {
    const u32 rows_a_block = THREADS / LANES;
    const u32 lane = threadIdx.x % LANES;
    for (u64 base = u64(blockIdx.x) * rows_a_block; base < rows; base += u64(gridDim.x) * rows_a_block) {
        const u64 row = base + threadIdx.x / LANES;
        Pair re = {0, 0}, im = {0, 0};
        if (row < rows)
            for (u64 k = offsets[row] + lane, end = offsets[row + 1]; k < end; k += LANES) {
                const T a = widen<T>::from(values[k]), c = x[columns[k]];
                re = re + product(-real_part(a), real_part(c));
                if constexpr (is_complex<T>::value) {
                    re = re + product(imaginary_part(a), imaginary_part(c));
                    im = im + product(-real_part(a), imaginary_part(c));
                    im = im + product(-imaginary_part(a), real_part(c));
                }
            }
#pragma unroll
        for (u32 with = LANES / 2; with; with /= 2) {
            re = re + shuffle_xor(re, with);
            if (is_complex<T>::value) im = im + shuffle_xor(im, with);
        }
        if (row < rows && lane == 0) {
            re = Pair{real_part(b[row]), 0} + re;
            im = Pair{imaginary_part(b[row]), 0} + im;
            r[row] = scaled(scale, re, im);
        }
    }
}

// The entry of a row in a column, by bisection; zero if none is stored.
DEVICE T entry(u64 row, u64 column, const I* offsets, const u32* columns, const V* values) {
    const u64 end = offsets[row + 1], at = first_from(columns, u64(offsets[row]), end, column);
    return at < end && columns[at] == column ? widen<T>::from(values[at]) : T();
}
// Returns 1 / entry, or the entry's real part if the reciprocal is not usable (`good` is then false).
DEVICE R inverse_of(T entry, bool& good) {
    const R reciprocal = 1 / real_part(entry);
    good = real_part(entry) > 0 && imaginary_part(entry) == 0 && finite(real_part(entry)) && finite(reciprocal);
    return good ? reciprocal : real_part(entry);
}

#define SMALLEST_NORMAL 0x1p-126f

// inverse[i] = 1 / a_ii and, if rounded is not null, the same in single precision in rounded[i]. found has all bits set
// initially: found[0] becomes the first row without a usable diagonal entry, found[1] the first row whose inverse
// differs from that of row 0, found[2] a row whose inverse is outside the normal range of single precision.
extern "C" __global__ void __launch_bounds__(THREADS)
    inverse_diagonal(u64 rows, const I* offsets, const u32* columns, const V* values, R* inverse, f32* rounded, u32* found) {
    bool good;
    const R first = rows ? inverse_of(entry(0, 0, offsets, columns, values), good) : R(0);
    bool differs = false, beyond = false;
    for (u64 row = u64(blockIdx.x) * THREADS + threadIdx.x; row < rows; row += u64(gridDim.x) * THREADS) {
        const R value = inverse_of(entry(row, row, offsets, columns, values), good);
        inverse[row] = value;
        if (rounded) {
            const f32 near = f32(value);
            rounded[row] = near;
            if (!beyond && !(near >= SMALLEST_NORMAL && near - near == 0)) {
                atomicMin(found + 2, u32(row));
                beyond = true;
            }
        }
        if (!good) atomicMin(found, u32(row));
        if (!differs && value != first) {
            atomicMin(found + 1, u32(row));
            differs = true;
        }
    }
}

DEVICE f32 magnitude(f32 a) { return fabsf(a); }
DEVICE f64 magnitude(f64 a) { return fabs(a); }
DEVICE f32 magnitude(c32 a) { return hypotf(a.re, a.im); }
DEVICE f64 magnitude(c64 a) { return hypot(a.re, a.im); }
// Nonnegative numbers are ordered as their bits are. The stored value is read before the atomic operation, because
// warps of a matrix with few distinct values would wait for each other at one address.
template <typename U> DEVICE void raise_bits(U* to, U value) {
    if (value > *static_cast<volatile U*>(to)) atomicMax(to, value);
}
DEVICE void raise(f32* to, f32 value) { raise_bits(reinterpret_cast<u32*>(to), bits<u32>(value)); }
DEVICE void raise(f64* to, f64 value) { raise_bits(reinterpret_cast<unsigned long long*>(to), bits<unsigned long long>(value)); }

// found, initially zero: the largest |a_ij|, |a_ij - a_ji| and |a_ij - conj a_ji| of a square matrix, where entries
// that are not stored are zero, and NaN is ignored. LANES threads per row.
//
// An entry and its mirror image are compared once, from above the diagonal. `unmatched`, initially zero, becomes the
// number of entries below it minus those that were found as mirror images of one entry each.
template <bool BELOW>
DEVICE void compare_mirrored(u64 rows, const I* offsets, const u32* columns, const V* values, R* found, u64* unmatched) {
    const u32 lane = threadIdx.x % LANES;
    R most[3] = {0, 0, 0};
    u64 left = 0;
    for (u64 row = (u64(blockIdx.x) * THREADS + threadIdx.x) / LANES; row < rows; row += u64(gridDim.x) * THREADS / LANES)
        for (u64 k = offsets[row] + lane, end = offsets[row + 1]; k < end; k += LANES) {
            const u64 column = columns[k];
            const T here = widen<T>::from(values[k]);
            const R size = magnitude(here);
            if (size > most[0]) most[0] = size;
            const bool below = column < row;
            if (below != BELOW) {
                left += below;
                continue;
            }
            T mirror = T();
            const u64 last = offsets[column + 1], at = first_from(columns, u64(offsets[column]), last, row);
            if (at < last && columns[at] == row) {
                mirror = widen<T>::from(values[at]);
                left -= column > row;
            }
            const R seen[2] = {magnitude(here - mirror), magnitude(here - conj(mirror))};
#pragma unroll
            for (int i = 0; i < 2; i++)
                if (seen[i] > most[i + 1]) most[i + 1] = seen[i];
        }
#pragma unroll
    for (int i = 0; i < 3; i++) {
#pragma unroll
        for (u32 with = 16; with; with /= 2) {
            const R other = shuffle_xor(most[i], with);
            most[i] = other > most[i] ? other : most[i];
        }
        if (lane_id() == 0 && most[i] > 0) raise(found + i, most[i]);
    }
    if (!BELOW) {
        left = warp_sum(left);
        if (lane_id() == 0 && left) atomicAdd(unmatched, left);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    symmetry(u64 rows, const I* offsets, const u32* columns, const V* values, R* found, u64* unmatched) {
    compare_mirrored<false>(rows, offsets, columns, values, found, unmatched);
}

// Entries below the diagonal, if some of them were not found from above.
extern "C" __global__ void __launch_bounds__(THREADS)
    symmetry_below(u64 rows, const I* offsets, const u32* columns, const V* values, R* found, u64* unmatched) {
    if (*unmatched) compare_mirrored<true>(rows, offsets, columns, values, found, unmatched);
}
