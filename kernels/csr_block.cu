// Y = alpha A X + beta Y with A in compressed sparse rows and several vectors at once.
//
//     | 1 . 7 . |     offsets  0   2   3   5   7          X, 4 x 2, row by row:  x0 z0 | x1 z1 | x2 z2 | x3 z3
//     | . . 8 . |     columns  0 2 | 2 | 1 2 | 0 3
//     | . 4 3 . |     values   1 7 | 8 | 4 3 | 2 1        row 0: 1 (x0 z0) + 7 (x2 z2)
//     | 2 . . 1 |
//
// The vectors lie interleaved: element i of vector j is at i * vectors + j. So a nonzero asks for neighbouring addresses, a
// column and a value serve all vectors, and a line of X is used whole.
//
// A block takes THREADS / LANES rows; columns and values go through shared memory as in csr_stream.cu. LANES threads a row take
// WIDTH vectors each. Rows of more than `longest` nonzeros are left out here: csr_block_long gives them a block each, whose groups of
// lanes take their nonzeros in turn and join their sums in a fixed tree.
//
// Bytes a nonzero: value + 4 for the column + what of X misses the caches. A row: its offset, and a row of Y.
// Source: Yang, Buluc and Owens 2018 (row splitting, several vectors).
//
// Constants: SCALAR (vectors), STORED (values), OFFSET (offsets), LANES (1 to 32, a power of two), WIDTH (1, or 16 bytes' worth),
// UNROLL (nonzeros a thread has under way), THREADS.
#include "stage.cuh"

typedef SCALAR T;
typedef STORED V;
typedef OFFSET I;
#define ROWS (THREADS / LANES)

struct alignas(sizeof(T) * WIDTH) Part {
    T of[WIDTH];
};
DEVICE Part load_part(const T* p) {
    Part part;
    if constexpr (sizeof(Part) == 16) part = bits<Part>(__ldg(reinterpret_cast<const uint4*>(p)));
    else part.of[0] = cached(p);
    return part;
}
DEVICE void store_part(T alpha, const Part& sum, T beta, T* y) {
    Part* const to = reinterpret_cast<Part*>(y);
    Part old = {};
    if (!is_zero(beta)) old = *to;
#pragma unroll
    for (int w = 0; w < WIDTH; w++) old.of[w] = is_zero(beta) ? alpha * sum.of[w] : alpha * sum.of[w] + beta * old.of[w];
    *to = old;
}

// Sum over nonzeros low, low + step ... below high of a row, for the vectors at `x`.
template <typename C, typename E>
DEVICE void add_entries(Part& sum, const C& column_at, const E& value_at, u32 low, u32 high, u32 step, const T* x, u32 vectors) {
    for (u32 k = low; k < high; k += UNROLL * step) {
        Part of_x[UNROLL];
#pragma unroll
        for (u32 u = 0; u < UNROLL; u++)
            if (k + u * step < high) of_x[u] = load_part(x + u64(column_at(k + u * step)) * vectors);
#pragma unroll
        for (u32 u = 0; u < UNROLL; u++)
            if (k + u * step < high) {
                const T value = value_at(k + u * step);
#pragma unroll
                for (int w = 0; w < WIDTH; w++) sum.of[w] = sum.of[w] + value * of_x[u].of[w];
            }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    csr_block(u64 rows, u64 count, const I* offsets, const u32* columns, const V* values, T alpha, const T* x, T beta, T* y,
              u32 vectors, u32 capacity, u32 longest) {
    extern __shared__ uint4 shared[];
    V* const tile_values = reinterpret_cast<V*>(shared);
    u32* const tile_columns = reinterpret_cast<u32*>(tile_values + capacity);
    const u64 first = u64(blockIdx.x) * ROWS, row = first + threadIdx.x / LANES;
    const u32 vector = threadIdx.x % LANES * WIDTH;
    const bool mine = row < rows && vector < vectors;
    const u64 last = first + ROWS < rows ? first + ROWS : rows;
    const u64 begin = offsets[first], end = offsets[last];
    u64 low = mine ? u64(offsets[row]) : end, high = mine ? u64(offsets[row + 1]) : end;
    const bool left_out = high - low > longest;
    if (left_out) low = high;
    Part sum = {};
    for (u64 start = begin & ~u64(3); start < end; start += capacity) {
        const u64 stop = end - start < capacity ? end : start + capacity;
        stage<THREADS>(tile_columns, columns, start, stop, count);
        stage<THREADS>(tile_values, values, start, stop, count);
        copies_done();
        __syncthreads();
        const u32 from = low > start ? u32((low < stop ? low : stop) - start) : 0;
        const u32 to = high > start ? u32((high < stop ? high : stop) - start) : 0;
        add_entries(sum, [=](u32 k) { return tile_columns[k]; }, [=](u32 k) { return entry<T>(tile_values[k], 0); }, from, to, 1,
                    x + vector, vectors);
        __syncthreads();
    }
    if (mine && !left_out) store_part(alpha, sum, beta, y + row * vectors + vector);
}

// Blocks walk over all rows and stop at those of more than `longest` nonzeros.
extern "C" __global__ void __launch_bounds__(THREADS)
    csr_block_long(u64 rows, const I* offsets, const u32* columns, const V* values, T alpha, const T* x, T beta, T* y, u32 vectors,
                   u32 longest) {
    __shared__ alignas(16) unsigned char sum_bytes[THREADS * sizeof(Part)];
    __shared__ u32 found[THREADS], finds;
    Part* const sums = reinterpret_cast<Part*>(sum_bytes);
    const u32 vector = threadIdx.x % LANES * WIDTH, group = threadIdx.x / LANES;
    // A long row is looked for among `gridDim.x` blocks' rows, one of each in turn: neighbours go to different blocks.
    for (u64 base = 0; base < rows; base += u64(gridDim.x) * THREADS) {
        if (threadIdx.x == 0) finds = 0;
        __syncthreads();
        const u64 row = base + u64(threadIdx.x) * gridDim.x + blockIdx.x;
        if (row < rows && offsets[row + 1] - offsets[row] > longest) found[atomicAdd(&finds, 1u)] = threadIdx.x;
        __syncthreads();
        for (u32 f = 0; f < finds; f++) {
            const u64 mine = base + u64(found[f]) * gridDim.x + blockIdx.x;
            const u64 begin = offsets[mine];
            const u32 length = u32(u64(offsets[mine + 1]) - begin);
            Part sum = {};
            if (vector < vectors)
                add_entries(sum, [=](u32 k) { return stream(columns + begin + k); },
                            [=](u32 k) { return entry<T>(stream(values + begin + k), 0); }, group, length, ROWS, x + vector, vectors);
            sums[threadIdx.x] = sum;
            for (u32 with = THREADS / 2; with >= LANES; with /= 2) {
                __syncthreads();
                if (threadIdx.x < with)
#pragma unroll
                    for (int w = 0; w < WIDTH; w++)
                        sums[threadIdx.x].of[w] = sums[threadIdx.x].of[w] + sums[threadIdx.x + with].of[w];
            }
            if (threadIdx.x < LANES && vector < vectors) store_part(alpha, sums[threadIdx.x], beta, y + mine * vectors + vector);
            __syncthreads();
        }
    }
}
