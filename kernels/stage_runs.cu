// Turns marked sources (`mark_runs` of index.cu) into codes and lists of pieces (staged_runs.cuh). First the longest
// run is computed, and from it the lengths of the parts of the sources, such that the runs that start in a part fill at
// most PART slots. Then the runs that start before each part are counted. Finally each block computes the codes of its
// parts: it collects the pieces that contain its sources in a set in shared memory, and numbers them in ascending
// order.
//
// Bytes, for the codes: 4 per source and 1.5 for its code, 4 per piece.
//
// Constants: those of staged_runs.cuh, THREADS (a multiple of 32 that divides TILE).
#include "staged_runs.cuh"

#define EACH(i, n) for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < (n); i += u64(gridDim.x) * THREADS)
#define HEAD 0x80000000u
#define NONE 0xffffffffu
#define OWN (TILE / THREADS)
#define SLOTS (2 * TILE)

// longest: initially zero.
extern "C" __global__ void __launch_bounds__(THREADS) longest_run(const u32* starts, u64 runs, u64 n, u32* longest) {
    u32 most = 0;
    EACH(run, runs) most = max(most, u32((run + 1 < runs ? starts[run + 1] : n) - starts[run]));
    most = most_of_lanes(most);
    if (lane_id() == 0) atomicMax(longest, most);
}

extern "C" __global__ void __launch_bounds__(THREADS) part_runs(const u32* starts, u64 runs, u64 length, u32* before, u64 parts) {
    EACH(p, parts + 1) {
        u64 low = 0, high = runs;
        while (low < high) {
            const u64 middle = low + (high - low) / 2;
            if (starts[middle] < p * length) low = middle + 1;
            else high = middle;
        }
        before[p] = u32(low);
    }
}

// A hash with 2 TILE slots: the slot at which the search for a piece begins.
DEVICE u32 slot_of(u32 piece) { return u32(u64(piece * 0x9e3779b1u) * SLOTS >> 32); }

// most: initially zero; greater than MOST_PIECES afterwards if a block's list has no room, or a source is not below
// `values`. One block per BLOCK_PARTS parts.
extern "C" __global__ void __launch_bounds__(THREADS)
    stage_codes(const u32* sources, u64 n, u64 values, const u32* starts, u64 runs, const u32* before, u32* codes, u32* pieces, u32* counts, u32* most) {
    __shared__ u32 set[SLOTS], list[MOST_PIECES], found;
    __shared__ u16 code[TILE];
    __shared__ u16 number_of[SLOTS], home[MOST_PIECES];
    __shared__ u64 first[BLOCK_PARTS + 1];
    const u64 block = blockIdx.x;
    if (threadIdx.x <= BLOCK_PARTS) {
        const u64 run = before[block * BLOCK_PARTS + threadIdx.x];
        first[threadIdx.x] = run < runs ? starts[run] : n;
    }
    if (threadIdx.x == 0) found = 0;
    for (u32 i = threadIdx.x; i < SLOTS; i += THREADS) set[i] = NONE;
    __syncthreads();
    u32 source[OWN], slot[OWN];
    bool outside = false;
#pragma unroll
    for (u32 i = 0; i < OWN; i++) {
        const u32 own = i * THREADS + threadIdx.x;
        const u64 at = first[own / PART] + own % PART;
        const bool here = at < first[own / PART + 1];
        source[i] = here ? sources[at] : HEAD;
        slot[i] = here ? 0 : NONE;
    }
    // Each piece is inserted in the set once; the list has no order yet.
#pragma unroll
    for (u32 i = 0; i < OWN; i++) {
        if (slot[i] == NONE) continue;
        outside = outside || (source[i] & ~HEAD) >= values;
        const u32 piece = (source[i] & ~HEAD) / PIECE;
        u32 at = slot_of(piece), there = atomicCAS(set + at, NONE, piece);
        while (there != NONE && there != piece) at = (at + 1) % SLOTS, there = atomicCAS(set + at, NONE, piece);
        slot[i] = at;
        if (there == piece) continue;
        const u32 number = atomicAdd(&found, 1u);
        if (number < MOST_PIECES) list[number] = piece, home[number] = u16(at);
    }
    __syncthreads();
    const u32 count = found;
    if (outside) atomicMax(most, NONE);
    if (threadIdx.x == 0) counts[block] = min(count, u32(MOST_PIECES)), atomicMax(most, count);
    if (count > MOST_PIECES) return;
    // A piece's number is the number of smaller pieces, so the order of insertion does not matter.
    for (u32 k = threadIdx.x; k < count; k += THREADS) {
        const u32 piece = list[k];
        u32 smaller = 0;
        for (u32 j = 0; j < count; j++) smaller += list[j] < piece;
        number_of[home[k]] = u16(smaller);
        pieces[block * MOST_PIECES + smaller] = piece;
        if (smaller == count - 1) pieces[block * MOST_PIECES + MOST_PIECES - 1] = piece;
    }
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < OWN; i++) {
        const u32 place = slot[i] == NONE ? 0 : number_of[slot[i]] * PIECE + source[i] % PIECE;
        code[i * THREADS + threadIdx.x] = u16(place | (source[i] & HEAD ? CODE_HEAD : 0));
    }
    if (count == 0 && threadIdx.x == 0) pieces[block * MOST_PIECES + MOST_PIECES - 1] = 0;
    __syncthreads();
    for (u32 lane = threadIdx.x; lane < TILE / LANE; lane += THREADS) {
        u32 word[WORDS] = {};
#pragma unroll
        for (u32 k = 0; k < LANE; k++) {
            const u32 own = code[lane * LANE + k];
            word[k / 4] |= (own & 0xff) << 8 * (k % 4), word[2] |= own >> 8 << 4 * k;
        }
        u32* const to = codes + (block * BLOCK_PARTS + lane / 32) * (32 * WORDS) + lane % 32;
#pragma unroll
        for (u32 i = 0; i < WORDS; i++) to[32 * i] = word[i];
    }
}
