// Keeps some elements of an array, packed and in order, in one pass.
//
//     UNIQUE       the first element of every run of equal neighbours      3 3 1 1 1 7 -> 3 1 7
//     FLAGGED      elements whose flag byte is not zero                    a b c d, 1 0 0 1 -> a d
//     PARTITION    as FLAGGED, and the others, packed and in order, to a second array
//     POSITIONS    as FLAGGED, but keeps the position of the element instead of the element (x is not read)
//
// A tile is THREADS * ROWS groups of VEC neighbouring elements, where VEC fills 16 bytes; a warp owns a contiguous
// piece, row after row, and a lane one group of each row. A lane counts the elements that it keeps in each row; the
// counts of four rows are summed over the warp in one word of four bytes (a row keeps at most 128). The warps' totals
// are combined in shared memory; the tile's total is published, its kept elements are packed in shared memory, and the
// loads of the next tile are started. Only then does the first warp find by look-back (lookback.cuh) how many elements
// were kept before the block's previous tile, whose packed elements are then written with coalesced stores.
//
// Bytes per element: one read (and one byte of flag), and one write if it is kept, which is the minimum.
//
// Sources: Merrill 2011, 4.5 (compaction fused with scan); Merrill and Garland 2016 (one pass).
//
// Constants: IN (element type), INDEX (u32 or u64: counts and positions), MODE, THREADS, ROWS (a multiple of 4, or 1,
// 2), MIN_BLOCKS (blocks that a multiprocessor should hold, which limits registers).
#include "lookback.cuh"

#define UNIQUE 0
#define FLAGGED 1
#define PARTITION 2
#define POSITIONS 3

#if MODE == POSITIONS
typedef INDEX ITEM;
#define VEC 4
#else
typedef IN ITEM;
#define VEC int(sizeof(IN) <= 4 ? 4 : 16 / sizeof(IN))
#endif
#define WARPS (THREADS / 32)
#define TILE (THREADS * ROWS * VEC)
#define WORDS ((ROWS + 3) / 4)
#define VECTORS (MODE != POSITIONS && sizeof(IN) * VEC == 16)

#if MODE != POSITIONS
DEVICE void load_vector(const ITEM* p, ITEM (&v)[VEC]) {
    if constexpr (VECTORS) {
        uint4 raw = __ldg(reinterpret_cast<const uint4*>(p));
        memcpy(v, &raw, 16);
    }
}
#endif

// `kept` receives the number of elements kept; `rest` and `flags` are used by the modes that name them.
// Dynamic shared memory: 2 * TILE * sizeof(ITEM).
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
compact(const ITEM* x, const u8* flags, ITEM* out, ITEM* rest, u64 n, u64* kept, u64* workspace) {
    extern __shared__ uint4 dynamic[];
    // Two of each, used alternately, because a warp may be one tile ahead of another.
    __shared__ u32 warp_total[2][WARPS];
    __shared__ INDEX tile_prefix[2];
    __shared__ u64 next_tile[2];
    __shared__ u32 launch_number;

    const Tickets tickets{workspace};
    const u64 tiles = (n + TILE - 1) / TILE, whole = n / TILE;
    const bool vectors = VECTORS && aligned16(x);
    const bool words = MODE != UNIQUE && VEC == 4 && (reinterpret_cast<u64>(flags) & 3) == 0;
    const u32 lane = lane_id(), warp = threadIdx.x / 32;
    const u32 at = warp * (32 * ROWS * VEC) + lane * VEC;  // this thread's first element in a tile

    // Loaded ahead: elements, flags, and for UNIQUE the element before the warp's piece.
    ITEM item[ROWS][VEC], predecessor = ITEM();
    u32 flag[ROWS] = {};  // one byte per element, VEC of them (VEC <= 4)
    auto load = [&](u64 tile) {
        const u64 first = tile * TILE + at;
        if (tile >= tiles) return;
#if MODE != POSITIONS
        if (vectors && tile < whole)
#pragma unroll
            for (int r = 0; r < ROWS; r++) load_vector(x + first + r * 32 * VEC, item[r]);
        else
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int v = 0; v < VEC; v++) item[r][v] = first + r * 32 * VEC + v < n ? x[first + r * 32 * VEC + v] : ITEM();
#endif
#if MODE == UNIQUE
        if (lane == 0 && first > 0 && first < n) predecessor = x[first - 1];
#else
        if (words && tile < whole)
#pragma unroll
            for (int r = 0; r < ROWS; r++) flag[r] = __ldg(reinterpret_cast<const u32*>(flags + first + r * 32 * VEC));
        else
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                flag[r] = 0;
#pragma unroll
                for (int v = 0; v < VEC; v++) {
                    u64 i = first + r * 32 * VEC + v;
                    flag[r] |= u32(i < n ? flags[i] : 0) << 8 * v;
                }
            }
#endif
    };

    if (threadIdx.x == 0) {
        launch_number = tickets.launch();
        next_tile[1] = tickets.take();
        if (blockIdx.x == 0 && n == 0) *kept = 0;
    }
    __syncthreads();
    const Descriptors<INDEX> descriptors(workspace, launch_number);
    u64 tile = next_tile[1], previous = tiles;
    u32 previous_total = 0;
    load(tile);

    for (u32 side = 0; tile < tiles || previous < tiles; side ^= 1) {
        u32 total = 0;
        u64 following = tiles;
        if (tile < tiles) {
            if (threadIdx.x == 0 && gridDim.x < tiles) following = tickets.take();
            const u64 first = tile * TILE + at;
            const bool full = tile < whole;

            u32 keep[ROWS];  // one bit per element
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                keep[r] = 0;
#if MODE == UNIQUE
                u64 i = first + r * 32 * VEC;
                ITEM left = shuffle_up(item[r][VEC - 1], 1);
                if (lane == 0) left = predecessor;
                predecessor = shuffle(item[r][VEC - 1], 31);
#pragma unroll
                for (int v = 0; v < VEC; v++) {
                    bool head = i + v == 0 || !same_key(item[r][v], v ? item[r][v ? v - 1 : 0] : left);
                    keep[r] |= u32((full || i + v < n) && head) << v;
                }
#else
#pragma unroll
                for (int v = 0; v < VEC; v++) keep[r] |= u32((flag[r] >> 8 * v & 255) != 0) << v;
#endif
            }

            // Places within the warp: the counts of four rows per word.
            u32 exclusive[WORDS], row_start[ROWS], in_warp = 0;
#pragma unroll
            for (int w = 0; w < WORDS; w++) {
                u32 counts = 0;
#pragma unroll
                for (int r = 4 * w; r < 4 * w + 4 && r < ROWS; r++) counts |= __popc(keep[r]) << 8 * (r & 3);
                u32 inclusive = warp_inclusive_sum(counts);
                u32 totals = __shfl_sync(ALL, inclusive, 31);
                exclusive[w] = inclusive - counts;
#pragma unroll
                for (int r = 4 * w; r < 4 * w + 4 && r < ROWS; r++) {
                    row_start[r] = in_warp;
                    in_warp += totals >> 8 * (r & 3) & 255;
                }
            }
            if (lane == 0) warp_total[side][warp] = in_warp;
            if (threadIdx.x == 0) next_tile[side] = following;
            __syncthreads();

            following = next_tile[side];
            u32 warp_start = 0;
#pragma unroll
            for (u32 w = 0; w < WARPS; w++) {
                if (w == warp) warp_start = total;
                total += warp_total[side][w];
            }
            if (threadIdx.x == 0) descriptors.publish(tile, INDEX(total), tile == 0 ? PREFIX : AGGREGATE);
            ITEM* packed = reinterpret_cast<ITEM*>(dynamic) + side * TILE;
            const u32 have = full ? TILE : u32(n - tile * TILE);
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                u32 place = warp_start + row_start[r] + (exclusive[r / 4] >> 8 * (r & 3) & 255);
                u32 local = at + r * 32 * VEC;
#pragma unroll
                for (int v = 0; v < VEC; v++) {
                    bool kept_here = keep[r] >> v & 1;
#if MODE == POSITIONS
                    ITEM element = ITEM(first + r * 32 * VEC + v);
#else
                    ITEM element = item[r][v];
#endif
                    if (kept_here) packed[place] = element;
                    else if (MODE == PARTITION && local + v < have) packed[total + local + v - place] = element;
                    place += kept_here;
                }
            }
            load(following);
        }
        if (previous < tiles) {
            if (warp == 0) {
                INDEX prefix = exclusive_prefix<INDEX, false>(descriptors, previous, INDEX(previous_total), INDEX(0));
                if (lane == 0) {
                    tile_prefix[side] = prefix;
                    if (previous == tiles - 1) *kept = u64(prefix) + previous_total;
                }
            }
            __syncthreads();
            const u64 start = tile_prefix[side];
            const ITEM* packed = reinterpret_cast<const ITEM*>(dynamic) + (side ^ 1) * TILE;
            for (u32 j = threadIdx.x; j < previous_total; j += THREADS) out[start + j] = packed[j];
            if (MODE == PARTITION) {
                const u32 have = previous < whole ? TILE : u32(n - previous * TILE);
                for (u32 j = previous_total + threadIdx.x; j < have; j += THREADS)
                    rest[previous * TILE - start + j - previous_total] = packed[j];
            }
        } else __syncthreads();
        previous = tile < tiles ? tile : tiles;
        previous_total = total;
        tile = following;
    }
    if (threadIdx.x == 0) tickets.leave();
}
