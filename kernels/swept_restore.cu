// Bands of rows that are swept in the order of columns (swept.cu) to CSR.
//
// Bytes an entry: place and value read; column and value written.
//
// Constants: VALUE_BYTES (4, 8, 16), OFFSET (of CSR), STEP, BACK_THREADS.
#include "swept.cuh"

typedef unsigned_of<VALUE_BYTES>::type V;
typedef OFFSET I;
extern __shared__ uint4 shared[];

// Entries of a row are in the order of steps, and none is twice in one. A warp takes a step, and a block as many steps at a time as it has warps: each row notes by a bit which of
// them have an entry of it, so an entry's place is where the row goes on and as many behind as bits are set below. Some blocks a band, each for some of its rows, whose entries it gathers in
// shared memory (`room` of them, beside two words a row) and writes one after the other: scattered over memory they take twice the time, as where they are too many.
extern "C" __global__ void __launch_bounds__(BACK_THREADS)
    swept_to_csr(u64 rows, u32 height, u32 split, u32 room, const u32* firsts, const u64* starts, const u32* bases, const u32* places, const V* values,
                 const I* offsets, u32* columns, V* to_values) {
    constexpr u32 WARPS = BACK_THREADS / 32, AT_ONCE = 4;
    static_assert(WARPS <= 32, "a bit a warp");
    static_assert(STEP <= 64 * 32, "a bit for each of a lane's entries");
    const u32 band = blockIdx.x / split, share = (height + split - 1) / split, from = blockIdx.x % split * share;
    const u64 row = u64(band) * height + from;
    if (from >= height || row >= rows) return;
    const u32 bits = row_bits(height), have = u32(min(u64(min(share, height - from)), rows - row)), warp = threadIdx.x / 32;
    const u64 begin = offsets[row];
    const u32 count = u32(u64(offsets[row + have]) - begin);
    V* const gathered = reinterpret_cast<V*>(shared);
    u32* const gathered_columns = reinterpret_cast<u32*>(gathered + room);
    u32 *const goes_on = gathered_columns + room, *const seen = goes_on + share;
    const bool gathers = count <= room;
    V* const value_to = gathers ? gathered : to_values + begin;
    u32* const column_to = gathers ? gathered_columns : columns + begin;
    for (u32 i = threadIdx.x; i < have; i += BACK_THREADS) goes_on[i] = u32(u64(offsets[row + i]) - begin), seen[i] = 0;
    const u32 end = firsts[band + 1];
    for (u32 first = firsts[band]; first < end; first += WARPS) {
        const u32 step = first + warp;
        const bool mine = step < end;
        const u64 start = mine ? starts[step] : 0, stop = mine ? starts[step + 1] : 0;
        const u32 base = mine ? bases[step] : 0;
        const auto at = [&](u32 i) { return start + i * 32 + lane_id(); };
        __syncthreads();
        // Which of a lane's entries are of these rows.
        u64 its = 0;
        for (u32 i0 = 0; start + i0 * 32 < stop; i0 += AT_ONCE) {
            u32 r[AT_ONCE];
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; i++) r[i] = at(i0 + i) < stop ? row_in_band(places[at(i0 + i)], bits) - from : have;
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; i++)
                if (r[i] < have) atomicOr(seen + r[i], 1u << warp), its |= u64(1) << (i0 + i);
        }
        __syncthreads();
        while (its) {
            u32 place[AT_ONCE];
            V value[AT_ONCE];
            bool there[AT_ONCE];
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; i++) {
                there[i] = its;
                place[i] = 0, value[i] = V();
                if (there[i]) {
                    const u64 from = at(__ffsll(its) - 1);
                    its &= its - 1, place[i] = places[from], value[i] = values[from];
                }
            }
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; i++)
                if (there[i]) {
                    const u32 r = row_in_band(place[i], bits) - from, to = goes_on[r] + __popc(seen[r] & ((1u << warp) - 1));
                    column_to[to] = base + column_in_reach(place[i], bits), value_to[to] = value[i];
                }
        }
        __syncthreads();
        for (u32 i = threadIdx.x; i < have; i += BACK_THREADS) goes_on[i] += __popc(seen[i]), seen[i] = 0;
    }
    if (!gathers) return;
    __syncthreads();
    for (u32 i = threadIdx.x; i < count; i += BACK_THREADS) columns[begin + i] = gathered_columns[i], to_values[begin + i] = gathered[i];
}
