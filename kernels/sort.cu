// Stable least-significant-digit radix sort of keys, or of keys that carry values, by any range of bits.
//
//     sort_histogram   one read of the keys counts the digits of every pass; its last block turns the counts into
//                      starts and finds the passes whose digit is the same in all keys
//     sort_pass        one launch per digit: every block places one tile (skipped if the digit is constant)
//     sort_finish      moves the result to the buffer where the caller expects it (skipped passes may have left it in
//                      the other), and resets the workspace
//     sort_small       the whole sort of an array that fits one block's tile, in one launch
//
// A pass, for one tile of THREADS * ITEMS keys: Each warp owns a contiguous piece and reads it in rows of 32, so that
// (warp, row, lane) is the order of the input. The warps count their digits by shared atomics; thread d adds up the
// counts of digit d over the warps, publishes the tile's count, and stores the start in the sorted tile of each warp's
// keys with that digit. Then, row by row, lanes with equal digits find each other by votes: a key's place is its warp's
// next place for the digit plus the number of equal lanes below. The tile is put in that order in shared memory and
// written from there, so that equal digits are written in coalesced runs. The start of a digit's run in the output is
// the digit's start plus the number of its keys in earlier tiles, found by decoupled look-back, one chain per digit, a
// few predecessors at a time; because the count was published before the keys were placed, the walk is short.
//
// A look-back word holds a state in its two upper bits and a count below: it is written and read as a whole, so no
// fence is needed. Tiles are numbered by a ticket, so no block waits for one that has not started.
//
// Bytes per element: sizeof(KEY) for the counts, then 2 * (sizeof(KEY) + VALUE_BYTES) per pass. Radix sorts before
// Onesweep also read the keys once more in every pass.
//
// Keys compare by key_bits (common.cuh), so floats follow IEEE 754 totalOrder; bit ranges refer to that form.
//
// Sources: Adinets and Merrill 2022 (one pass per digit); Merrill 2011, chapter 5 (early exit, scatter through shared
// memory); PMPP 13.2 to 13.6.
//
// Constants: KEY, VALUE_BYTES (0 for keys alone, else 1, 2, 4, 8, 16), THREADS (at least 256), ITEMS, LOOK (u32 below
// 2^30 keys, else u64), LOOK_AT_ONCE (predecessors that are read together), HISTOGRAM_THREADS, HISTOGRAM_ITEMS,
// MIN_BLOCKS.
#include "radix_tile.cuh"

#define MAX_PASSES 8
typedef key_bits<KEY> Ordered;
typedef Ordered::type Bits;
#if VALUE_BYTES
typedef unsigned_of<VALUE_BYTES>::type VALUE;
#else
typedef u8 VALUE;
#endif

// ---- workspace: 64-bit words, all zero before the first sort and after each -----------------------------------------
#define TICKETS 0                              // one per pass
#define BLOCKS_DONE MAX_PASSES                 // of sort_histogram
#define PLAN (MAX_PASSES + 1)                  // which passes run: bit p; whether pass p reads the second buffer: bit 16 + p
#define STARTS 16                              // RADIX starts per pass
#define LOOKBACK (STARTS + MAX_PASSES * RADIX)  // LOOK words: [pass][tile][digit]

// Bits of pass `p`: the range is divided as evenly as possible.
DEVICE u32 pass_begin(u32 p, u32 first_bit, u32 bit_count, u32 passes) { return first_bit + bit_count * p / passes; }

// ---- counts of all digits ------------------------------------------------------------------------------------------

// Any grid. `lookback_words`: number of 64-bit words of look-back to clear for the passes that follow.
extern "C" __global__ void __launch_bounds__(HISTOGRAM_THREADS)
sort_histogram(const KEY* keys, u64 n, u32 first_bit, u32 bit_count, u32 passes, u64* workspace, u64 lookback_words) {
    __shared__ u32 count[MAX_PASSES * RADIX];
    __shared__ u64 warp_sums[RADIX / 32];
    __shared__ bool last;
    __shared__ u32 constant;
    const u32 t = threadIdx.x;
    const u64 stride = u64(gridDim.x) * HISTOGRAM_THREADS;
    for (u64 i = u64(blockIdx.x) * HISTOGRAM_THREADS + t; i < lookback_words; i += stride) workspace[LOOKBACK + i] = 0;
    for (u32 i = t; i < passes * RADIX; i += HISTOGRAM_THREADS) count[i] = 0;
    __syncthreads();

    const u64 chunk = u64(HISTOGRAM_THREADS) * HISTOGRAM_ITEMS;
    for (u64 first = blockIdx.x * chunk; first < n; first += gridDim.x * chunk) {
        Bits key[HISTOGRAM_ITEMS];
        bool whole = first + chunk <= n;
#pragma unroll
        for (int i = 0; i < HISTOGRAM_ITEMS; i++) {
            u64 at = first + i * HISTOGRAM_THREADS + t;
            key[i] = whole || at < n ? Ordered::to(keys[at]) : Bits(0);
        }
        u32 have = HISTOGRAM_ITEMS;
        if (!whole) have = first + t >= n ? 0 : u32((n - first - t + HISTOGRAM_THREADS - 1) / HISTOGRAM_THREADS);
        Bits differ = 0;
#pragma unroll
        for (u32 i = 1; i < HISTOGRAM_ITEMS; i++)
            if (whole || i < have) differ |= key[i] ^ key[0];
        for (u32 p = 0; p < passes; p++) {
            const u32 begin = pass_begin(p, first_bit, bit_count, passes);
            const u32 mask = (1u << (pass_begin(p + 1, first_bit, bit_count, passes) - begin)) - 1;
            u32* mine = count + p * RADIX;
            // Keys with equal digits are added together, because constant digits would serialise on one counter.
            if ((u32(differ >> begin) & mask) == 0) {
                if (have) atomicAdd(mine + (u32(key[0] >> begin) & mask), have);
            } else if (whole) {
#pragma unroll
                for (u32 i = 0; i < HISTOGRAM_ITEMS; i++) atomicAdd(mine + (u32(key[i] >> begin) & mask), 1);
            } else {
#pragma unroll
                for (u32 i = 0; i < HISTOGRAM_ITEMS; i++)
                    if (i < have) atomicAdd(mine + (u32(key[i] >> begin) & mask), 1);
            }
        }
    }
    __syncthreads();
    for (u32 i = t; i < passes * RADIX; i += HISTOGRAM_THREADS)
        if (count[i]) atomicAdd(workspace + STARTS + i, u64(count[i]));
    __threadfence();
    __syncthreads();
    if (t == 0) last = atomicAdd(workspace + BLOCKS_DONE, 1ull) + 1 == gridDim.x;
    __syncthreads();
    if (!last) return;

    __threadfence();
    u64 plan = 0, parity = 0;
    for (u32 p = 0; p < passes; p++) {
        if (t == 0) constant = 0;
        u64* starts = workspace + STARTS + p * RADIX;
        u64 mine = t < RADIX ? load_relaxed(starts + t) : 0;
        u64 start = digit_exclusive_sum(mine, warp_sums);
        if (mine == n) constant = 1;
        if (t < RADIX) starts[t] = start;
        __syncthreads();
        if (!constant) {
            plan |= 1ull << p | parity << (16 + p);
            parity ^= 1;
        }
        __syncthreads();
    }
    if (t == 0) workspace[PLAN] = plan | parity << (16 + passes);
}

// Grid: one block per tile. Dynamic shared memory: WARPS * RADIX * 4 + TILE * max(sizeof(KEY), VALUE_BYTES).
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    sort_pass(KEY* keys_a, KEY* keys_b, VALUE* values_a, VALUE* values_b, u64 n, u32 first_bit, u32 bit_count, u32 passes,
              u32 pass, u64* workspace) {
    extern __shared__ uint4 dynamic[];
    __shared__ u32 warp_sums[RADIX / 32];
    __shared__ LOOK out_start[RADIX];
    __shared__ u64 my_tile;
    u32* places = reinterpret_cast<u32*>(dynamic);
    Bits* sorted_keys = reinterpret_cast<Bits*>(places + WARPS * RADIX);
    VALUE* sorted_values = reinterpret_cast<VALUE*>(sorted_keys);

    if (threadIdx.x == 0) my_tile = atomicAdd(workspace + TICKETS + pass, 1ull);  // early, because it takes long
    const u64 plan = workspace[PLAN];
    if (!(plan >> pass & 1)) return;
    const bool swapped = plan >> (16 + pass) & 1;
    const KEY* keys_in = swapped ? keys_b : keys_a;
    KEY* keys_out = swapped ? keys_a : keys_b;
    const VALUE* values_in = swapped ? values_b : values_a;
    VALUE* values_out = swapped ? values_a : values_b;
    __syncthreads();
    const u64 tile = my_tile, first = tile * TILE;
    const bool whole = first + TILE <= n;
    const u32 have = whole ? TILE : u32(n - first);
    const u32 at = threadIdx.x / 32 * (32 * ITEMS) + lane_id();

    Bits key[ITEMS];
    const KEY* from = keys_in + first + at;
    if (whole) {
#pragma unroll
        for (int i = 0; i < ITEMS; i++) key[i] = Ordered::to(from[i * 32]);
    } else {
        // Elements beyond the end become the largest key, which is sorted after every real one.
#pragma unroll
        for (int i = 0; i < ITEMS; i++) key[i] = at + i * 32 < have ? Ordered::to(from[i * 32]) : Bits(~Bits(0));
    }
    const u32 shift = pass_begin(pass, first_bit, bit_count, passes);
    const u32 mask = (1u << (pass_begin(pass + 1, first_bit, bit_count, passes) - shift)) - 1;
    u32 total, start;
    count_digits(key, shift, mask, places, warp_sums, total, start);
    LOOK* words = reinterpret_cast<LOOK*>(workspace + LOOKBACK) + u64(pass) * ((n + TILE - 1) / TILE) * RADIX + threadIdx.x;
    if (threadIdx.x < RADIX) publish(words, tile, LOOK(total));

    u32* mine = places + threadIdx.x / 32 * RADIX;
#if VALUE_BYTES
    u32 place[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        forget(key[i]);
        place[i] = place_key(digit_of(key[i], shift, mask), mine);
        sorted_keys[place[i]] = key[i];
    }
    VALUE value[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        if (whole || at + i * 32 < have) value[i] = values_in[first + at + i * 32];
#else
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        forget(key[i]);
        sorted_keys[place_key(digit_of(key[i], shift, mask), mine)] = key[i];
    }
#endif
    if (threadIdx.x < RADIX) {
        LOOK before = keys_before(words, tile, LOOK(total));
        out_start[threadIdx.x] = LOOK(workspace[STARTS + pass * RADIX + threadIdx.x]) + before - LOOK(start);
    }
    __syncthreads();

#if VALUE_BYTES
    LOOK out_at[ITEMS];
#endif
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        u32 j = threadIdx.x + i * THREADS;
        Bits k = sorted_keys[j];
        LOOK out = out_start[digit_of(k, shift, mask)] + j;
        if (whole || j < have) keys_out[out] = Ordered::from(k);
#if VALUE_BYTES
        out_at[i] = out;
#endif
    }
#if VALUE_BYTES
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ITEMS; i++) sorted_values[place[i]] = value[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        u32 j = threadIdx.x + i * THREADS;
        if (whole || j < have) values_out[out_at[i]] = sorted_values[j];
    }
#endif
}

// Any grid. The caller expects the result in buffer a after an even number of passes and in buffer b after an odd one;
// because of constant digits it may be in the other, and is then copied. Clears the workspace, except for the look-back
// words.
extern "C" __global__ void __launch_bounds__(HISTOGRAM_THREADS)
sort_finish(KEY* keys_a, KEY* keys_b, VALUE* values_a, VALUE* values_b, u64 n, u32 passes, u64* workspace) {
    const u64 plan = workspace[PLAN];
    const bool in_b = plan >> (16 + passes) & 1, expected_in_b = passes & 1;
    const u64 first = u64(blockIdx.x) * HISTOGRAM_THREADS + threadIdx.x, stride = u64(gridDim.x) * HISTOGRAM_THREADS;
    for (u64 i = first; i < LOOKBACK; i += stride)
        if (i != PLAN) workspace[i] = 0;  // the plan is read here by blocks that start late; sort_histogram rewrites it
    if (in_b == expected_in_b) return;
    const KEY* keys_in = in_b ? keys_b : keys_a;
    KEY* keys_out = in_b ? keys_a : keys_b;
    for (u64 i = first; i < n; i += stride) keys_out[i] = keys_in[i];
    if (VALUE_BYTES) {
        const VALUE* values_in = in_b ? values_b : values_a;
        VALUE* values_out = in_b ? values_a : values_b;
        for (u64 i = first; i < n; i += stride) values_out[i] = values_in[i];
    }
}

// One block, n <= TILE, no workspace. Input and output may be the same. Dynamic shared memory as for sort_pass.
extern "C" __global__ void __launch_bounds__(THREADS)
sort_small(const KEY* keys_in, KEY* keys_out, const VALUE* values_in, VALUE* values_out, u64 n, u32 first_bit, u32 bit_count) {
    extern __shared__ uint4 dynamic[];
    __shared__ u32 warp_sums[RADIX / 32];
    u32* places = reinterpret_cast<u32*>(dynamic);
    Bits* sorted_keys = reinterpret_cast<Bits*>(places + WARPS * RADIX);
    VALUE* sorted_values = reinterpret_cast<VALUE*>(sorted_keys);
    const u32 have = u32(n), passes = (bit_count + RADIX_BITS - 1) / RADIX_BITS;
    const u32 at = threadIdx.x / 32 * (32 * ITEMS) + lane_id();

    Bits key[ITEMS];
    VALUE value[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        bool real = at + i * 32 < have;
        key[i] = real ? Ordered::to(keys_in[at + i * 32]) : Bits(~Bits(0));
        if (VALUE_BYTES && real) value[i] = values_in[at + i * 32];
    }
    for (u32 pass = 0; pass < passes; pass++) {
        const u32 shift = pass_begin(pass, first_bit, bit_count, passes);
        const u32 mask = (1u << (pass_begin(pass + 1, first_bit, bit_count, passes) - shift)) - 1;
        u32 place[ITEMS], total, start;
        count_digits(key, shift, mask, places, warp_sums, total, start);
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            place[i] = place_key(digit_of(key[i], shift, mask), places + threadIdx.x / 32 * RADIX);
            sorted_keys[place[i]] = key[i];
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < ITEMS; i++) key[i] = sorted_keys[at + i * 32];
        __syncthreads();
        if (VALUE_BYTES) {
#pragma unroll
            for (int i = 0; i < ITEMS; i++) sorted_values[place[i]] = value[i];
            __syncthreads();
#pragma unroll
            for (int i = 0; i < ITEMS; i++) value[i] = sorted_values[at + i * 32];
            __syncthreads();
        }
    }
#pragma unroll
    for (int i = 0; i < ITEMS; i++)
        if (at + i * 32 < have) {
            keys_out[at + i * 32] = Ordered::from(key[i]);
            if (VALUE_BYTES) values_out[at + i * 32] = value[i];
        }
}
