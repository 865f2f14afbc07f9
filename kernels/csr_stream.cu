// y = alpha A x + beta y with A in compressed sparse rows of similar length, through shared memory.
//
//     | 1 . 7 . |     offsets  0   2   3   5   7
//     | . . 8 . |     columns  0 2 | 2 | 1 2 | 0 3          a tile of 4 rows: columns and values to shared memory,
//     | . 4 3 . |     values   1 7 | 8 | 4 3 | 2 1          then thread 0 sums row 0, thread 1 row 1 ... (LANES = 1)
//     | 2 . . 1 |
//
// A block takes THREADS / LANES rows. Their columns and values are copied to shared memory, sixteen bytes per copy,
// whatever the lengths of rows, so that memory is read in full lines. Then LANES threads per row sum it from there: at
// each step neighbouring threads read x at the columns of neighbouring rows, which on meshes are close together. (One
// thread per row reading from memory directly would read lines in pieces; one thread per nonzero would read x in the
// order of one row.)
//
// A row may be longer than the shared memory: the tile is then processed in chunks of `capacity`. The kernel is
// therefore correct for every matrix, and fast if the rows of a tile have about the same length; otherwise
// csr_balanced.cu is used.
//
// Bytes per nonzero: value + 4 for the column + accesses to x that miss the caches. Per row: its offset, and y.
// Sources: Greathouse and Daga 2014 (CSR-stream); Bell and Garland 2008 (several lanes per row).
//
// Constants: SCALAR (vectors), STORED (values), OFFSET (offsets), LANES (1 to 32, a power of two), UNROLL (nonzeros in
// flight per thread), IN_BULK (1: one thread copies for all), THREADS.
#include "chebyshev.cuh"
#include "product_dot.cuh"
#include "stage.cuh"

typedef SCALAR T;
typedef real_of<T>::type R;
typedef STORED V;
typedef OFFSET I;
#define ROWS (THREADS / LANES)

// Processes one tile: finish(row, sum) is called for each of its rows.
template <typename F>
DEVICE void tile(u64 first, u64 rows, u64 count, const I* offsets, const u32* columns, const V* values, const T* x, u32 capacity,
                 u32 conjugate, u64* barrier, u32& parity, F finish) {
    extern __shared__ uint4 shared[];
    V* const tile_values = reinterpret_cast<V*>(shared);
    u32* const tile_columns = reinterpret_cast<u32*>(tile_values + capacity);
    const u32 lane = threadIdx.x % LANES;
    const u64 row = first + threadIdx.x / LANES;
    const u64 last = first + ROWS < rows ? first + ROWS : rows;
    const u64 begin = offsets[first], end = offsets[last];
    const u64 mine = row < rows ? u64(offsets[row]) : end, mine_end = row < rows ? u64(offsets[row + 1]) : end;
    T sum = T();
    for (u64 start = begin & ~u64(3); start < end; start += capacity) {
        const u64 stop = end - start < capacity ? end : start + capacity;
        stage_tile<THREADS, IN_BULK>(tile_columns, tile_values, columns, values, start, stop, count, barrier, parity);
        __syncthreads();
        const u32 low = mine > start ? u32((mine < stop ? mine : stop) - start) : 0;
        const u32 high = mine_end > start ? u32((mine_end < stop ? mine_end : stop) - start) : 0;
        for (u32 k = low + lane; k < high; k += UNROLL * LANES) {
            T of_x[UNROLL];
#pragma unroll
            for (u32 u = 0; u < UNROLL; u++)
                if (k + u * LANES < high) of_x[u] = cached(x + tile_columns[k + u * LANES]);
#pragma unroll
            for (u32 u = 0; u < UNROLL; u++)
                if (k + u * LANES < high) sum = sum + entry<T>(tile_values[k + u * LANES], conjugate) * of_x[u];
        }
        __syncthreads();
    }
#pragma unroll
    for (u32 with = LANES / 2; with; with /= 2) sum = sum + shuffle_xor(sum, with);
    if (row < rows && lane == 0) finish(row, sum);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    csr_stream(u64 rows, u64 count, const I* offsets, const u32* columns, const V* values, T alpha, const T* x, T beta, T* y,
               u32 capacity, u32 conjugate) {
    after_predecessors();
    __shared__ u64 barrier;
    u32 parity = 0;
    if (IN_BULK) stages_begin(&barrier);
    // The grid is as large as the matrix; the loop is here because it makes the compiled code a tenth faster.
    for (u64 first = u64(blockIdx.x) * ROWS; first < rows; first += u64(gridDim.x) * ROWS)
        tile(first, rows, count, offsets, columns, values, x, capacity, conjugate, &barrier, parity,
             [=](u64 row, T sum) { finish(alpha, sum, beta, y + row); });
}

// A step of Chebyshev's iteration in one pass with the product A z (chebyshev.cu does the same after a product): last =
// keep z + momentum last + step d .* (r - A z).
extern "C" __global__ void __launch_bounds__(THREADS)
    csr_stream_chebyshev(u64 rows, u64 count, const I* offsets, const u32* columns, const V* values, R keep, R momentum, R step,
                         const R* d, const T* r, const T* z, T* last, u32 capacity) {
    after_predecessors();
    __shared__ u64 barrier;
    u32 parity = 0;
    if (IN_BULK) stages_begin(&barrier);
    const Step<R> by = {keep, momentum, step};
    for (u64 first = u64(blockIdx.x) * ROWS; first < rows; first += u64(gridDim.x) * ROWS)
        tile(first, rows, count, offsets, columns, values, z, capacity, 0, &barrier, parity, [=](u64 row, T sum) {
            last[row] = stepped(by, d, row, r[row], z[row], sum, momentum == 0 ? T() : last[row]);
        });
}

// y = A x and xy = x.y. The grid follows from the matrix, so the sum has the same bits every time.
extern "C" __global__ void __launch_bounds__(THREADS)
    csr_stream_dot(u64 rows, u64 count, const I* offsets, const u32* columns, const V* values, T one, const T* x, T* y,
                   u32 capacity, T* xy, T* partials, u32* finished) {
    after_predecessors();
    __shared__ u64 barrier;
    u32 parity = 0;
    if (IN_BULK) stages_begin(&barrier);
    RowsDot<T> dot = {x, y, T()};
    for (u64 first = u64(blockIdx.x) * ROWS; first < rows; first += u64(gridDim.x) * ROWS)
        tile(first, rows, count, offsets, columns, values, x, capacity, 0, &barrier, parity,
             [&](u64 row, T sum) { dot.take(row, one * sum); });
    leave_sum<THREADS>(xy, dot.part, partials, finished);
}
