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

// Brings entries of the factors to the second-level cache. Kernels of solves do so while the previous launch ends: it
// writes vectors alone, and neither factors nor the structure.
template <typename T> DEVICE void prefetch(const T* entries) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(entries));
}

// Prefetches consecutive entries, by all threads of a block. Lines have 128 bytes.
template <typename T> DEVICE void prefetch(const T* entries, u64 count) {
    constexpr u32 LINE = 128 / sizeof(T);
    for (u64 k = u64(threadIdx.x) * LINE; k < count; k += u64(blockDim.x) * LINE) prefetch(entries + k);
}

// The number of columns that one warp eliminates before the other columns follow.
constexpr u32 PANEL = 8;

// Shared memory that a block of threads needs to invert a matrix of N columns: the rows with a panel's pivots before
// its elimination, by columns, and the row of each column's pivot.
template <typename T, u32 N> struct Inversion {
    T rows[N][PANEL];
    u8 pivots[N];
};

// The rule for pivots: the diagonal entry is taken if it has at least `preference` times the largest magnitude in its
// column; a pivot below `least` is replaced by it.
template <typename R> struct Pivots { R preference, least; };

// Returns a number that orders squared magnitudes, up to one part in 2^14, and prefers the lower of two places below 64
// if they are equal. It is 0 for NaN.
DEVICE u32 rank_of(f64 square, u32 place) {
    return square == square ? (u32(bits<u64>(square) >> 32) & ~63u) | (63 - place) : 0;
}

// Eliminates `count` columns from `first` on, in all rows of these columns, by one warp, whose lanes have a row in 32.
// Rows with a bit in `used` had pivots before. Returns the number of pivots that were replaced.
template <typename T, u32 N>
DEVICE u32 eliminate_panel(T* a, u32 stride, u32 n, u32 first, u32 count, Pivots<typename real_of<T>::type> rule,
                           u64& used, Inversion<T, N>& s) {
    constexpr u32 EACH = (N + 31) / 32;
    static_assert(EACH <= 2, "a lane has at most two rows");
    const u32 lane = lane_id();
    u32 made_up = 0;
    T v[EACH][PANEL];
#pragma unroll
    for (u32 c = 0; c < PANEL; c++)
#pragma unroll
        for (u32 q = 0; q < EACH; q++) {
            const u32 i = lane + 32 * q;
            v[q][c] = i < n && c < count ? a[i + (first + c) * stride] : T();
        }
    auto entry = [&](u32 row, u32 c) { return shuffle(row < 32 ? v[0][c] : v[EACH - 1][c], row % 32); };
#pragma unroll
    for (u32 c = 0; c < PANEL; c++) {
        if (c >= count) break;
        const u32 k = first + c;
        u32 most = 0;
#pragma unroll
        for (u32 q = 0; q < EACH; q++) {
            const u32 i = lane + 32 * q;
            if (i < n && !(used >> i & 1)) most = max(most, rank_of(f64(abs2(v[q][c])), i));
        }
        most = most_of_lanes(most);
        // A NaN becomes the pivot only if nothing else is left.
        u32 at = most ? 63 - (most & 63) : u32(__ffsll(i64(~used))) - 1;
        const T largest = entry(at, c), diagonal = entry(k, c);
        T pivot = largest;
        if (!(used >> k & 1) && abs2(diagonal) >= rule.preference * rule.preference * abs2(largest)) {
            at = k;
            pivot = diagonal;
        }
        used |= u64(1) << at;
        if (abs2(pivot) < rule.least * rule.least) {
            pivot = from_real<T>(rule.least);
            made_up++;
        }
        if (lane == 0) s.pivots[k] = u8(at);
        const T inverse = divide(from_real<T>(1), pivot);
        T row[PANEL];
#pragma unroll
        for (u32 d = 0; d < PANEL; d++) row[d] = d == c ? inverse : entry(at, d) * inverse;
#pragma unroll
        for (u32 q = 0; q < EACH; q++) {
            const T factor = v[q][c];
            v[q][c] = T();
#pragma unroll
            for (u32 d = 0; d < PANEL; d++) v[q][d] = lane + 32 * q == at ? row[d] : v[q][d] - factor * row[d];
        }
    }
#pragma unroll
    for (u32 c = 0; c < PANEL; c++)
#pragma unroll
        for (u32 q = 0; q < EACH; q++) {
            const u32 i = lane + 32 * q;
            if (i < n && c < count) a[i + (first + c) * stride] = v[q][c];
        }
    return made_up;
}

// Inverts the n x n matrix `a` in shared memory, n <= N <= 64, by Gauss and Jordan with pivots from columns. Rows stay
// where they are: a^-1(k, pivots[c]) becomes a(pivots[k], c). One warp eliminates a panel; then each other column is a
// product with the panel's columns, as the columns of what was applied from the left in these rows:
//
//     a(i, j) = (0 in a row with a pivot of the panel, else a(i, j)) + sum over its pivots p of panel(i, p) a(p, j)
//
// Threads form a grid, with DOWN of them along a column. Pivots that are too small are replaced; their number is
// returned to the first warp. All threads call this after a barrier.
template <u32 DOWN, u32 ALL_THREADS, typename T, u32 N>
DEVICE u32 invert(T* a, u32 stride, u32 n, Pivots<typename real_of<T>::type> rule, Inversion<T, N>& s) {
    constexpr u32 ACROSS = ALL_THREADS / DOWN, LONG = (N + DOWN - 1) / DOWN;
    // The columns that a thread has at the same time, whose sums do not wait for one another.
    constexpr u32 ALL_OWN = (N + ACROSS - 1) / ACROSS, WIDE = ALL_OWN < 4 ? ALL_OWN : 4;
    const u32 x = threadIdx.x % DOWN, y = threadIdx.x / DOWN;
    u64 used = 0;
    u32 made_up = 0;
    for (u32 first = 0; first < n; first += PANEL) {
        const u32 count = min(n - first, PANEL);
        if (threadIdx.x < 32) made_up += eliminate_panel(a, stride, n, first, count, rule, used, s);
        __syncthreads();
        if (n <= PANEL) break;
        for (u32 t = threadIdx.x; t < n * PANEL; t += ALL_THREADS) {
            const u32 c = t % PANEL, j = t / PANEL;
            s.rows[j][c] = c < count ? a[s.pivots[first + c] + j * stride] : T();
        }
        T panel[LONG][PANEL];
        u64 pivots = 0;
#pragma unroll
        for (u32 c = 0; c < PANEL; c++) {
            if (c < count) pivots |= u64(1) << s.pivots[first + c];
#pragma unroll
            for (u32 q = 0; q < LONG; q++) {
                const u32 i = x + q * DOWN;
                panel[q][c] = i < n && c < count ? a[i + (first + c) * stride] : T();
            }
        }
        __syncthreads();
        for (u32 from = y; from < n; from += WIDE * ACROSS) {
            T sums[WIDE][LONG];
#pragma unroll
            for (u32 p = 0; p < WIDE; p++)
#pragma unroll
                for (u32 q = 0; q < LONG; q++) {
                    const u32 i = x + q * DOWN, j = from + p * ACROSS;
                    sums[p][q] = i < n && j < n && !(pivots >> i & 1) ? a[i + j * stride] : T();
                }
#pragma unroll
            for (u32 c = 0; c < PANEL; c++)
#pragma unroll
                for (u32 p = 0; p < WIDE; p++) {
                    const T entry = s.rows[min(from + p * ACROSS, N - 1)][c];
#pragma unroll
                    for (u32 q = 0; q < LONG; q++) sums[p][q] = fused(panel[q][c], entry, sums[p][q]);
                }
#pragma unroll
            for (u32 p = 0; p < WIDE; p++)
#pragma unroll
                for (u32 q = 0; q < LONG; q++) {
                    const u32 i = x + q * DOWN, j = from + p * ACROSS;
                    if (i < n && j < n && j - first >= count) a[i + j * stride] = sums[p][q];
                }
        }
        __syncthreads();
    }
    return made_up;
}

// Whether upper parts of fronts are mirror images of lower ones (`Fronts::mirror` in src/backend/cuda/fronts/mod.rs).
// If they are, they agree to the last bit in every front. If some fronts kept an upper and a lower value of an entry,
// others would drop their difference, after it had grown with |V| from front to front.
enum : u32 { GENERAL, SYMMETRIC, HERMITIAN };

template <typename T> DEVICE T mirrored(T value, u32 mirror) { return mirror == HERMITIAN ? conj(value) : value; }

// A diagonal entry that is its own mirror image: in a Hermitian front its real part.
template <typename T> DEVICE T on_diagonal(T value, u32 mirror) {
    return mirror == HERMITIAN ? from_real<T>(real_part(value)) : value;
}

// The rule of pivots for a matrix whose largest entry has this squared magnitude.
template <typename R> DEVICE Pivots<R> rule_of(R preference, R least, const u64* largest) {
    return {preference, R(f64(least) * sqrt(bits<f64>(*largest)))};
}
