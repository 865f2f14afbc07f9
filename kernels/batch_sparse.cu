// Systems of one sparse pattern, a block of threads each: L U without pivoting, in an order and with a pattern that are
// worked out once for all (src/batch/symbolic.rs).
//
//     | 5 2     |   rows of L \ U, level by level: rows of a level need rows of earlier ones alone. A warp takes a row,
//     | . 3   1 |   spreads it over shared memory by its columns, subtracts multiples of the rows of its L, one after
//     |     4 1 |   the other, and packs it again. Here rows 0 and 2 are the first level, 1 the second, 3 the third.
//     |   . . 6 |
//
// Up-looking LU (Davis, Direct Methods for Sparse Linear Systems, 2006, 6.2) with the levels of the elimination tree.
// Triangles are solved by levels too. The factors lie in memory that each block of threads keeps for itself. A system
// that needs pivoting fails the verdict. Bytes: A and b a few times, x once; the factors once for each use of a row.
//
// Constants: SCALAR, THREADS, BLOCKS, and those of batch.cuh.
#include "batch_sums.cuh"

typedef SCALAR S;
typedef double_of<S>::type D;

struct Pattern {
    const u32 *order, *offsets, *columns, *diagonals, *places;
    // Rows by levels, and where each level begins: of elimination, and of the way back.
    const u32 *forward, *forward_starts, *backward, *backward_starts;
    u32 forward_levels, backward_levels, entries;
};

struct Sparse {
    const Pattern& pattern;
    f64 (*sums)[6];
    D* factors;
    D *inverses, *right, *y, *r, *moving, *wide;
    f64* norms;
    i32* exponents;
    u32 n;

    // F A in its places; whether every row has an entry other than zero, within the range.
    DEVICE bool load(const Systems& systems, u64 system) const {
        for (u32 k = threadIdx.x; k < pattern.entries; k += THREADS) factors[k] = D();
        __syncthreads();
        bool sound = true;
        const S* const values = systems.values + system * systems.entries_each;
        for (u32 row = threadIdx.x; row < n; row += THREADS) {
            f64 largest = 0, norm = 0;
            for (u64 k = systems.offsets[row]; k < systems.offsets[row + 1]; k++) {
                largest = fmax(largest, size_of(to_double(values[k])));
                sound = sound && is_finite(to_double(values[k]));
            }
            const i32 found = exponent_of(largest);
            sound = sound && in_range(found);
            const i32 exponent = in_range(found) ? -found : 0;
            for (u64 k = systems.offsets[row]; k < systems.offsets[row + 1]; k++) {
                const D own = power(exponent) * to_double(values[k]);
                factors[pattern.places[k]] = own;
                norm += abs2(own);
            }
            norms[row] = sqrt(norm);
            exponents[row] = exponent;
        }
        return __syncthreads_and(sound);
    }

    DEVICE void eliminate() const {
        D* const own_row = wide + warp_id() * n;
        for (u32 level = 0; level < pattern.forward_levels; level++) {
            for (u32 at = pattern.forward_starts[level] + warp_id(); at < pattern.forward_starts[level + 1]; at += WARPS) {
                const u32 row = pattern.forward[at];
                const u32 start = pattern.offsets[row], diagonal = pattern.diagonals[row], end = pattern.offsets[row + 1];
                for (u32 k = start + lane_id(); k < end; k += 32) own_row[pattern.columns[k]] = factors[k];
                __syncwarp();
                for (u32 first = start; first < diagonal; first += 32) {
                    // What the next 32 rows need to be found, a lane each.
                    const u32 mine = min(first + lane_id(), diagonal - 1), column = pattern.columns[mine];
                    const u32 from = pattern.diagonals[column] + 1, to = pattern.offsets[column + 1];
                    const D inverse = inverses[column];
                    for (u32 q = 0; q < min(32u, diagonal - first); q++) {
                        const u32 above = __shfl_sync(ALL, column, q), upto = __shfl_sync(ALL, to, q);
                        const D factor = own_row[above] * shuffle(inverse, q);
                        for (u32 k = __shfl_sync(ALL, from, q) + lane_id(); k < upto; k += 32) {
                            D& target = own_row[pattern.columns[k]];
                            target = fused(-factor, factors[k], target);
                        }
                        if (lane_id() == q) factors[first + q] = factor;
                        __syncwarp();
                    }
                }
                for (u32 k = diagonal + lane_id(); k < end; k += 32) factors[k] = own_row[pattern.columns[k]];
                if (lane_id() == 0) inverses[row] = inverse(own_row[row]);
                __syncwarp();
            }
            __syncthreads();
        }
    }

    // solution = A^-1 of `given`, both by old numbers; a few lanes a row.
    DEVICE void solve(const D* given, D* solution) const {
        const u32 lane = threadIdx.x % 8, group = threadIdx.x / 8;
        for (u32 level = 0; level < pattern.forward_levels; level++) {
            const u32 end = pattern.forward_starts[level + 1];
            for (u32 first = pattern.forward_starts[level]; first < end; first += THREADS / 8) {
                const bool there = first + group < end;
                const u32 row = pattern.forward[there ? first + group : end - 1];
                D sum = D();
                for (u32 k = pattern.offsets[row] + lane; k < pattern.diagonals[row]; k += 8) sum = fused(factors[k], moving[pattern.columns[k]], sum);
                sum = sum + shuffle_xor(sum, 4), sum = sum + shuffle_xor(sum, 2), sum = sum + shuffle_xor(sum, 1);
                if (there && lane == 0) moving[row] = given[pattern.order[row]] - sum;
            }
            __syncthreads();
        }
        for (u32 level = 0; level < pattern.backward_levels; level++) {
            const u32 end = pattern.backward_starts[level + 1];
            for (u32 first = pattern.backward_starts[level]; first < end; first += THREADS / 8) {
                const bool there = first + group < end;
                const u32 row = pattern.backward[there ? first + group : end - 1];
                D sum = D();
                for (u32 k = pattern.diagonals[row] + 1 + lane; k < pattern.offsets[row + 1]; k += 8) sum = fused(factors[k], moving[pattern.columns[k]], sum);
                sum = sum + shuffle_xor(sum, 4), sum = sum + shuffle_xor(sum, 2), sum = sum + shuffle_xor(sum, 1);
                if (there && lane == 0) moving[row] = (moving[row] - sum) * inverses[row];
            }
            __syncthreads();
        }
        for (u32 row = threadIdx.x; row < n; row += THREADS) solution[pattern.order[row]] = moving[row];
        __syncthreads();
    }

    // s F (b - A x) into r, a thread a row; and what is said of it.
    DEVICE Judged judge(const Systems& systems, u64 system, const Units& units, const Goal& goal, bool accurate) const {
        f64 square[1] = {0};
        for (u32 row = threadIdx.x; row < n; row += THREADS) square[0] += abs2(y[row]);
        block_sums(sums, square);
        Squares squares = {};
        squares.sound = true;
        for (u32 row = threadIdx.x; row < n; row += THREADS) {
            const f64 scale = power(exponents[row]);
            D own = right[row];
            if (accurate) {
                CompensatedOf<D> sum;
                sum.start(own);
                systems.entries(system, n, row, 0, 1, [&](u32 j, D a) { sum.subtract(scale * a, y[j]); });
                own = sum.value();
            } else {
                systems.entries(system, n, row, 0, 1, [&](u32 j, D a) { own = fused(-(scale * a), y[j], own); });
            }
            r[row] = own;
            row_squares(squares, own, right[row], norms[row], exponents[row], systems.terms(system, n, row), sqrt(square[0]), units, accurate);
        }
        squares.sound = __syncthreads_and(squares.sound);
        block_sums(sums, squares.of);
        return judged(squares, units, goal);
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    solve_sparse(u64 count, u64 entries_each, u32 size, const u64* offsets, const u32* columns, const S* values,
                 const u32* order, const u32* of_rows, const u32* of_factors, const u32* diagonals, const u32* places,
                 const u32* forward, const u32* forward_starts, u32 forward_levels, const u32* backward,
                 const u32* backward_starts, u32 backward_levels, u32 factor_entries, u32 vectors, const S* b, S* x,
                 f64 relative, f64 absolute, u32 row_wise, u32* steps, f64* residuals, D* kept) {
    extern __shared__ uint4 memory[];
    __shared__ f64 sums[WARPS][6];
    const Systems systems = {count, entries_each, size, nullptr, offsets, columns, values};
    const Goal goal = {relative, absolute, row_wise};
    const Pattern pattern = {order, of_rows, of_factors, diagonals, places, forward, forward_starts, backward,
                             backward_starts, forward_levels, backward_levels, factor_entries};
    const u32 n = size;
    D* const own = kept + u64(blockIdx.x) * (u64(factor_entries) + 7 * u64(n));
    D* const inverses = own + factor_entries;
    // Norms and exponents take the room of two vectors.
    f64* const norms = reinterpret_cast<f64*>(inverses + 5 * n);
    i32* const exponents = reinterpret_cast<i32*>(inverses + 6 * n);
    const Sparse sparse = {pattern, sums, own, inverses, inverses + n, inverses + 2 * n, inverses + 3 * n,
                           inverses + 4 * n, reinterpret_cast<D*>(memory), norms, exponents, n};

    for (u64 system = blockIdx.x; system < count; system += gridDim.x) {
        __syncthreads();
        u32 most_steps = 0;
        f64 worst = 0;
        bool good = sparse.load(systems, system);
        if (good) sparse.eliminate();
        for (u32 vector = 0; vector < vectors && good; vector++) {
            f64 most = 0, most_scaled = 0;
            bool fine = true;
            for (u32 row = threadIdx.x; row < n; row += THREADS) {
                const D given = to_double(b[(system * n + row) * vectors + vector]), scaled = power(exponents[row]) * given;
                most = fmax(most, size_of(given)), most_scaled = fmax(most_scaled, size_of(scaled));
                fine = fine && is_finite(given) && is_finite(scaled);
                sparse.right[row] = scaled;
            }
            most = block_max(sums, most), most_scaled = block_max(sums, most_scaled);
            const i32 raised = exponent_of(most_scaled), size_of_b = exponent_of(most);
            const bool zero = most == 0;
            good = __syncthreads_and(fine && (zero || (in_range(raised) && in_range(size_of_b))));
            if (!good) break;
            if (zero) {
                for (u32 row = threadIdx.x; row < n; row += THREADS) x[(system * n + row) * vectors + vector] = S();
                continue;
            }
            const Units units = {-raised, size_of_b};
            for (u32 row = threadIdx.x; row < n; row += THREADS) sparse.right[row] = power(units.shift) * sparse.right[row];
            __syncthreads();
            sparse.solve(sparse.right, sparse.y);
            f64 last = __longlong_as_double(0x7ff0000000000000);
            bool met = false;
            for (u32 step = 0; step <= REFINEMENTS; step++) {
                bool regular = true;
                for (u32 row = threadIdx.x; row < n; row += THREADS) {
                    S solution;
                    D mine = sparse.y[row];
                    regular = rounded(mine, units, solution) && regular;
                    sparse.y[row] = mine;
                    x[(system * n + row) * vectors + vector] = solution;
                }
                if (!__syncthreads_and(regular)) break;
                Judged told = sparse.judge(systems, system, units, goal, false);
                if (!told.met) told = sparse.judge(systems, system, units, goal, true);
                if (told.met) {
                    met = true;
                    worst = fmax(worst, told.relative);
                    most_steps = max(most_steps, step);
                    break;
                }
                // A step that does not halve what is missing leads nowhere.
                if (!(told.excess < 0.5 * last)) break;
                last = told.excess;
                __syncthreads();
                sparse.solve(sparse.r, sparse.r);
                for (u32 row = threadIdx.x; row < n; row += THREADS) sparse.y[row] = sparse.y[row] + sparse.r[row];
                __syncthreads();
            }
            good = met;
        }
        if (threadIdx.x == 0) {
            steps[system] = good ? most_steps : ~0u;
            residuals[system] = good ? worst : __longlong_as_double(0x7ff8000000000000);
        }
    }
}
