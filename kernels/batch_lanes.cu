// Systems of up to LANES unknowns, 4 to 32: LANES lanes a system, one for each row, which lies in registers.
//
//     | 1 0 7 0 |   lane 0    column 0: the largest of all lanes is 2, of lane 3: its row is the first pivot row. The
//     | 0 0 8 0 |   lane 1    other lanes get it by shuffles and subtract their multiple of it. No row moves: each lane
//     | 0 4 3 0 |   lane 2    keeps the step at which its row was the pivot row.
//     | 2 0 0 1 |   lane 3
//
// Gaussian elimination with partial pivoting (Golub and Van Loan, Matrix Computations, 4th ed., 3.4). Pivots are
// compared by the upper 26 bits of their size: what is within 2^-14 of the largest may win. Rows of the identity fill
// up smaller systems. A warp has 32 / LANES systems, which do the same steps; one that has ended keeps its x. Bytes: A
// twice (the second time mostly from the second-level cache, for the residual), b and x once.
//
// Constants: SCALAR, LANES, THREADS, BLOCKS (of a multiprocessor), and those of batch.cuh.
#include "batch.cuh"

typedef SCALAR S;
typedef double_of<S>::type D;

template <typename T> DEVICE T from_lane(T v, u32 lane) { return shuffle(v, (lane_id() & ~(LANES - 1)) | lane); }
template <typename T> DEVICE T group_sum(T v) {
#pragma unroll
    for (u32 with = LANES / 2; with; with /= 2) v = v + shuffle_xor(v, with);
    return v;
}
DEVICE f64 group_max(f64 v) {
#pragma unroll
    for (u32 with = LANES / 2; with; with /= 2) v = fmax(v, shuffle_xor(v, with));
    return v;
}
DEVICE bool group_all(bool yes) {
    const u32 own = (LANES == 32 ? ALL : (1u << LANES % 32) - 1) << (lane_id() & ~(LANES - 1));
    return (__ballot_sync(ALL, yes) & own) == own;
}
DEVICE u32 group_most(u32 v) {
    if constexpr (LANES == 32) {
        return most_of_lanes(v);
    } else {
#pragma unroll
        for (u32 with = LANES / 2; with; with /= 2) v = max(v, __shfl_xor_sync(ALL, v, with));
        return v;
    }
}

// The lane's row of the factors: L at steps before its own, U from there on.
struct Row {
    D a[LANES];
    D inverse;
    u32 step, pivot_of;

    DEVICE bool eliminate(u32 lane) {
        step = LANES;
        bool sound = true;
#pragma unroll
        for (u32 k = 0; k < LANES; k++) {
            const u32 bits = u32(u64(__double_as_longlong(size_of(a[k]))) >> 32);
            const u32 best = group_most(step == LANES ? (bits & ~63u) | 32 | (31 - lane) : 0);
            const u32 p = 31 - (best & 31);
            sound = sound && best >= 64;
            const D own = one_over(from_lane(a[k], p));
            if (lane == k) pivot_of = p;
            if (lane == p) {
                step = k;
                inverse = own;
            }
            const bool open = step == LANES;
            const D factor = open ? a[k] * own : D();
#pragma unroll
            for (u32 j = k + 1; j < LANES; j++) a[j] = fused(-factor, from_lane(a[j], p), a[j]);
            if (open) a[k] = factor;
        }
        return sound;
    }
    static DEVICE D one_over(D a) { return ::inverse(a); }

    DEVICE D solve(D right, u32 lane) const {
        D solution = D();
#pragma unroll
        for (u32 k = 0; k < LANES; k++) {
            const D y = from_lane(right, from_lane(pivot_of, k));
            if (step > k) right = fused(-a[k], y, right);
        }
#pragma unroll
        for (u32 k = LANES; k-- > 0;) {
            const D x = from_lane(right * inverse, from_lane(pivot_of, k));
            if (step < k) right = fused(-a[k], x, right);
            if (lane == k) solution = x;
        }
        return solution;
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    solve_lanes(const __grid_constant__ Systems systems) {
    __shared__ D shared[THREADS];
    const u32 lane = threadIdx.x % LANES, vectors = systems.vectors;
    D* const all_y = shared + threadIdx.x / LANES * LANES;
    const u64 own = (u64(blockIdx.x) * THREADS + threadIdx.x) / LANES;
    const bool there = own < systems.count && systems.is_asked(own);
    if (!__any_sync(ALL, there)) return;
    const u64 system = own < systems.count ? own : systems.count - 1;
    const u32 n = systems.rows(system);
    const u64 first_row = systems.first_row(system);
    const bool used = lane < n;

    Row row;
#pragma unroll
    for (u32 j = 0; j < LANES; j++) row.a[j] = j == lane && !used ? one_of(D()) : D();
    f64 largest = 0;
    bool sound = true;
    if (used) {
        if (!systems.offsets) {
            const S* own_values = systems.values + system * systems.entries_each + u64(lane) * n;
#pragma unroll
            for (u32 j = 0; j < LANES; j++)
                if (j < n) row.a[j] = to_double(own_values[j]);
        } else {
            systems.entries(system, n, lane, 0, 1, [&](u32 column, D entry) {
#pragma unroll
                for (u32 j = 0; j < LANES; j++)
                    if (j == column) row.a[j] = entry;
            });
        }
    }
#pragma unroll
    for (u32 j = 0; j < LANES; j++) {
        largest = fmax(largest, size_of(row.a[j]));
        sound = sound && is_finite(row.a[j]);
    }
    const i32 found = exponent_of(largest);
    sound = sound && in_range(found);
    const i32 exponent = sound ? -found : 0;
    const f64 scale = power(exponent);
    f64 norm = 0;
#pragma unroll
    for (u32 j = 0; j < LANES; j++) {
        row.a[j] = scale * row.a[j];
        norm += abs2(row.a[j]);
    }
    norm = sqrt(norm);
    sound = row.eliminate(lane) && sound;
    bool good = group_all(sound);
    u32 most_steps = 0;
    f64 worst = 0;
    const u32 terms = used ? systems.terms(system, n, lane) : 0;

    for (u32 vector = 0; vector < vectors; vector++) {
        const u64 place = (first_row + lane) * vectors + vector;
        const D given = used ? to_double(systems.b[place]) : D();
        D right = scale * given;
        const f64 most = group_max(size_of(given)), most_scaled = group_max(size_of(right));
        bool fine = is_finite(given) && is_finite(right);
        const bool zero = most == 0;
        const i32 raised = exponent_of(most_scaled), size_of_b = exponent_of(most);
        fine = fine && (zero || (in_range(raised) && in_range(size_of_b)));
        const Units units = {fine && !zero ? -raised : 0, fine && !zero ? size_of_b : 0};
        right = power(units.shift) * right;
        // NaN is lost in maxima, so all lanes are asked.
        // Every lane of the warp takes part in the vote.
        const bool all_fine = group_all(fine);
        good = good && all_fine;
        bool open = good && !zero;
        D y = row.solve(right, lane);
        f64 last = __longlong_as_double(0x7ff0000000000000), told = 0;
        S solution = S();
        u32 used_steps = 0;
        bool met = zero;
        for (u32 step = 0; step <= REFINEMENTS && __any_sync(ALL, open); step++) {
            S candidate;
            const bool regular = rounded(y, units, candidate) || !used;
            open = group_all(regular) && open;
            const f64 y_norm = sqrt(group_sum(used ? abs2(y) : 0.0));
            __syncwarp();
            all_y[lane] = y;
            __syncwarp();
            D r = D();
            Judged judged_now;
            bool decided = !open;
#pragma unroll 1
            for (int accurate = 0; accurate < 2 && __any_sync(ALL, !decided); accurate++) {
                D mine = right;
                if (used && accurate) {
                    CompensatedOf<D> sum;
                    sum.start(right);
                    systems.entries(system, n, lane, 0, 1, [&](u32 j, D a) { sum.subtract(scale * a, all_y[j]); });
                    mine = sum.value();
                } else if (used) {
                    systems.entries(system, n, lane, 0, 1,
                                    [&](u32 j, D a) { mine = fused(-(scale * a), all_y[j], mine); });
                }
                Squares sums = {};
                sums.sound = true;
                if (used) row_squares(sums, mine, right, norm, exponent, terms, y_norm, units, accurate);
                sums.sound = group_all(sums.sound);
#pragma unroll
                for (f64& sum : sums.of) sum = group_sum(sum);
                const Judged now = judged(sums, units, systems);
                if (!decided) {
                    r = mine;
                    judged_now = now;
                    decided = now.met;
                }
            }
            if (open && judged_now.met) {
                met = true;
                open = false;
                solution = candidate;
                told = judged_now.relative;
                used_steps = step;
            }
            // A step that does not halve what is missing leads nowhere.
            open = open && judged_now.excess < 0.5 * last;
            if (open) last = judged_now.excess;
            if (__any_sync(ALL, open)) {
                const D correction = row.solve(used ? r : D(), lane);
                if (open) y = y + correction;
            }
        }
        good = good && met;
        most_steps = max(most_steps, used_steps);
        worst = fmax(worst, told);
        if (there && used && met) systems.x[place] = solution;
    }
    if (there && lane == 0) systems.tell(system, good, most_steps, worst);
}
