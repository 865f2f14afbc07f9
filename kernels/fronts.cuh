// Fronts of a sparse factorisation (FrontPlan in src/backend/fronts.rs), with blocks of pivots that are inverted:
//
//     | D  E |    D^-1, V = F D^-1: stored in the factor, with E
//     | F  C |    C - V E: the contribution, which is added to the front of the parent
//
// D is a block of at most PIVOTS columns, and its pivots are chosen within it. Therefore rows keep their places, and a
// solve needs products alone, no substitution. Columns are stored one after another: those of D and F have `height`
// rows, those of E, which follow them, have `width`; C has the remaining rows and columns.
//
// All sums are computed in an order given by the pattern, so the bits are the same each time.
#pragma once
#include "scalars.cuh"

// Written by the schedule (src/backend/cuda/fronts/schedule.rs).
struct alignas(16) Front {
    u64 panel, upper;    // start of its part of the factors, and of E
    u64 contribution;    // start of C, among those of its level
    u64 rows;            // start of its rows below its own columns, and of their places in the parent's front
    u32 width, height;   // own columns, all rows
    u32 begin;           // the first own column in the order of elimination
    u32 children, children_end; // in the list of children
    u32 steps;           // start of its list of blocks: the first column of each, and at the end the width
    u32 step_count, unused;
};

// Returns the index of the last of `count` ascending starts that is not above `at`; the first start is 0. All lanes of
// a warp call this with the same arguments.
DEVICE u32 find_start(const u32* starts, u32 count, u32 at) {
    u32 low = 0;
    for (u32 size = count; size > 1;) {
        const u32 step = (size + 31) / 32, place = lane_id() * step;
        const bool fits = place < size && starts[low + place] <= at;
        const u32 skipped = (__popc(__ballot_sync(ALL, fits)) - 1) * step;
        low += skipped;
        size = min(step, size - skipped);
    }
    return low;
}

// Returns the number of values below a limit, of `count` ascending ones. All lanes of a warp call this with the same
// arguments.
DEVICE u32 count_below(const u32* values, u32 count, u32 limit) {
    u32 low = 0;
    for (u32 size = count; size > 0;) {
        const u32 step = (size + 31) / 32, begin = lane_id() * step;
        const bool below = begin < size && values[low + min(begin + step, size) - 1] < limit;
        const u32 skipped = min(u32(__popc(__ballot_sync(ALL, below))) * step, size);
        low += skipped;
        // The last value of the part where the limit lies is not below it.
        size = skipped < size ? min(step, size - skipped) - 1 : 0;
    }
    return low;
}

// Shared memory that a block of threads needs to invert a matrix of N columns.
template <typename T, u32 N> struct Inversion {
    T row[N], column[N];
    u8 pivots[N];
};

// The rule for pivots: the diagonal entry is taken if it has at least `preference` times the largest magnitude in its
// column; a pivot below `least` is replaced by it.
template <typename R> struct Pivots { R preference, least; };

// Inverts the n x n matrix `a` in shared memory, n <= N <= 64, by Gauss and Jordan with pivots from columns. Rows stay
// where they are: a^-1(k, pivots[c]) becomes a(pivots[k], c). Threads form a grid, with DOWN of them along a column.
// Pivots that are too small are replaced; returns their number. All threads call this after a barrier.
template <u32 DOWN, u32 ALL_THREADS, typename T, u32 N>
DEVICE u32 invert(T* a, u32 stride, u32 n, Pivots<typename real_of<T>::type> rule, Inversion<T, N>& s) {
    typedef typename real_of<T>::type R;
    const u32 x = threadIdx.x % DOWN, y = threadIdx.x / DOWN, lane = lane_id();
    u64 used = 0;
    u32 made_up = 0;
    for (u32 k = 0; k < n; k++) {
        // Each warp searches on its own. A NaN becomes the pivot only if nothing else is left.
        R most = -1;
        u32 at = n;
        for (u32 i = lane; i < n; i += 32)
            if (!(used >> i & 1)) {
                const R size = abs2(a[i + k * stride]);
                if (size > most) most = size, at = i;
            }
#pragma unroll
        for (u32 with = 16; with; with /= 2) {
            const R other = shuffle_xor(most, with);
            const u32 place = __shfl_xor_sync(ALL, at, with);
            if (other > most || (other == most && place < at)) most = other, at = place;
        }
        if (at == n) at = u32(__ffsll(i64(~used))) - 1;
        if (!(used >> k & 1) && abs2(a[k + k * stride]) >= rule.preference * rule.preference * most) at = k;
        used |= u64(1) << at;
        T pivot = a[at + k * stride];
        if (abs2(pivot) < rule.least * rule.least) {
            pivot = from_real<T>(rule.least);
            made_up++;
        }
        const T inverse = divide(from_real<T>(1), pivot);
        for (u32 i = threadIdx.x; i < n; i += ALL_THREADS) {
            s.row[i] = i == k ? inverse : a[at + i * stride] * inverse;
            s.column[i] = a[i + k * stride];
            if (i == k) s.pivots[k] = u8(at);
        }
        __syncthreads();
        for (u32 j = y; j < n; j += ALL_THREADS / DOWN) {
            const T factor = s.row[j];
            for (u32 i = x; i < n; i += DOWN) {
                T& entry = a[i + j * stride];
                if (i == at) entry = factor;
                else entry = (j == k ? T() : entry) - s.column[i] * factor;
            }
        }
        __syncthreads();
    }
    return made_up;
}

// The rule of pivots for a matrix whose largest entry has this squared magnitude.
template <typename R> DEVICE Pivots<R> rule_of(R preference, R least, const u64* largest) {
    return {preference, R(f64(least) * sqrt(bits<f64>(*largest)))};
}
