// y = alpha A x + beta y with A in compressed sparse rows of very different lengths, few enough to lie in the
// second-level cache.
//
//     | 1 . 7 . |     offsets  0   2   3   5   7          EACH = 1: row 1 has one lane, rows 0, 2 and 3 have two lanes each
//     | . . 8 . |     columns  0 2 | 2 | 1 2 | 0 3
//     | . 4 3 . |     values   1 7 | 8 | 4 3 | 2 1        parts (begin, end, row), shortest rows first:
//     | 2 . . 1 |                                             2 3 1 | 0 2 0 | 3 5 2 | 5 7 3
//
// There time is the number of steps that wait for one another: the part, its columns and values, x, the sum. So rows
// are sorted once a matrix into bins of up to EACH nonzeros, twice as many, ... 32 times as many, and have 1, 2, ... 32
// lanes of a warp; no lane has more than EACH nonzeros, all of them under way at once, and no row waits for another.
// Longer rows have blocks of their own, as many as their length asks for; these come first. Of a row of several blocks
// the last one takes what the others post (posts.cuh) and adds it up in their order.
//
// Bytes a nonzero: value + 4 for the column + what of x misses the caches. A row: its part, 16, and y.
// Source: Ashari, Sedaghati, Eisenlohr, Parthasarathy and Sadayappan 2014 (rows in bins of their lengths).
//
// Constants: SCALAR (vectors), STORED (values), EACH (nonzeros of a lane), THREADS, MIN_BLOCKS (blocks that a
// multiprocessor shall hold).
#include "posts.cuh"
#include "product.cuh"

typedef SCALAR T;
typedef STORED V;
#define WARPS (THREADS / 32)

struct alignas(16) Part {
    u32 begin, end, row;
    u32 since;  // in parts of blocks: the first part of the row, with LAST in the row's last one
};
constexpr u32 LAST = 1u << 31, NO_ROW = ~0u;

// How many parts blocks have, and behind them the warps with 1, 2, ... 32 lanes a part: where each kind ends.
struct Ends {
    u32 blocks, warps[6];
};

// A group of lanes of a warp takes a part: which, and the logarithm of their number.
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

// Sum over this thread's nonzeros of a part, one in `lanes` from the `lane`-th on: asked for while the launch before
// ends. ABREAST: so many lanes read nonzeros side by side that lines of the matrix are used up at once, and can leave
// the caches first.
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

// posts: room for a piece a block that has a part, of zeros.
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    csr_binned(const Part* parts, Ends ends, const u32* columns, const V* values, T alpha, const T* x, T beta, T* y, u32 conjugate,
               u64* posts, u32 settled) {
    before_matrix(settled);
    if (blockIdx.x >= ends.blocks) {
        const u32 warp = (blockIdx.x - ends.blocks) * WARPS + threadIdx.x / 32;
        if (warp >= ends.warps[5]) return;
        // Short rows last: the end of the launch is theirs.
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
