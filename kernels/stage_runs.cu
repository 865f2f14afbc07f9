// Marked sources (`mark_runs` of index.cu) to codes and lists of pieces (staged_runs.cuh). First the longest run, by which parts of the
// sources are so long that the runs that start in one fill at most PART slots; then how many runs start before each part; then a
// block makes the codes of its parts: it sorts the pieces that its sources lie in and drops the repeated ones.
//
// Constants: those of staged_runs.cuh, THREADS (a multiple of 32 that divides TILE / 2).
#include "staged_runs.cuh"

#define EACH(i, n) for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < (n); i += u64(gridDim.x) * THREADS)
#define HEAD 0x80000000u
#define NONE 0xffffffffu
#define OWN (TILE / THREADS)

// longest: zero before.
extern "C" __global__ void __launch_bounds__(THREADS) longest_run(const u32* starts, u64 runs, u64 n, u32* longest) {
    u32 most = 0;
    EACH(run, runs) most = max(most, u32((run + 1 < runs ? starts[run + 1] : n) - starts[run]));
#pragma unroll
    for (u32 with = 16; with; with /= 2) most = max(most, __shfl_xor_sync(ALL, most, with));
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

// most: zero before; more than MOST_PIECES behind where a block's list has no room, or a source is not below `values`. A block BLOCK_PARTS parts.
extern "C" __global__ void __launch_bounds__(THREADS)
    stage_codes(const u32* sources, u64 n, u64 values, const u32* starts, u64 runs, const u32* before, u16* codes, u32* pieces, u32* counts, u32* most) {
    __shared__ u32 sorted[TILE], list[TILE], warp_count[THREADS / 32];
    __shared__ u64 first[BLOCK_PARTS + 1];
    const u64 block = blockIdx.x;
    if (threadIdx.x <= BLOCK_PARTS) {
        const u64 run = before[block * BLOCK_PARTS + threadIdx.x];
        first[threadIdx.x] = run < runs ? starts[run] : n;
    }
    __syncthreads();
    bool outside = false;
    for (u32 slot = threadIdx.x; slot < TILE; slot += THREADS) {
        const u64 at = first[slot / PART] + slot % PART;
        const bool here = at < first[slot / PART + 1];
        const u32 source = here ? sources[at] & ~HEAD : 0;
        outside = outside || (here && source >= values);
        sorted[slot] = here ? source / PIECE : NONE;
    }
    // Bitonic: stretches of `size` ascend and descend in turns.
    for (u32 size = 2; size <= TILE; size *= 2)
        for (u32 apart = size / 2; apart; apart /= 2) {
            __syncthreads();
            for (u32 pair = threadIdx.x; pair < TILE / 2; pair += THREADS) {
                const u32 low = 2 * pair - (pair & (apart - 1)), high = low + apart, a = sorted[low], b = sorted[high];
                if ((a > b) == ((low & size) == 0)) sorted[low] = b, sorted[high] = a;
            }
        }
    __syncthreads();
    u32 own = 0;
#pragma unroll
    for (u32 i = 0; i < OWN; i++) {
        const u32 k = threadIdx.x * OWN + i;
        own += sorted[k] != NONE && (k == 0 || sorted[k] != sorted[k - 1]);
    }
    const u32 upto = warp_inclusive_sum(own);
    if (lane_id() == 31) warp_count[threadIdx.x / 32] = upto;
    __syncthreads();
    u32 rank = upto - own, count = 0;
    for (u32 w = 0; w < THREADS / 32; w++) {
        if (w < threadIdx.x / 32) rank += warp_count[w];
        count += warp_count[w];
    }
#pragma unroll
    for (u32 i = 0; i < OWN; i++) {
        const u32 k = threadIdx.x * OWN + i;
        if (sorted[k] != NONE && (k == 0 || sorted[k] != sorted[k - 1])) list[rank++] = sorted[k];
    }
    __syncthreads();
    if (outside) atomicMax(most, NONE);
    if (threadIdx.x == 0) counts[block] = min(count, u32(MOST_PIECES)), atomicMax(most, count);
    if (count > MOST_PIECES) return;
    for (u32 k = threadIdx.x; k < count; k += THREADS) pieces[block * MOST_PIECES + k] = list[k];
    for (u32 slot = threadIdx.x; slot < TILE; slot += THREADS) {
        const u64 at = first[slot / PART] + slot % PART;
        u32 code = CODE_HEAD;
        if (at < first[slot / PART + 1]) {
            const u32 source = sources[at], piece = (source & ~HEAD) / PIECE;
            u32 low = 0, high = count - 1; // where the piece stands
            while (low < high) {
                const u32 middle = (low + high) / 2;
                if (list[middle] < piece) low = middle + 1;
                else high = middle;
            }
            code = low * PIECE + source % PIECE | (source & HEAD ? CODE_HEAD : 0);
        }
        codes[block * TILE + slot] = u16(code);
    }
}
