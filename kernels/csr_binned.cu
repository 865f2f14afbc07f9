// y = alpha A x + beta y with A in compressed sparse rows of very different lengths, for matrices that fit the
// second-level cache.
//
//     | 1 . 7 . |     offsets  0   2   3   5   7          EACH = 1: row 1 has one lane, rows 0, 2 and 3 have two lanes each
//     | . . 8 . |     columns  0 2 | 2 | 1 2 | 0 3
//     | . 4 3 . |     values   1 7 | 8 | 4 3 | 2 1        parts (begin, end, row), shortest rows first:
//     | 2 . . 1 |                                             2 3 1 | 0 2 0 | 3 5 2 | 5 7 3
//
// For such matrices the time depends on the number of dependent steps: the part, its columns and values, x, the sum.
// Therefore rows are sorted once per matrix into bins of up to EACH nonzeros, twice as many, ... 32 times as many, with
// 1, 2, ... 32 lanes of a warp; no lane has more than EACH nonzeros, all of them in flight at once, and no row waits
// for another. Longer rows get one or more whole blocks, which come first. If a row has several blocks, the last one
// collects the sums that the others post (posts.cuh) and adds them up in their order.
//
// Bytes per nonzero: value + 4 for the column + accesses to x that miss the caches. Per row: its part, 16, and y.
// Source: Ashari, Sedaghati, Eisenlohr, Parthasarathy and Sadayappan 2014 (rows in bins by length).
//
// Constants: SCALAR (vectors), STORED (values), EACH (maximum nonzeros per lane), THREADS, MIN_BLOCKS (blocks that a
// multiprocessor should hold).
#include "posts.cuh"
#include "product.cuh"

typedef SCALAR T;
typedef STORED V;
#define WARPS (THREADS / 32)

struct alignas(16) Part {
    u32 begin, end, row;
    u32 since;  // the number of the row's first part among parts of blocks, with LAST in the row's last part
};
constexpr u32 LAST = 1u << 31, NO_ROW = ~0u;

// The number of parts with blocks, followed by the ends of the parts of warps with 1, 2, ... 32 lanes per part.
struct Ends {
    u32 blocks, warps[6];
};

// A part for a group of lanes of a warp: its number, and the logarithm of the number of lanes.
struct Place {
    u32 part, lanes_log;
};
DEVICE Place place_of(u32 warp, const Ends& ends) {
    Place place = {ends.blocks, 0};
    u32 before = 0;
#pragma unroll
    for (u32 i = 0; i < 5; i++)
        if (warp >= ends.warps[i]) {
            place.part += (ends.warps[i] - before) << (5 - i);
            place.lanes_log = i + 1;
            before = ends.warps[i];
        }
    place.part += ((warp - before) << (5 - place.lanes_log)) + (lane_id() >> place.lanes_log);
    return place;
}

// Sum over this thread's nonzeros of a part, every `lanes`-th from the `lane`-th on, which are loaded while the
// previous launch ends. ABREAST: the lanes together read whole cache lines of the matrix, which the caches may evict
// first.
template <bool ABREAST>
DEVICE T sum_ahead(const Part& part, u32 lane, u32 lanes, const u32* columns, const V* values, const T* x, u32 conjugate,
                   u32 settled) {
    const u32 first = part.begin + lane;
    u32 column[EACH];
    V value[EACH];
    bool mine[EACH];
#pragma unroll
    for (u32 u = 0; u < EACH; u++) {
        mine[u] = first + u * lanes < part.end;
        if (mine[u]) {
            column[u] = ABREAST ? stream(columns + first + u * lanes) : columns[first + u * lanes];
            value[u] = ABREAST ? stream(values + first + u * lanes) : values[first + u * lanes];
        }
    }
    before_vectors(settled);
    T of_x[EACH];
#pragma unroll
    for (u32 u = 0; u < EACH; u++)
        if (mine[u]) of_x[u] = x[column[u]];
    T sum = T();
#pragma unroll
    for (u32 u = 0; u < EACH; u++)
        if (mine[u]) sum = sum + entry<T>(value[u], conjugate) * of_x[u];
    return sum;
}

// posts: room for one piece per block that has a part, initially zero.
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    csr_binned(const Part* parts, Ends ends, const u32* columns, const V* values, T alpha, const T* x, T beta, T* y, u32 conjugate,
               u64* posts, u32 settled) {
    before_matrix(settled);
    if (blockIdx.x >= ends.blocks) {
        const u32 warp = (blockIdx.x - ends.blocks) * WARPS + threadIdx.x / 32;
        if (warp >= ends.warps[5]) return;
        // Short rows come last, so that the launch ends with little work per warp.
        const Place place = place_of(ends.warps[5] - 1 - warp, ends);
        const Part part = parts[place.part];
        const u32 lanes = 1u << place.lanes_log, lane = threadIdx.x & (lanes - 1);
        T sum = lanes < 8 ? sum_ahead<false>(part, lane, lanes, columns, values, x, conjugate, settled)
                          : sum_ahead<true>(part, lane, lanes, columns, values, x, conjugate, settled);
        for (u32 with = lanes / 2; with; with /= 2) sum = sum + shuffle_xor(sum, with);
        if (lane == 0 && part.row != NO_ROW) finish(alpha, sum, beta, y + part.row);
        return;
    }
    __shared__ alignas(16) unsigned char sum_bytes[WARPS * sizeof(T)];
    T* const of_warp = reinterpret_cast<T*>(sum_bytes);
    const Part part = parts[blockIdx.x];
    T sum = sum_ahead<true>(part, threadIdx.x, THREADS, columns, values, x, conjugate, settled);
    const bool last = part.since & LAST;
    if (last)
        for (u32 piece = (part.since & ~LAST) + threadIdx.x; piece < blockIdx.x; piece += THREADS) sum = sum + collect<T>(posts, piece);
    sum = warp_sum(sum);
    if (lane_id() == 0) of_warp[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x > 0) return;
    sum = of_warp[0];
#pragma unroll
    for (u32 w = 1; w < WARPS; w++) sum = sum + of_warp[w];
    if (last) finish(alpha, sum, beta, y + part.row);
    else post(posts, blockIdx.x, sum);
}
