// Systems of up to ROWS unknowns by iteration, a block of threads each: BiCGSTAB (van der Vorst, SIAM J. Sci. Stat.
// Comput. 13, 1992) with the diagonal as preconditioner. src/backend/host/batch/iterate.rs has the same steps.
//
//     thread 0 has the rows 0, THREADS, 2 THREADS, ...      r, p, v, y of its rows in registers
//     thread 1 has the rows 1, THREADS + 1, ...             the vector that A is multiplied with in shared memory
//
// The matrix is copied to shared memory if it fits there. Each system goes on until r has lost what is asked for; then
// b - A x is computed, and if that does not meet the goal, the same is done with it as the right-hand side. A system
// that has not ended after ITERATIONS, or of which a step is no number, is left to others.
//
// Bytes: A, b and x once if A fits in shared memory; else A from the caches once a product.
//
// Constants: SCALAR, ROWS, THREADS, BLOCKS (of a multiprocessor), ITERATIONS, and those of batch.cuh.
#include "batch_sums.cuh"

typedef SCALAR S;
typedef double_of<S>::type D;

// Rows of a thread.
#define EACH (ROWS / THREADS)

DEVICE f64 real_part(f64 a) { return a; }
DEVICE f64 real_part(c64 a) { return a.re; }
DEVICE f64 imaginary_part(f64) { return 0; }
DEVICE f64 imaginary_part(c64 a) { return a.im; }
DEVICE void from_parts(f64 re, f64, f64& a) { a = re; }
DEVICE void from_parts(f64 re, f64 im, c64& a) { a = {re, im}; }

// One system in the hands of a block of threads.
struct Block {
    const Systems& systems;
    u64 system;
    // Of the matrix, unless it is read where the caller has it.
    D* entries;
    u16* columns;
    // Where the system's values and the offsets of its rows begin.
    const S* values;
    const u64* offsets;
    const u32* all_columns;
    // The vector that is multiplied, and of rows their powers of two and norms.
    D* x;
    f64 *scales, *norms;
    f64 (*sums)[6];
    u32 n;

    // f(row, the number of it among those of the thread)
    template <typename F> DEVICE void rows(F f) const {
#pragma unroll
        for (u32 q = 0; q < EACH; q++) {
            const u32 row = threadIdx.x + q * THREADS;
            if (row < n) f(row, q);
        }
    }
    // f(column, entry of F A)
    template <typename F> DEVICE void each(u32 row, F f) const {
        const u64 first = offsets[0], from = offsets[row] - first, to = offsets[row + 1] - first;
        const f64 scale = scales[row];
        if (entries) {
            for (u64 k = from; k < to; k++) f(u32(columns[k]), entries[k]);
        } else {
            for (u64 k = from; k < to; k++) f(all_columns[k], scale * to_double(values[k]));
        }
    }
    DEVICE D product(u32 row) const {
        D sum = D();
        each(row, [&](u32 column, D entry) { sum = fused(entry, x[column], sum); });
        return sum;
    }
    // The sum over all rows of conj(a) b.
    DEVICE D dot(const D (&a)[EACH], const D (&b)[EACH]) const {
        D own = D(), all;
#pragma unroll
        for (u32 q = 0; q < EACH; q++) own = fused(conj(a[q]), b[q], own);
        f64 parts[2] = {real_part(own), imaginary_part(own)};
        block_sums(sums, parts);
        from_parts(parts[0], parts[1], all);
        return all;
    }

    // Brings the matrix, F A, and what its diagonal is divided by; whether all rows are sound.
    DEVICE bool load(D (&inverses)[EACH]) const {
        bool sound = true;
        rows([&](u32 row, u32 q) {
            const u64 first = offsets[0], from = offsets[row] - first, to = offsets[row + 1] - first;
            f64 largest = 0, square = 0;
            for (u64 k = from; k < to; k++) {
                const D entry = to_double(values[k]);
                largest = fmax(largest, size_of(entry));
                sound = sound && is_finite(entry);
            }
            const i32 found = exponent_of(largest);
            sound = sound && in_range(found);
            const f64 scale = power(in_range(found) ? -found : 0);
            D diagonal = D();
            for (u64 k = from; k < to; k++) {
                const D entry = scale * to_double(values[k]);
                const u32 column = all_columns[k];
                if (column == row) diagonal = entry;
                if (entries) {
                    entries[k] = entry;
                    columns[k] = u16(column);
                }
                square += abs2(entry);
            }
            scales[row] = scale;
            norms[row] = sqrt(square);
            // A row without a diagonal entry is taken as it is.
            inverses[q] = size_of(diagonal) > 0 ? inverse(diagonal) : one_of(D());
        });
        return __syncthreads_and(sound);
    }

    // From r and y = 0, y for which r has lost what is asked for; how many iterations it took, at most `limit`.
    DEVICE u32 iterate(D (&r)[EACH], D (&y)[EACH], const D (&inverses)[EACH], f64 reduction, u32 limit) const {
        D shadow[EACH], p[EACH], v[EACH], t[EACH];
#pragma unroll
        for (u32 q = 0; q < EACH; q++) {
            shadow[q] = p[q] = r[q];
            y[q] = D();
        }
        D rho = dot(r, r);
        const f64 enough = reduction * reduction * real_part(rho);
        for (u32 iteration = 1; iteration <= limit; iteration++) {
            rows([&](u32 row, u32 q) { x[row] = inverses[q] * p[q]; });
            __syncthreads();
#pragma unroll
            for (u32 q = 0; q < EACH; q++) v[q] = t[q] = D();
            rows([&](u32 row, u32 q) { v[q] = product(row); });
            const D alpha = rho * inverse(dot(shadow, v));
            rows([&](u32 row, u32 q) {
                y[q] = fused(alpha, x[row], y[q]);
                r[q] = fused(-alpha, v[q], r[q]);
                x[row] = inverses[q] * r[q];
            });
            __syncthreads();
            rows([&](u32 row, u32 q) { t[q] = product(row); });
            D both = D();
            f64 square = 0;
#pragma unroll
            for (u32 q = 0; q < EACH; q++) {
                both = fused(conj(t[q]), r[q], both);
                square += abs2(t[q]);
            }
            f64 parts[3] = {real_part(both), imaginary_part(both), square};
            block_sums(sums, parts);
            from_parts(parts[0], parts[1], both);
            const D omega = parts[2] > 0 ? (1 / parts[2]) * both : D();
            D next = D();
            f64 left = 0;
            rows([&](u32 row, u32 q) {
                y[q] = fused(omega, x[row], y[q]);
                r[q] = fused(-omega, t[q], r[q]);
                next = fused(conj(shadow[q]), r[q], next);
                left += abs2(r[q]);
            });
            f64 ends[3] = {real_part(next), imaginary_part(next), left};
            block_sums(sums, ends);
            if (!(ends[2] > enough)) return iteration;
            from_parts(ends[0], ends[1], next);
            const D beta = next * inverse(rho) * alpha * inverse(omega);
            rho = next;
#pragma unroll
            for (u32 q = 0; q < EACH; q++) p[q] = fused(beta, fused(-omega, v[q], p[q]), r[q]);
        }
        return limit;
    }

    // s F (b - A x) into r, x being the shared vector; and what is said of it.
    DEVICE Judged judge(const S* b, D (&r)[EACH], const Units& units, bool accurate) const {
        f64 square[1] = {};
        rows([&](u32 row, u32) { square[0] += abs2(x[row]); });
        block_sums(sums, square);
        const f64 x_norm = sqrt(square[0]);
        Squares squares = {};
        squares.sound = true;
        rows([&](u32 row, u32 q) {
            const D given = right(b, row, units);
            r[q] = given;
            if (accurate) {
                CompensatedOf<D> sum;
                sum.start(given);
                each(row, [&](u32 column, D entry) { sum.subtract(entry, x[column]); });
                r[q] = sum.value();
            } else {
                each(row, [&](u32 column, D entry) { r[q] = fused(-entry, x[column], r[q]); });
            }
            const u32 terms = u32(offsets[row + 1] - offsets[row]);
            const i32 exponent = exponent_of(scales[row]);
            row_squares(squares, r[q], given, norms[row], exponent, terms, x_norm, units, accurate);
        });
        squares.sound = __syncthreads_and(squares.sound);
        block_sums(sums, squares.of);
        return judged(squares, units, systems);
    }

    // s F b of a row.
    DEVICE D right(const S* b, u32 row, const Units& units) const {
        return power(units.shift) * (scales[row] * to_double(b[u64(row) * systems.vectors]));
    }

    // Units of a right-hand side; whether it is sound. `zero`: whether it is zero.
    DEVICE bool units_of(const S* b, Units& units, bool& zero) const {
        f64 own = 0, own_scaled = 0;
        bool sound = true;
        rows([&](u32 row, u32) {
            const D given = to_double(b[u64(row) * systems.vectors]), scaled = scales[row] * given;
            own = fmax(own, size_of(given));
            own_scaled = fmax(own_scaled, size_of(scaled));
            sound = sound && is_finite(given) && is_finite(scaled);
        });
        const f64 most = block_max(sums, own), most_scaled = block_max(sums, own_scaled);
        const i32 raised = exponent_of(most_scaled), size_of_b = exponent_of(most);
        zero = most == 0;
        units = {-raised, size_of_b};
        return __syncthreads_and(sound && (zero || (in_range(raised) && in_range(size_of_b))));
    }
};

// `staged`: whether the entries of a system, `most` at most, have room in shared memory. It holds a vector of D, two of
// doubles, `most` numbers, and as many columns of two bytes.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    solve_krylov(const __grid_constant__ Systems systems, u32 most, u32 staged) {
    extern __shared__ uint4 memory[];
    __shared__ f64 sums[WARPS][6];
    D* const x = reinterpret_cast<D*>(memory);
    D* const entries = x + systems.size;
    f64* const scales = reinterpret_cast<f64*>(entries + (staged ? most : 0));
    f64* const norms = scales + systems.size;
    u16* const columns = reinterpret_cast<u16*>(norms + systems.size);

    for (u64 system = blockIdx.x; system < systems.count; system += gridDim.x) {
        if (!systems.is_asked(system)) continue;
        const u64 first_row = systems.first_row(system);
        const u64* const offsets = systems.offsets + (systems.starts ? first_row : 0);
        const u64 first = offsets[0];
        const Block block = {systems, system, staged ? entries : nullptr, columns,
                             systems.values + first + (systems.starts ? 0 : system * systems.entries_each), offsets,
                             systems.columns + first, x, scales, norms, sums, systems.rows(system)};
        const u32 n = block.n;
        __syncthreads();
        D inverses[EACH];
        bool good = n == 0 || block.load(inverses);
        u32 most_iterations = 0;
        f64 worst = 0;
        const f64 reduction = fmax(0.1 * systems.goal.relative, 1e-15);
        for (u32 vector = 0; vector < systems.vectors && good && n > 0; vector++) {
            const u64 at = first_row * systems.vectors + vector;
            const S* const b = systems.b + at;
            Units units;
            bool zero;
            good = block.units_of(b, units, zero);
            if (!good) break;
            if (zero) {
                block.rows([&](u32 row, u32) { systems.x[at + u64(row) * systems.vectors] = S(); });
                continue;
            }
            D r[EACH], y[EACH], step[EACH];
#pragma unroll
            for (u32 q = 0; q < EACH; q++) r[q] = y[q] = D();
            block.rows([&](u32 row, u32 q) { r[q] = block.right(b, row, units); });
            f64 last = __longlong_as_double(0x7ff0000000000000);
            u32 iterations = 0;
            bool met = false;
            for (u32 again = 0; again <= REFINEMENTS; again++) {
                iterations += block.iterate(r, step, inverses, reduction, ITERATIONS - iterations);
                bool regular = true;
                __syncthreads();
                block.rows([&](u32 row, u32 q) {
                    S ignored;
                    y[q] = y[q] + step[q];
                    regular = rounded(y[q], units, ignored) && regular;
                    x[row] = y[q];
                });
                if (!__syncthreads_and(regular)) break;
                Judged told = block.judge(b, r, units, false);
                if (!told.met) told = block.judge(b, r, units, true);
                if (told.met) {
                    met = true;
                    block.rows([&](u32 row, u32 q) {
                        S solution;
                        rounded(y[q], units, solution);
                        systems.x[at + u64(row) * systems.vectors] = solution;
                    });
                    worst = fmax(worst, told.relative);
                    most_iterations = max(most_iterations, iterations);
                    break;
                }
                // What does not halve what is missing leads nowhere.
                if (!(told.excess < 0.5 * last) || iterations >= ITERATIONS) break;
                last = told.excess;
            }
            good = met;
        }
        if (threadIdx.x == 0) systems.tell(system, good, most_iterations, worst);
    }
}
