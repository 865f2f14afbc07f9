// y = alpha A x + beta y with A compressed in tiles of equal numbers of entries (compressed_balanced.cuh), for rows of
// any lengths.
//
//     | 1 . 7 . |     starts  0 2 3 5      a bit is set at the first entry of each row, 1010 1010 here, and starts are
//     | . . 8 . |     codes   0 2 2 1 2 0 3         the rows' first entries in the tile
//     | . 4 3 . |     values  1 7 8 4 3 2 1
//     | 2 . . 1 |
//
// Blocks are persistent; each has a run of tiles, and loads the next one before it sums rows. Products a_ij x_j pass
// through shared memory: a lane stores those of its entries and reads eight consecutive ones, which it adds up from row
// start to row start; then the lanes of a warp join the open sums (a segmented scan), and one thread per row adds up
// the parts of several warps. A row that continues in the next tile is carried over; what is open at the end of a block
// is posted, and the block in which the row ends collects it after all its other work (posts.cuh).
//
// Bytes per entry: 2 + 1/8 + its value, and accesses to x that miss the caches. Per row: 2, and y. If memory is not the
// limit, the first-level cache and shared memory are, mostly by gathering x. Sources: PMPP ch. 8 (segmented scan by
// carries); Merrill and Garland 2016 (equal shares whatever the rows).
//
// Constants: SCALAR (vectors), STORED (values), THREADS, MIN_BLOCKS (blocks that a multiprocessor should hold).
#include "posts.cuh"
#include "product.cuh"
#include "compressed_balanced.cuh"

typedef SCALAR T;
typedef STORED V;

// Sixteen bytes of padding follow each 128, so that threads read their eight products without bank conflicts.
DEVICE constexpr u32 spread(u32 k) { return k + k / (128 / u32(sizeof(T))) * (16 / u32(sizeof(T))); }

// What a thread loads of a tile.
struct Share {
    uint4 codes;
    lane_values<V> values;
    u32 row_starts;  // a bit for each of the eight entries that it adds up
    u32 start, next; // start, in the tile, of the row with this thread's number, and of the one after it

    DEVICE void ask(u64 tile, u32 row, u32 rows, const u16* starts, const u8* row_bits, const u16* codes_, const V* values_) {
        const u64 group = tile * TILE + threadIdx.x / 32 * GROUP;
        codes = __ldcs(vectors_of(codes_, group));
#pragma unroll
        for (u32 i = 0; i < lane_values<V>::VECTORS; i++) values.vector[i] = __ldcs(vectors_of(values_, group) + 32 * i);
        row_starts = __ldcs(row_bits + tile * THREADS + threadIdx.x);
        start = __ldg(starts + min(row + threadIdx.x, rows - 1));
        next = __ldg(starts + min(row + threadIdx.x + 1, rows - 1));
    }
};

// tiles: `count`, and one more for the end; a block takes `each`. posts: room for one piece per block, initially zero.
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    compressed_balanced(u32 rows, u32 count, u32 each, const Balanced* tiles, const u16* starts, const u8* row_bits, const u16* codes, const V* values,
               u32 conjugate, T alpha, const T* x, T beta, T* y, u64* posts) {
    after_predecessors();
    __shared__ alignas(16) unsigned char product_bytes[spread(TILE) * sizeof(T)], tail_bytes[THREADS * sizeof(T)], carry_bytes[2 * sizeof(T)];
    T* const products = reinterpret_cast<T*>(product_bytes);
    T* const tails = reinterpret_cast<T*>(tail_bytes);
    // The carry into a tile is stored at the tile's number modulo 2.
    T* const carry = reinterpret_cast<T*>(carry_bytes);
    const u32 group = threadIdx.x / 32 * GROUP, first = blockIdx.x * each, end = min(first + each, count);
    if (first >= end) return;

    Balanced from = tiles[first], to = tiles[first + 1];
    const bool comes_in = from.since < first;
    const u32 since = from.since, row_in = from.row - 1;
    // In the first thread: whether the row that was carried into the block has ended here, and its part in this block.
    bool ended = !comes_in;
    T part = T();
    if (threadIdx.x == 0) carry[first % 2] = T();
    Share share;
    share.ask(first, from.row, rows, starts, row_bits, codes, values);
    for (u32 tile = first; tile < end; tile++) {
        const u32 row = from.row, n = to.row - row, entries = from.count;
        const bool in = from.since < tile, goes_on = to.since <= tile;
        const u32 row_starts = share.row_starts, start = share.start, next = share.next;
        {
            V value[EACH];
            T of_x[EACH];
            memcpy(value, share.values.vector, sizeof(value));
            const u32 two[EACH / 2] = {share.codes.x, share.codes.y, share.codes.z, share.codes.w};
            const T* const above = x + from.base;
#pragma unroll
            for (u32 u = 0; u < EACH; u++) of_x[u] = cached(above + (u & 1 ? two[u / 2] >> 16 : two[u / 2] & 0xffff));
#pragma unroll
            for (u32 u = 0; u < EACH; u++)
                products[spread(group) + spread(32 * u) + spread(lane_id())] = entry<T>(value[u], conjugate) * of_x[u];
        }
        from = to;
        if (tile + 1 < end) {
            share.ask(tile + 1, from.row, rows, starts, row_bits, codes, values);
            to = tiles[tile + 2];
        }
        __syncwarp();
        {
            constexpr u32 VECTORS = EACH * sizeof(T) / 16;
            uint4* const mine = reinterpret_cast<uint4*>(products + spread(EACH * threadIdx.x));
            uint4 raw[VECTORS];
            T sums[EACH];
#pragma unroll
            for (u32 i = 0; i < VECTORS; i++) raw[i] = mine[i];
            memcpy(sums, raw, sizeof(sums));
#pragma unroll
            for (u32 u = 1; u < EACH; u++)
                if (!(row_starts >> u & 1)) sums[u] = sums[u - 1] + sums[u];
            memcpy(raw, sums, sizeof(sums));
#pragma unroll
            for (u32 i = 0; i < VECTORS; i++) mine[i] = raw[i];
            // The distance to the nearest lane, up to this one, in which a row starts.
            const u32 before = __ballot_sync(ALL, row_starts != 0) & (lanes_below() | 1u << lane_id());
            const u32 reach = before ? lane_id() - (31 - __clz(before)) : lane_id();
            T tail = sums[EACH - 1];
#pragma unroll
            for (u32 by = 1; by < 32; by *= 2) {
                if (!__any_sync(ALL, by <= reach)) break;
                const T other = shuffle_up(tail, by);
                if (by <= reach) tail = other + tail;
            }
            tails[threadIdx.x] = tail;
        }
        __syncthreads();

        // The sum of entries `low` to `high` of the tile, which belong to one row.
        const auto sum_of = [&](u32 low, u32 high) {
            if (low == high) return T();
            const u32 thread = (high - 1) / EACH;
            T sum = products[spread(high - 1)];
            if (low < EACH * thread) {
                if (thread % 32) sum = tails[thread - 1] + sum;
                for (u32 warp = thread / 32; warp > low / GROUP; warp--) sum = tails[32 * warp - 1] + sum;
            }
            return sum;
        };
        for (u32 i = threadIdx.x; i < n; i += THREADS) {
            const u32 low = i < THREADS ? start : __ldg(starts + row + i);
            const u32 high = i + 1 == n ? entries : i < THREADS ? next : __ldg(starts + row + i + 1);
            const T sum = sum_of(low, high);
            if (i + 1 == n && goes_on) carry[(tile + 1) % 2] = sum;
            else finish(alpha, sum, beta, y + row + i);
        }
        if (in && threadIdx.x == 0) {
            const T sum = carry[tile % 2] + sum_of(0, n ? start : entries);
            if (n == 0 && goes_on) carry[(tile + 1) % 2] = sum;
            else if (ended) finish(alpha, sum, beta, y + row - 1);
            else part = sum, ended = true;
        }
        __syncthreads();
    }
    if (threadIdx.x >= 32) return;
    // `from` describes the end of the last tile.
    if (threadIdx.x == 0 && from.since < end) post(posts, blockIdx.x, carry[end % 2]);
    if (!__shfl_sync(ALL, u32(comes_in && ended), 0)) return;
    T sum = T();
    for (u32 piece = since / each + lane_id(); piece < blockIdx.x; piece += 32) sum = sum + collect<T>(posts, piece);
    sum = warp_sum(sum);
    if (threadIdx.x == 0) finish(alpha, sum + part, beta, y + row_in);
}
