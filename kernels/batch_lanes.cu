// Systems of up to ROWS unknowns, 4 to 32: LANES lanes of a warp a system, each with EACH = ROWS / LANES rows, which
// lie in registers.
//
//     | 1 0 7 0 |   lane 0    ROWS = 4, LANES = 2. Column 0: the largest of all entries is 2, in the second row of lane
//     | 0 0 8 0 |   lane 1    1: this is the first pivot row. All lanes get it by shuffles and subtract their multiples
//     | 0 4 3 0 |   lane 0    of it from their rows. No row moves: a lane keeps the step at which each of its rows was
//     | 2 0 0 1 |   lane 1    the pivot row, and all lanes know the row of each step.
//
// Gaussian elimination with partial pivoting (Golub and Van Loan, Matrix Computations, 4th ed., 3.4). Pivots are
// compared by the upper 26 bits of their size, so an entry within 2^-14 of the largest may win. Smaller systems are
// filled up with rows of the identity. The systems of a warp do the same steps; one that has ended keeps its x. A lane
// has several rows because a shuffle then serves all of them, and a warp more systems: steps are a chain of latencies.
//
// A lies in shared memory too: lanes that load it read neighbouring entries, and residuals need it again. Bytes: A, b
// and x once.
//
// Constants: SCALAR, ROWS, LANES, THREADS, BLOCKS (of a multiprocessor), and those of batch.cuh.
#include "batch_refine.cuh"

typedef SCALAR S;
typedef double_of<S>::type D;

#define EACH (ROWS / LANES)
#define GROUPS (32 / LANES)
#define WARPS (THREADS / 32)
// Entries of a row and of a system in shared memory, with gaps that spread the rows of all lanes over its banks.
#define STRIDE (ROWS + 1)
#define TILE (ROWS * STRIDE + LANES)

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

// One of EACH numbers, of which `which` is not known to the compiler: registers have no addresses.
template <typename T> DEVICE T chosen(const T (&of)[EACH], u32 which) {
    T v = of[0];
#pragma unroll
    for (u32 q = 1; q < EACH; q++)
        if (which == q) v = of[q];
    return v;
}

// A lane's rows of the factors: L at steps before a row's own, U from there on.
struct Rows {
    D a[EACH][ROWS];
    D inverses[EACH];
    u32 steps[EACH];
    // The pivot row of each step, a byte each.
    u32 pivots[ROWS / 4];

    DEVICE u32 pivot(u32 step) const { return pivots[step / 4] >> step % 4 * 8 & 255; }

    DEVICE bool eliminate(u32 lane) {
        bool sound = true;
#pragma unroll
        for (u32 q = 0; q < EACH; q++) steps[q] = ROWS;
#pragma unroll
        for (u32 k = 0; k < ROWS / 4; k++) pivots[k] = 0;
#pragma unroll
        for (u32 k = 0; k < ROWS; k++) {
            u32 key = 0;
#pragma unroll
            for (u32 q = 0; q < EACH; q++) {
                const u32 bits = u32(u64(__double_as_longlong(size_of(a[q][k]))) >> 32);
                if (steps[q] == ROWS) key = max(key, (bits & ~63u) | 32 | (31 - (q * LANES + lane)));
            }
            const u32 best = group_most(key), row = 31 - (best & 31);
            const u32 owner = row % LANES, place = row / LANES;
            sound = sound && best >= 64;
            pivots[k / 4] |= row << k % 4 * 8;
            const D by = inverse(from_lane(chosen_of(k, place), owner));
            D factors[EACH];
#pragma unroll
            for (u32 q = 0; q < EACH; q++) {
                if (lane == owner && q == place) {
                    steps[q] = k;
                    inverses[q] = by;
                }
                const bool open = steps[q] == ROWS;
                factors[q] = open ? a[q][k] * by : D();
                if (open) a[q][k] = factors[q];
            }
#pragma unroll
            for (u32 j = k + 1; j < ROWS; j++) {
                const D pivot = from_lane(chosen_of(j, place), owner);
#pragma unroll
                for (u32 q = 0; q < EACH; q++) a[q][j] = fused(-factors[q], pivot, a[q][j]);
            }
        }
        return sound;
    }
    DEVICE D chosen_of(u32 column, u32 which) const {
        D v = a[0][column];
#pragma unroll
        for (u32 q = 1; q < EACH; q++)
            if (which == q) v = a[q][column];
        return v;
    }

    // x = A^-1 `right`, which is used up.
    DEVICE void solve(D (&right)[EACH], D (&x)[EACH], u32 lane) const {
#pragma unroll
        for (u32 k = 0; k < ROWS; k++) {
            const u32 row = pivot(k);
            const D y = from_lane(chosen(right, row / LANES), row % LANES);
#pragma unroll
            for (u32 q = 0; q < EACH; q++)
                if (steps[q] > k) right[q] = fused(-a[q][k], y, right[q]);
        }
#pragma unroll
        for (u32 q = 0; q < EACH; q++) right[q] = right[q] * inverses[q];
#pragma unroll
        for (u32 k = ROWS; k-- > 0;) {
            const u32 row = pivot(k);
            const D own = from_lane(chosen(right, row / LANES), row % LANES);
#pragma unroll
            for (u32 q = 0; q < EACH; q++)
                if (steps[q] < k) right[q] = fused(-a[q][k] * inverses[q], own, right[q]);
            if (lane == k % LANES) x[k / LANES] = own;
        }
    }
};

// One right-hand side of the lane's system, for `refine`.
struct Work {
    const Systems& systems;
    const Rows& rows;
    const S* tile;
    D* shared_y;
    u64 system;
    u32 n, lane;
    const f64 (&norms)[EACH];
    const i32 (&exponents)[EACH];
    Units units;
    D right[EACH], y[EACH], r[EACH];

    DEVICE u32 row(u32 q) const { return q * LANES + lane; }
    DEVICE bool any(bool yes) const { return __any_sync(ALL, yes); }
    DEVICE bool round() {
        bool sound = true;
#pragma unroll
        for (u32 q = 0; q < EACH; q++) {
            S ignored;
            sound = (rounded(y[q], units, ignored) || row(q) >= n) && sound;
        }
        return group_all(sound);
    }
    DEVICE f64 norm_of(const D (&v)[EACH]) const {
        f64 square = 0;
#pragma unroll
        for (u32 q = 0; q < EACH; q++)
            if (row(q) < n) square += abs2(v[q]);
        return sqrt(group_sum(square));
    }
    DEVICE Judged judge(bool accurate) {
        const f64 y_norm = norm_of(y);
        __syncwarp();
#pragma unroll
        for (u32 q = 0; q < EACH; q++) shared_y[row(q)] = y[q];
        __syncwarp();
        Squares sums = {};
        sums.sound = true;
#pragma unroll
        for (u32 q = 0; q < EACH; q++) {
            const S* const own = tile + row(q) * STRIDE;
            const f64 scale = power(-exponents[q]);
            r[q] = D();
            if (row(q) < n) {
                if (accurate) {
                    CompensatedOf<D> sum;
                    sum.start(right[q]);
#pragma unroll 1
                    for (u32 j = 0; j < n; j++) sum.subtract(scale * to_double(own[j]), shared_y[j]);
                    r[q] = sum.value();
                } else {
                    D sum = right[q];
#pragma unroll 4
                    for (u32 j = 0; j < n; j++) sum = fused(-(scale * to_double(own[j])), shared_y[j], sum);
                    r[q] = sum;
                }
                row_squares(sums, r[q], right[q], norms[q], -exponents[q], systems.terms(system, n, row(q)), y_norm,
                            units, accurate);
            }
        }
        sums.sound = group_all(sums.sound);
#pragma unroll
        for (f64& sum : sums.of) sum = group_sum(sum);
        return judged(sums, units, systems);
    }
    DEVICE f64 correct(bool open) {
        D step[EACH];
        const f64 before = norm_of(y);
        rows.solve(r, step, lane);
#pragma unroll
        for (u32 q = 0; q < EACH; q++)
            if (open) y[q] = y[q] + step[q];
        return norm_of(step) / before;
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    solve_lanes(const __grid_constant__ Systems systems) {
    __shared__ S tiles[WARPS * GROUPS * TILE];
    __shared__ D all_y[WARPS * GROUPS * STRIDE];
    const u32 warp = threadIdx.x / 32, group = lane_id() / LANES, lane = lane_id() % LANES;
    S* const tiles_of_warp = tiles + warp * GROUPS * TILE;
    S* const tile = tiles_of_warp + group * TILE;
    const u64 first = (u64(blockIdx.x) * WARPS + warp) * GROUPS, own = first + group;
    const bool there = own < systems.count && systems.is_asked(own);
    if (!__any_sync(ALL, there)) return;
    const u64 system = min(own, systems.count - 1);
    const u32 n = systems.rows(system);

    if (!systems.offsets) {
        for (u32 g = 0; g < GROUPS; g++) {
            const S* const from = systems.values + min(first + g, systems.count - 1) * systems.entries_each;
            S* const to = tiles_of_warp + g * TILE;
            if (n == ROWS) {
#pragma unroll
                for (u32 e = 0; e < ROWS * ROWS; e += 32)
                    if (e + lane_id() < ROWS * ROWS)
                        to[(e + lane_id()) / ROWS * STRIDE + (e + lane_id()) % ROWS] = from[e + lane_id()];
            } else {
                for (u32 e = lane_id(); e < n * n; e += 32) to[e / n * STRIDE + e % n] = from[e];
            }
        }
    } else {
        for (u32 row = lane; row < n; row += LANES) {
            for (u32 j = 0; j < n; j++) tile[row * STRIDE + j] = S();
            systems.entries(system, n, row, 0, 1,
                            [&](u32 j, D entry) { to_scalar(entry, tile[row * STRIDE + j]); });
        }
    }
    __syncwarp();

    Rows rows;
    f64 norms[EACH];
    // F multiplies a row by two to minus this.
    i32 exponents[EACH];
    bool sound = true;
#pragma unroll
    for (u32 q = 0; q < EACH; q++) {
        const u32 row = q * LANES + lane;
        f64 largest = 0, square = 0;
#pragma unroll
        for (u32 j = 0; j < ROWS; j++) {
            D entry = row == j && row >= n ? one_of(D()) : D();
            if (row < n && j < n) entry = to_double(tile[row * STRIDE + j]);
            largest = fmax(largest, size_of(entry));
            sound = sound && is_finite(entry);
            rows.a[q][j] = entry;
        }
        const i32 found = exponent_of(largest);
        sound = sound && in_range(found);
        exponents[q] = in_range(found) ? found : 0;
        const f64 scale = power(-exponents[q]);
#pragma unroll
        for (u32 j = 0; j < ROWS; j++) {
            rows.a[q][j] = scale * rows.a[q][j];
            square += abs2(rows.a[q][j]);
        }
        norms[q] = sqrt(square);
    }
    sound = rows.eliminate(lane) && sound;
    Story told = story(group_all(sound));
    Work work = {systems, rows, tile, all_y + (warp * GROUPS + group) * STRIDE, system, n, lane, norms, exponents};

    const u64 first_row = systems.first_row(system);
    for (u32 vector = 0; vector < systems.vectors; vector++) {
        f64 most = 0, most_scaled = 0;
        bool fine = true;
#pragma unroll
        for (u32 q = 0; q < EACH; q++) {
            const u32 row = work.row(q);
            const D given = row < n ? to_double(systems.b[(first_row + row) * systems.vectors + vector]) : D();
            work.right[q] = power(-exponents[q]) * given;
            most = fmax(most, size_of(given));
            most_scaled = fmax(most_scaled, size_of(work.right[q]));
            fine = fine && is_finite(given) && is_finite(work.right[q]);
        }
        most = group_max(most);
        const bool zero = most == 0;
        const i32 raised = exponent_of(group_max(most_scaled)), size_of_b = exponent_of(most);
        // NaN is lost in maxima, so all lanes are asked.
        fine = group_all(fine) && (zero || (in_range(raised) && in_range(size_of_b)));
        work.units = {fine && !zero ? -raised : 0, fine && !zero ? size_of_b : 0};
#pragma unroll
        for (u32 q = 0; q < EACH; q++) {
            work.right[q] = power(work.units.shift) * work.right[q];
            work.r[q] = work.right[q];
            work.y[q] = D();
        }
        const bool open = told.good && fine && !zero;
        Refined found = refine<false>(work, open);
        if (zero) found = {fine, 0, 0};
        told.add(found);
#pragma unroll
        for (u32 q = 0; q < EACH; q++) {
            const u32 row = work.row(q);
            S solution = S();
            if (!zero) to_scalar(power(-work.units.shift) * work.y[q], solution);
            if (there && found.known && row < n) systems.x[(first_row + row) * systems.vectors + vector] = solution;
        }
    }
    if (there && lane == 0) told.tell(systems, system);
}
