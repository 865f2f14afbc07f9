// out[s] = x[sources] summed over the run s of sources, from left to right, if the sources of many runs are in few
// pieces (staged_runs.cuh): a block copies these pieces to shared memory as a whole, and gathers the elements there.
//
// A thread takes LANE consecutive slots of its warp's part. It sums the runs that start there, and passes the sum of
// the run that is open at its end to the next thread, which adds its part of that run; a thread in which no run starts
// waits for the one before it.
//
// Bytes: 1.5 per source and 4 per piece, the pieces' elements (those of neighbouring blocks come from the second-level
// cache), and one element written per run. With elements of 4 bytes, instructions matter as much: a part takes 250.
//
// Constants: those of staged_runs.cuh, SCALAR, BLOCKS (per multiprocessor, at least), AT_ONCE (copies in flight per
// thread), SINGLE (1: each run has one source).
#include "bulk.cuh"
#include "staged_runs.cuh"

#define THREADS (32 * BLOCK_PARTS)
#define STEP i32(THREADS / COPIES) // pieces that the block copies at a time
#define SLOT(k) (8u << 4 * (k))
#define COPIES (PIECE * sizeof(T) / 16)  // per piece

typedef SCALAR T;

// The word, or zero without reading, so that no branch is needed.
DEVICE u32 load_if(const u32* from, bool wanted) {
    u32 word;
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; mov.u32 %0, 0; @p ld.global.u32 %0, [%1]; }" : "=r"(word) : "l"(from), "r"(u32(wanted)));
    return word;
}

// Shared memory: the maximum number of pieces of a block, or TILE elements, whichever is more.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    staged_sum(const T* x, u64 length, const u32* codes, const u32* pieces, const u32* counts, const u32* before, T* out) {
    extern __shared__ __align__(16) u8 memory[];
    T* const staged = reinterpret_cast<T*>(memory);
    const u32 lane = lane_id(), warp = threadIdx.x / 32, part = blockIdx.x * BLOCK_PARTS + warp;
    const i32 count = counts[blockIdx.x];
    pieces += u64(blockIdx.x) * MOST_PIECES;
    codes += u64(part) * (32 * WORDS) + lane;
    u32 word[WORDS];
#pragma unroll
    for (u32 i = 0; i < WORDS; i++) word[i] = __ldcs(codes + 32 * i);
    const u32 first = before[part], runs = before[part + 1] - first;
    // If the largest piece is inside x, all of them are.
    if (aligned16(x) && pieces[MOST_PIECES - 1] < length / PIECE) {
        const u8* const from = reinterpret_cast<const u8*>(x) + threadIdx.x % COPIES * 16;
        const u32* const list = pieces + threadIdx.x / COPIES;
        const u32 to = in_shared(memory) + threadIdx.x * 16;
        const i32 have = count - i32(threadIdx.x / COPIES);
#pragma unroll 1
        for (i32 round = 0; round < count; round += AT_ONCE * STEP) {
            u32 piece[AT_ONCE];
#pragma unroll
            for (i32 i = 0; i < AT_ONCE; i++) piece[i] = load_if(list + round + i * STEP, round + i * STEP < have);
#pragma unroll
            for (i32 i = 0; i < AT_ONCE; i++)
                copy16(to + (round + i * STEP) * u32(PIECE * sizeof(T)), from + u64(piece[i]) * (PIECE * sizeof(T)), round + i * STEP < have);
        }
    } else {
#pragma unroll 1
        for (u32 k = threadIdx.x; k < count * PIECE; k += THREADS) {
            const u64 at = u64(pieces[k / PIECE]) * PIECE + k % PIECE;
            staged[k] = at < length ? x[at] : T();
        }
    }
    copies_done();
    __syncthreads();
    // The element of slot k of a lane, given the upper bits of its code in `upper` and the others in `lower`.
    const auto element = [&](u32 lower, u32 upper, u32 k) { return staged[(lower >> 8 * (k % 4) & 0xff) | (upper >> 4 * k & 7) << 8]; };
    out += first + lane;
#if SINGLE
    // Each slot is a sum: neighbouring lanes take neighbouring slots, and get the codes from the lane that has them.
    // Therefore neither reads of shared memory (if sources are in order) nor writes of results have a stride.
#pragma unroll
    for (u32 k = 0; k < LANE; k++) {
        const u32 from = k * (32 / LANE) + lane / LANE, own = lane % LANE;
        const u32 low = __shfl_sync(ALL, word[0], from), high = __shfl_sync(ALL, word[1], from), upper = __shfl_sync(ALL, word[2], from);
        const T sum = element(own < 4 ? low : high, upper, own);
        if (32 * k + lane < runs) out[32 * k] = sum;
    }
#else
    T value[LANE];
#pragma unroll
    for (u32 k = 0; k < LANE; k++) value[k] = element(word[k / 4], word[2], k);
    __syncthreads();
    // Slot k has bit 4 k + 3 in these masks. A run ends where the next slot starts one; for the last slot, the next
    // lane's first slot is used. Leading slots are those of a run that started in an earlier lane.
    const u32 heads = word[2] & 0x88888888u;
    const u32 next = __ballot_sync(ALL, heads & SLOT(0)) >> 1 | 0x80000000u;
    const u32 ends = heads >> 4 | (next >> lane & 1) << 31, own = 0u - (heads & 0u - heads), leading = ends & ~own;
    const u32 at = count_to_lane(__popc(ends)) - __popc(ends);
    // The sums of the part's runs replace the elements.
    T* const sums = staged + warp * PART;
    T* to = sums + at + (leading != 0);
    T sum = value[0];
#pragma unroll
    for (u32 k = 0; k < LANE; k++) {
        if (k) sum = heads & SLOT(k) ? value[k] : sum + value[k];
        if (ends & own & SLOT(k)) *to++ = sum;
    }
    T open = shuffle_up(sum, 1); // of the run that continues from the previous lane
    for (u32 waiting = ~__ballot_sync(ALL, heads != 0); waiting; waiting &= waiting - 1) {
        if (lane == u32(__ffs(waiting) - 1)) {
            sum = open;
#pragma unroll
            for (u32 k = 0; k < LANE; k++) sum = sum + value[k];
        }
        open = shuffle_up(sum, 1);
    }
#pragma unroll
    for (u32 k = 0; k < LANE; k++)
        if (!(own & SLOT(k))) open = open + value[k];
    if (leading) sums[at] = open;
    __syncwarp();
#pragma unroll
    for (u32 i = 0; i < 4; i++)
        if (lane + 32 * i < runs) out[32 * i] = sums[lane + 32 * i];
#pragma unroll 1
    for (u32 i = lane + 128; i < runs; i += 32) out[i - lane] = sums[i];
#endif
}
