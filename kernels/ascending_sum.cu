// out[s] = the sum of the sources of s, from left to right, where the sources of a tile are fetched in ascending order (ascending.cuh): lanes side by
// side ask for values that lie side by side, and what memory delivers together is asked for together. The transpose of a grid's matrix has three neighbours
// of a row in 27 columns: fetched in the order of the rows, each value of 8 bytes would be a request of its own.
//
// A block has a tile, and several blocks are on a multiprocessor, so that one sums while others fetch. Where each run has one source, the tile
// leaves by one bulk copy.
//
// Bytes: 3.3 a source, the sectors that a tile's sources lie in, and an element written a run.
//
// Constants: those of ascending.cuh, SCALAR, THREADS, BLOCKS (a multiprocessor, at least).
#include "ascending.cuh"
#include "block_before.cuh"
#include "bulk.cuh"
#include "complex.cuh"

#define WARPS (THREADS / 32)

typedef SCALAR T;

// An element to shared memory, through the first-level cache, which has the rest of its sector for another chunk.
DEVICE void fetch(T* to, const T* from, bool wanted) {
#if __CUDA_ARCH__ >= 800
    asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p cp.async.ca.shared.global [%0], [%1], %3; }" ::"r"(in_shared(to)), "l"(from), "r"(u32(wanted)), "n"(sizeof(T)) : "memory");
#else
    if (wanted) *to = *from;
#endif
}

// Shared memory: 16 bytes more than SLOTS elements have.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    ascending_sum(const T* x, const u32* codes, const u32* bases, const u32* heads, const u32* shapes, const u32* before, T* out) {
    extern __shared__ __align__(16) u8 memory[];
    const u32 lane = lane_id(), warp = threadIdx.x / 32, groups = shapes[blockIdx.x] & 0xffff, slots = shapes[blockIdx.x] >> 16;
    const u32 runs = before[blockIdx.x + 1] - before[blockIdx.x];
    const bool single = runs == slots;
    out += before[blockIdx.x];
    // As far from a multiple of 16 bytes as where sums go to.
    T* const own = reinterpret_cast<T*>(memory + (reinterpret_cast<u64>(out) & 15));
    codes += u64(blockIdx.x) * (GROUPS * 96) + lane;
    const uint4* const base = reinterpret_cast<const uint4*>(bases) + u64(blockIdx.x) * GROUPS;
#pragma unroll 1
    for (u32 g = warp; g < groups; g += WARPS) {
        const u32 one = __ldcs(codes + g * 96), two = __ldcs(codes + g * 96 + 32), upper = __ldcs(codes + g * 96 + 64);
        const uint4 starts = __ldcs(base + g);
        const u32 start[4] = {starts.x, starts.y, starts.z, starts.w};
#pragma unroll
        for (u32 k = 0; k < 4; k++) {
            const u32 code = ((k < 2 ? one : two) >> 16 * (k % 2) & 0xffff) | (upper >> 8 * k & 0xff) << 16;
            fetch(own + (code & (SLOTS - 1)), x + (start[k] + (code >> SLOT_BITS)), code != NONE);
        }
    }
    __shared__ u32 head[HEAD_WORDS], rank[HEAD_WORDS];
    if (!single) {
        u32 earlier = 0;
        for (u32 at = 0; at < HEAD_WORDS; at += THREADS) {
            const u32 w = at + threadIdx.x, mine = w < HEAD_WORDS ? heads[u64(blockIdx.x) * HEAD_WORDS + w] : 0;
            u32 all;
            const u32 own_rank = earlier + block_before<THREADS>(u32(__popc(mine)), all);
            if (w < HEAD_WORDS) head[w] = mine, rank[w] = own_rank;
            earlier += all;
        }
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
    for (u32 i = threadIdx.x; i < slots; i += THREADS) {
        const u32 marks = head[i / 32];
        if (!(marks >> lane & 1)) continue;
        T sum = own[i];
        for (u32 j = i + 1; j < slots && !(head[j / 32] >> j % 32 & 1); j++) sum = sum + own[j];
        out[rank[i / 32] + __popc(marks & lanes_below())] = sum;
    }
}
