// y = alpha A x + beta y with A stored by diagonals, a thread for ROWS neighbouring rows (here ROWS = 1).
//
//     | 1 . 7 . |     C = 2 (for the drawing), distances -3 -1 0 1 2
//     | . . 8 . |     values  * * | * * | 1 * | * 8 | 7 *  rows 0 and 1: step 2 reads 1 and x_0, step 3 reads 8 and x_2
//     | . 4 3 . |             * 2 | 4 * | 3 1 | * * | * *      rows 2 and 3
//     | 2 . . 1 |
//
// Neighbouring threads read neighbouring values and neighbouring elements of x: nothing is gathered, and no column is
// read. The distances are the same for all threads. A missing entry (*) has all bits of its value set; x is read for it
// but not used.
//
// HALF: of a symmetric matrix only the main diagonal and those right of it are stored. An entry left of it is read at
// its mirror image: the entry of diagonal d, d rows further up. Other threads read the same place for their rows, so
// memory is read once, and the second-level cache twice. The table `steps` has the distance of an entry from the row's
// own place; one section is added if the row is not far enough down its section.
//
// Bytes per place: its value. Per row: y, and x once; the first-level cache serves all diagonals of one line of a grid
// but one. Sources: Saad, "Iterative Methods for Sparse Linear Systems", section 3.4; Bell and Garland 2009, with
// SELL's sections.
//
// Constants: HALF, SCALAR (vectors), STORED (values), ROWS (neighbouring rows per thread: their values are one load),
// UNROLL (entries per row in flight), WIDE (1: there are so many diagonals that the first-level cache is kept for x),
// THREADS, BLOCKS (per multiprocessor, at least; 0: chosen by the compiler), TILES (rows that a thread takes one after
// another with x.y).
#include "across.cuh"
#include "chebyshev.cuh"
#include "dia.cuh"
#include "product_dot.cuh"

typedef SCALAR T;
typedef real_of<T>::type R;
typedef STORED V;

// The number of stored diagonals and of entries per row; the distances of the entries or, if HALF, their steps.
struct Diagonals {
    u64 rows, columns;
    u32 stored, count;
    const i64* distances;
    const V* values;

    DEVICE i64 distance(u32 k) const { return distances[HALF ? 2 * k : k]; }
};

static_assert(!HALF || ROWS == 1, "mirror images of neighbouring rows may be in two sections");
struct alignas(16) Image {
    i64 distance, place;
};

// Adds N entries of each row, without a branch between the loads, so that all are in flight at once. INSIDE: all of
// these columns are within the matrix.
template <bool INSIDE, u32 N>
DEVICE void add_entries(T (&sum)[ROWS], Diagonals a, u32 k, u64 first, i64 row, const T* x, u32 conjugate) {
    Across<V> value[N];
    T of_x[N][ROWS];
    i64 column_of[N]; // HALF
#pragma unroll
    for (u32 u = 0; u < N; u++) {
        if constexpr (HALF) {
            const Image step = bits<Image>(cached(reinterpret_cast<const u128*>(a.distances) + k + u));
            column_of[u] = row + step.distance;
            const bool above = step.distance < 0 && u32(row) % SECTION < u32(-step.distance) % SECTION;
            const V* const of_value = a.values + i64(first) + step.place + (above ? SECTION - i64(a.stored * SECTION) : 0);
            if (INSIDE || u64(column_of[u]) < a.columns) value[u].of[0] = *of_value;
            else memset(value + u, 0xff, sizeof(V));
        } else {
            const auto* of_values = reinterpret_cast<const Across<V>*>(a.values + first + u64(k + u) * SECTION);
            value[u] = WIDE ? passing(of_values) : *of_values;
        }
    }
#pragma unroll
    for (u32 u = 0; u < N; u++) {
        const i64 column = HALF ? column_of[u] : row + cached(a.distances + k + u);
#pragma unroll
        for (u32 r = 0; r < ROWS; r++) of_x[u][r] = INSIDE || u64(column + r) < a.columns ? cached(x + column + r) : T();
    }
#pragma unroll
    for (u32 u = 0; u < N; u++)
#pragma unroll
        for (u32 r = 0; r < ROWS; r++) {
            const T more = sum[r] + entry<T>(value[u].of[r], conjugate) * of_x[u][r];
            sum[r] = is_no_entry(value[u].of[r]) ? sum[r] : more;
        }
}
// Adds the remaining entries, fewer than N.
template <bool INSIDE, u32 N>
DEVICE void add_rest(u32 left, T (&sum)[ROWS], Diagonals a, u32 k, u64 first, i64 row, const T* x, u32 conjugate) {
    if constexpr (N > 1) {
        if (left == N - 1) add_entries<INSIDE, N - 1>(sum, a, k, first, row, x, conjugate);
        else add_rest<INSIDE, N - 1>(left, sum, a, k, first, row, x, conjugate);
    }
}
template <bool INSIDE> DEVICE void add_all(T (&sum)[ROWS], Diagonals a, u64 row, const T* x, u32 conjugate) {
    const u64 first = first_place(row, a.stored);
    u32 k = 0;
    for (; k + UNROLL <= a.count; k += UNROLL) add_entries<INSIDE, UNROLL>(sum, a, k, first, i64(row), x, conjugate);
    add_rest<INSIDE, UNROLL>(a.count - k, sum, a, k, first, i64(row), x, conjugate);
}

// Sums of the rows row .. row + ROWS of a block that begins with row `block`. Most blocks have all columns inside.
DEVICE void row_sums(T (&sum)[ROWS], Diagonals a, i64 block, u64 row, const T* x, u32 conjugate) {
#pragma unroll
    for (u32 r = 0; r < ROWS; r++) sum[r] = T();
    if (!a.count) return;
    const i64 end = block + THREADS * ROWS;
    if (block + a.distance(0) >= 0 && end + a.distance(a.count - 1) <= i64(a.columns)) add_all<true>(sum, a, row, x, conjugate);
    else add_all<false>(sum, a, row, x, conjugate);
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    dia(u64 rows, u64 columns, u32 stored, u32 count, const i64* distances, const V* values, T alpha, const T* x, T beta, T* y, u32 conjugate) {
    after_predecessors();
    const i64 block = i64(blockIdx.x) * (THREADS * ROWS);
    const u64 row = (u64(blockIdx.x) * THREADS + threadIdx.x) * ROWS;
    if (row >= rows) return;
    T sum[ROWS];
    row_sums(sum, {rows, columns, stored, count, distances, values}, block, row, x, conjugate);
    finish_across(alpha, sum, beta, y, row, rows);
}

// A step of Chebyshev's iteration in one pass with the product A z (chebyshev.cu does the same after a product): last =
// keep z + momentum last + step d .* (r - A z).
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    dia_chebyshev(u64 rows, u32 stored, u32 count, const i64* distances, const V* values, R keep, R momentum, R step, const R* d,
                  const T* r, const T* z, T* last) {
    after_predecessors();
    const i64 block = i64(blockIdx.x) * (THREADS * ROWS);
    const u64 row = (u64(blockIdx.x) * THREADS + threadIdx.x) * ROWS;
    if (row >= rows) return;
    T sum[ROWS];
    row_sums(sum, {rows, rows, stored, count, distances, values}, block, row, z, 0);
    const Step<R> by = {keep, momentum, step};
#pragma unroll
    for (u32 i = 0; i < ROWS; i++) {
        const u64 at = row + i;
        if (at < rows) last[at] = stepped(by, d, at, r[at], z[at], sum[i], momentum == 0 ? T() : last[at]);
    }
}

// y = A x and xy = x.y. The grid follows from the matrix, so the sum has the same bits every time.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    dia_dot(u64 rows, u64 columns, u32 stored, u32 count, const i64* distances, const V* values, T one, const T* x, T* y, T* xy, T* partials,
            u32* finished) {
    after_predecessors();
    RowsDot<T> dot = {x, y, T()};
#pragma unroll 1
    for (u32 tile = blockIdx.x * TILES; tile < (blockIdx.x + 1) * TILES; tile++) {
        const i64 block = i64(tile) * (THREADS * ROWS);
        const u64 row = (u64(tile) * THREADS + threadIdx.x) * ROWS;
        if (row >= rows) break;
        T sum[ROWS];
        row_sums(sum, {rows, columns, stored, count, distances, values}, block, row, x, 0);
#pragma unroll
        for (u32 r = 0; r < ROWS; r++)
            if (row + r < rows) dot.take(row + r, one * sum[r]);
    }
    leave_sum<THREADS>(xy, dot.part, partials, finished);
}

#if !HALF
// y = alpha A^T x + beta y, with one thread per column: its entries are on the diagonals from the last to the first, in
// the order of the rows.
extern "C" __global__ void __launch_bounds__(THREADS)
    dia_transposed(u64 rows, u64 columns, u32 count, const i64* distances, const V* values, T alpha, const T* x, T beta, T* y,
                   u32 conjugate) {
    after_predecessors();
    const u64 column = u64(blockIdx.x) * THREADS + threadIdx.x;
    if (column >= columns) return;
    T sum = T();
#pragma unroll 4
    for (u32 k = count; k-- > 0;) {
        const u64 row = u64(i64(column) - cached(distances + k));
        if (row >= rows) continue;
        const V value = values[first_place(row, count) + u64(k) * SECTION];
        if (!is_no_entry(value)) sum = sum + entry<T>(value, conjugate) * cached(x + row);
    }
    finish(alpha, sum, beta, y + column);
}
#endif
