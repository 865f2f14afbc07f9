// y = alpha A x + beta y with A in compressed sparse rows of any lengths: every block gets the same share.
//
//     | 1 . 7 . |     offsets  0   2   3   5   7          steps   r0 1 7 | r1 8 r2 | 4 3 r3 | 2 1
//     | . . 8 . |     columns  0 2 | 2 | 1 2 | 0 3        tiles of 3 steps: the start of a row is a step, each nonzero is one
//     | . 4 3 . |     values   1 7 | 8 | 4 3 | 2 1
//     | 2 . . 1 |     tile 1: rows 1 and 2, of which 2 goes on; tile 2: the rest of row 2, and row 3, of which no nonzero is here
//
// The steps are those of merging row starts with nonzeros (merge path), so empty rows count too. Row r starts at step
// offsets[r] + r. The first row that starts in each tile is found once a matrix (row_shape.cu: the co-rank search); with it a block
// knows its nonzeros. Their products a_ij x_j go to shared memory, a thread a nonzero; then groups of threads sum the rows, as
// many threads a row as the number of rows in the tile leaves, and whole warps the rows that are long for that.
//
// A row that goes on in the next tile leaves its pieces, one a tile, and csr_balanced_join adds them up in their order: the same bits
// in every run, and a row of a million nonzeros is work for hundreds of blocks.
//
// Bytes a nonzero: value + 4 for the column + what of x misses the caches. A row: its offset, and y.
// Sources: PMPP ch. 12 (co-rank); Merrill and Garland 2016 (merge-based products); Greathouse and Daga 2014.
//
// Constants: SCALAR (vectors), STORED (values), OFFSET (offsets), THREADS, ITEMS (steps of a tile a thread), UNROLL (nonzeros a
// thread has under way), MIN_BLOCKS (blocks that a multiprocessor shall hold).
#include "product.cuh"

typedef SCALAR T;
typedef STORED V;
typedef OFFSET I;
#define TILE u64(THREADS * ITEMS)

// pieces: two a tile, of the row that comes in and of the one that goes on.
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    csr_balanced(u64 rows, u64 count, const u32* tile_rows, const I* offsets, const u32* columns, const V* values, T alpha, const T* x,
                 T beta, T* y, u32 conjugate, T* pieces) {
    __shared__ alignas(16) unsigned char product_bytes[THREADS * ITEMS * sizeof(T)];
    __shared__ u16 starts[THREADS * ITEMS + 2], long_ones[THREADS * ITEMS / 16 + 1];
    __shared__ u32 long_count;
    T* const products = reinterpret_cast<T*>(product_bytes);
    const u64 tile = blockIdx.x, first_step = tile * TILE;
    const u64 last_step = first_step + TILE < rows + count ? first_step + TILE : rows + count;
    const u64 first = cached(tile_rows + tile), behind = cached(tile_rows + tile + 1);
    const u64 begin = first_step - first;
    const u32 nonzeros = u32(last_step - behind - begin), n = u32(behind - first);
    if (threadIdx.x == 0) long_count = 0;

    // Part 0 is the rest of the row that comes in, part i the row first + i - 1 as far as it lies here.
    for (u32 i = threadIdx.x; i <= n + 1; i += THREADS)
        starts[i] = u16(i == 0 ? 0 : i > n ? nonzeros : u32(u64(offsets[first + i - 1]) - begin));
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
    const bool goes_on = n > 0 && u64(offsets[behind]) > begin + nonzeros;
    __syncthreads();

    const auto leave = [&](u32 part, T sum) {
        if (part == 0) pieces[2 * tile] = sum;
        else if (part == n && goes_on) pieces[2 * tile + 1] = sum;
        else finish(alpha, sum, beta, y + first + part - 1);
    };
    // As many lanes a part as there are threads for; parts of more than 16 nonzeros a lane wait for a warp.
    u32 lanes = 32;
    while (lanes > 1 && lanes * (n + 1) > THREADS) lanes /= 2;
    const u32 lane = threadIdx.x % lanes, groups = THREADS / lanes;
    for (u32 part = threadIdx.x / lanes, round = 0; round <= n; part += groups, round += groups) {
        const u32 low = part <= n ? starts[part] : 0, high = part <= n ? starts[part + 1] : 0;
        const bool waits = lanes < 32 && high - low > 16 * lanes;
        T sum = T();
        if (!waits)
            for (u32 k = low + lane; k < high; k += lanes) sum = sum + products[k];
        for (u32 with = lanes / 2; with; with /= 2) sum = sum + shuffle_xor(sum, with);
        if (lane == 0 && part <= n) {
            if (waits) long_ones[atomicAdd(&long_count, 1u)] = u16(part);
            else leave(part, sum);
        }
    }
    __syncthreads();
    for (u32 i = threadIdx.x / 32; i < long_count; i += THREADS / 32) {
        const u32 part = long_ones[i], high = starts[part + 1];
        T sum = T();
        for (u32 k = starts[part] + lane_id(); k < high; k += 32) sum = sum + products[k];
        sum = warp_sum(sum);
        if (lane_id() == 0) leave(part, sum);
    }
}

// A thread a tile: where a row starts in it and goes on, the sum of its pieces. Rows of more than 8 tiles are taken by the warp.
extern "C" __global__ void __launch_bounds__(THREADS)
    csr_balanced_join(u64 rows, u64 count, const u32* tile_rows, const I* offsets, T alpha, T beta, T* y, const T* pieces) {
    const u64 tiles = (rows + count + TILE - 1) / TILE, tile = u64(blockIdx.x) * THREADS + threadIdx.x;
    u64 row = 0, last = tile;
    if (tile + 1 < tiles) {
        const u64 behind = tile_rows[tile + 1];
        const u64 end = offsets[behind];
        if (behind > tile_rows[tile] && end > (tile + 1) * TILE - behind) {
            row = behind - 1;
            last = (end + row) / TILE;
        }
    }
    if (last > tile && last - tile <= 8) {
        T sum = pieces[2 * tile + 1];
        for (u64 t = tile + 1; t <= last; t++) sum = sum + pieces[2 * t];
        finish(alpha, sum, beta, y + row);
    }
    for (u32 waiting = __ballot_sync(ALL, last > tile + 8); waiting; waiting &= waiting - 1) {
        const u32 of = __ffs(waiting) - 1;
        const u64 from = shuffle(tile, of), to = shuffle(last, of), into = shuffle(row, of);
        T sum = lane_id() == 0 ? pieces[2 * from + 1] : T();
        for (u64 t = from + 1 + lane_id(); t <= to; t += 32) sum = sum + pieces[2 * t];
        sum = warp_sum(sum);
        if (lane_id() == 0) finish(alpha, sum, beta, y + into);
    }
}
