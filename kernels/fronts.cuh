// Fronts of a sparse factorisation (FrontPlan in src/backend/fronts.rs), with blocks of pivots that are inverted:
//
//     | D  E |    D^-1, V = F D^-1: what the factor keeps beside E
//     | F  C |    C - V E: the contribution, which is added to the front of the parent
//
// D is a block of at most PIVOTS columns, and its pivots are chosen within it. So rows keep their places, and a solve
// multiplies and never substitutes. Columns lie one after another: those of D and F have `height` rows; E, behind
// them, has `width`; C has the others.
//
// Everything is added in an order that the pattern gives, so the bits are the same each time.
#pragma once
#include "scalars.cuh"

// As the schedule writes it (src/backend/cuda/fronts/schedule.rs).
struct alignas(16) Front {
    u64 panel, upper;    // where its part of the factors begins, and where E does
    u64 contribution;    // where C begins, among those of its level
    u64 rows;            // where its rows below the own begin, and their places in the parent's front
    u32 width, height;   // own columns, all rows
    u32 begin;           // the first own column in the order of elimination
    u32 children, children_end; // in the list of children
    u32 steps;           // where its list of blocks begins: each one's first column, and the width
    u32 step_count, unused;
};

// The last of `count` ascending starts that is not above `at`; the first is 0. All lanes of a warp ask for the same.
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

// How many of `count` ascending values are below a limit. All lanes of a warp ask for the same.
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

// What a block of threads needs to invert a matrix of N columns.
template <typename T, u32 N> struct Inversion {
    T row[N], column[N];
    u8 pivots[N];
};

// What is a pivot: a diagonal entry with this part of the largest magnitude in its column, and nothing below `least`.
template <typename R> struct Pivots { R preference, least; };

// Inverts the n x n matrix `a` in shared memory, n <= N <= 64, by Gauss and Jordan with pivots from columns. Rows stay
// where they are: a^-1(k, pivots[c]) becomes a(pivots[k], c). Threads lie in a grid, DOWN of them along a column. A
// pivot that is too small is replaced; gives how many were. All threads call it, behind a barrier.
template <u32 DOWN, u32 ALL_THREADS, typename T, u32 N>
DEVICE u32 invert(T* a, u32 stride, u32 n, Pivots<typename real_of<T>::type> rule, Inversion<T, N>& s) {
    typedef typename real_of<T>::type R;
    const u32 x = threadIdx.x % DOWN, y = threadIdx.x / DOWN, lane = lane_id();
    u64 used = 0;
    u32 made_up = 0;
    for (u32 k = 0; k < n; k++) {
        // Each warp looks for itself. What is no number is no pivot as long as there is another one.
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
