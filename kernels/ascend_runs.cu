// Turns marked sources (`mark_runs` of index.cu) into tiles of ascending sources (ascending.cuh). No source occurs
// twice, so one bit per possible source is enough to sort those of a tile: a block collects the windows of SPAN that
// contain its sources in a set, numbers them in ascending order, and sets the sources' bits there. The position of a
// source is the number of bits set before its own. Each warp then writes the codes of 256 sources, after those of
// earlier warps.
//
// Bytes: 4 a source, and 2.3 or 2.6 for its code.
//
// Constants: those of ascending.cuh, THREADS (SLOTS / 8: a warp has 256 sources), WINDOWS (maximum number per tile).
#include "ascending.cuh"
#include "block_before.cuh"

#define HEAD 0x80000000u
#define EMPTY 0xffffffffu
#define OWN (SLOTS / THREADS)
#define PART (32 * OWN)
#define SPAN 2048u // of a window
#define WINDOW_WORDS (SPAN / 32)
#define OWN_WORDS (WINDOWS * WINDOW_WORDS / THREADS) // of bits, per thread
#define SET (4 * WINDOWS)
#define NO_ROOM 1u
#define NEVER 2u

static_assert(WINDOWS * WINDOW_WORDS * 6 >= GROUPS * GROUP * 4, "codes take the place of bits and counts");

// The slot of the set at which the search for a window begins.
DEVICE u32 slot_of(u32 window) { return u32(u64(window * 0x9e3779b1u) * SET >> 32); }

// unfit: initially zero; set to NEVER if a tile has no room for its windows, or a source occurs twice or is not below
// `values`; set to NO_ROOM if a tile has no room for its codes, where codes with more bits may fit. Tiles that start
// after that do nothing. Shared memory: 8 bytes per slot, 6 per word of bits.
extern "C" __global__ void __launch_bounds__(THREADS)
    ascend_codes(const u32* sources, u64 n, u64 values, const u32* starts, u64 runs, const u32* before, u32* codes, u32* bases, u32* heads, u32* shapes, u32* unfit) {
    extern __shared__ __align__(16) u64 key[];
    u32* const bits_of = reinterpret_cast<u32*>(key + SLOTS);
    u16* const bits_before = reinterpret_cast<u16*>(bits_of + WINDOWS * WINDOW_WORDS);
    u32* const code = bits_of;
    __shared__ u32 set[SET], list[WINDOWS], found;
    __shared__ u16 number_of[SET], home[WINDOWS];
    const bool given_up = threadIdx.x == 0 && __ldcg(unfit);  // by another tile
    const u64 tile = blockIdx.x, first_run = before[tile], last_run = before[tile + 1];
    const u64 first = first_run < runs ? starts[first_run] : n, last = last_run < runs ? starts[last_run] : n;
    const u32 slots = u32(last - first), lane = lane_id(), warp = threadIdx.x / 32;
    for (u32 i = threadIdx.x; i < SET; i += THREADS) set[i] = EMPTY;
    for (u32 i = threadIdx.x; i < WINDOWS * WINDOW_WORDS; i += THREADS) bits_of[i] = 0;
    if (threadIdx.x == 0) found = 0;
    if (__syncthreads_or(given_up)) return;
    bool bad = slots >= SLOTS;
    u32 source[OWN], at[OWN];
#pragma unroll
    for (u32 k = 0; k < OWN; k++) {
        const u32 i = k * THREADS + threadIdx.x, marked = i < slots ? sources[first + i] : HEAD;
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
        if (threadIdx.x == 0) atomicMax(unfit, NEVER);
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
        if (threadIdx.x == 0) atomicMax(unfit, NEVER);
        return;
    }
    u32 mine = 0, all;
#pragma unroll
    for (u32 w = 0; w < OWN_WORDS; w++) mine += __popc(bits_of[threadIdx.x * OWN_WORDS + w]);
    mine = block_before<THREADS>(mine, all);
#pragma unroll
    for (u32 w = 0; w < OWN_WORDS; w++) {
        const u32 own = threadIdx.x * OWN_WORDS + w;
        bits_before[own] = u16(mine), mine += __popc(bits_of[own]);
    }
    __syncthreads();
#pragma unroll
    for (u32 k = 0; k < OWN; k++) {
        const u32 i = k * THREADS + threadIdx.x;
        if (i < slots) key[bits_before[at[k]] + __popc(bits_of[at[k]] & ((1u << source[k] % 32) - 1))] = u64(source[k]) << SLOT_BITS | i;
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < GROUPS * GROUP; i += THREADS) code[i] = SKIP << SLOT_BITS;
    // For each source, the distance from the source before it (for a tile's first source, from one less than itself),
    // and how many times it contains SKIP.
    u32 from[OWN], times[OWN], count = 0;
    const auto codes_of = [&](u32 k) {
        return warp * PART + k * 32 + lane < slots ? 1 + (times[k] % (1 << HALF) != 0) + (times[k] >> HALF != 0) : 0;
    };
#pragma unroll
    for (u32 k = 0; k < OWN; k++) {
        const u32 i = warp * PART + k * 32 + lane;
        source[k] = i < slots ? u32(key[i] >> SLOT_BITS) : 0;
        from[k] = i && i < slots ? u32(key[i - 1] >> SLOT_BITS) : source[k] - 1;
        times[k] = (source[k] - from[k] - 1) / SKIP;
        count += codes_of(k);
        bad = bad || times[k] >> 2 * HALF;
    }
    u32 earlier = __shfl_sync(ALL, block_before<THREADS>(count, all), 0);
    const u32 groups = (all + GROUP - 1) / GROUP;
    if (__syncthreads_or(bad) || groups > GROUPS) {
        if (threadIdx.x == 0) atomicMax(unfit, NO_ROOM);
        return;
    }
#pragma unroll
    for (u32 k = 0; k < OWN; k++) {
        const u32 own = codes_of(k), upto = count_to_lane(own);
        u32 place = earlier + upto - own;
        earlier += __shfl_sync(ALL, upto, 31);
        if (!own) continue;
        const auto put = [&](u32 gap, u32 lower) {
            if (place % GROUP == 0) bases[tile * GROUPS + place / GROUP] = from[k];
            code[place++] = gap << SLOT_BITS | lower;
            from[k] += advance(gap, lower);
        };
        const u32 low = times[k] % (1 << HALF), high = times[k] >> HALF;
        if (high) put(SKIP, high | 1 << HALF);
        if (low) put(SKIP, low);
        put(source[k] - from[k] - 1, u32(key[warp * PART + k * 32 + lane] & (SLOTS - 1)));
    }
    __syncthreads();
    for (u32 i = threadIdx.x; i < groups * 32; i += THREADS) {
        const u32* const own = code + i / 32 * GROUP + lane;
        u32* const to = codes + (tile * GROUPS + i / 32) * (WORDS * 32) + lane;
        u32 upper[CHUNKS * UPPER / 32] = {};
#pragma unroll
        for (u32 k = 0; k < CHUNKS; k++) {
            if (k % 2) to[16 * (k - 1)] = (own[32 * (k - 1)] & 0xffff) | own[32 * k] << 16;
            upper[k * UPPER / 32] |= own[32 * k] >> 16 << k * UPPER % 32;
        }
#pragma unroll
        for (u32 k = 0; k < CHUNKS * UPPER / 32; k++) to[16 * CHUNKS + 32 * k] = upper[k];
    }
    if (threadIdx.x == 0) shapes[tile] = groups | slots << 16;
}
