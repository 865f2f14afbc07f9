// y = alpha A x + beta y with A in compressed sparse rows, LANES threads per row.
//
//     | 1 . 7 . |     offsets  0   2   3   5   7
//     | . . 8 . |     columns  0 2 | 2 | 1 2 | 0 3          LANES = 2: threads 0 and 1 take row 0, 2 and 3 row 1 ...
//     | . 4 3 . |     values   1 7 | 8 | 4 3 | 2 1
//     | 2 . . 1 |
//
// The lanes of a row take its nonzeros in turn, so that neighbouring lanes read neighbouring addresses, and add their
// sums in a fixed tree: two runs give the same bits. Correct for every matrix; fast if rows are of similar length.
//
// Bytes per nonzero: value + 4 for the column + accesses to x that miss the caches. Per row: its offset, and y. Source:
// Bell and Garland 2008 (CSR vector).
//
// Constants: SCALAR (vectors), STORED (values), OFFSET (offsets), LANES (1 to 32, a power of two), UNROLL (nonzeros in
// flight per lane), AHEAD (1: the first nonzeros are loaded before the previous launch has ended), THREADS.
#include "product.cuh"

typedef SCALAR T;
typedef STORED V;
typedef OFFSET I;

// The nonzeros that a lane has in flight: `left` of them, at most UNROLL. Plain loads are used, because evict-first
// loads cost up to a fifth here. In small matrices the instructions after the wait for the previous launch matter, so
// sums don't test which nonzeros exist: a missing one is -0 * 0 = -0, and s + -0 = s for every s. If UNROLL is large,
// most are missing, and testing is cheaper.
constexpr bool ALL_THERE = is_float<T>::value && UNROLL <= 12;
struct Nonzeros {
    u32 column[UNROLL];
    V value[UNROLL];

    DEVICE void ask(const u32* columns, const V* values, u32 left) {
#pragma unroll
        for (u32 u = 0; u < UNROLL; u++) {
            if constexpr (ALL_THERE) value[u] = -V();
            if (u < left) {
                column[u] = columns[u * LANES];
                value[u] = values[u * LANES];
            }
        }
    }
    // x is read by plain loads if the first nonzeros were loaded ahead: other loads may be moved before the wait for
    // the previous launch.
    DEVICE T add_to(T sum, u32 left, const T* x, u32 conjugate) const {
        T of_x[UNROLL];
#pragma unroll
        for (u32 u = 0; u < UNROLL; u++) {
            if (ALL_THERE) of_x[u] = T();
            if (u < left) of_x[u] = AHEAD ? x[column[u]] : cached(x + column[u]);
        }
#pragma unroll
        for (u32 u = 0; u < UNROLL; u++)
            if (ALL_THERE || u < left) sum = sum + entry<T>(value[u], conjugate) * of_x[u];
        return sum;
    }
};

// A minimum of one block per multiprocessor is stated because otherwise the compiler saves registers, and some loads of
// a row wait for others (a third slower for rows of up to 12 nonzeros in double precision).
extern "C" __global__ void __launch_bounds__(THREADS, 1)
    csr(u64 rows, const I* offsets, const u32* columns, const V* values, T alpha, const T* x, T beta, T* y, u32 conjugate, u32 settled) {
    before_matrix(AHEAD && settled);
    const u64 row = u64(blockIdx.x) * (THREADS / LANES) + threadIdx.x / LANES;
    Nonzeros nonzeros;
    u32 left = 0;
    if (row < rows) {
        const u64 begin = u64(offsets[row]) + threadIdx.x % LANES, end = offsets[row + 1];
        left = begin < end ? u32((end - begin + LANES - 1) / LANES) : 0;
        columns += begin;
        values += begin;
        nonzeros.ask(columns, values, left);
    }
    before_vectors(AHEAD && settled);
    // The first pass is outside the loop, so its places are constants.
    T sum = nonzeros.add_to(T(), left, x, conjugate);
#pragma unroll 1
    while (left > UNROLL) {
        left -= UNROLL;
        columns += UNROLL * LANES;
        values += UNROLL * LANES;
        nonzeros.ask(columns, values, left);
        sum = nonzeros.add_to(sum, left, x, conjugate);
    }
#pragma unroll
    for (u32 with = LANES / 2; with; with /= 2) sum = sum + shuffle_xor(sum, with);
    if (row < rows && threadIdx.x % LANES == 0) finish(alpha, sum, beta, y + row);
}
