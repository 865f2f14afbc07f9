// y = alpha A x + beta y with A in compressed sparse rows of any lengths: every block gets the same share.
//
//     | 1 . 7 . |     offsets  0   2   3   5   7          steps   r0 1 7 | r1 8 r2 | 4 3 r3 | 2 1
//     | . . 8 . |     columns  0 2 | 2 | 1 2 | 0 3        tiles of 3 steps: a row's start is a step, each nonzero is one;
//     | . 4 3 . |     values   1 7 | 8 | 4 3 | 2 1        row r starts at step offsets[r] + r
//     | 2 . . 1 |
//
// The steps are those of merging the row ends with the nonzeros (merge path), so empty rows count too. A tile owns the rows
// that start in it; it finds them by a search for its first and last step (the co-rank search, a warp probing 32 rows at once).
// Its products a_ij x_j go to shared memory, a thread a nonzero; then groups of threads sum the rows, as many threads a row as
// the number of rows in the tile leaves, and whole warps the rows that are long for that.
//
// A row that leaves its tile is still summed there while it has at most LONG nonzeros. A longer one is cut where tiles end:
// each tile leaves the sum of its piece, and the tile that comes last (a counter tells) adds the pieces up in their order. So
// there is no second launch, and the bits are the same in every run.
//
// Bytes a nonzero: value + 4 for the column + what of x misses the caches. A row: its offset, and y.
// Sources: PMPP ch. 12 (co-rank); Merrill and Garland 2016 (merge-based products); Greathouse and Daga 2014.
//
// Constants: SCALAR (vectors), STORED (values), OFFSET (offsets), THREADS (64 at least), ITEMS (steps of a tile a thread), LONG
// (at most 65535 less a tile), UNROLL (nonzeros a thread has under way).
#include "block_sum.cuh"
#include "product.cuh"

typedef SCALAR T;
typedef STORED V;
typedef OFFSET I;
#define TILE u64(THREADS * ITEMS)
#define CAPACITY (THREADS * ITEMS + LONG)
#define WARPS (THREADS / 32)

// First row whose start is step `step` or a later one; `rows` where there is none. A whole warp calls it.
DEVICE u64 first_row_from(const I* offsets, u64 rows, u64 step) {
    u64 low = 0, high = rows;
    while (low < high) {
        const u64 width = (high - low + 31) / 32, at = low + lane_id() * width + width - 1;
        const u32 reached = __ballot_sync(ALL, at >= high || u64(offsets[at]) + at >= step);
        const u64 part = reached ? __ffs(reached) - 1 : 32;
        low += part * width;
        if (low + width - 1 < high) high = low + width - 1;
        if (low > high) low = high;
    }
    return low;
}

struct Matrix {
    u64 rows;
    const I* offsets;
    const u32* columns;
    const V* values;
    u32 conjugate;
};

// Sum of the nonzeros from .. to, in thread 0.
DEVICE T piece_sum(const Matrix& a, u64 from, u64 to, const T* x) {
    T sum = T();
    for (u64 k = from + threadIdx.x; k < to; k += THREADS * UNROLL) {
        T of_x[UNROLL];
        V value[UNROLL];
#pragma unroll
        for (u32 u = 0; u < UNROLL; u++)
            if (k + u * THREADS < to) {
                of_x[u] = cached(x + stream(a.columns + k + u * THREADS));
                value[u] = stream(a.values + k + u * THREADS);
            }
#pragma unroll
        for (u32 u = 0; u < UNROLL; u++)
            if (k + u * THREADS < to) sum = sum + entry<T>(value[u], a.conjugate) * of_x[u];
    }
    __syncthreads();
    return block_sum<THREADS>(sum);
}

// This tile's piece of a row that is cut. pieces: two a tile, of the row that comes in and of the one that goes on.
DEVICE void cut_row(const Matrix& a, u64 row, u64 tile, u64 from, u64 to, T alpha, const T* x, T beta, T* y, T* pieces,
                    u32* arrived) {
    __shared__ bool last;
    const u64 first_tile = (u64(a.offsets[row]) + row) / TILE, last_tile = (u64(a.offsets[row + 1]) - 1 + row) / TILE;
    const T sum = piece_sum(a, from, to, x);
    if (threadIdx.x == 0) {
        pieces[2 * tile + (tile == first_tile)] = sum;
        __threadfence();
        last = atomicAdd(arrived + first_tile, 1u) == u32(last_tile - first_tile);
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    T all = T();
    for (u64 t = first_tile + threadIdx.x; t <= last_tile; t += THREADS)
        all = all + load_shared_result(pieces + 2 * t + (t == first_tile));
    all = block_sum<THREADS>(all);
    if (threadIdx.x == 0) {
        finish(alpha, all, beta, y + row);
        arrived[first_tile] = 0;
    }
    __syncthreads();
}

// pieces and arrived: 2 * tiles places and tiles zeros (left so); null where no row has more than LONG nonzeros.
extern "C" __global__ void __launch_bounds__(THREADS)
    csr_balanced(u64 rows, u64 count, const I* offsets, const u32* columns, const V* values, T alpha, const T* x, T beta, T* y,
                 u32 conjugate, T* pieces, u32* arrived) {
    __shared__ alignas(16) unsigned char products_bytes[CAPACITY * sizeof(T)];
    __shared__ u16 starts[THREADS * ITEMS + 1], long_rows[CAPACITY / 16 + 1];
    __shared__ u64 bound[2];
    __shared__ u32 long_count;
    T* const products = reinterpret_cast<T*>(products_bytes);
    const Matrix a = {rows, offsets, columns, values, conjugate};
    const u64 tile = blockIdx.x, first_step = tile * TILE;
    const u64 last_step = first_step + TILE < rows + count ? first_step + TILE : rows + count;
    if (threadIdx.x < 64) {
        const u64 row = first_row_from(offsets, rows, threadIdx.x < 32 ? first_step : last_step);
        if (lane_id() == 0) bound[threadIdx.x / 32] = row;
    }
    if (threadIdx.x == 0) long_count = 0;
    __syncthreads();
    const u64 first = bound[0], behind = bound[1];
    const u64 begin = offsets[first];
    u64 end = offsets[behind];
    u32 n = u32(behind - first);
    // The last row goes on in the next tile.
    bool goes_on = false;
    if (n > 0 && end + (behind - 1) > last_step) {
        const u64 start = offsets[behind - 1];
        goes_on = end - start > LONG;
        if (goes_on) {
            end = start;
            n--;
        }
    }

    const u32 nonzeros = u32(end - begin);
    for (u32 i = threadIdx.x; i <= n; i += THREADS) starts[i] = u16(u64(offsets[first + i]) - begin);
    for (u32 k = threadIdx.x; k < nonzeros; k += THREADS * UNROLL) {
        u32 column[UNROLL];
        V value[UNROLL];
        T of_x[UNROLL];
#pragma unroll
        for (u32 u = 0; u < UNROLL; u++)
            if (k + u * THREADS < nonzeros) {
                column[u] = stream(columns + begin + k + u * THREADS);
                value[u] = stream(values + begin + k + u * THREADS);
            }
#pragma unroll
        for (u32 u = 0; u < UNROLL; u++)
            if (k + u * THREADS < nonzeros) of_x[u] = cached(x + column[u]);
#pragma unroll
        for (u32 u = 0; u < UNROLL; u++)
            if (k + u * THREADS < nonzeros) products[k + u * THREADS] = entry<T>(value[u], conjugate) * of_x[u];
    }
    __syncthreads();

    // As many lanes a row as there are threads for; rows of more than 16 nonzeros a lane wait for a warp.
    u32 lanes = 32;
    while (lanes > 1 && lanes * n > THREADS) lanes /= 2;
    const u32 lane = threadIdx.x % lanes, groups = THREADS / lanes;
    for (u32 r = threadIdx.x / lanes, round = 0; round < n; r += groups, round += groups) {
        const u32 low = r < n ? starts[r] : 0, high = r < n ? starts[r + 1] : 0;
        const bool waits = lanes < 32 && high - low > 16 * lanes;
        T sum = T();
        if (!waits)
            for (u32 k = low + lane; k < high; k += lanes) sum = sum + products[k];
        for (u32 with = lanes / 2; with; with /= 2) sum = sum + shuffle_xor(sum, with);
        if (lane == 0 && r < n) {
            if (waits) long_rows[atomicAdd(&long_count, 1u)] = u16(r);
            else finish(alpha, sum, beta, y + first + r);
        }
    }
    __syncthreads();
    for (u32 i = threadIdx.x / 32; i < long_count; i += WARPS) {
        const u32 r = long_rows[i], high = starts[r + 1];
        T sum = T();
        for (u32 k = starts[r] + lane_id(); k < high; k += 32) sum = sum + products[k];
        sum = warp_sum(sum);
        if (lane_id() == 0) finish(alpha, sum, beta, y + first + r);
    }

    if (goes_on) cut_row(a, behind - 1, tile, offsets[behind - 1], last_step - (behind - 1), alpha, x, beta, y, pieces, arrived);
    // The row that came in, where it is one that is cut.
    if (first > 0) {
        const u64 row = first - 1, row_end = offsets[first];
        if (row_end + row > first_step && row_end - offsets[row] > LONG) {
            const u64 to = row_end + row < last_step ? row_end : last_step - row;
            cut_row(a, row, tile, first_step - row, to, alpha, x, beta, y, pieces, arrived);
        }
    }
}
