// The steps of bands of rows that are swept in the order of columns (swept.cu), as swept_fill.cu leaves them: each sorted by column, then row.
// No two entries of a step are alike, so nothing is left of the order in which they came.
//
// Some blocks a band, each a step after the other: keys are numbered by bins of about one entry, and those of a bin by comparing them.
//
// Bytes an entry: place and value, read and written.
//
// Constants: VALUE_BYTES (4, 8, 16), OFFSET (of CSR), SORT_THREADS, ROOM (of swept_fill.cu).
#include "block_before.cuh"
#include "swept.cuh"

typedef unsigned_of<VALUE_BYTES>::type V;
typedef OFFSET I;
extern __shared__ u32 words[];

#define SORT_BINS 2048
#define SORT_EACH (STEP / SORT_THREADS)

extern "C" __global__ void __launch_bounds__(SORT_THREADS, 1536 / SORT_THREADS)
    put_in_order(u64 rows, u32 height, u32 split, const I* offsets, const u32* firsts, const u32* noted_starts, const u32* noted_bases, u32 each,
                 u64* starts, u32* bases, u32* places, V* values) {
    __shared__ u32 ends[SORT_BINS], keys[STEP], lowest, highest;
    __shared__ u16 origins[STEP];
    V* const moved = reinterpret_cast<V*>(words);
    const u32 number = blockIdx.x / split;
    const u64 row = u64(number) * height, begin = offsets[row], end = offsets[min(row + height, rows)];
    const u32 first = firsts[number], steps = firsts[number + 1] - first;
    const u64 note = begin / ROOM + u64(number) * each;
    const auto start_of = [&](u32 step) { return step < steps ? noted_starts[note + step] : u32(end - begin); };
    u32 key[SORT_EACH], start = start_of(blockIdx.x % split), stop = start_of(blockIdx.x % split + 1);
    u32 next_start = start_of(blockIdx.x % split + split), next_stop = start_of(blockIdx.x % split + split + 1);
    V value[SORT_EACH];
    const auto ask = [&]() {
#pragma unroll
        for (u32 i = 0; i < SORT_EACH; i++) {
            const u64 at = begin + start + threadIdx.x + i * SORT_THREADS;
            if (at < begin + stop) key[i] = places[at], value[i] = values[at];
        }
    };
    ask();
    for (u32 step = blockIdx.x % split; step < steps; step += split) {
        const u32 have = stop - start;
        if (threadIdx.x == 0) {
            starts[first + step] = begin + start, bases[first + step] = noted_bases[note + step];
            if (end == offsets[rows] && step + 1 == steps) starts[first + steps] = end;
            lowest = 0xffffffff, highest = 0;
        }
        u32* const of_places = places + begin + start;
        V* const of_values = values + begin + start;
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
        low = lowest;
        const u64 range = u64(highest - low) + 1;
        const u32 factor = u32(min((u64(SORT_BINS) << 32) - 1, u64(0xffffffff) * range) / range);
        u32 rank[SORT_EACH];
#pragma unroll
        for (u32 i = 0; i < SORT_EACH; i++)
            if (threadIdx.x + i * SORT_THREADS < have) rank[i] = atomicAdd(ends + __umulhi(key[i] - low, factor), 1u);
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
                const u32 to = ends[__umulhi(key[i] - low, factor)] + rank[i];
                keys[to] = key[i], origins[to] = u16(at);
            }
        }
        __syncthreads();
        // The next step comes while this one is written.
        start = next_start, stop = next_stop;
        next_start = start_of(step + 2 * split), next_stop = start_of(step + 2 * split + 1);
        ask();
#pragma unroll
        for (u32 i = 0; i < SORT_EACH; i++) {
            const u32 at = threadIdx.x + i * SORT_THREADS;
            if (at < have) {
                const u32 mine = keys[at], bin = __umulhi(mine - low, factor);
                u32 to = ends[bin];
                const u32 behind = bin + 1 < SORT_BINS ? ends[bin + 1] : have;
                const u32 from = to;
                for (u32 other = from; other < behind; other++) to += keys[other] < mine;
                of_places[to] = mine;
                of_values[to] = moved[origins[at]];
            }
        }
        __syncthreads();
    }
}
