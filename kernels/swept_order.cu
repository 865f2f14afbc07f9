// The steps of bands of rows that are swept in the order of columns (swept.cu), as swept_fill.cu leaves them: each sorted by column, then row.
// No two entries of a step are alike, so nothing is left of the order in which they came.
//
// Keys are numbered by bins of about one entry, and those of a bin by comparing them. A step of at most FEW entries is a warp's (`put_few_in_order`, which also copies
// what was noted of every step to its place), others are a block's.
//
// Bytes an entry: place and value, read and written.
//
// Constants: VALUE_BYTES (4, 8, 16), OFFSET (of CSR), STEP, FEW, SORT_THREADS, FEW_THREADS.
#include "block_before.cuh"
#include "swept.cuh"

typedef unsigned_of<VALUE_BYTES>::type V;
typedef OFFSET I;
extern __shared__ u32 words[];

// Which bin a key falls into: numbers from `low` to `high` are shared out evenly.
struct Bins {
    u32 low, factor;

    DEVICE Bins(u32 low, u32 high, u32 bins) : low(low) {
        const u64 range = u64(high - low) + 1;
        factor = u32(min((u64(bins) << 32) - 1, u64(0xffffffff) * range) / range);
    }
    DEVICE u32 of(u32 key) const { return __umulhi(key - low, factor); }
};
// The place of a key of a bin that starts at `from` and ends before `behind`.
DEVICE u32 place_in_bin(const u32* keys, u32 key, u32 from, u32 behind) {
    u32 to = from;
    for (u32 other = from; other < behind; other++) to += keys[other] < key;
    return to;
}

// A warp's step; EACH entries a lane, and as many bins in `ends`.
template <u32 EACH> DEVICE void put_few(u32 have, u32* keys, u32* ends, u32* places, V* values) {
    u32 key[EACH], rank[EACH], low = 0xffffffff, high = 0;
    V value[EACH];
#pragma unroll
    for (u32 i = 0; i < EACH; i++) {
        const u32 at = lane_id() + i * 32;
        ends[at] = 0;
        if (at < have) key[i] = places[at], value[i] = values[at], low = min(low, key[i]), high = max(high, key[i]);
    }
#pragma unroll
    for (u32 with = 16; with; with /= 2) low = min(low, __shfl_xor_sync(ALL, low, with)), high = max(high, __shfl_xor_sync(ALL, high, with));
    const Bins bins(low, high, 32 * EACH);
    __syncwarp();
#pragma unroll
    for (u32 i = 0; i < EACH; i++)
        if (lane_id() + i * 32 < have) rank[i] = atomicAdd(ends + bins.of(key[i]), 1u);
    __syncwarp();
    u32 sum = 0, count[EACH];
#pragma unroll
    for (u32 i = 0; i < EACH; i++) sum += count[i] = ends[lane_id() * EACH + i];
    u32 before = warp_inclusive_sum(sum) - sum;
#pragma unroll
    for (u32 i = 0; i < EACH; i++) ends[lane_id() * EACH + i] = before, before += count[i];
    __syncwarp();
#pragma unroll
    for (u32 i = 0; i < EACH; i++)
        if (lane_id() + i * 32 < have) keys[ends[bins.of(key[i])] + rank[i]] = key[i];
    __syncwarp();
#pragma unroll
    for (u32 i = 0; i < EACH; i++)
        if (lane_id() + i * 32 < have) {
            const u32 bin = bins.of(key[i]);
            const u32 to = place_in_bin(keys, key[i], ends[bin], bin + 1 < 32 * EACH ? ends[bin + 1] : have);
            places[to] = key[i], values[to] = value[i];
        }
    __syncwarp();
}

// The band that a step is of: the last that starts with it or before, by all lanes of a warp.
DEVICE u32 band_of(u32 step, u32 bands, const u32* firsts) {
    u32 low = 0, among = bands;
    while (among > 1) {
        const u32 part = (among + 31) / 32, at = low + lane_id() * part;
        const u32 upto = __ballot_sync(ALL, lane_id() * part < among && firsts[at] <= step);
        const u32 last = 31 - __clz(upto);
        low += last * part, among = min(part, among - last * part);
    }
    return low;
}

extern "C" __global__ void __launch_bounds__(FEW_THREADS, VALUE_BYTES == 16 ? 1 : 1024 / FEW_THREADS)
    put_few_in_order(u64 rows, u32 height, u32 bands, const I* offsets, const u32* firsts, const u64* notes, const u32* noted_starts,
                     const u32* noted_bases, u64* starts, u32* bases, u32* places, V* values) {
    constexpr u32 WARPS = FEW_THREADS / 32;
    __shared__ u32 keys[WARPS][FEW], ends[WARPS][FEW];
    const u32 warp = threadIdx.x / 32, step = blockIdx.x * WARPS + warp, steps = firsts[bands];
    if (step >= steps) return;
    const u32 band = band_of(step, bands, firsts);
    const u64 row = u64(band) * height, begin = offsets[row], note = notes[band] + (step - firsts[band]);
    const u32 start = noted_starts[note];
    const u32 stop = step + 1 < firsts[band + 1] ? noted_starts[note + 1] : u32(offsets[min(row + height, rows)] - begin);
    if (lane_id() == 0) {
        starts[step] = begin + start, bases[step] = noted_bases[note];
        if (step + 1 == steps) starts[steps] = begin + stop;
    }
    const u32 have = stop - start;
    if (have > FEW) return;
    places += begin + start, values += begin + start;
    if (have <= 64) put_few<2>(have, keys[warp], ends[warp], places, values);
    else put_few<FEW / 32>(have, keys[warp], ends[warp], places, values);
}

#define SORT_BINS 2048
#define SORT_EACH (STEP / SORT_THREADS)

extern "C" __global__ void __launch_bounds__(SORT_THREADS, 1536 / SORT_THREADS) put_in_order(u32 steps, const u64* starts, u32* places, V* values) {
    __shared__ u32 ends[SORT_BINS], keys[STEP], lowest, highest;
    __shared__ u16 origins[STEP];
    V* const moved = reinterpret_cast<V*>(words);
    // The first of this block's steps from `step` on that is not a warp's, or behind the last.
    const auto large = [&](u32 step) {
        for (;; step += 32 * gridDim.x) {
            const u32 at = step + lane_id() * gridDim.x;
            const u32 found = __ballot_sync(ALL, at >= steps || starts[at + 1] - starts[at] > FEW);
            if (found) return step + (__ffs(found) - 1) * gridDim.x;
        }
    };
    const auto start_of = [&](u32 step) { return starts[min(step, steps)]; };
    u32 key[SORT_EACH], step = large(blockIdx.x), next = large(step + gridDim.x);
    u64 start = start_of(step), stop = start_of(step + 1), next_start = start_of(next), next_stop = start_of(next + 1);
    V value[SORT_EACH];
    const auto ask = [&]() {
#pragma unroll
        for (u32 i = 0; i < SORT_EACH; i++) {
            const u64 at = start + threadIdx.x + i * SORT_THREADS;
            if (at < stop) key[i] = places[at], value[i] = values[at];
        }
    };
    ask();
    while (step < steps) {
        const u32 have = u32(stop - start);
        if (threadIdx.x == 0) lowest = 0xffffffff, highest = 0;
        u32* const of_places = places + start;
        V* const of_values = values + start;
        u32 low = 0xffffffff, high = 0;
#pragma unroll
        for (u32 i = 0; i < SORT_EACH; i++) {
            const u32 at = threadIdx.x + i * SORT_THREADS;
            if (at < have) {
                low = min(low, key[i]), high = max(high, key[i]);
                moved[at] = value[i];
            }
        }
#pragma unroll
        for (u32 with = 16; with; with /= 2) low = min(low, __shfl_xor_sync(ALL, low, with)), high = max(high, __shfl_xor_sync(ALL, high, with));
        for (u32 b = threadIdx.x; b < SORT_BINS; b += SORT_THREADS) ends[b] = 0;
        __syncthreads();
        if (lane_id() == 0) atomicMin(&lowest, low), atomicMax(&highest, high);
        __syncthreads();
        const Bins bins(lowest, highest, SORT_BINS);
        u32 rank[SORT_EACH];
#pragma unroll
        for (u32 i = 0; i < SORT_EACH; i++)
            if (threadIdx.x + i * SORT_THREADS < have) rank[i] = atomicAdd(ends + bins.of(key[i]), 1u);
        __syncthreads();
        constexpr u32 EACH = SORT_BINS / SORT_THREADS;
        u32 sum = 0, all, count[EACH];
#pragma unroll
        for (u32 i = 0; i < EACH; i++) sum += count[i] = ends[threadIdx.x * EACH + i];
        u32 before = block_before<SORT_THREADS>(sum, all);
#pragma unroll
        for (u32 i = 0; i < EACH; i++) ends[threadIdx.x * EACH + i] = before, before += count[i];
        __syncthreads();
        // By bins, in any order within each.
#pragma unroll
        for (u32 i = 0; i < SORT_EACH; i++) {
            const u32 at = threadIdx.x + i * SORT_THREADS;
            if (at < have) {
                const u32 to = ends[bins.of(key[i])] + rank[i];
                keys[to] = key[i], origins[to] = u16(at);
            }
        }
        __syncthreads();
        // The next step comes while this one is written.
        step = next, start = next_start, stop = next_stop;
        next = large(step + gridDim.x);
        ask();
        next_start = start_of(next), next_stop = start_of(next + 1);
#pragma unroll
        for (u32 i = 0; i < SORT_EACH; i++) {
            const u32 at = threadIdx.x + i * SORT_THREADS;
            if (at < have) {
                const u32 mine = keys[at], bin = bins.of(mine);
                const u32 to = place_in_bin(keys, mine, ends[bin], bin + 1 < SORT_BINS ? ends[bin + 1] : have);
                of_places[to] = mine;
                of_values[to] = moved[origins[at]];
            }
        }
        __syncthreads();
    }
}
