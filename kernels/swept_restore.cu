// Bands of rows that are swept in the order of columns (swept.cu) to CSR.
//
// Bytes an entry: place and value read; column and value written.
//
// Constants: VALUE_BYTES (4, 8, 16), OFFSET (of CSR), STEP, BACK_THREADS.
#include "swept.cuh"

typedef unsigned_of<VALUE_BYTES>::type V;
typedef OFFSET I;
extern __shared__ u32 words[];

// Entries of a row are in the order of steps, and none is twice in one. A warp takes a step, and a block as many steps at a time as it has warps: each row notes by a bit which of
// them have an entry of it, so an entry's place is where the row goes on and as many behind as bits are set below. Some blocks a band, each for some of its rows: what all blocks
// write at a time is to lie in the second-level cache until sectors are full. Two words of shared memory a row.
extern "C" __global__ void __launch_bounds__(BACK_THREADS)
    swept_to_csr(u64 rows, u32 height, u32 split, const u32* firsts, const u64* starts, const u32* bases, const u32* places, const V* values,
                 const I* offsets, u32* columns, V* to_values) {
    constexpr u32 WARPS = BACK_THREADS / 32, AT_ONCE = 4;
    static_assert(WARPS <= 32, "a bit a warp");
    const u32 band = blockIdx.x / split, share = (height + split - 1) / split, from = blockIdx.x % split * share;
    const u64 row = u64(band) * height + from;
    if (from >= height || row >= rows) return;
    const u32 bits = row_bits(height), have = u32(min(u64(min(share, height - from)), rows - row)), warp = threadIdx.x / 32;
    const u64 begin = offsets[row];
    u32 *const goes_on = words, *const seen = words + share;
    for (u32 i = threadIdx.x; i < have; i += BACK_THREADS) goes_on[i] = u32(u64(offsets[row + i]) - begin), seen[i] = 0;
    const u32 end = firsts[band + 1];
    for (u32 first = firsts[band]; first < end; first += WARPS) {
        const u32 step = first + warp;
        const bool mine = step < end;
        const u64 start = mine ? starts[step] : 0, stop = mine ? starts[step + 1] : 0;
        const u32 base = mine ? bases[step] : 0;
        __syncthreads();
        for (u64 at = start + lane_id(); at < stop; at += 32 * AT_ONCE) {
            u32 r[AT_ONCE];
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; i++) r[i] = at + i * 32 < stop ? row_in_band(places[at + i * 32], bits) - from : have;
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; i++)
                if (r[i] < have) atomicOr(seen + r[i], 1u << warp);
        }
        __syncthreads();
        for (u64 at = start + lane_id(); at < stop; at += 32 * AT_ONCE) {
            u32 place[AT_ONCE];
            V value[AT_ONCE];
            bool its[AT_ONCE];
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; i++) {
                its[i] = at + i * 32 < stop;
                if (its[i]) place[i] = places[at + i * 32], its[i] = row_in_band(place[i], bits) - from < have;
            }
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; i++)
                if (its[i]) value[i] = values[at + i * 32];
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; i++)
                if (its[i]) {
                    const u32 r = row_in_band(place[i], bits) - from;
                    const u64 to = begin + goes_on[r] + __popc(seen[r] & ((1u << warp) - 1));
                    columns[to] = base + column_in_reach(place[i], bits);
                    to_values[to] = value[i];
                }
        }
        __syncthreads();
        for (u32 i = threadIdx.x; i < have; i += BACK_THREADS) goes_on[i] += __popc(seen[i]), seen[i] = 0;
    }
}
