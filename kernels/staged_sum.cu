// out[s] = x[sources] summed over the run s of sources, from left to right, where the sources of many runs lie in few pieces
// (staged_runs.cuh): a block brings these to shared memory, whole, and gathers there.
//
// A thread takes LANE consecutive slots of its warp's part. It sums what follows the last run's start there and hands it on to
// the next thread, which adds what it has of that run; a thread in which no run starts waits for the one before it.
//
// Bytes: 2 a source and 4 a piece, the pieces' elements (those of neighbouring blocks come from the second-level cache), and an element written
// a run.
//
// Constants: those of staged_runs.cuh, SCALAR, BLOCKS (a multiprocessor, at least), AT_ONCE (copies that a thread has under way).
#include "staged_runs.cuh"

#define THREADS (32 * BLOCK_PARTS)
#define LANE 8 // slots, of sixteen bytes
#define VECTOR (16 / sizeof(T))          // elements of a copy
#define COPIES (PIECE * sizeof(T) / 16)  // of a piece

typedef SCALAR T;
static_assert(PART == 32 * LANE, "a part is a warp's");

DEVICE void copy16(void* to, const void* from) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(in_shared(to)), "l"(from) : "memory");
#else
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
#endif
}

// Shared memory: the most pieces of a block or TILE elements, whichever is more.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    staged_sum(const T* x, u64 length, const u16* codes, const u32* pieces, const u32* counts, const u32* before, T* out) {
    extern __shared__ __align__(16) u8 memory[];
    T* const staged = reinterpret_cast<T*>(memory);
    const u32 lane = lane_id(), warp = threadIdx.x / 32;
    const u64 part = u64(blockIdx.x) * BLOCK_PARTS + warp;
    const u32 copies = counts[blockIdx.x] * u32(COPIES);
    const bool aligned = aligned16(x);
    pieces += u64(blockIdx.x) * MOST_PIECES;
    const uint4 raw = __ldcs(reinterpret_cast<const uint4*>(codes) + part * 32 + lane);
    for (u32 round = 0; round < copies; round += AT_ONCE * THREADS) {
        u32 piece[AT_ONCE];
#pragma unroll
        for (u32 i = 0; i < AT_ONCE; i++) {
            const u32 copy = round + i * THREADS + threadIdx.x;
            piece[i] = copy < copies ? pieces[copy / COPIES] : 0;
        }
#pragma unroll
        for (u32 i = 0; i < AT_ONCE; i++) {
            const u32 copy = round + i * THREADS + threadIdx.x;
            if (copy >= copies) continue;
            const u64 from = u64(piece[i]) * PIECE + copy % COPIES * VECTOR;
            T* const to = staged + copy * VECTOR;
            if (aligned && from + VECTOR <= length) copy16(to, x + from);
            else
                for (u32 j = 0; j < VECTOR; j++) to[j] = from + j < length ? x[from + j] : T();
        }
    }
    const u32 first = before[part], runs = before[part + 1] - first;
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
    __syncthreads();
    T value[LANE];
    u32 heads = 0;
#pragma unroll
    for (u32 k = 0; k < LANE; k++) {
        const u32 pair = k < 2 ? raw.x : k < 4 ? raw.y : k < 6 ? raw.z : raw.w, code = k % 2 ? pair >> 16 : pair & 0xffffu;
        value[k] = staged[code & ~CODE_HEAD];
        heads |= code >> 15 << k;
    }
    __syncthreads();
    T sum = value[0];
#pragma unroll
    for (u32 k = 1; k < LANE; k++) sum = heads >> k & 1 ? value[k] : sum + value[k];
    T open = shuffle_up(sum, 1); // of the run that goes on from the lane before
    for (u32 waiting = ~__ballot_sync(ALL, heads != 0); waiting; waiting &= waiting - 1) {
        if (lane == u32(__ffs(waiting) - 1)) {
            sum = open;
#pragma unroll
            for (u32 k = 0; k < LANE; k++) sum = sum + value[k];
        }
        open = shuffle_up(sum, 1);
    }
    // The sums of the part's runs take the place of the elements.
    T* const sums = staged + warp * PART;
    const u32 started = __popc(heads);
    u32 run = warp_inclusive_sum(started) - started;
#pragma unroll
    for (u32 k = 0; k < LANE; k++) {
        const bool head = heads >> k & 1;
        if (head) {
            if (run) sums[run - 1] = open;
            run++;
        }
        open = head ? value[k] : open + value[k];
    }
    if (lane == 31) sums[run - 1] = open;
    __syncwarp();
    for (u32 i = lane; i < runs; i += 32) out[first + i] = sums[i];
}
