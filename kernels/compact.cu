// Keeps some elements of an array, packed and in order, in one pass.
//
//     UNIQUE       the first element of every run of equal neighbours      3 3 1 1 1 7 -> 3 1 7
//     FLAGGED      elements whose flag byte is not zero                    a b c d, 1 0 0 1 -> a d
//     PARTITION    as FLAGGED, and the others, packed and in order, to a second array
//     POSITIONS    as FLAGGED, but keeps the position of the element instead of the element (x is not read)
//
// A tile is THREADS * ROWS groups of VEC neighbouring elements, VEC filling 16 bytes; a warp owns a contiguous piece,
// row after row, and a lane one group of each row. A lane counts what it keeps in each row; the counts of four rows
// travel through the warp's sum in one word of four bytes (a row keeps at most 128). The warps' totals meet in shared
// memory, the first warp finds what the tiles before have kept by look-back (lookback.cuh), and meanwhile the kept
// elements are packed in shared memory, from where they leave in coalesced writes. The next tile is fetched meanwhile.
//
// Bytes an element: one read (and one byte of flag), and one write of what is kept. The floor.
//
// Sources: Merrill 2011, 4.5 (compaction fused with scan); Merrill and Garland 2016 (one pass).
//
// Constants: IN (element type), INDEX (u32 or u64: counts and positions), MODE, THREADS, ROWS (a multiple of 4, or 1, 2).
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
#define FETCH (MODE != POSITIONS && sizeof(IN) * VEC == 16)
#define WARPS (THREADS / 32)
#define TILE (THREADS * ROWS * VEC)
#define WORDS ((ROWS + 3) / 4)

// Dynamic shared memory: TILE * sizeof(ITEM) for packing, then, unless MODE is POSITIONS, TILE * sizeof(IN) fetched ahead.
DEVICE void fetch(ITEM* stage, const ITEM* x, u64 tile) {
    const ITEM* at = x + tile * TILE + threadIdx.x / 32 * (32 * ROWS * VEC) + lane_id() * VEC;
#pragma unroll
    for (int r = 0; r < ROWS; r++) copy16_async(stage + (r * THREADS + threadIdx.x) * VEC, at + r * 32 * VEC);
}

// `kept` receives the number of elements kept; `rest` and `flags` are used by the modes that name them.
extern "C" __global__ void __launch_bounds__(THREADS)
compact(const ITEM* x, const u8* flags, ITEM* out, ITEM* rest, u64 n, u64* kept, u64* workspace) {
    extern __shared__ uint4 dynamic[];
    __shared__ u32 warp_total[WARPS];
    __shared__ INDEX tile_prefix;
    __shared__ u64 next_tile;
    __shared__ u32 launch_number;
    ITEM* packed = reinterpret_cast<ITEM*>(dynamic);
    ITEM* stage = packed + TILE;

    const Tickets tickets{workspace};
    const u64 tiles = (n + TILE - 1) / TILE, whole = n / TILE;
    const bool fetchable = FETCH && aligned16(x);
    const bool words = MODE != UNIQUE && VEC == 4 && (reinterpret_cast<u64>(flags) & 3) == 0;
    const u32 lane = lane_id(), warp = threadIdx.x / 32;

    // What is fetched ahead in registers: the flags of a tile, or the element before each warp's piece.
    u32 ahead[ROWS];
    ITEM predecessor = ITEM();
    auto fetch_ahead = [&](u64 tile) {
        const u64 first = tile * TILE + warp * (32 * ROWS * VEC) + lane * VEC;
        if (fetchable && tile < whole) fetch(stage, x, tile);
        if (words && tile < whole)
#pragma unroll
            for (int r = 0; r < ROWS; r++) ahead[r] = __ldcs(reinterpret_cast<const u32*>(flags + first + r * 32 * VEC));
        if (MODE == UNIQUE && lane == 0 && first > 0 && first < n) predecessor = x[first - 1];
    };

    if (threadIdx.x == 0) {
        launch_number = tickets.launch();
        next_tile = tickets.take();
        if (blockIdx.x == 0 && n == 0) *kept = 0;
    }
    __syncthreads();
    const Descriptors<INDEX> descriptors(workspace, launch_number);
    u64 tile = next_tile;
    fetch_ahead(tile);
    __syncthreads();

    while (tile < tiles) {
        u64 following = tiles;
        if (threadIdx.x == 0 && gridDim.x < tiles) following = tickets.take();
        const u64 first = tile * TILE + warp * (32 * ROWS * VEC) + lane * VEC;
        const bool full = tile < whole;

        // The elements, and one bit each for those kept: VEC bits a row.
        ITEM item[ROWS][VEC];
        u32 keep[ROWS];
#if MODE != UNIQUE
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            u64 i = first + r * 32 * VEC;
            keep[r] = 0;
            if (full && words) {
#pragma unroll
                for (int v = 0; v < VEC; v++) keep[r] |= u32((ahead[r] >> 8 * v & 255) != 0) << v;
            } else
#pragma unroll
                for (int v = 0; v < VEC; v++) keep[r] |= u32((full || i + v < n) && flags[i + v] != 0) << v;
        }
#endif
#if MODE == POSITIONS
#pragma unroll
        for (int r = 0; r < ROWS; r++)
#pragma unroll
            for (int v = 0; v < VEC; v++) item[r][v] = INDEX(first + r * 32 * VEC + v);
#else
        if (fetchable && full) {
            copies_arrived();
#pragma unroll
            for (int r = 0; r < ROWS; r++) memcpy(item[r], stage + (r * THREADS + threadIdx.x) * VEC, sizeof(item[r]));
        } else {
#pragma unroll
            for (int r = 0; r < ROWS; r++)
#pragma unroll
                for (int v = 0; v < VEC; v++) {
                    u64 i = first + r * 32 * VEC + v;
                    item[r][v] = full || i < n ? x[i] : ITEM();
                }
        }
#endif
#if MODE == UNIQUE
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            u64 i = first + r * 32 * VEC;
            ITEM left = shuffle_up(item[r][VEC - 1], 1);
            if (lane == 0) left = predecessor;
            predecessor = shuffle(item[r][VEC - 1], 31);
            keep[r] = 0;
#pragma unroll
            for (int v = 0; v < VEC; v++) {
                bool head = i + v == 0 || !same_key(item[r][v], v ? item[r][v ? v - 1 : 0] : left);
                keep[r] |= u32((full || i + v < n) && head) << v;
            }
        }
#endif

        // Places inside the warp: four rows' counts a word.
        u32 inclusive[WORDS], row_start[ROWS], in_warp = 0;
#pragma unroll
        for (int w = 0; w < WORDS; w++) {
            u32 counts = 0;
#pragma unroll
            for (int r = 4 * w; r < 4 * w + 4 && r < ROWS; r++) counts |= __popc(keep[r]) << 8 * (r & 3);
            inclusive[w] = warp_inclusive_sum(counts);
            u32 totals = __shfl_sync(ALL, inclusive[w], 31);
            inclusive[w] -= counts;
#pragma unroll
            for (int r = 4 * w; r < 4 * w + 4 && r < ROWS; r++) {
                row_start[r] = in_warp;
                in_warp += totals >> 8 * (r & 3) & 255;
            }
        }
        if (lane == 0) warp_total[warp] = in_warp;
        if (threadIdx.x == 0) next_tile = following;
        __syncthreads();

        following = next_tile;
        fetch_ahead(following);
        u32 warp_start = 0, total = 0;
#pragma unroll
        for (u32 w = 0; w < WARPS; w++) {
            if (w == warp) warp_start = total;
            total += warp_total[w];
        }
        const u32 have = full ? TILE : u32(n - tile * TILE);
        if (warp == 0) {
            INDEX prefix = exclusive_prefix<INDEX, false>(descriptors, tile, INDEX(total), INDEX(0));
            if (lane == 0) {
                tile_prefix = prefix;
                if (tile == tiles - 1) *kept = u64(prefix) + total;
            }
        }
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            u32 place = warp_start + row_start[r] + (inclusive[r / 4] >> 8 * (r & 3) & 255);
            u32 local = warp * (32 * ROWS * VEC) + r * 32 * VEC + lane * VEC;
#pragma unroll
            for (int v = 0; v < VEC; v++) {
                bool kept_here = keep[r] >> v & 1;
                if (kept_here) packed[place] = item[r][v];
                else if (MODE == PARTITION && local + v < have) packed[total + local + v - place] = item[r][v];
                place += kept_here;
            }
        }
        __syncthreads();

        const u64 start = tile_prefix;
        for (u32 j = threadIdx.x; j < total; j += THREADS) out[start + j] = packed[j];
        if (MODE == PARTITION)
            for (u32 j = total + threadIdx.x; j < have; j += THREADS) rest[tile * TILE - start + j - total] = packed[j];
        tile = following;
    }
    if (threadIdx.x == 0) tickets.leave();
}
