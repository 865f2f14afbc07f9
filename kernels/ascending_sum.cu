// out[s] = the sum of the sources of s, from left to right, where the sources of a tile are read in ascending order
// (ascending.cuh): neighbouring lanes read neighbouring values, so that values of one sector are read together. The
// transpose of a grid's matrix has three neighbours of a row in 27 columns: if values were read in the order of rows,
// each value of 8 bytes would be a request of its own.
//
// A warp has all codes of a group in flight at once, and computes the sources from their distances, two chunks at a
// time. A block takes a tile, and a multiprocessor holds several blocks, so that one sums while others load. If each
// run has one source, the tile is written by one bulk copy.
//
// Bytes: 2.3 or 2.6 per source, the sectors that contain a tile's sources, and one element written per run. The limit
// is the transfer between the two halves of the second-level cache, because a sector has readers on both sides. Blocks
// therefore come in clusters of two neighbours, which share sectors and read from the same side.
//
// Constants: those of ascending.cuh, SCALAR, THREADS, BLOCKS (per multiprocessor, at least).
#include "ascending.cuh"
#include "block_before.cuh"
#include "bulk.cuh"
#include "complex.cuh"

#define WARPS (THREADS / 32)

static_assert(THREADS >= HEAD_WORDS, "a thread has a word of heads");

typedef SCALAR T;

// Copies an element to shared memory through the first-level cache, which keeps the rest of its sector for another
// chunk.
DEVICE void fetch(T* to, const T* from, bool wanted) {
#if __CUDA_ARCH__ >= 800
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p cp.async.ca.shared.global [%0], [%1], %3; }" ::"r"(in_shared(to)), "l"(from), "r"(u32(wanted)), "n"(sizeof(T)) : "memory");
#else
    if (wanted) *to = *from;
#endif
}

#if BULK // chips with clusters
#define BY_TWO __cluster_dims__(2, 1, 1)
#else
#define BY_TWO
#endif

// One block per tile, in an even number. Shared memory: 16 bytes more than SLOTS elements, and 8 per word of heads, if
// there are any.
extern "C" __global__ void BY_TWO __launch_bounds__(THREADS, BLOCKS)
    ascending_sum(const T* x, const u32* codes, const u32* bases, const u32* heads, const u32* shapes, const u32* before, u32 tiles,
                  T* out) {
    if (blockIdx.x >= tiles) return;
    extern __shared__ __align__(16) u8 memory[];
    const u32 lane = lane_id(), warp = threadIdx.x / 32, groups = shapes[blockIdx.x] & 0xffff, slots = shapes[blockIdx.x] >> 16;
    const u32 runs = before[blockIdx.x + 1] - before[blockIdx.x];
    const bool single = runs == slots;
    out += before[blockIdx.x];
    uint2* const head = reinterpret_cast<uint2*>(memory);  // a word, and the number of runs before it
    // The same alignment modulo 16 bytes as the address of the sums.
    T* const own = reinterpret_cast<T*>(memory + (heads ? 8 * HEAD_WORDS : 0) + (reinterpret_cast<u64>(out) & 15));
    codes += u64(blockIdx.x) * (GROUPS * WORDS * 32) + lane;
    bases += blockIdx.x * GROUPS;
    const u32 marks = !single && threadIdx.x < HEAD_WORDS ? heads[u64(blockIdx.x) * HEAD_WORDS + threadIdx.x] : 0;
#pragma unroll 1
    for (u32 g = warp; g < groups; g += WARPS) {
        u32 word[WORDS], at = __ldcs(bases + g);
#pragma unroll
        for (u32 i = 0; i < WORDS; i++) word[i] = __ldcs(codes + (g * WORDS + i) * 32);
#pragma unroll
        for (u32 u = 0; u < CHUNKS; u += 2) {
            const auto above = [&](u32 k) {
                return (word[CHUNKS / 2 + k * UPPER / 32] >> k * UPPER % 32 & ((1 << UPPER) - 1)) << (16 - SLOT_BITS);
            };
            const u32 slot = word[u / 2] & (SLOTS - 1), next_slot = word[u / 2] >> 16 & (SLOTS - 1);
            const u32 gap = word[u / 2] >> SLOT_BITS & 7 | above(u), next_gap = word[u / 2] >> (16 + SLOT_BITS) | above(u + 1);
            const bool wanted = gap != SKIP, next_wanted = next_gap != SKIP;
            u32 source, next;
            if (__all_sync(ALL, wanted && next_wanted)) {
                // Both chunks in one word: the distances of a chunk add up to less than 2^16.
                const u32 both = count_to_lane((gap | next_gap << 16) + 0x10001), all = __shfl_sync(ALL, both, 31);
                source = at + (both & 0xffff), at += all & 0xffff;
                next = at + (both >> 16), at += all >> 16;
            } else {
                source = at + count_to_lane(advance(gap, slot)), at = __shfl_sync(ALL, source, 31);
                next = at + count_to_lane(advance(next_gap, next_slot)), at = __shfl_sync(ALL, next, 31);
            }
            fetch(own + slot, x + source, wanted);
            fetch(own + next_slot, x + next, next_wanted);
        }
    }
    if (!single) {
        u32 all;
        const u32 earlier = block_before<THREADS>(u32(__popc(marks)), all);
        if (threadIdx.x < HEAD_WORDS) head[threadIdx.x] = make_uint2(marks, earlier);
    }
    copies_done();
    bulk_sees_writes();
    __syncthreads();
    if (single) {
#if BULK
        const u32 lead = min(slots, u32(-reinterpret_cast<u64>(out) & 15) / u32(sizeof(T))), bytes = (slots - lead) * u32(sizeof(T)) & ~15u;
        if (threadIdx.x == 0 && bytes) bulk_store(out + lead, own + lead, bytes);
        const u32 tail = lead + bytes / u32(sizeof(T)) + threadIdx.x;
        if (threadIdx.x < lead) out[threadIdx.x] = own[threadIdx.x];
        if (tail < slots) out[tail] = own[tail];
        if (threadIdx.x == 0) bulk_stores_read();
#else
        for (u32 i = threadIdx.x; i < slots; i += THREADS) out[i] = own[i];
#endif
        return;
    }
    // A warp has the runs that start in its part of the slots. The 32 bits after a run's start tell its length, unless
    // it is longer. (After the last word of heads there is no other, but bits are set from the end on.)
    const u32 end = min(slots, (warp + 1) * (SLOTS / WARPS));
#pragma unroll 1
    for (u32 i = warp * (SLOTS / WARPS) + lane; i < end; i += 32) {
        const uint2 near = head[i / 32];
        if (!(near.x >> lane & 1)) continue;
        const u32 behind = __funnelshift_rc(near.x, head[i / 32 + 1].x, lane + 1), length = behind ? __ffs(behind) : 33;
        T sum = own[i];
        if (length > 1) sum = sum + own[i + 1];
#pragma unroll 1
        for (u32 j = 2; j < length; j++) sum = sum + own[i + j];
        if (!behind)
#pragma unroll 1
            for (u32 j = i + 33; !(head[j / 32].x >> j % 32 & 1); j++) sum = sum + own[j];
        out[near.y + __popc(near.x & lanes_below())] = sum;
    }
}
