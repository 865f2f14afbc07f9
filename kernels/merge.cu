// Merging by co-rank, and merge sort, with any order.
//
//     A 1 3 3 7   B 2 3 8        C 1 2 3 3 3 7 8     (equal keys: those of A first)
//
// The first k outputs of a merge are the first i of A and the first k - i of B; i is the co-rank of k, found by binary
// search. merge_partition finds the co-ranks of all tile boundaries, with one thread each. A block of merge_tiles then
// loads exactly the parts of A and B that make its tile of THREADS * ITEMS outputs to shared memory; each thread finds
// the co-rank of its own ITEMS outputs there and merges them one by one. Keys are written back to shared memory in
// output order, with their original places, and then to memory with coalesced stores, each with the value from that
// place.
//
//     merge_partition, merge_tiles      with width 0: merges A (na) and B (n - na)
//                                       with width w: merges each pair of neighbouring runs of w in one array of n
//     merge_sort_tiles                  sorts every tile: each thread sorts ITEMS keys, then merges in shared memory
//     merge_sort_segments               the same for the segments of a list, one block each
//
// A merge sort is merge_sort_tiles, then merges of width tile, 2 tile, 4 tile ... It is stable. Bytes per element: 2 *
// (sizeof(KEY) + VALUE_BYTES) for the tiles and for each of log2(n / tile) merges.
//
// Sources: PMPP ch. 12 (co-rank, tiles; exact loads instead of its circular buffer), 13.7; Green, McColl and Bader
// 2012.
//
// Constants: KEY, VALUE_BYTES (0, 1, 2, 4, 8, 16), THREADS (a power of two), ITEMS, MIN_BLOCKS and, unless it is the
// order of key_bits, the order itself as source: LESS(a, b), a strict weak order of two keys. merge_sort_segments:
// OFFSET (u32 or u64).
#include "common.cuh"

#define TILE (THREADS * ITEMS)
#if VALUE_BYTES
typedef unsigned_of<VALUE_BYTES>::type VALUE;
#else
typedef u8 VALUE;
#endif
#ifndef OFFSET
#define OFFSET u32
#endif
#ifndef LESS
#define LESS(a, b) (key_bits<KEY>::to(a) < key_bits<KEY>::to(b))
#endif
DEVICE bool less(KEY a, KEY b) { return LESS(a, b); }

// In shared memory there is a gap after every 16 elements, which distributes the threads' accesses over the banks; an
// odd ITEMS does that by itself.
#define SPREAD(i) (ITEMS % 2 ? (i) : (i) + ((i) >> 4))
#define SPREAD_TILE (ITEMS % 2 ? TILE : TILE + TILE / 16)

// A run of keys in shared memory.
struct Run {
    const KEY* keys;
    u32 first;
    DEVICE KEY operator[](u32 i) const { return keys[SPREAD(first + i)]; }
};

// The number of the first k outputs that come from a.
template <typename Index, typename Keys> DEVICE Index co_rank(Index k, Keys a, Index na, Keys b, Index nb) {
    Index low = k > nb ? k - nb : 0, high = k < na ? k : na;
    while (low < high) {
        Index i = low + (high - low) / 2;
        KEY x = a[i], y = b[k - 1 - i];
        if (!less(y, x)) low = i + 1;
        else high = i;
    }
    return low;
}

// The two runs that output position `at` belongs to: start of the first, its length, length of the second.
DEVICE void runs_at(u64 at, u64 n, u64 na, u64 width, u64& start, u64& first, u64& second) {
    start = width ? at / (2 * width) * (2 * width) : 0;
    u64 rest = n - start;
    first = width ? (width < rest ? width : rest) : na;
    rest -= first;
    second = width ? (width < rest ? width : rest) : rest;
}

// co_ranks[t]: co-rank of the first output of tile t within its pair of runs; one thread per tile, and one more.
extern "C" __global__ void merge_partition(const KEY* a, const KEY* b, u64 n, u64 na, u64 width, u64* co_ranks) {
    const u64 t = u64(blockIdx.x) * blockDim.x + threadIdx.x, tiles = (n + TILE - 1) / TILE;
    if (t >= tiles) return;
    u64 start, first, second;
    runs_at(t * TILE, n, na, width, start, first, second);
    const KEY* from = width ? a + start : a;
    co_ranks[t] = co_rank<u64>(t * TILE - start, from, first, width ? from + first : b, second);
}

// Merges ITEMS outputs, from output k on, of two runs in shared memory that start at `at`, the second directly after
// the first. `from` receives the original places of the keys. Outputs beyond the end are undefined.
DEVICE void merge_items(const KEY* keys, u32 at, u32 na, u32 nb, u32 k, KEY (&key)[ITEMS], u32 (&from)[ITEMS]) {
    const Run a{keys, at}, b{keys, at + na};
    u32 i = co_rank<u32>(k, a, na, b, nb), j = k - i;
    KEY x = i < na ? a[i] : KEY(), y = j < nb ? b[j] : KEY();
#pragma unroll
    for (int o = 0; o < ITEMS; o++) {
        bool take_b = i >= na || (j < nb && less(y, x));
        key[o] = take_b ? y : x;
        from[o] = at + (take_b ? na + j : i);
        if (take_b) {
            j++;
            if (j < nb) y = b[j];
        } else {
            i++;
            if (i < na) x = a[i];
        }
    }
}

// Shared memory of a tile: values in their original order, keys, and for each key its original place. Dynamic shared
// memory: TILE * VALUE_BYTES + SPREAD_TILE * (sizeof(KEY) + (VALUE_BYTES ? 2 : 0)).
struct Tile {
    VALUE* values;
    KEY* keys;
    u16* froms;
    DEVICE Tile(void* memory) {
        values = static_cast<VALUE*>(memory);
        keys = reinterpret_cast<KEY*>(values + (VALUE_BYTES ? TILE : 0));
        froms = reinterpret_cast<u16*>(keys + SPREAD_TILE);
    }

    // Writes a thread's keys to places `mine` and on, with their original places.
    DEVICE void put(u32 mine, const KEY (&key)[ITEMS], const u32 (&from)[ITEMS]) const {
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            keys[SPREAD(mine + i)] = key[i];
            if (VALUE_BYTES) froms[SPREAD(mine + i)] = u16(from[i]);
        }
    }

    // Called by all threads: writes the first `have` keys to `out`, each with its value.
    DEVICE void leave(u32 have, KEY* out, VALUE* out_values) const {
#pragma unroll
        for (int i = 0; i < ITEMS; i++) {
            u32 j = threadIdx.x + i * THREADS;
            if (j < have) {
                out[j] = keys[SPREAD(j)];
                if (VALUE_BYTES) out_values[j] = values[froms[SPREAD(j)]];
            }
        }
    }
};

// TILE is at most 65536. One block per tile.
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    merge_tiles(const KEY* a, const KEY* b, KEY* out, const VALUE* a_values, const VALUE* b_values, VALUE* out_values, u64 n,
                u64 na, u64 width, const u64* co_ranks) {
    extern __shared__ uint4 dynamic[];
    const Tile shared(dynamic);
    KEY* keys = shared.keys;
    const u64 tile = blockIdx.x, begin = tile * TILE, end = begin + TILE < n ? begin + TILE : n;
    const u32 have = u32(end - begin);

    // A pair of runs is a whole number of tiles, or ends at n, so a tile is within one pair.
    u64 start, first, second;
    runs_at(begin, n, na, width, start, first, second);
    const bool last_of_pair = end >= start + first + second;
    const u64 a_begin = co_ranks[tile], a_end = last_of_pair ? first : co_ranks[tile + 1];
    const u64 b_begin = begin - start - a_begin;
    const u32 a_count = u32(a_end - a_begin), b_count = have - a_count;
    const u64 a_at = (width ? start : 0) + a_begin, b_at = (width ? start + first : 0) + b_begin;
    const KEY *a_keys = a + a_at, *b_keys = (width ? a : b) + b_at - a_count;
    const VALUE *av = a_values + a_at, *bv = (width ? a_values : b_values) + b_at - a_count;

    KEY key[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        u32 j = threadIdx.x + i * THREADS;
        if (j < have) key[i] = (j < a_count ? a_keys : b_keys)[j];
    }
#if VALUE_BYTES
    VALUE value[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        u32 j = threadIdx.x + i * THREADS;
        if (j < have) value[i] = (j < a_count ? av : bv)[j];
    }
#endif
#pragma unroll
    for (int i = 0; i < ITEMS; i++) keys[SPREAD(threadIdx.x + i * THREADS)] = key[i];
#if VALUE_BYTES
#pragma unroll
    for (int i = 0; i < ITEMS; i++) shared.values[threadIdx.x + i * THREADS] = value[i];
#endif
    __syncthreads();
    u32 from[ITEMS];
    const u32 mine = threadIdx.x * ITEMS;
    merge_items(keys, 0, a_count, b_count, mine < have ? mine : have, key, from);
    __syncthreads();
    shared.put(mine, key, from);
    __syncthreads();
    shared.leave(have, out + begin, out_values + begin);
}

template <typename X> DEVICE void exchange(X& a, X& b) {
    const X old = a;
    a = b;
    b = old;
}

// One block sorts the `have` elements from `begin` on.
DEVICE void sort_tile(const KEY* in, KEY* out, const VALUE* values_in, VALUE* values_out, u64 begin, u32 have, const Tile& shared) {
    KEY* keys = shared.keys;
    u16* froms = shared.froms;
    const u32 mine = threadIdx.x * ITEMS;

#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        u32 j = threadIdx.x + i * THREADS;
        if (j < have) keys[SPREAD(j)] = in[begin + j];
        if (VALUE_BYTES && j < have) shared.values[j] = values_in[begin + j];
    }
    __syncthreads();
    KEY key[ITEMS];
    u32 from[ITEMS];
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        key[i] = mine + i < have ? keys[SPREAD(mine + i)] : KEY();
        from[i] = mine + i;
    }
    // Odd-even transposition: ITEMS rounds exchange neighbours, but never equal ones, so that the sort is stable.
#pragma unroll
    for (int round = 0; round < ITEMS; round++)
#pragma unroll
        for (int i = round & 1; i + 1 < ITEMS; i += 2)
            if (mine + i + 1 < have && less(key[i + 1], key[i])) {
                exchange(key[i], key[i + 1]);
                exchange(from[i], from[i + 1]);
            }

    for (u32 width = ITEMS; width < have; width *= 2) {
        __syncthreads();
        shared.put(mine, key, from);
        __syncthreads();
        const u32 pair = mine / (2 * width) * (2 * width);
        const u32 rest = have > pair ? have - pair : 0;
        const u32 na = width < rest ? width : rest, nb = width < rest - na ? width : rest - na;
        u32 k = mine - pair;
        merge_items(keys, pair, na, nb, k < na + nb ? k : na + nb, key, from);
        if (VALUE_BYTES)
#pragma unroll
            for (int i = 0; i < ITEMS; i++) from[i] = mine + i < have ? froms[SPREAD(from[i])] : 0;
    }
    __syncthreads();
    shared.put(mine, key, from);
    __syncthreads();
    shared.leave(have, out + begin, values_out + begin);
}

// Sorts every tile by itself; input and output may be the same. Dynamic shared memory as for merge_tiles. One block per
// tile.
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
merge_sort_tiles(const KEY* in, KEY* out, const VALUE* values_in, VALUE* values_out, u64 n) {
    extern __shared__ uint4 dynamic[];
    const u64 begin = u64(blockIdx.x) * TILE;
    sort_tile(in, out, values_in, values_out, begin, begin + TILE <= n ? TILE : u32(n - begin), Tile(dynamic));
}

// Sorts the segments of a list, each of at most TILE elements: segment s has the elements offsets[s] .. offsets[s + 1].
// Dynamic shared memory as for merge_tiles. One block per segment.
extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
merge_sort_segments(const KEY* in, KEY* out, const VALUE* values_in, VALUE* values_out, const OFFSET* offsets, const u32* list) {
    extern __shared__ uint4 dynamic[];
    const u32 s = list[blockIdx.x];
    sort_tile(in, out, values_in, values_out, offsets[s], u32(offsets[s + 1] - offsets[s]), Tile(dynamic));
}
