// Systems of up to a few thousand unknowns by iteration, a block of threads each: BiCGSTAB (van der Vorst, SIAM J. Sci.
// Stat. Comput. 13, 1992), or conjugate gradients if A is Hermitian, as src/backend/host/batch/iterate.rs has them.
// Unknowns no two of which stand in one equation are eliminated first (red-black reduction; Saad, Iterative Methods for
// Sparse Linear Systems, 2003, 12.4), which takes a third of the iterations on a stencil and needs no row in any order:
//
//     | R   B |     the iteration is on   S = C - D R^-1 B   with its diagonal as preconditioner. S is not computed: a
//     | D   C |     product with p is the lower half of A x, once x is -R^-1 B p beside p. R is diagonal.
//
//     thread 0 has the eliminated rows number 0, THREADS, ... and the kept ones number 0, THREADS, ...
//     thread 1 has the eliminated rows number 1, THREADS + 1, ...      Vectors are in registers, and x, the vector
//                                                                      that A is multiplied with, in shared memory
//
// BiCGSTAB takes two sums over all threads per iteration instead of four. With s the residual after half an iteration,
// shadow.s is zero, so that of the next residual r = s - omega t
//
//     shadow.r = -omega shadow.t      and      r.r = s.s - |t.s|^2 / t.t
//
// Rows of up to HELD entries are held in registers, filled up with zeros: then an iteration reads nothing but the
// vector in shared memory. If HELD is 0, the matrix is copied to shared memory if it fits there, and else read where
// the caller has it. Each system goes on until r has become as small as was asked for, and b - A x is computed; if that
// does not meet the goal, the same is done with it as the right-hand side. A system that takes more than ITERATIONS,
// or of which a step is not a number, is left uncertain.
//
// Bytes: A, b and x once if A fits in registers or shared memory; else A from the caches once for each product.
//
// Constants: SCALAR, GONE and KEPT (eliminated and kept rows of a thread), HELD, THREADS, BLOCKS (of a multiprocessor),
// ITERATIONS, UNSCALED, and those of batch.cuh.
#include "batch_refine.cuh"
#include "batch_sums.cuh"

typedef SCALAR S;
typedef double_of<S>::type D;

// Rows of a thread: the eliminated ones first.
#define EACH (GONE + KEPT)
#define NO_ROW ~0u

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
    // In shared memory: the vector that is multiplied, the solution, and the power of two and the norm of each row.
    D *x, *y;
    f64 *scales, *norms;
    f64 (*sums)[6];
    u32 n;
    bool hermitian;
    // The thread's rows: their entries, columns, two of them a number, and what is multiplied by instead of dividing by
    // the diagonal of R or S.
    u32 row_of[EACH];
    D held[EACH][HELD + 1];
    u32 held_columns[EACH][HELD / 2 + 1];
    D inverses[EACH];
    // Of one right-hand side.
    const S* b;
    Units units;
    u32 iterations;
    D r[EACH];

    // f(row, the number of it among those of the thread)
    template <u32 FROM, u32 TO, typename F> DEVICE void some(F f) const {
#pragma unroll
        for (u32 q = FROM; q < TO; q++)
            if (row_of[q] != NO_ROW) f(row_of[q], q);
    }
    template <typename F> DEVICE void rows(F f) const { some<0, EACH>(f); }
    template <typename F> DEVICE void gone(F f) const { some<0, GONE>(f); }
    template <typename F> DEVICE void kept(F f) const { some<GONE, EACH>(f); }
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

    // Finds the powers of two of rows, of which all have the same if A is Hermitian, so that F A is so too. Returns
    // whether every row has a nonzero entry, within the range of powers of two.
    DEVICE bool scale() {
        bool sound = true;
        i32 found[EACH];
        f64 most = -INFINITE;
        rows([&](u32 row, u32 q) {
            const u64 first = offsets[0], from = offsets[row] - first, to = offsets[row + 1] - first;
            f64 largest = 0;
            for (u64 k = from; k < to; k++) {
                const D entry = to_double(values[k]);
                largest = fmax(largest, size_of(entry));
                sound = sound && is_finite(entry);
            }
            found[q] = exponent_of(largest);
            sound = sound && in_range(found[q]);
            most = fmax(most, f64(found[q]));
        });
        if (hermitian) most = block_max(sums, most);
        rows([&](u32 row, u32 q) {
            const i32 exponent = hermitian ? i32(most) : found[q];
            sound = sound && exponent - found[q] < UNSCALED;
            scales[row] = power(in_range(exponent) ? -exponent : 0);
        });
        return __syncthreads_and(sound);
    }

    // Loads F A, and the inverses of the diagonals of R and S.
    DEVICE void load() {
        D diagonals[EACH];
        rows([&](u32 row, u32 q) {
            const u64 first = offsets[0], from = offsets[row] - first, to = offsets[row + 1] - first;
            const f64 scale = scales[row];
            f64 square = 0;
            diagonals[q] = D();
            for (u64 k = from; k < to; k++) {
                const D entry = scale * to_double(values[k]);
                const u32 column = all_columns[k];
                if (column == row) diagonals[q] = entry;
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
            norms[row] = sqrt(square);
            x[row] = D();
        });
        gone([&](u32 row, u32 q) { x[row] = inverses[q] = inverse(diagonals[q]); });
        __syncthreads();
        kept([&](u32 row, u32 q) {
            each(row, q, [&](u32 column, D entry) {
                const D by = x[column];
                if (!(size_of(by) > 0)) return;
                // The entry across the diagonal.
                const u64 first = offsets[0];
                for (u64 k = offsets[column] - first; k < offsets[column + 1] - first; k++)
                    if (all_columns[k] == row)
                        diagonals[q] = fused(-(entry * by), scales[column] * to_double(values[k]), diagonals[q]);
            });
            // A row without a diagonal entry is not preconditioned.
            inverses[q] = size_of(diagonals[q]) > 0 ? inverse(diagonals[q]) : one_of(D());
        });
        __syncthreads();
    }

    // v = S p, if x is p in the kept rows that are the thread's.
    DEVICE void multiply(D (&v)[KEPT]) const {
        gone([&](u32 row, u32) { x[row] = D(); });
        __syncthreads();
        gone([&](u32 row, u32 q) { x[row] = -(inverses[q] * product(row, q)); });
        __syncthreads();
        kept([&](u32 row, u32 q) { v[q - GONE] = product(row, q); });
    }
    // The sum over the kept rows of conj(a) b, and that of |b|^2.
    DEVICE void dot(const D (&a)[KEPT], const D (&b)[KEPT], D& sum, f64& square) const {
        D own = D();
        f64 reals[REALS + 1] = {};
#pragma unroll
        for (u32 q = 0; q < KEPT; q++) {
            own = fused(conj(a[q]), b[q], own);
            reals[REALS] += abs2(b[q]);
        }
        to_reals(own, reals);
        block_sums_behind(sums, reals);
        from_reals(reals, sum);
        square = reals[REALS];
    }

    // Makes `step` the solution with the right-hand side r, which becomes as small as is asked for.
    DEVICE void iterate(D (&step)[EACH], f64 reduction) {
        D left[KEPT], of_kept[KEPT];
        f64 square[1] = {};
        rows([&](u32 row, u32 q) {
            square[0] += abs2(r[q]);
            x[row] = q < GONE ? inverses[q] * r[q] : D();
        });
        block_sums(sums, square);
#pragma unroll
        for (u32 q = 0; q < KEPT; q++) left[q] = of_kept[q] = D();
        kept([&](u32 row, u32 q) { left[q - GONE] = r[q] - product(row, q); });
        const f64 enough = reduction * reduction * square[0];
        if (hermitian) {
            descend(of_kept, left, enough);
        } else {
            stabilise(of_kept, left, enough);
        }
        __syncthreads();
        gone([&](u32 row, u32) { x[row] = D(); });
        kept([&](u32 row, u32 q) { x[row] = step[q] = of_kept[q - GONE]; });
        __syncthreads();
        gone([&](u32 row, u32 q) { step[q] = inverses[q] * (r[q] - product(row, q)); });
    }

    // BiCGSTAB: adds to `step` until r is small enough.
    DEVICE void stabilise(D (&step)[KEPT], D (&r)[KEPT], f64 enough) {
        D shadow[KEPT], p[KEPT], v[KEPT], t[KEPT];
#pragma unroll
        for (u32 q = 0; q < KEPT; q++) {
            shadow[q] = p[q] = r[q];
            v[q] = t[q] = D();
        }
        D rho;
        f64 square;
        __syncthreads();
        dot(r, r, rho, square);
        if (!(square > enough)) return;
        while (iterations < ITERATIONS) {
            iterations++;
            kept([&](u32 row, u32 q) { x[row] = inverses[q] * p[q - GONE]; });
            const D over_rho = inverse(rho);
            multiply(v);
            D of_v;
            dot(shadow, v, of_v, square);
            const D alpha = rho * inverse(of_v);
            kept([&](u32 row, u32 q) {
                const u32 k = q - GONE;
                step[k] = fused(alpha, x[row], step[k]);
                r[k] = fused(-alpha, v[k], r[k]);
                x[row] = inverses[q] * r[k];
            });
            multiply(t);
            D both = D(), of_shadow = D();
            f64 reals[2 * REALS + 2] = {};
            f64 &of_t = reals[2 * REALS], &of_s = reals[2 * REALS + 1];
#pragma unroll
            for (u32 q = 0; q < KEPT; q++) {
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
            kept([&](u32 row, u32 q) {
                const u32 k = q - GONE;
                step[k] = fused(omega, x[row], step[k]);
                r[k] = fused(-omega, t[k], r[k]);
            });
            if (!(of_s - over_t * abs2(both) > enough)) return;
            // beta is the next shadow.r / rho times alpha / omega.
            const D beta = -(of_shadow * over_rho * alpha);
            rho = -(omega * of_shadow);
#pragma unroll
            for (u32 q = 0; q < KEPT; q++) p[q] = fused(beta, fused(-omega, v[q], p[q]), r[q]);
        }
    }

    // Conjugate gradients: the same.
    DEVICE void descend(D (&step)[KEPT], D (&r)[KEPT], f64 enough) {
        D p[KEPT], v[KEPT], z[KEPT];
        D rho, next;
        f64 square;
#pragma unroll
        for (u32 q = 0; q < KEPT; q++) {
            v[q] = D();
            p[q] = z[q] = inverses[q + GONE] * r[q];
        }
        __syncthreads();
        dot(z, r, rho, square);
        while (square > enough && iterations < ITERATIONS) {
            iterations++;
            kept([&](u32 row, u32 q) { x[row] = p[q - GONE]; });
            const D over_rho = inverse(rho);
            multiply(v);
            D curvature;
            dot(p, v, curvature, square);
            // Not definite, or no number.
            if (!(real_part(curvature) > 0)) return;
            const D alpha = rho * inverse(curvature);
#pragma unroll
            for (u32 q = 0; q < KEPT; q++) {
                step[q] = fused(alpha, p[q], step[q]);
                r[q] = fused(-alpha, v[q], r[q]);
                z[q] = inverses[q + GONE] * r[q];
            }
            // All threads have met since they read the sums before, in `multiply` at the latest.
            __syncthreads();
            dot(z, r, next, square);
            const D beta = next * over_rho;
            rho = next;
#pragma unroll
            for (u32 q = 0; q < KEPT; q++) p[q] = fused(beta, p[q], z[q]);
        }
    }

    // For `refine`. All threads of the block have the same system.
    DEVICE bool any(bool yes) const { return yes; }
    DEVICE bool round() {
        bool sound = true;
        rows([&](u32 row, u32) {
            S ignored;
            D own = y[row];
            sound = rounded(own, units, ignored) && sound;
            y[row] = own;
        });
        return __syncthreads_and(sound);
    }
    DEVICE f64 correct(bool) {
        D step[EACH];
        f64 squares[2] = {};
        iterate(step, fmax(0.1 * systems.goal.relative, 1e-15));
        rows([&](u32 row, u32 q) {
            squares[0] += abs2(step[q]);
            squares[1] += abs2(y[row]);
            y[row] = y[row] + step[q];
        });
        block_sums(sums, squares);
        return sqrt(squares[0] / squares[1]);
    }
    // Computes r = s F b - F A y, and judges it.
    DEVICE Judged judge(bool accurate) {
        f64 square[1] = {};
        rows([&](u32 row, u32) { square[0] += abs2(y[row]); });
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
                each(row, q, [&](u32 column, D entry) { sum.subtract(entry, y[column]); });
                r[q] = sum.value();
            } else {
                each(row, q, [&](u32 column, D entry) { r[q] = fused(-entry, y[column], r[q]); });
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

// `order` has the rows of one system, or of all if they have patterns of their own: first those that can be eliminated,
// of which `eliminated` has the number. `staged`: whether the entries of a system, `most` at most, have room in shared
// memory. It holds two vectors of D, two of doubles, and then `most` numbers and as many columns of two bytes.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    solve_krylov(const __grid_constant__ Systems systems, const u32* order, const u32* eliminated, u32 most, u32 staged,
                 u32 hermitian) {
    extern __shared__ uint4 memory[];
    __shared__ f64 sums[WARPS][6];
    D* const x = reinterpret_cast<D*>(memory);
    D* const y = x + systems.size;
    D* const entries = y + systems.size;
    f64* const scales = reinterpret_cast<f64*>(entries + (staged ? most : 0));
    f64* const norms = scales + systems.size;
    u16* const columns = reinterpret_cast<u16*>(norms + systems.size);

    for (u64 system = blockIdx.x; system < systems.count; system += gridDim.x) {
        if (!systems.is_asked(system)) continue;
        const u64 first_row = systems.first_row(system), place = systems.starts ? first_row : 0;
        const u64* const offsets = systems.offsets + place;
        const u64 first = offsets[0];
        const u32 n = systems.rows(system);
        Block block = {systems, system, staged ? entries : nullptr, columns,
                       systems.values + first + (systems.starts ? 0 : system * systems.entries_each), offsets,
                       systems.columns + first, x, y, scales, norms, sums, n, hermitian != 0};
        const u32 gone = min(eliminated[systems.starts ? system : 0], u32(GONE * THREADS));
#pragma unroll
        for (u32 q = 0; q < EACH; q++) {
            const u32 own = threadIdx.x + (q < GONE ? q : q - GONE) * THREADS;
            const u32 number = q < GONE ? own : gone + own, end = q < GONE ? gone : n;
            block.row_of[q] = number < end ? order[place + number] : NO_ROW;
            block.inverses[q] = D();
        }
        __syncthreads();
        Story told = story(n == 0 || block.scale());
        if (n > 0) block.load();
        for (u32 vector = 0; vector < systems.vectors && told.good && n > 0; vector++) {
            const u64 at = first_row * systems.vectors + vector;
            block.b = systems.b + at;
            bool zero;
            told.good = block.find_units(zero);
            if (!told.good) break;
            block.rows([&](u32 row, u32 q) {
                y[row] = D();
                block.r[q] = block.right(row);
            });
            if (!zero) {
                block.iterations = 0;
                Refined found = refine<false>(block, true);
                if (!(found.code & IS_LIMITED)) found.code = block.iterations;
                told.add(found);
                if (!told.good) break;
            }
            block.rows([&](u32 row, u32) {
                S solution = S();
                if (!zero) to_scalar(power(-block.units.shift) * y[row], solution);
                systems.x[at + u64(row) * systems.vectors] = solution;
            });
        }
        if (threadIdx.x == 0) told.tell(systems, system);
    }
}
