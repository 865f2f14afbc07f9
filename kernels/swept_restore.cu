// Bands of rows that are swept in the order of columns (swept.cu) to CSR.
//
// Bytes an entry: place and value read; column and value written.
//
// Constants: VALUE_BYTES (4, 8, 16), OFFSET (of CSR), BACK_THREADS.
#include "swept.cuh"

typedef unsigned_of<VALUE_BYTES>::type V;
typedef OFFSET I;
extern __shared__ u32 words[];

// Entries of a row are in the order of steps. A block a band, `height` words of shared memory: where each row goes on. Entries of the next
// step are under way while one is written.
extern "C" __global__ void __launch_bounds__(BACK_THREADS)
    swept_to_csr(u64 rows, u32 height, const u32* firsts, const u64* starts, const u32* bases, const u32* places, const V* values,
             const I* offsets, u32* columns, V* to_values) {
    constexpr u32 EACH = STEP / BACK_THREADS;
    const u64 row = u64(blockIdx.x) * height, begin = offsets[row];
    const u32 bits = row_bits(height), have = u32(min(u64(height), rows - row)), end = firsts[blockIdx.x + 1];
    u32* const goes_on = words;
    for (u32 i = threadIdx.x; i < have; i += BACK_THREADS) goes_on[i] = u32(u64(offsets[row + i]) - begin);
    u32 step = firsts[blockIdx.x], place[EACH];
    V value[EACH];
    u64 stop = step < end ? starts[step] : 0, next_stop = step < end ? starts[step + 1] : 0;
    u32 entries = 0, base = 0;
    // Asks for the step that starts where the last one stopped.
    const auto ask = [&](u32 step) {
        const u64 start = stop;
        stop = next_stop, entries = step < end ? u32(stop - start) : 0;
        if (step < end) base = bases[step];
        if (step + 1 < end) next_stop = starts[step + 2];
#pragma unroll
        for (u32 i = 0; i < EACH; i++) {
            const u32 at = threadIdx.x + i * BACK_THREADS;
            if (at < entries) place[i] = places[start + at], value[i] = values[start + at];
        }
    };
    ask(step);
    __syncthreads();
    for (; step < end; step++) {
        u32 now[EACH];
        V is[EACH];
        const u32 those = entries, from = base;
#pragma unroll
        for (u32 i = 0; i < EACH; i++) now[i] = place[i], is[i] = value[i];
        ask(step + 1);
#pragma unroll
        for (u32 i = 0; i < EACH; i++)
            if (threadIdx.x + i * BACK_THREADS < those) {
                const u64 to = begin + goes_on[row_in_band(now[i], bits)]++;
                columns[to] = from + column_in_reach(now[i], bits);
                to_values[to] = is[i];
            }
        __syncthreads();
    }
}
