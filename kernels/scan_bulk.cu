// Prefix sums of a whole array in one pass, for chips that copy in bulk (compute capability 9.0).
//
//     x    3 1 4 1 5 9 2 6        exclusive: 0 3 4 8 9 14 23 25      inclusive: 3 4 8 9 14 23 25 31
//
// A tile is THREADS * VECTORS vectors of 16 bytes. STAGES tiles are in shared memory at a time: some being loaded, one
// being summed, some waiting for the sum before them, one being stored. Three kinds of warps work at the same time, and
// synchronise only at barriers in shared memory for each tile:
//
//     loader     takes a tile by ticket when a stage is free, and starts its bulk load   -> full
//     adders     THREADS threads: total of tile i                                       -> added
//                then the results of tile i - BEHIND, in place, and its bulk store       -> empty (the walker arrives, too)
//     walker     publishes the total of tile i                           <- added
//                then looks back for tile i - WALK_BEHIND                -> placed: the adders may complete it
//
// A walk that starts as soon as its tile is published meets predecessors that are not published, and reads them again
// and again; two tiles later one read finds all of them (measured: half the speed with 0, the full speed with 2). A
// thread owns VECTORS consecutive vectors; if the number is odd, no two lanes of a quarter warp use the same banks. A
// tile therefore needs one scan over the lanes, while rows of lanes (scan.cu) need one each. No register waits for
// memory.
//
// A partial tile, and all tiles if x or out do not start at a multiple of 16 bytes, use plain loads and stores.
//
// Bytes per element: one read and one write. Without the walk it runs as fast as a copy. Floating-point sums are
// computed in an order that depends on the size alone, so two runs give the same bits.
//
// Sources: Merrill and Garland 2016 (one pass, look-back); the PTX manual on bulk copies and barriers (cp.async.bulk,
// mbarrier).
//
// Constants: ELEMENT, INCLUSIVE (0 or 1), THREADS, VECTORS (odd), STAGES (at least BEHIND + 3), BEHIND (at most 6, more
// than WALK_BEHIND), WALK_BEHIND, MIN_BLOCKS.
#include "bulk.cuh"
#include "lookback.cuh"

typedef ELEMENT T;
#define VEC int(16 / sizeof(T))
#define TILE (THREADS * VECTORS * VEC)
#define ADDERS (THREADS / 32)
#define PIECE (32 * VECTORS)  // vectors of one warp

#define SLOTS 8  // tiles whose totals are kept: more than BEHIND + 1

// One lane reads a value for its warp. Every thread that accesses shared memory arrives itself at the barrier for it.
// Memory ordering does not require that (lanes could synchronise at __syncwarp, and one arrive for all), but a race
// checker recognises only this, and it costs one percent.
template <typename V> DEVICE V read_by(u32 lane, const V* p) {
    V v = V();
    if (lane_id() == lane) v = *p;
    return shuffle(v, lane);
}

// Block: THREADS + 64. Dynamic shared memory: STAGES * TILE * sizeof(ELEMENT). Grid: resident.
extern "C" __global__ void __launch_bounds__(THREADS + 64, MIN_BLOCKS) scan_bulk(const T* x, T* out, u64 n, u64* workspace) {
#if BULK
    extern __shared__ __align__(128) uint4 stages[];
    __shared__ u64 full[STAGES], empty[STAGES], added[SLOTS], placed[SLOTS];
    __shared__ u64 tile_of[STAGES];
    __shared__ T warp_total[SLOTS][ADDERS], warp_start[SLOTS][ADDERS];

    const Tickets tickets{workspace};
    const u64 tiles = (n + TILE - 1) / TILE, whole = aligned16(x) && aligned16(out) ? n / TILE : 0;
    const u32 lane = lane_id(), warp = threadIdx.x / 32;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) barrier_init(full + s, 1), barrier_init(empty + s, THREADS + 1);
        for (int s = 0; s < SLOTS; s++) barrier_init(added + s, ADDERS), barrier_init(placed + s, 32);
        barrier_init_done();
    }
    __syncthreads();

    if (warp == ADDERS) {  // the loader
        if (lane > 0) return;
        for (u32 round = 0;; round++) {
            const u32 s = round % STAGES;
            if (round >= STAGES) wait(empty + s, round / STAGES + 1 & 1);
            const u64 tile = tickets.take();
            tile_of[s] = tile < tiles ? tile : tiles;
            const u32 bytes = tile < whole ? TILE * sizeof(T) : 0;
            arrive(full + s, bytes);
            if (bytes) bulk_load(stages + s * (THREADS * VECTORS), x + tile * TILE, bytes, full + s);
            if (tile >= tiles) return;
        }
    }

    if (warp == ADDERS + 1) {  // the walker
        const Descriptors<T> descriptors(workspace, tickets.launch());
        // The newest tile first: its total, and the sum before this lane's warp in it.
        T totals[WALK_BEHIND + 1], starts[WALK_BEHIND + 1];
        u32 end = ~0u;
        for (u32 round = 0; round < end || round - end < WALK_BEHIND; round++) {
            const u32 side = round % SLOTS;
#pragma unroll
            for (int i = WALK_BEHIND; i > 0; i--) totals[i] = totals[i - 1], starts[i] = starts[i - 1];
            if (round < end) {
                wait(full + round % STAGES, round / STAGES & 1);
                const u64 tile = read_by(0, tile_of + round % STAGES);
                if (tile == tiles) end = round;
                else {
                    wait(added + side, round / SLOTS & 1);
                    T total = T(), start = T();  // of the warp with this lane's number
                    for (u32 w = 0; w < ADDERS; w++) {
                        if (w == lane) start = total;
                        total = w == 0 ? warp_total[side][0] : total + warp_total[side][w];
                    }
                    if (lane == 0) descriptors.publish(tile, total, tile == 0 ? PREFIX : AGGREGATE);
                    totals[0] = total, starts[0] = start;
                }
            }
            if (round >= WALK_BEHIND && round - WALK_BEHIND < end) {
                const u32 old = round - WALK_BEHIND;
                const u64 tile = read_by(0, tile_of + old % STAGES);
                const T prefix = exclusive_prefix<T, is_float<T>::value>(descriptors, tile, totals[WALK_BEHIND], T());
                if (lane < ADDERS) warp_start[old % SLOTS][lane] = prefix + starts[WALK_BEHIND];
                arrive(placed + old % SLOTS);
                if (lane == 0) arrive(empty + old % STAGES);
            }
        }
        if (lane == 0) tickets.leave();
        return;
    }

    // The adders.
    T befores[BEHIND + 1];
#pragma unroll
    for (int i = 0; i <= BEHIND; i++) befores[i] = T();
    u32 end = ~0u;  // the first round without a tile
    for (u32 round = 0; round < end || round - end < BEHIND; round++) {
        const u32 stage = round % STAGES, at = warp * PIECE + lane * VECTORS;
#pragma unroll
        for (int i = BEHIND; i > 0; i--) befores[i] = befores[i - 1];
        if (round < end) {
            wait(full + stage, round / STAGES & 1);
            const u64 tile = read_by(0, tile_of + stage);
            if (tile == tiles) end = round;
            else {
                uint4* piece = stages + stage * (THREADS * VECTORS);
                if (tile >= whole) {
                    T* items = reinterpret_cast<T*>(piece + warp * PIECE);
                    const u64 first = tile * TILE + warp * PIECE * VEC;
                    for (u32 i = lane; i < PIECE * VEC; i += 32) items[i] = first + i < n ? x[first + i] : T();
                    __syncwarp();
                }
                T sum = T();
#pragma unroll
                for (int v = 0; v < VECTORS; v++) {
                    T item[VEC];
                    memcpy(item, piece + at + v, 16);
#pragma unroll
                    for (int k = 0; k < VEC; k++) sum = v + k == 0 ? item[k] : sum + item[k];
                }
                const T inclusive = warp_inclusive_sum(sum);
                befores[0] = shuffle_up(inclusive, 1);
                if (lane == 0) befores[0] = T();
                if (lane == 31) {
                    warp_total[round % SLOTS][warp] = inclusive;
                    arrive(added + round % SLOTS);
                }
            }
        }
        if (round >= BEHIND && round - BEHIND < end) {
            const u32 old = round - BEHIND, slot = old % SLOTS;
            wait(placed + slot, old / SLOTS & 1);
            const u64 previous = read_by(0, tile_of + old % STAGES);
            uint4* piece = stages + old % STAGES * (THREADS * VECTORS);
            T sum = read_by(31, &warp_start[slot][warp]) + befores[BEHIND];
#pragma unroll
            for (int v = 0; v < VECTORS; v++) {
                T item[VEC];
                memcpy(item, piece + at + v, 16);
#pragma unroll
                for (int k = 0; k < VEC; k++) {
                    const T here = item[k];
                    if (!INCLUSIVE) item[k] = sum;
                    sum = sum + here;
                    if (INCLUSIVE) item[k] = sum;
                }
                memcpy(piece + at + v, item, 16);
            }
            bulk_sees_writes();
            __syncwarp();
            if (lane == 0) {
                bulk_stores_read();  // once the stores of the tile before have read its stage, the stage is free
                if (old > 0) arrive(empty + (old - 1) % STAGES);
            } else if (previous < whole) arrive(empty + old % STAGES);
            const u64 first = previous * TILE + warp * PIECE * VEC;
            if (previous < whole) {
                if (lane == 0) bulk_store(out + first, piece + warp * PIECE, PIECE * 16);
            } else {
                const T* items = reinterpret_cast<const T*>(piece + warp * PIECE);
                for (u32 i = lane; i < PIECE * VEC && first + i < n; i += 32) out[first + i] = items[i];
                __syncwarp();
                if (lane > 0) arrive(empty + old % STAGES);
            }
        }
    }
    if (lane == 0) bulk_stores_read();
#else
    __trap();
#endif
}
