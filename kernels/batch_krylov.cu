// Systems of up to ROWS unknowns by iteration, a block of threads each: BiCGSTAB (van der Vorst, SIAM J. Sci. Stat.
// Comput. 13, 1992) with the diagonal as preconditioner, as src/backend/host/batch/iterate.rs has it, but with two sums
// over all threads per iteration instead of four. With s the residual after half an iteration, shadow.s is zero, so that
// of the next residual r = s - omega t
//
//     shadow.r = -omega shadow.t      and      r.r = s.s - |t.s|^2 / t.t
//
//     thread 0 has the rows 0, THREADS, 2 THREADS, ...      r, p, v, y and the entries of its rows in registers
//     thread 1 has the rows 1, THREADS + 1, ...             the vector that A is multiplied with in shared memory
//
// Rows of up to HELD entries are held in registers, filled up with zeros: then an iteration reads nothing but the
// vector in shared memory. If HELD is 0, the matrix is copied to shared memory if it fits there, and else read where
// the caller has it. Each system goes on until r has become as small as was asked for, and b - A x is computed; if that
// does not meet the goal, the same is done with it as the right-hand side. A system that takes more than ITERATIONS,
// or of which a step is not a number, is left uncertain.
//
// Bytes: A, b and x once if A fits in registers or shared memory; else A from the caches once for each product.
//
// Constants: SCALAR, ROWS, HELD, THREADS, BLOCKS (of a multiprocessor), ITERATIONS, and those of batch.cuh.
#include "batch_refine.cuh"
#include "batch_sums.cuh"

typedef SCALAR S;
typedef double_of<S>::type D;

// Rows of a thread.
#define EACH (ROWS / THREADS)

DEVICE f64 real_part(f64 a) { return a; }
DEVICE f64 real_part(c64 a) { return a.re; }

// The real numbers that a number consists of.
#define REALS (is_complex<D>::value ? 2 : 1)
DEVICE void to_reals(f64 a, f64* reals) { reals[0] = a; }
DEVICE void to_reals(c64 a, f64* reals) { reals[0] = a.re, reals[1] = a.im; }
DEVICE void from_reals(const f64* reals, f64& a) { a = reals[0]; }
DEVICE void from_reals(const f64* reals, c64& a) { a = {reals[0], reals[1]}; }

// One system, solved by a block of threads, and for `refine` one of its right-hand sides.
struct Block {
    const Systems& systems;
    u64 system;
    // The matrix in shared memory, unless it is in registers or is read where the caller has it.
    D* entries;
    u16* columns;
    // The system's values, the offsets of its rows, and their columns.
    const S* values;
    const u64* offsets;
    const u32* all_columns;
    // In shared memory: the vector that is multiplied, and the power of two and the norm of each row.
    D* x;
    f64 *scales, *norms;
    f64 (*sums)[6];
    u32 n;
    // Of the thread's rows: entries, columns, two of them a number, and what is multiplied by instead of dividing by
    // the diagonal.
    D held[EACH][HELD + 1];
    u32 held_columns[EACH][HELD / 2 + 1];
    D inverses[EACH];
    // Of one right-hand side.
    const S* b;
    Units units;
    u32 iterations;
    D r[EACH], y[EACH];

    // f(row, the number of it among those of the thread)
    template <typename F> DEVICE void rows(F f) const {
#pragma unroll
        for (u32 q = 0; q < EACH; q++) {
            const u32 row = threadIdx.x + q * THREADS;
            if (row < n) f(row, q);
        }
    }
    // f(column, entry of F A) for the entries of the thread's row number q.
    template <typename F> DEVICE void each(u32 row, u32 q, F f) const {
        if constexpr (HELD > 0) {
#pragma unroll
            for (i32 k = 0; k < HELD; k++) 
                f(held_columns[q][k / 2] >> k % 2 * 16 & 0xffff, held[q][k]);
        } else {
            const u64 first = offsets[0], from = offsets[row] - first, to = offsets[row + 1] - first;
            const f64 scale = scales[row];
            if (entries) {
                for (u64 k = from; k < to; k++) f(u32(columns[k]), entries[k]);
            } else {
                for (u64 k = from; k < to; k++) f(all_columns[k], scale * to_double(values[k]));
            }
        }
    }
    DEVICE D product(u32 row, u32 q) const {
        D sum = D();
        each(row, q, [&](u32 column, D entry) { sum = fused(entry, x[column], sum); });
        return sum;
    }
    // The sum over all rows of conj(a) b.
    DEVICE D dot(const D (&a)[EACH], const D (&b)[EACH]) const {
        D own = D();
#pragma unroll
        for (u32 q = 0; q < EACH; q++) own = fused(conj(a[q]), b[q], own);
        f64 reals[REALS];
        to_reals(own, reals);
        block_sums_behind(sums, reals);
        from_reals(reals, own);
        return own;
    }

    // Loads F A and the inverses of its diagonal. Returns whether every row has a nonzero entry, within the range of
    // powers of two.
    DEVICE bool load() {
        bool sound = true;
#pragma unroll
        for (u32 q = 0; q < EACH; q++) inverses[q] = D();
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
                if (HELD == 0 && entries) {
                    entries[k] = entry;
                    columns[k] = u16(column);
                }
                square += abs2(entry);
            }
#pragma unroll
            for (i32 k = 0; k < HELD; k++) {
                const bool is_there = from + k < to;
                held[q][k] = is_there ? scale * to_double(values[from + k]) : D();
                const u32 column = is_there ? all_columns[from + k] : row;
                held_columns[q][k / 2] = k % 2 ? held_columns[q][k / 2] | column << 16 : column;
            }
            scales[row] = scale;
            norms[row] = sqrt(square);
            // A row without a diagonal entry is not preconditioned.
            inverses[q] = size_of(diagonal) > 0 ? inverse(diagonal) : one_of(D());
        });
        return __syncthreads_and(sound);
    }

    // Makes `step` the solution with the right-hand side r, which becomes as small as is asked for.
    DEVICE void iterate(D (&step)[EACH], f64 reduction) {
        D shadow[EACH], p[EACH], v[EACH], t[EACH];
#pragma unroll
        for (u32 q = 0; q < EACH; q++) {
            shadow[q] = p[q] = r[q];
            v[q] = t[q] = step[q] = D();
        }
        __syncthreads();
        D rho = dot(r, r);
        const f64 enough = reduction * reduction * real_part(rho);
        while (iterations < ITERATIONS) {
            iterations++;
            rows([&](u32 row, u32 q) { x[row] = inverses[q] * p[q]; });
            const D over_rho = inverse(rho);
            __syncthreads();
            rows([&](u32 row, u32 q) { v[q] = product(row, q); });
            const D alpha = rho * inverse(dot(shadow, v));
            rows([&](u32 row, u32 q) {
                step[q] = fused(alpha, x[row], step[q]);
                r[q] = fused(-alpha, v[q], r[q]);
                x[row] = inverses[q] * r[q];
            });
            __syncthreads();
            rows([&](u32 row, u32 q) { t[q] = product(row, q); });
            D both = D(), of_shadow = D();
            f64 reals[2 * REALS + 2] = {};
            f64 &of_t = reals[2 * REALS], &of_s = reals[2 * REALS + 1];
#pragma unroll
            for (u32 q = 0; q < EACH; q++) {
                both = fused(conj(t[q]), r[q], both);
                of_shadow = fused(conj(shadow[q]), t[q], of_shadow);
                of_t += abs2(t[q]);
                of_s += abs2(r[q]);
            }
            to_reals(both, reals);
            to_reals(of_shadow, reals + REALS);
            block_sums_behind(sums, reals);
            from_reals(reals, both);
            from_reals(reals + REALS, of_shadow);
            const f64 over_t = of_t > 0 ? 1 / of_t : 0;
            const D omega = over_t * both;
            rows([&](u32 row, u32 q) {
                step[q] = fused(omega, x[row], step[q]);
                r[q] = fused(-omega, t[q], r[q]);
            });
            if (!(of_s - over_t * abs2(both) > enough)) return;
            // beta is the next shadow.r / rho times alpha / omega.
            const D beta = -(of_shadow * over_rho * alpha);
            rho = -(omega * of_shadow);
#pragma unroll
            for (u32 q = 0; q < EACH; q++) p[q] = fused(beta, fused(-omega, v[q], p[q]), r[q]);
        }
    }

    // For `refine`. All threads of the block have the same system.
    DEVICE bool any(bool yes) const { return yes; }
    DEVICE bool round() {
        bool sound = true;
        rows([&](u32, u32 q) {
            S ignored;
            sound = rounded(y[q], units, ignored) && sound;
        });
        return __syncthreads_and(sound);
    }
    DEVICE f64 correct(bool) {
        D step[EACH];
        f64 squares[2] = {};
        iterate(step, fmax(0.1 * systems.goal.relative, 1e-15));
#pragma unroll
        for (u32 q = 0; q < EACH; q++) {
            squares[0] += abs2(step[q]);
            squares[1] += abs2(y[q]);
            y[q] = y[q] + step[q];
        }
        block_sums(sums, squares);
        return sqrt(squares[0] / squares[1]);
    }
    // Computes r = s F b - F A y, and judges it.
    DEVICE Judged judge(bool accurate) {
        f64 square[1] = {};
        rows([&](u32 row, u32 q) {
            x[row] = y[q];
            square[0] += abs2(y[q]);
        });
        block_sums(sums, square);
        const f64 x_norm = sqrt(square[0]);
        Squares squares = {};
        squares.sound = true;
        rows([&](u32 row, u32 q) {
            const D given = right(row);
            r[q] = given;
            if (accurate) {
                CompensatedOf<D> sum;
                sum.start(given);
                each(row, q, [&](u32 column, D entry) { sum.subtract(entry, x[column]); });
                r[q] = sum.value();
            } else {
                each(row, q, [&](u32 column, D entry) { r[q] = fused(-entry, x[column], r[q]); });
            }
            const u32 terms = u32(offsets[row + 1] - offsets[row]);
            const i32 exponent = exponent_of(scales[row]);
            row_squares(squares, r[q], given, norms[row], exponent, terms, x_norm, units, accurate);
        });
        squares.sound = __syncthreads_and(squares.sound);
        block_sums(sums, squares.of);
        return judged(squares, units, systems);
    }

    // A row of s F b.
    DEVICE D right(u32 row) const {
        return power(units.shift) * (scales[row] * to_double(b[u64(row) * systems.vectors]));
    }

    // Finds the units of the right-hand side, and whether it is zero. Returns false unless it is finite and in the
    // range of powers of two.
    DEVICE bool find_units(bool& zero) {
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
// doubles, and then `most` numbers and as many columns of two bytes.
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
        const u32 n = systems.rows(system);
        Block block = {systems, system, staged ? entries : nullptr, columns,
                       systems.values + first + (systems.starts ? 0 : system * systems.entries_each), offsets,
                       systems.columns + first, x, scales, norms, sums, n};
        __syncthreads();
        Story told = story(n == 0 || block.load());
        for (u32 vector = 0; vector < systems.vectors && told.good && n > 0; vector++) {
            const u64 at = first_row * systems.vectors + vector;
            block.b = systems.b + at;
            bool zero;
            told.good = block.find_units(zero);
            if (!told.good) break;
#pragma unroll
            for (u32 q = 0; q < EACH; q++) block.r[q] = block.y[q] = D();
            if (!zero) {
                block.rows([&](u32 row, u32 q) { block.r[q] = block.right(row); });
                block.iterations = 0;
                block.correct(true);
                Refined found = refine(block, true);
                if (!(found.code & IS_LIMITED)) found.code = block.iterations;
                told.add(found);
                if (!told.good) break;
            }
            block.rows([&](u32 row, u32 q) {
                S solution = S();
                if (!zero) to_scalar(power(-block.units.shift) * block.y[q], solution);
                systems.x[at + u64(row) * systems.vectors] = solution;
            });
        }
        if (threadIdx.x == 0) told.tell(systems, system);
    }
}
