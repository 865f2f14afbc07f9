// Marked sources (`mark_runs` of index.cu) to tiles of ascending ones (ascending.cuh). No source occurs twice, so a bit each is enough to put those of a tile in order: a block
// keeps the windows of SPAN that they lie in as a set, numbered by size, and marks them there; how many bits are set before its own is where a source comes.
// Then each warp cuts 256 of them into chunks, twice: to count them, and when it is known how many come before.
//
// Bytes: 4 a source, and 3 for its code.
//
// Constants: those of ascending.cuh, THREADS (SLOTS / 8: a warp has 256 sources), WINDOWS (of a tile at most).
#include "ascending.cuh"
#include "block_before.cuh"

#define HEAD 0x80000000u
#define EMPTY 0xffffffffu
#define OWN (SLOTS / THREADS)
#define PART (32 * OWN)
#define WINDOW_WORDS (SPAN / 32)
#define WORDS (WINDOWS * WINDOW_WORDS / THREADS) // of bits, a thread
#define SET (4 * WINDOWS)

static_assert(WINDOWS * WINDOW_WORDS * 6 >= GROUPS * 512, "codes take the place of bits and counts");

// Where a window goes first in the set.
DEVICE u32 slot_of(u32 window) { return u32(u64(window * 0x9e3779b1u) * SET >> 32); }

// unfit: zero before; set where a tile has no room for its windows or chunks, a source occurs twice, or is not below `values`. Shared memory: 8 bytes a
// slot, 6 for each word of bits.
extern "C" __global__ void __launch_bounds__(THREADS)
    ascend_codes(const u32* sources, u64 n, u64 values, const u32* starts, u64 runs, const u32* before, u32* codes, u32* bases, u32* heads, u32* shapes, u32* unfit) {
    extern __shared__ __align__(16) u64 key[];
    u32* const bits_of = reinterpret_cast<u32*>(key + SLOTS);
    u16* const bits_before = reinterpret_cast<u16*>(bits_of + WINDOWS * WINDOW_WORDS);
    u32* const code = bits_of;
    __shared__ u32 set[SET], list[WINDOWS], found;
    __shared__ u16 number_of[SET], home[WINDOWS];
    const u64 tile = blockIdx.x, first_run = before[tile], last_run = before[tile + 1];
    const u64 first = first_run < runs ? starts[first_run] : n, last = last_run < runs ? starts[last_run] : n;
    const u32 slots = u32(last - first), lane = lane_id(), warp = threadIdx.x / 32;
    for (u32 i = threadIdx.x; i < SET; i += THREADS) set[i] = EMPTY;
    for (u32 i = threadIdx.x; i < WINDOWS * WINDOW_WORDS; i += THREADS) bits_of[i] = 0;
    if (threadIdx.x == 0) found = 0;
    __syncthreads();
    bool bad = slots >= SLOTS;
    u32 source[OWN], at[OWN];
#pragma unroll
    for (u32 k = 0; k < OWN; k++) {
        const u32 i = k * THREADS + threadIdx.x, marked = i < slots ? sources[first + i] : 0;
        const u32 marks = __ballot_sync(ALL, (marked & HEAD) != 0);
        if (heads && lane == 0) heads[tile * HEAD_WORDS + i / 32] = marks;
        source[k] = marked & ~HEAD, at[k] = 0;
        bad = bad || (i < slots && source[k] >= values);
    }
#pragma unroll
    for (u32 k = 0; k < OWN; k++) {
        if (k * THREADS + threadIdx.x >= slots) continue;
        const u32 window = source[k] / SPAN;
        for (at[k] = slot_of(window);; at[k] = (at[k] + 1) % SET) {
            const u32 there = atomicCAS(set + at[k], EMPTY, window);
            if (there == window) break;
            if (there == EMPTY) {
                const u32 number = atomicAdd(&found, 1u);
                if (number < WINDOWS) list[number] = window, home[number] = u16(at[k]);
                break;
            }
            if (atomicAdd(&found, 0u) > WINDOWS) break;
        }
    }
    if (__syncthreads_or(bad) || found > WINDOWS) {
        if (threadIdx.x == 0) atomicMax(unfit, 1u);
        return;
    }
    for (u32 k = threadIdx.x; k < found; k += THREADS) {
        u32 smaller = 0;
        for (u32 j = 0; j < found; j++) smaller += list[j] < list[k];
        number_of[home[k]] = u16(smaller);
    }
    __syncthreads();
#pragma unroll
    for (u32 k = 0; k < OWN; k++) {
        if (k * THREADS + threadIdx.x >= slots) continue;
        at[k] = number_of[at[k]] * WINDOW_WORDS + source[k] % SPAN / 32;
        bad = bad || (atomicOr(bits_of + at[k], 1u << source[k] % 32) >> source[k] % 32 & 1);
    }
    if (__syncthreads_or(bad)) {
        if (threadIdx.x == 0) atomicMax(unfit, 1u);
        return;
    }
    u32 mine = 0, all;
#pragma unroll
    for (u32 w = 0; w < WORDS; w++) mine += __popc(bits_of[threadIdx.x * WORDS + w]);
    mine = block_before<THREADS>(mine, all);
#pragma unroll
    for (u32 w = 0; w < WORDS; w++) bits_before[threadIdx.x * WORDS + w] = u16(mine), mine += __popc(bits_of[threadIdx.x * WORDS + w]);
    __syncthreads();
#pragma unroll
    for (u32 k = 0; k < OWN; k++) {
        const u32 i = k * THREADS + threadIdx.x;
        if (i < slots) key[bits_before[at[k]] + __popc(bits_of[at[k]] & ((1u << source[k] % 32) - 1))] = u64(source[k]) << SLOT_BITS | i;
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < GROUPS * 128; i += THREADS) code[i] = NONE;
    const u32 end = min(slots, (warp + 1) * PART);
    const auto cut = [&](auto&& chunk) {
        for (u32 from = warp * PART, number = 0; from < end; number++) {
            const u64 start = key[from] >> SLOT_BITS, own = from + lane < end ? key[from + lane] : ~0ull;
            const bool near = (own >> SLOT_BITS) - start < SPAN;
            chunk(number, start, own, near);
            from += __popc(__ballot_sync(ALL, near));
        }
    };
    u32 count = 0;
    cut([&](u32, u64, u64, bool) { count++; });
    const u32 earlier = __shfl_sync(ALL, block_before<THREADS>(lane == 0 ? count : 0u, all), 0), groups = (all + 3) / 4;
    if (groups > GROUPS) {
        if (threadIdx.x == 0) atomicMax(unfit, 1u);
        return;
    }
    u32* const own_bases = bases + tile * (GROUPS * 4);
    if (threadIdx.x < groups * 4 - all) own_bases[all + threadIdx.x] = 0;
    cut([&](u32 number, u64 start, u64 own, bool near) {
        if (near) code[(earlier + number) * 32 + lane] = u32((own >> SLOT_BITS) - start) << SLOT_BITS | u32(own & (SLOTS - 1));
        if (lane == 0) own_bases[earlier + number] = u32(start);
    });
    __syncthreads();
    for (u32 i = threadIdx.x; i < groups * 32; i += THREADS) {
        const u32* const four = code + i / 32 * 128 + lane;
        u32* const to = codes + (tile * GROUPS + i / 32) * 96 + lane;
        u32 word[3] = {};
#pragma unroll
        for (u32 k = 0; k < 4; k++) word[k / 2] |= (four[32 * k] & 0xffff) << 16 * (k % 2), word[2] |= four[32 * k] >> 16 << 8 * k;
#pragma unroll
        for (u32 k = 0; k < 3; k++) to[32 * k] = word[k];
    }
    if (threadIdx.x == 0) shapes[tile] = groups | slots << 16;
}
