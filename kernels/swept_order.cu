// The steps of bands of rows that are swept in the order of columns (swept.cu), as swept_fill.cu leaves them: those
// that are not in order yet sorted by column, then row, or by rows, as it noted. No two entries of a step are alike, so
// nothing is left of the order in which they came.
//
// Keys are numbered by bins of about one entry, and those of a bin by comparing them; where a bin has more than MANY,
// they get bins of their own first. A step of at most FEW entries is a warp's (`put_few_in_order`, which also copies
// what was noted of every step to its place, and lists the others), others are a block's.
//
// Bytes an entry: place and value, read and written.
//
// Constants: VALUE_BYTES (4, 8, 16), OFFSET (of CSR), STEP, FEW, SORT_THREADS, SORT_RESIDENT (blocks of a
// multiprocessor), MANY, FEW_THREADS.
#include "block_before.cuh"
#include "swept.cuh"

typedef unsigned_of<VALUE_BYTES>::type V;
typedef OFFSET I;
extern __shared__ u32 words[];

// A step is sorted by places, which have the column above the row, or turned by the row's bits: by rows.
DEVICE u32 to_key(u32 place, u32 turn) { return __funnelshift_r(place, place, turn); }
DEVICE u32 from_key(u32 key, u32 turn) { return __funnelshift_l(key, key, turn); }

// Which bin a key falls into: numbers from `low` to `high` are shared out evenly.
struct Bins {
    u32 low, factor;

    DEVICE Bins(u32 low, u32 high, u32 bins) : low(low) {
        // A little less than bins / range of 2^32, so that the highest key is in the last bin or before.
        factor = u32(min(4294967040.0f, f32(bins) * 4294960000.0f / (f32(high - low) + 1)));
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
template <u32 EACH> DEVICE void put_few(u32 have, u32 turn, u32* keys, u32* ends, u32* places, V* values) {
    u32 key[EACH], rank[EACH], low = 0xffffffff, high = 0;
    V value[EACH];
#pragma unroll
    for (u32 i = 0; i < EACH; i++) {
        const u32 at = lane_id() + i * 32;
        ends[at] = 0;
        if (at < have) key[i] = to_key(places[at], turn), value[i] = values[at], low = min(low, key[i]), high = max(high, key[i]);
    }
    low = least_of_lanes(low), high = ~least_of_lanes(~high);
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
            places[to] = from_key(key[i], turn), values[to] = value[i];
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
                     const u32* noted_bases, u64* starts, u32* bases, u32* places, V* values, u32* large, Told* told) {
    constexpr u32 WARPS = FEW_THREADS / 32;
    __shared__ u32 keys[WARPS][FEW], ends[WARPS][FEW];
    const u32 warp = threadIdx.x / 32, step = blockIdx.x * WARPS + warp, steps = firsts[bands];
    if (step >= steps) return;
    const u32 band = band_of(step, bands, firsts);
    const u64 row = u64(band) * height, begin = offsets[row], note = notes[band] + (step - firsts[band]);
    const u32 noted = noted_starts[note], start = noted & ~ORDERS, order = noted & ORDERS;
    const u32 stop = step + 1 < firsts[band + 1] ? noted_starts[note + 1] & ~ORDERS : u32(offsets[min(row + height, rows)] - begin);
    const u32 have = stop - start;
    if (lane_id() == 0) {
        starts[step] = begin + start, bases[step] = noted_bases[note];
        if (step + 1 == steps) starts[steps] = begin + stop;
        // A block's, listed from the front, or from the end.
        if (have > FEW && order == BY_COLUMNS) large[atomicAdd(&told->by_columns, 1u)] = step;
        if (have > FEW && order == BY_ROWS) large[steps - 1 - atomicAdd(&told->by_rows, 1u)] = step;
    }
    if (have > FEW || order == IN_ORDER) return;
    const u32 turn = order == BY_ROWS ? row_bits(height) : 0;
    places += begin + start, values += begin + start;
    if (have <= 64) put_few<2>(have, turn, keys[warp], ends[warp], places, values);
    else put_few<FEW / 32>(have, turn, keys[warp], ends[warp], places, values);
}

#define SORT_BINS 2048
#define SORT_EACH (STEP / SORT_THREADS)

// From how many keys each bin has to where it starts.
DEVICE void starts_of_bins(u32* ends) {
    constexpr u32 EACH = SORT_BINS / SORT_THREADS;
    u32 sum = 0, all, count[EACH];
#pragma unroll
    for (u32 i = 0; i < EACH; i++) sum += count[i] = ends[threadIdx.x * EACH + i];
    u32 before = block_before<SORT_THREADS>(sum, all);
#pragma unroll
    for (u32 i = 0; i < EACH; i++) ends[threadIdx.x * EACH + i] = before, before += count[i];
    __syncthreads();
}

// Shares out the keys of bins that have many, which are close to each other, between the lowest and the highest of
// them, until no bin has many. Then `bounds` has where the bin of the key at each place starts, above where it ends.
DEVICE void share_out(const Bins& bins, u32 have, u32* keys, u16* origins, u32* ends, u32* bounds) {
    // Of each of a thread's keys: where its bin starts, above where that ends; where it came from, above its number
    // within the bin.
    u32 key[SORT_EACH], within[SORT_EACH], number[SORT_EACH];
    const auto bounds_of = [&](u32 bin) { return ends[bin] << 16 | (bin + 1 < SORT_BINS ? ends[bin + 1] : have); };
#pragma unroll
    for (u32 i = 0; i < SORT_EACH; i++) {
        const u32 at = threadIdx.x + i * SORT_THREADS;
        key[i] = within[i] = number[i] = 0;
        if (at < have)
            key[i] = keys[at], within[i] = bounds_of(bins.of(key[i])),
            number[i] = u32(origins[at]) << 16 | (at - (within[i] >> 16));
    }
    __syncthreads();
    u32 *const lows = keys, *const highs = bounds;
    bool many = true;
    while (many) {
        many = false;
        for (u32 b = threadIdx.x; b < SORT_BINS; b += SORT_THREADS) ends[b] = 0;
#pragma unroll
        for (u32 i = 0; i < SORT_EACH; i++)
            if (threadIdx.x + i * SORT_THREADS < have && !(number[i] & 0xffff))
                lows[within[i] >> 16] = 0xffffffff, highs[within[i] >> 16] = 0;
        __syncthreads();
#pragma unroll
        for (u32 i = 0; i < SORT_EACH; i++)
            if (threadIdx.x + i * SORT_THREADS < have)
                atomicMin(lows + (within[i] >> 16), key[i]), atomicMax(highs + (within[i] >> 16), key[i]);
        __syncthreads();
#pragma unroll
        for (u32 i = 0; i < SORT_EACH; i++) {
            if (threadIdx.x + i * SORT_THREADS >= have) continue;
            const u32 from = within[i] >> 16, among = (within[i] & 0xffff) - from, low = lows[from];
            const f32 bins_a_key = f32(among) / (f32(highs[from] - low) + 1);
            within[i] = from + min(among - 1, u32(f32(key[i] - low) * bins_a_key));
            const u32 rank = atomicAdd(ends + within[i], 1u);
            number[i] = (number[i] & 0xffff0000) | rank, many = many || rank >= MANY;
        }
        many = __syncthreads_or(many);
        starts_of_bins(ends);
#pragma unroll
        for (u32 i = 0; i < SORT_EACH; i++)
            if (threadIdx.x + i * SORT_THREADS < have) within[i] = bounds_of(within[i]);
        __syncthreads();
    }
#pragma unroll
    for (u32 i = 0; i < SORT_EACH; i++) {
        if (threadIdx.x + i * SORT_THREADS >= have) continue;
        const u32 to = (within[i] >> 16) + (number[i] & 0xffff);
        keys[to] = key[i], origins[to] = u16(number[i] >> 16), bounds[to] = within[i];
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(SORT_THREADS, SORT_RESIDENT)
    put_in_order(u32 steps, u32 height, const u64* starts, const u32* large, const Told* told, u32* places, V* values) {
    __shared__ u32 ends[SORT_BINS], keys[STEP], bounds[STEP], lowest, highest;
    __shared__ u16 origins[STEP];
    V* const moved = reinterpret_cast<V*>(words);
    const u32 by_columns = told->by_columns, all = by_columns + told->by_rows;
    // A lane knows where one of 32 steps of this block lies, and one of the 32 behind these: each request would wait
    // for two reads else.
    u32 asked = 0, taken = 0, some_start, some_stop, more_start, more_stop;
    const auto ask_for_steps = [&]() {
        const u32 number = blockIdx.x + (asked + lane_id()) * gridDim.x;
        some_start = more_start, some_stop = more_stop, more_start = more_stop = 0, asked += 32;
        if (number >= all) return;
        const u32 step = large[number < by_columns ? number : steps - 1 - (number - by_columns)];
        more_start = u32(starts[step]), more_stop = u32(starts[step + 1]);
    };
    const auto take_step = [&](u32& start, u32& stop) {
        const u32 lane = taken++ % 32;
        start = __shfl_sync(ALL, some_start, lane), stop = __shfl_sync(ALL, some_stop, lane);
        if (lane == 31) ask_for_steps();
    };
    more_start = more_stop = 0;
    ask_for_steps();
    ask_for_steps();
    u32 key[SORT_EACH], start, stop, next_start, next_stop;
    take_step(start, stop);
    take_step(next_start, next_stop);
    V value[SORT_EACH];
    const auto ask = [&]() {
#pragma unroll
        for (u32 i = 0; i < SORT_EACH; i++) {
            const u32 at = start + threadIdx.x + i * SORT_THREADS;
            // Nothing else is kept of the step before.
            key[i] = at < stop ? places[at] : 0;
            if (at < stop) value[i] = values[at];
            else value[i] = V();
        }
    };
    ask();
    for (u32 number = blockIdx.x; number < all; number += gridDim.x) {
        const u32 have = stop - start, turn = number < by_columns ? 0 : row_bits(height);
        if (threadIdx.x == 0) lowest = 0xffffffff, highest = 0;
        u32* const of_places = places + start;
        V* const of_values = values + start;
        u32 low = 0xffffffff, high = 0;
#pragma unroll
        for (u32 i = 0; i < SORT_EACH; i++) {
            const u32 at = threadIdx.x + i * SORT_THREADS;
            if (at < have) {
                key[i] = to_key(key[i], turn), low = min(low, key[i]), high = max(high, key[i]);
                moved[at] = value[i];
            }
        }
        low = least_of_lanes(low), high = ~least_of_lanes(~high);
        for (u32 b = threadIdx.x; b < SORT_BINS; b += SORT_THREADS) ends[b] = 0;
        __syncthreads();
        if (lane_id() == 0) atomicMin(&lowest, low), atomicMax(&highest, high);
        __syncthreads();
        const Bins bins(lowest, highest, SORT_BINS);
        u32 rank[SORT_EACH];
        bool many = false;
#pragma unroll
        for (u32 i = 0; i < SORT_EACH; i++)
            if (threadIdx.x + i * SORT_THREADS < have) rank[i] = atomicAdd(ends + bins.of(key[i]), 1u), many = many || rank[i] >= MANY;
        many = __syncthreads_or(many);
        starts_of_bins(ends);
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
        if (many) share_out(bins, have, keys, origins, ends, bounds);
        // The next step comes while this one is written.
        start = next_start, stop = next_stop;
        ask();
        take_step(next_start, next_stop);
#pragma unroll
        for (u32 i = 0; i < SORT_EACH; i++) {
            const u32 at = threadIdx.x + i * SORT_THREADS;
            if (at < have) {
                const u32 mine = keys[at], bin = bins.of(mine), both = many ? bounds[at] : 0;
                const u32 from = many ? both >> 16 : ends[bin], behind = many ? both & 0xffff : bin + 1 < SORT_BINS ? ends[bin + 1] : have;
                const u32 to = place_in_bin(keys, mine, from, behind);
                of_places[to] = from_key(mine, turn);
                of_values[to] = moved[origins[at]];
            }
        }
        __syncthreads();
    }
}
