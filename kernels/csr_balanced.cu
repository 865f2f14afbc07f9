// y = alpha A x + beta y with A in compressed sparse rows of any lengths: all blocks get about the same share.
//
//     | 1 . 7 . |     offsets  0   2   3   5   7          steps   r0 1 7 | r1 8 r2 | 4 3 r3 | 2 1
//     | . . 8 . |     columns  0 2 | 2 | 1 2 | 0 3        tiles of 3 steps: the start of a row is a step, each nonzero is one
//     | . 4 3 . |     values   1 7 | 8 | 4 3 | 2 1
//     | 2 . . 1 |     SLACK 1: tile 1 has rows 1 and 2, with 4 of row 2, whose 3 is in tile 2; SLACK 2: all of both
//
// The steps are those of merging row starts with nonzeros (merge path), so empty rows count too. The start of each tile
// is computed once per matrix (row_shape.cu: the co-rank search) and gives a block its nonzeros. Their products a_ij
// x_j are written to shared memory, one per thread; then groups of threads sum the rows, with as many threads per row
// as the number of rows in the tile allows, and whole warps sum the rows that are too long for that.
//
// A row that is too long for the tile in which it starts is divided (tile_start.cuh). Each of its tiles posts its
// piece; the last one waits for them (posts.cuh) and adds them up in their order, so that two runs give the same bits,
// and a row of a million nonzeros is shared by hundreds of blocks.
//
// Bytes per nonzero: value + 4 for the column + accesses to x that miss the caches. Per row: its offset, and y.
// Sources: PMPP ch. 12 (co-rank); Merrill and Garland 2016 (merge-based products; posted words); Greathouse and
// Daga 2014.
//
// Constants: SCALAR (vectors), STORED (values), OFFSET (offsets), THREADS, ITEMS (steps of a tile per thread), SLACK
// (less than a tile), UNROLL (nonzeros in flight per thread), AHEAD (1: the first of them are loaded before the
// previous launch has ended), MIN_BLOCKS (blocks that a multiprocessor should hold).
#include "posts.cuh"
#include "product.cuh"
#include "tile_start.cuh"

typedef SCALAR T;
typedef STORED V;
typedef OFFSET I;
#define ROOM (THREADS * ITEMS + SLACK)
// Nonzeros per lane above which a part is left to a whole warp.
constexpr u32 LONG = 32;

// Returns the sum of all threads' values, in all threads. The few sums of warps are added up one by one, which is
// faster than shuffles. A barrier must come between two calls.
DEVICE T tile_sum(T value) {
    __shared__ alignas(16) unsigned char bytes[THREADS / 32 * sizeof(T)];
    T* const of_warp = reinterpret_cast<T*>(bytes);
    value = warp_sum(value);
    if (lane_id() == 0) of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    value = of_warp[0];
#pragma unroll
    for (u32 w = 1; w < THREADS / 32; w++) value = value + of_warp[w];
    return value;
}

// Up to UNROLL nonzeros of this thread, from the k-th of the tile on, loaded ahead.
struct Share {
    u32 column[UNROLL];
    V value[UNROLL];

    // Matrices that are loaded ahead are in the second-level cache, where evict-first loads would cost time.
    DEVICE void ask(u32 k, u32 nonzeros, const u32* columns, const V* values) {
#pragma unroll
        for (u32 u = 0; u < UNROLL; u++)
            if (k + u * THREADS < nonzeros) {
                column[u] = columns[k + u * THREADS];
                value[u] = values[k + u * THREADS];
            }
    }
};

// `take` gets place and product of N nonzeros of this thread from the k-th on, THREADS apart. If PARTLY, the last may
// not exist; the others are loaded without a test, which saves a third of the instructions.
template <u32 N, bool PARTLY, typename F>
DEVICE void products_of(u32 k, u32 nonzeros, const u32* columns, const V* values, const T* x, u32 conjugate, F take) {
    const bool all = !PARTLY || k + (N - 1) * THREADS < nonzeros;
    u32 column[N];
    V value[N];
    T of_x[N];
    columns += k;
    values += k;
#pragma unroll
    for (u32 u = 0; u < N; u++)
        if (u + 1 < N || all) {
            column[u] = stream(columns + u * THREADS);
            value[u] = stream(values + u * THREADS);
        }
#pragma unroll
    for (u32 u = 0; u < N; u++)
        if (u + 1 < N || all) of_x[u] = cached(x + column[u]);
#pragma unroll
    for (u32 u = 0; u < N; u++)
        if (u + 1 < N || all) take(k + u * THREADS, entry<T>(value[u], conjugate) * of_x[u]);
}
// The products of the nonzeros after the first `done`, at most N per thread.
template <u32 N, typename F>
DEVICE void products_behind(u32 done, u32 nonzeros, const u32* columns, const V* values, const T* x, u32 conjugate, F take) {
    if constexpr (N > 0) {
        if (nonzeros > done + (N - 1) * THREADS) products_of<N, true>(done + threadIdx.x, nonzeros, columns, values, x, conjugate, take);
        else products_behind<N - 1>(done, nonzeros, columns, values, x, conjugate, take);
    }
}

// `take` gets place and product of this thread's nonzeros. If AHEAD, the first of them have been loaded already; x is
// then read by plain loads, which stay after the wait for the previous launch.
template <typename F>
DEVICE void each_product(Share& share, u32 nonzeros, const u32* columns, const V* values, const T* x, u32 conjugate, F take) {
    if constexpr (!AHEAD) {
        u32 done = 0;
        for (; done + THREADS * UNROLL <= nonzeros; done += THREADS * UNROLL)
            products_of<UNROLL, false>(done + threadIdx.x, nonzeros, columns, values, x, conjugate, take);
        products_behind<UNROLL>(done, nonzeros, columns, values, x, conjugate, take);
    } else {
        for (u32 k = threadIdx.x; k < nonzeros; k += THREADS * UNROLL) {
            T of_x[UNROLL];
            if (k >= THREADS * UNROLL) share.ask(k, nonzeros, columns, values);
#pragma unroll
            for (u32 u = 0; u < UNROLL; u++)
                if (k + u * THREADS < nonzeros) of_x[u] = x[share.column[u]];
#pragma unroll
            for (u32 u = 0; u < UNROLL; u++)
                if (k + u * THREADS < nonzeros) take(k + u * THREADS, entry<T>(share.value[u], conjugate) * of_x[u]);
        }
    }
}

// posts: room for one piece per tile, initially zero.
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    csr_balanced(const TileStart* tiles, const I* offsets, const u32* columns, const V* values, T alpha, const T* x, T beta, T* y,
                 u32 conjugate, u64* posts, u32 settled) {
    before_matrix(AHEAD && settled);
    __shared__ alignas(16) unsigned char product_bytes[ROOM * sizeof(T)], piece_bytes[sizeof(T)];
    __shared__ u16 starts[ROOM + 2], long_ones[ROOM / LONG + 1];
    __shared__ u32 long_count;
    T* const products = reinterpret_cast<T*>(product_bytes);
    T* const came_in = reinterpret_cast<T*>(piece_bytes);
    const u32 tile = blockIdx.x;
    const TileStart from = tiles[tile], to = tiles[tile + 1];
    const u32 nonzeros = u32(to.begin - from.begin), n = to.row - from.row;
    const bool comes_in = from.since < tile, goes_on = to.since <= tile;
    columns += from.begin;
    values += from.begin;
    Share first;
    // Part 0 is the rest of the row that continues from an earlier tile, part i is row from.row + i - 1 as far as it is
    // in this tile.
    const auto find_parts = [&] {
        for (u32 i = threadIdx.x; i <= n + 1; i += THREADS)
            starts[i] = u16(i == 0 ? 0 : i > n ? nonzeros : u32(u64(offsets[from.row + i - 1]) - from.begin));
    };
    if (AHEAD) {
        first.ask(threadIdx.x, nonzeros, columns, values);
        if (n > 0) find_parts();
    }
    before_vectors(AHEAD && settled);

    if (n == 0) {
        // The tile has only a part of one row, or nothing.
        if (!comes_in) return;
        T sum = T();
        each_product(first, nonzeros, columns, values, x, conjugate, [&](u32, T product) { sum = sum + product; });
        sum = tile_sum(sum);
        if (threadIdx.x == 0) *came_in = sum;
        if (goes_on) {
            if (threadIdx.x == 0) post(posts, tile, sum);
            return;
        }
        __syncthreads();
    } else {
        if (threadIdx.x == 0) long_count = 0;
        if (!AHEAD) find_parts();
        each_product(first, nonzeros, columns, values, x, conjugate, [&](u32 k, T product) { products[k] = product; });
        __syncthreads();

        const auto leave = [&](u32 part, T sum) {
            if (part == 0) *came_in = sum;
            else if (part == n && goes_on) post(posts, tile, sum);
            else finish(alpha, sum, beta, y + from.row + part - 1);
        };
        // Each part gets as many lanes as the block has threads for.
        u32 lanes = 32;
        while (lanes > 1 && lanes * (n + 1) > THREADS) lanes /= 2;
        const u32 lane = threadIdx.x % lanes, groups = THREADS / lanes, skipped = comes_in ? 0 : 1;
        for (u32 part = skipped + threadIdx.x / lanes, round = skipped; round <= n; part += groups, round += groups) {
            const u32 low = part <= n ? starts[part] : 0, high = part <= n ? starts[part + 1] : 0;
            const bool waits = lanes < 32 && high - low > LONG * lanes;
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
        if (!comes_in) return;
        __syncthreads();
    }

    // The row from an earlier tile ends here.
    T sum = T();
    for (u64 piece = from.since + threadIdx.x; piece < tile; piece += THREADS) sum = sum + collect<T>(posts, piece);
    sum = tile - from.since <= 32 ? warp_sum(sum) : tile_sum(sum);
    if (threadIdx.x == 0) finish(alpha, sum + *came_in, beta, y + from.row - 1);
}
