// Y = alpha A X + beta Y with A in compressed sparse rows and several vectors at once.
//
//     | 1 . 7 . |     offsets  0   2   3   5   7          X, 4 x 2, row by row:  x0 z0 | x1 z1 | x2 z2 | x3 z3
//     | . . 8 . |     columns  0 2 | 2 | 1 2 | 0 3
//     | . 4 3 . |     values   1 7 | 8 | 4 3 | 2 1        row 0: 1 (x0 z0) + 7 (x2 z2)
//     | 2 . . 1 |
//
// The vectors are interleaved: element i of vector j is at i * vectors + j. Therefore the lanes of a nonzero read
// neighbouring addresses, a column and a value are used for all vectors, and lines of X are used completely.
//
// A block takes THREADS / LANES rows; columns and values pass through shared memory as in csr_stream.cu. LANES threads
// per row take WIDTH vectors each. A tile takes as long as its longest row, so rows of very different lengths are left
// to csr_block_tiles.cu.
//
// Bytes per nonzero: value + 4 for the column + accesses to X that miss the caches. Per row: its offset, and a row of
// Y. Source: Yang, Buluc and Owens 2018 (row splitting, several vectors).
//
// Constants: SCALAR (vectors), STORED (values), OFFSET (offsets), LANES (1 to 32, a power of two), WIDTH (1, or 16
// bytes' worth), UNROLL (nonzeros in flight per thread), THREADS.
#include "complex.cuh"

typedef SCALAR T;
typedef STORED V;
typedef OFFSET I;
#include "interleaved.cuh"
#include "stage.cuh"
#define ROWS (THREADS / LANES)
extern __shared__ uint4 shared[];

// This thread's part of its row of A X. Shared memory may be reused after the call.
DEVICE Part row_sum(bool mine, u64 row, u32 vector, u64 rows, u64 count, const I* offsets, const u32* columns, const V* values, const T* x,
                    u32 vectors, u32 capacity) {
    V* const tile_values = reinterpret_cast<V*>(shared);
    u32* const tile_columns = reinterpret_cast<u32*>(tile_values + capacity);
    const u64 first = u64(blockIdx.x) * ROWS, last = first + ROWS < rows ? first + ROWS : rows;
    const u64 begin = offsets[first], end = offsets[last];
    const u64 low = mine ? u64(offsets[row]) : end, high = mine ? u64(offsets[row + 1]) : end;
    Part sum = {};
    for (u64 start = begin & ~u64(3); start < end; start += capacity) {
        const u64 stop = end - start < capacity ? end : start + capacity;
        stage<THREADS>(tile_columns, columns, start, stop, count);
        stage<THREADS>(tile_values, values, start, stop, count);
        copies_done();
        __syncthreads();
        const u32 from = low > start ? u32((low < stop ? low : stop) - start) : 0;
        const u32 to = high > start ? u32((high < stop ? high : stop) - start) : 0;
        u32 k = from;
        for (; k + UNROLL <= to; k += UNROLL) {
            Part of_x[UNROLL];
#pragma unroll
            for (u32 u = 0; u < UNROLL; u++) of_x[u] = load_part(x + u64(tile_columns[k + u]) * vectors + vector);
#pragma unroll
            for (u32 u = 0; u < UNROLL; u++) add_product(sum, entry<T>(tile_values[k + u], 0), of_x[u]);
        }
        // The last few are separate, so that the loop above has no test between loads.
        if (k < to) {
            Part of_x[UNROLL];
#pragma unroll
            for (u32 u = 0; u + 1 < UNROLL; u++)
                if (k + u < to) of_x[u] = load_part(x + u64(tile_columns[k + u]) * vectors + vector);
#pragma unroll
            for (u32 u = 0; u + 1 < UNROLL; u++)
                if (k + u < to) add_product(sum, entry<T>(tile_values[k + u], 0), of_x[u]);
        }
        __syncthreads();
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    csr_block(u64 rows, u64 count, const I* offsets, const u32* columns, const V* values, T alpha, const T* x, T beta, T* y,
              u32 vectors, u32 capacity) {
    after_predecessors();
    const u64 row = u64(blockIdx.x) * ROWS + threadIdx.x / LANES;
    const u32 vector = threadIdx.x % LANES * WIDTH;
    const bool mine = row < rows && vector < vectors;
    const Part sum = row_sum(mine, row, vector, rows, count, offsets, columns, values, x, vectors, capacity);
    if (mine) store_part(alpha, sum, beta, y + row * vectors + vector);
}

// Y = A X, and this block's part of x.y for each vector. Shared memory: room for one Part per warp and lane at least.
extern "C" __global__ void __launch_bounds__(THREADS)
    csr_block_dot(u64 rows, u64 count, const I* offsets, const u32* columns, const V* values, const T* x, T* y, u32 vectors, u32 capacity,
                  T* partials) {
    after_predecessors();
    Part* const of_warps = reinterpret_cast<Part*>(shared);
    const u64 row = u64(blockIdx.x) * ROWS + threadIdx.x / LANES;
    const u32 vector = threadIdx.x % LANES * WIDTH;
    const bool mine = row < rows && vector < vectors;
    const Part sum = row_sum(mine, row, vector, rows, count, offsets, columns, values, x, vectors, capacity);
    Part xy = {};
    if (mine) {
        *reinterpret_cast<Part*>(y + row * vectors + vector) = sum;
        const Part own = load_part(x + row * vectors + vector);
#pragma unroll
        for (int w = 0; w < WIDTH; w++) xy.of[w] = conj(own.of[w]) * sum.of[w];
    }
#pragma unroll
    for (u32 with = LANES; with < 32; with *= 2) xy = xy + shuffle_xor(xy, with);
    if (lane_id() < LANES) of_warps[threadIdx.x / 32 * LANES + lane_id()] = xy;
    __syncthreads();
    if (threadIdx.x >= LANES || vector >= vectors) return;
    for (u32 warp = 1; warp < THREADS / 32; warp++) xy = xy + of_warps[warp * LANES + threadIdx.x];
    *reinterpret_cast<Part*>(partials + u64(blockIdx.x) * vectors + vector) = xy;
}
