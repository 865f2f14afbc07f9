// Several linear combinations of vectors and inner products of the results, in one pass, and then a program on the
// scalars of the recurrence (LinearUpdate in src/backend/vector.rs).
//
//     output_i = sum_j c(i, j) input_j + sum_k c(i, INPUTS + k) output_k          all outputs on the right are old
//     sum_p    = conj(left_p) . right_p                                           of inputs and of new outputs
//
// bytes per element: a read of each vector that anything needs (an output whose old values have no coefficient is not
// read), a write of each output.
//
// Coefficients are in the state. Every block reads them when it starts, and none may change them before all have read
// them: the last block writes the sums there and runs the program. If the state says that the recurrence has ended,
// nothing changes.
//
// A thread starts the 16-byte loads of all vectors before it uses the first, and those of its first tile while it waits
// for the coefficients. Parts of vectors that do not start at a multiple of 16 bytes are read one by one, by the same
// threads in the same order.
//
// Constants: SCALAR (element type), INPUTS, OUTPUTS (0 to 4, together at least 1), PRODUCTS (0 to 4), THREADS,
// MIN_BLOCKS, UNROLL, and those of scalars.cuh.
#include "scalars.cuh"
#include "several_sums.cuh"

typedef SCALAR T;
#include "lanes16.cuh"

#define VECTORS (INPUTS + OUTPUTS)
#define FACTORS (OUTPUTS * VECTORS)

// A coefficient is a kind, shifted by 8, and a place. Bit v of `reads` is set if the old values of vector v are needed.
enum : u32 { ZERO, ONE, MINUS_ONE, AT, MINUS };
struct Table {
    u32 coefficient[32];
    u32 left[4], right[4], to[4];
    u32 reads;
};

DEVICE T factor(u32 coefficient, const T* state) {
    switch (coefficient >> 8) {
    case ONE: return from_real<T>(1);
    case MINUS_ONE: return -from_real<T>(1);
    case AT: return state[coefficient & 255];
    case MINUS: return -state[coefficient & 255];
    default: return T();
    }
}

typedef T Tile[VECTORS][UNROLL][VEC];

struct Vectors {
    T* of[VECTORS];
    bool aligned;
    u64 n;

    template <bool WIDE> DEVICE void load(u64 first, u32 reads, Tile& tile) const {
#pragma unroll
        for (int v = 0; v < VECTORS; v++)
            if (reads >> v & 1) {
#pragma unroll
                for (int u = 0; u < UNROLL; u++) get(WIDE, of[v], first + u * THREADS * VEC, n, tile[v][u]);
            }
    }
    DEVICE bool wide(u64 start) const { return aligned && start + THREADS * UNROLL * VEC <= n; }
    DEVICE void load(u64 start, u32 reads, Tile& tile) const {
        const u64 first = start + threadIdx.x * VEC;
        if (wide(start)) load<true>(first, reads, tile);
        else if (start < n) load<false>(first, reads, tile);
    }
};

// Replaces the old values of the outputs by the new ones.
DEVICE void combine(const Table& table, const T* factors, Tile& tile) {
    T fresh[OUTPUTS + 1][UNROLL][VEC] = {};
#pragma unroll
    for (int o = 0; o < OUTPUTS; o++)
#pragma unroll
        for (int k = 0; k < VECTORS; k++)
            if (table.coefficient[o * VECTORS + k]) {
                const T by = factors[o * VECTORS + k];
#pragma unroll
                for (int u = 0; u < UNROLL; u++)
#pragma unroll
                    for (int v = 0; v < VEC; v++) fresh[o][u][v] = fresh[o][u][v] + by * tile[k][u][v];
            }
#pragma unroll
    for (int o = 0; o < OUTPUTS; o++)
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
#pragma unroll
            for (int v = 0; v < VEC; v++) tile[INPUTS + o][u][v] = fresh[o][u][v];
}

// The number of the vector is the same for all threads, but not known at compile time. Registers cannot be indexed, so
// it is compared with each number.
DEVICE T pick(const Tile& tile, u32 vector, int u, int v) {
    T value = tile[0][u][v];
#pragma unroll
    for (int k = 1; k < VECTORS; k++)
        if (vector == k) value = tile[k][u][v];
    return value;
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    linear_update(const Table table, const T* x0, const T* x1, const T* x2, const T* x3, T* y0, T* y1, T* y2, T* y3, T* state, u32 size,
                  const uint4* words, u32 instructions, u64 n, T* partials, u32* finished) {
    after_predecessors();
    __shared__ T factors[FACTORS + 1], totals[PRODUCTS + 1];
    __shared__ bool ended;
    __shared__ Desk<T> desk;
    const T* const inputs[4] = {x0, x1, x2, x3};
    T* const outputs[4] = {y0, y1, y2, y3};
    Vectors vectors;
    vectors.aligned = true;
    vectors.n = n;
#pragma unroll
    for (int v = 0; v < VECTORS; v++) {
        vectors.of[v] = v < INPUTS ? const_cast<T*>(inputs[v]) : outputs[v - INPUTS];
        vectors.aligned = vectors.aligned && aligned16(vectors.of[v]);
    }
    const u64 step = u64(THREADS) * UNROLL * VEC;
    u64 start = blockIdx.x * step;
    // Vectors that are not read stay zero, and so do elements beyond the end.
    Tile tile = {};
    vectors.load(start, table.reads, tile);
    if (threadIdx.x == 0) ended = !is_zero(state[ENDED]);
    if (int(threadIdx.x) < FACTORS) factors[threadIdx.x] = factor(table.coefficient[threadIdx.x], state);
    __syncthreads();
    if (ended) return;
    T sum[PRODUCTS + 1] = {};
    while (start < n) {
        combine(table, factors, tile);
        const u64 first = start + threadIdx.x * VEC;
        const bool wide = vectors.wide(start);
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
#pragma unroll
            for (int o = 0; o < OUTPUTS; o++) put(wide, vectors.of[INPUTS + o], first + u * THREADS * VEC, n, tile[INPUTS + o][u]);
#pragma unroll
        for (int p = 0; p < PRODUCTS; p++)
#pragma unroll
            for (int u = 0; u < UNROLL; u++)
#pragma unroll
                for (int v = 0; v < VEC; v++) {
                    const T left = pick(tile, table.left[p], u, v), right = pick(tile, table.right[p], u, v);
                    sum[p] = sum[p] + conj(left) * right;
                }
        start += u64(gridDim.x) * step;
        vectors.load(start, table.reads, tile);
    }
    if (PRODUCTS == 0 && instructions == 0) return;
    const auto fetch = [&] { desk.load<THREADS>(state, size, words, instructions); };
#if PRODUCTS
    T own[PRODUCTS];
#pragma unroll
    for (int p = 0; p < PRODUCTS; p++) own[p] = sum[p];
    if (!launch_sums<THREADS>(own, totals, partials, finished, fetch)) return;
#else
    if (!is_last(finished, gridDim.x)) return;
    fetch();
#endif
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int p = 0; p < PRODUCTS; p++) desk.state[table.to[p]] = totals[p];
    }
    // Run by the same thread that wrote the sums, so no barrier is needed in between.
    desk.run<THREADS>(words, instructions);
    if (instructions == 0) __syncthreads();
    desk.store<THREADS>(state, size);
}
