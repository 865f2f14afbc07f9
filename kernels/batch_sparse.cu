// Systems of one sparse pattern, TOGETHER of them per warp: L U without pivoting. The order of elimination and the
// pattern of the factors were worked out before (src/batch/symbolic.rs). src/backend/host/batch/sparse.rs has the same
// steps.
//
//     row i of A, the pivot rows above it,         entries of the systems 0 to 3 lie side by side:
//     and row i of L \ U, their result
//     | u u . u . |  k = 0                             entry e     | 0 1 2 3 |   8 lanes a system, each with every
//     |   u . . u |  k = 1                             entry e + 1 | 0 1 2 3 |   eighth entry of a row
//     | l l . u u |  i                                 ...
//
// Row i is gathered in shared memory. For each entry to the left of the diagonal, in the order of columns, the entry
// times the row of U of that column is subtracted ("up-looking"; Davis, Direct Methods for Sparse Linear Systems, 2006,
// chapter 6), while the first entries of the next such row are already being loaded. A finished row goes to global
// memory of the warp, from which later rows read it. The diagonal has the inverses of pivots.
//
// Bytes: an entry of U for each multiplication, in part from the caches; A twice, b and x once.
//
// Constants: SCALAR, TOGETHER, THREADS, BLOCKS (of a multiprocessor), and those of batch.cuh.
#include "batch_refine.cuh"

typedef SCALAR S;
typedef double_of<S>::type D;

// The number of lanes of a system. `part` is the number of a lane among these.
#define PARTS (32 / TOGETHER)
// The number of entries that a lane loads before it needs them.
#define AHEAD 3

template <typename T> DEVICE T group_sum(T v) {
#pragma unroll
    for (u32 with = TOGETHER; with < 32; with *= 2) v = v + shuffle_xor(v, with);
    return v;
}
DEVICE f64 group_max(f64 v) {
#pragma unroll
    for (u32 with = TOGETHER; with < 32; with *= 2) v = fmax(v, shuffle_xor(v, with));
    return v;
}
DEVICE bool group_all(bool yes) {
    const u32 own = ALL / ((1u << TOGETHER) - 1) << lane_id() % TOGETHER;
    return (__ballot_sync(ALL, yes) & own) == own;
}

// The pattern of L and U together, row by row in the order of elimination, and the place of each entry of A in it.
struct Pattern {
    const u32 *order, *offsets, *columns, *diagonals, *places;
};

// Entries of a row of the factors: that at `from`, and the lane's share of those behind it, every PARTS-th up to `to`.
struct Ahead {
    u32 from, to;
    D first, values[AHEAD];
    u32 columns[AHEAD];
};

// The systems of a warp, and for `refine` one right-hand side of each.
struct Group {
    const Systems& systems;
    const Pattern& pattern;
    // Of the lane's system.
    const S* values;
    u32 n, part, own;
    // In shared memory: row i, and the place of each column in it.
    D* row;
    u16* place_of;
    // In global memory of the warp. Vectors are in the caller's order of rows, except that `moving` is in the order of
    // elimination.
    D *factors, *right, *y, *r, *moving;
    f64 *norms, *scales;
    Units units;

    DEVICE u32 at(u32 k) const { return k * TOGETHER + own; }

    // Loads the row of F A that is eliminated as row i. Returns whether it has a nonzero entry, within the range of
    // powers of two.
    DEVICE bool load(u32 i, u32 start, u32 end) const {
        for (u32 e = start + lane_id(); e < end; e += 32) place_of[pattern.columns[e]] = u16(e - start);
        for (u32 e = part; e < end - start; e += PARTS) row[at(e)] = D();
        const u32 old = pattern.order[i];
        const u64 first = systems.offsets[old], last = systems.offsets[old + 1];
        f64 largest = 0, square = 0;
        bool sound = true;
        for (u64 e = first + part; e < last; e += PARTS) {
            const D entry = to_double(values[e]);
            largest = fmax(largest, size_of(entry));
            sound = sound && is_finite(entry);
        }
        const i32 found = exponent_of(group_max(largest));
        sound = sound && in_range(found);
        const f64 scale = power(in_range(found) ? -found : 0);
        __syncwarp();
        for (u64 e = first + part; e < last; e += PARTS) {
            const D entry = scale * to_double(values[e]);
            row[at(pattern.places[e] - start)] = entry;
            square += abs2(entry);
        }
        square = group_sum(square);
        if (part == 0) {
            norms[at(old)] = sqrt(square);
            scales[at(old)] = scale;
        }
        __syncwarp();
        return sound;
    }

    DEVICE Ahead ahead(u32 from, u32 to) const {
        Ahead row;
        row.from = from;
        row.to = to;
        row.first = factors[at(from)];
#pragma unroll
        for (u32 k = 0; k < AHEAD; k++) {
            const u32 e = from + 1 + part + k * PARTS;
            row.columns[k] = e < to ? pattern.columns[e] : 0;
            row.values[k] = e < to ? factors[at(e)] : D();
        }
        return row;
    }

    // Subtracts from row i a row of U times a factor.
    DEVICE void subtract(const Ahead& u, D factor) const {
        // Beyond the end of the row nothing is read.
        const u32 mine = u.from + 1 + part;
        u32 places[AHEAD];
        D sums[AHEAD];
#pragma unroll
        for (u32 k = 0; k < AHEAD; k++) places[k] = mine + k * PARTS < u.to ? place_of[u.columns[k]] : 0;
#pragma unroll
        for (u32 k = 0; k < AHEAD; k++) sums[k] = mine + k * PARTS < u.to ? row[at(places[k])] : D();
#pragma unroll
        for (u32 k = 0; k < AHEAD; k++)
            if (mine + k * PARTS < u.to) row[at(places[k])] = fused(-factor, u.values[k], sums[k]);
        for (u32 e = u.from + 1 + part + AHEAD * PARTS; e < u.to; e += PARTS) {
            D& entry = row[at(place_of[pattern.columns[e]])];
            entry = fused(-factor, factors[at(e)], entry);
        }
    }

    DEVICE bool eliminate() const {
        bool sound = true;
        for (u32 i = 0; i < n; i++) {
            const u32 start = pattern.offsets[i], end = pattern.offsets[i + 1], diagonal = pattern.diagonals[i];
            sound = load(i, start, end) && sound;
            for (u32 first = start; first < diagonal; first += 32) {
                // Each lane looks up where one of the next 32 rows of U is.
                const u32 some = min(32u, diagonal - first);
                const u32 k = pattern.columns[first + min(lane_id(), some - 1)];
                const u32 from = pattern.diagonals[k], to = pattern.offsets[k + 1];
                Ahead next = ahead(__shfl_sync(ALL, from, 0), __shfl_sync(ALL, to, 0));
                for (u32 q = 0; q < some; q++) {
                    const Ahead u = next;
                    const u32 after = min(q + 1, some - 1);
                    next = ahead(__shfl_sync(ALL, from, after), __shfl_sync(ALL, to, after));
                    const u32 place = first + q - start;
                    const D factor = row[at(place)] * u.first;
                    subtract(u, factor);
                    __syncwarp();
                    if (part == 0) row[at(place)] = factor;
                }
            }
            __syncwarp();
            for (u32 e = start + part; e < end; e += PARTS) {
                const D entry = row[at(e - start)];
                factors[at(e)] = e == diagonal ? inverse(entry) : entry;
            }
            __syncwarp();
        }
        return sound;
    }

    // The sum of the products of a row's entries behind the first with those of `moving`, in all lanes of a system.
    DEVICE D product(const Ahead& row) const {
        D sum = D();
#pragma unroll
        for (u32 k = 0; k < AHEAD; k++)
            if (row.from + 1 + part + k * PARTS < row.to) sum = fused(row.values[k], moving[at(row.columns[k])], sum);
        for (u32 e = row.from + 1 + part + AHEAD * PARTS; e < row.to; e += PARTS)
            sum = fused(factors[at(e)], moving[at(pattern.columns[e])], sum);
        return group_sum(sum);
    }

    // x = A^-1 b; both may be the same vector.
    DEVICE void solve(const D* b, D* x) const {
        // The entries of a row of L, and one before them that is not used.
        const auto lower = [&](u32 i) { return ahead(pattern.offsets[i] - 1, pattern.diagonals[i]); };
        const auto upper = [&](u32 i) { return ahead(pattern.diagonals[i], pattern.offsets[i + 1]); };
        Ahead next = n > 1 ? lower(1) : upper(0);
        if (part == 0) moving[at(0)] = b[at(pattern.order[0])];
        __syncwarp();
        for (u32 i = 1; i < n; i++) {
            const Ahead row = next;
            next = lower(min(i + 1, n - 1));
            const D given = b[at(pattern.order[i])], sum = product(row);
            if (part == 0) moving[at(i)] = given - sum;
            __syncwarp();
        }
        next = upper(n - 1);
        for (u32 i = n; i-- > 0;) {
            const Ahead row = next;
            next = upper(i > 0 ? i - 1 : 0);
            const D sum = product(row);
            if (part == 0) {
                const D solution = (moving[at(i)] - sum) * row.first;
                moving[at(i)] = solution;
                x[at(pattern.order[i])] = solution;
            }
            __syncwarp();
        }
    }

    DEVICE f64 norm_of(const D* v) const {
        f64 square = 0;
        for (u32 k = part; k < n; k += PARTS) square += abs2(v[at(k)]);
        return sqrt(group_sum(square));
    }

    // Computes r = s F (b - A x), one row per lane, and judges it.
    DEVICE Judged judge(bool accurate) const {
        const f64 y_norm = norm_of(y);
        Squares sums = {};
        sums.sound = true;
        for (u32 k = part; k < n; k += PARTS) {
            const f64 scale = scales[at(k)];
            const D given = right[at(k)];
            const u64 first = systems.offsets[k], last = systems.offsets[k + 1];
            D residual = given;
            if (accurate) {
                CompensatedOf<D> sum;
                sum.start(given);
                for (u64 e = first; e < last; e++)
                    sum.subtract(scale * to_double(values[e]), y[at(systems.columns[e])]);
                residual = sum.value();
            } else {
                for (u64 e = first; e < last; e++)
                    residual = fused(-(scale * to_double(values[e])), y[at(systems.columns[e])], residual);
            }
            r[at(k)] = residual;
            const u32 terms = u32(last - first);
            row_squares(sums, residual, given, norms[at(k)], exponent_of(scale), terms, y_norm, units, accurate);
        }
        sums.sound = group_all(sums.sound);
#pragma unroll
        for (f64& sum : sums.of) sum = group_sum(sum);
        __syncwarp();
        return judged(sums, units, systems);
    }

    // Stores s F b in `right`, and finds whether it is zero. Returns false unless it is finite and in the range of
    // powers of two.
    DEVICE bool take(const S* b, bool& zero) {
        f64 most = 0, most_scaled = 0;
        bool sound = true;
        for (u32 k = part; k < n; k += PARTS) {
            const D given = to_double(b[u64(k) * systems.vectors]), scaled = scales[at(k)] * given;
            right[at(k)] = scaled;
            most = fmax(most, size_of(given));
            most_scaled = fmax(most_scaled, size_of(scaled));
            sound = sound && is_finite(given) && is_finite(scaled);
        }
        most = group_max(most);
        const i32 raised = exponent_of(group_max(most_scaled)), size_of_b = exponent_of(most);
        zero = most == 0;
        sound = sound && (zero || (in_range(raised) && in_range(size_of_b)));
        units = {sound && !zero ? -raised : 0, sound && !zero ? size_of_b : 0};
        for (u32 k = part; k < n; k += PARTS) right[at(k)] = power(units.shift) * right[at(k)];
        sound = group_all(sound);
        __syncwarp();
        return sound;
    }

    DEVICE bool any(bool yes) const { return __any_sync(ALL, yes); }
    DEVICE bool round() const {
        bool sound = true;
        for (u32 k = part; k < n; k += PARTS) {
            S ignored;
            D own = y[at(k)];
            sound = rounded(own, units, ignored) && sound;
            y[at(k)] = own;
        }
        sound = group_all(sound);
        __syncwarp();
        return sound;
    }
    DEVICE f64 correct(bool open) const {
        const f64 before = norm_of(y);
        solve(r, r);
        const f64 moved = norm_of(r) / before;
        for (u32 k = part; k < n && open; k += PARTS) y[at(k)] = y[at(k)] + r[at(k)];
        __syncwarp();
        return moved;
    }
};

// `room` has (entries + 6 size) TOGETHER numbers for each warp of the launch. The shared memory of a warp has `longest`
// (entries of the longest row) TOGETHER numbers, and two bytes per row of a system, rounded up to eight rows.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    solve_sparse(const __grid_constant__ Systems systems, const u32* order, const u32* offsets, const u32* columns,
                 const u32* diagonals, const u32* places, u32 entries, u32 longest, D* room) {
    extern __shared__ uint4 memory[];
    const u32 n = systems.size, warp = threadIdx.x / 32, lane = lane_id();
    const Pattern pattern = {order, offsets, columns, diagonals, places};
    const u32 numbers = (n + 7) / 8 * 8, of_row = longest * TOGETHER * sizeof(D);
    char* const shared = reinterpret_cast<char*>(memory) + warp * (of_row + numbers * 2);
    u16* const place_of = reinterpret_cast<u16*>(shared + of_row);
    const u64 warps = u64(gridDim.x) * (THREADS / 32), own_warp = u64(blockIdx.x) * (THREADS / 32) + warp;
    D* const kept = room + own_warp * (u64(entries) + 6 * n) * TOGETHER;
    D* const vectors = kept + u64(entries) * TOGETHER;
    const u32 length = n * TOGETHER;
    f64* const of_rows = reinterpret_cast<f64*>(vectors + 4 * length);

    for (u64 group = own_warp; group * TOGETHER < systems.count; group += warps) {
        const u64 own = group * TOGETHER + lane % TOGETHER;
        const bool there = own < systems.count && systems.is_asked(own);
        if (!__any_sync(ALL, there)) continue;
        const u64 system = own < systems.count ? own : systems.count - 1;
        Group all = {systems, pattern, systems.values + system * systems.entries_each, n,
                     lane / TOGETHER, lane % TOGETHER, reinterpret_cast<D*>(shared), place_of,
                     kept, vectors, vectors + length, vectors + 2 * length, vectors + 3 * length,
                     of_rows, of_rows + length};
        Story told = story(group_all(all.eliminate()));
        for (u32 vector = 0; vector < systems.vectors; vector++) {
            const u64 place = system * n * systems.vectors + vector;
            bool zero;
            told.good = all.take(systems.b + place, zero) && told.good;
            const bool open = told.good && !zero;
            if (all.any(open)) all.solve(all.right, all.y);
            Refined found = refine<true>(all, open);
            if (zero) found = {told.good, 0, 0};
            told.add(found);
            if (there && found.known)
                for (u32 k = all.part; k < n; k += PARTS) {
                    S solution = S();
                    if (!zero) to_scalar(power(-all.units.shift) * all.y[all.at(k)], solution);
                    systems.x[place + u64(k) * systems.vectors] = solution;
                }
        }
        if (there && all.part == 0) told.tell(systems, system);
    }
}
