// CSR to and from bands of rows swept in the order of columns (swept.cu draws them).
//
//     | 1 . 7 . |     entries of the band in each column       2 1 3 1
//     | . . 8 . |     chunk of each column, of about 3         0 0 1 2
//     | . 4 3 . |     steps of the entries of row 0: 0 1       the chunk of the column, or one behind the entry before
//     | 2 . . 1 |     steps of the entries of row 2: 0 1
//
// Once the columns are cut into chunks a row alone tells where its entries go: to the chunk's step, or where that is not behind the step of the row's entry
// before, to the next one. It is a running maximum along the row, found again in each pass, so that nothing is kept an entry.
//
// `sweep`, a block a band, counts the band's entries by bins of columns and cuts the columns into chunks; counts the entries of each step;
// writes them there in any order. A step of more than STEP entries is cut between rows, at multiples of STEP: all its entries are of different rows, so no part has
// more. Its base lies as far ahead of the end of its chunk as a step reaches. A row that has fallen so far behind that its column is out of reach of
// the next step goes on in a second level of the one where it is, behind all of the first level; few do. Behind the last chunk steps go on as long as
// rows need. `put_in_order`, some blocks a band, sorts each step by column, then row: no two entries are alike, so nothing is left of the order in which they came.
//
// All blocks of a chip at once write what lies scattered at a fifth of the speed of what lies together, so entries go there by tiles of rows, put in order by step in
// shared memory first. A few blocks (`by_tiles` is not set) write them one by one, and so does a block with many steps; where even counters are too few
// (`in_rounds`), as many steps at a time as there are counters for.
//
// Bytes an entry: columns three times, values once; places and values of the target written twice and read once. 8 a step, noted.
//
// Constants: VALUE_BYTES (4, 8, 16), OFFSET (of CSR), LANES (a row), THREADS, SORT_THREADS, BACK_THREADS, TILE (entries that are written at a
// time, at least the 4096 of the longest row), ROOM (for so many entries there is room to note a step, beside what each band has).
#include "swept.cuh"

typedef unsigned_of<VALUE_BYTES>::type V;
typedef OFFSET I;
extern __shared__ u32 words[];

// Entries that a chunk is meant to have: a little less than STEP, so that few steps get more.
#define SHARE 1984
// What a chunk is meant to take: SHARE entries; or three eighths of the columns that a step reaches, so that entries of the two chunks before
// are mostly in its reach.
#define OF_ENTRY (1ull << 20)
#define CHUNK (SHARE * OF_ENTRY)
// Bins of columns, and columns that are swept at a time: a chunk has less than a bin too many.
#define BINS 4096
#define WINDOW (BINS << 14)
// Steps behind the last chunk, as long as no row needs more.
#define TAIL 64
// Entries of the longest row that is not refused.
#define LONGEST 4096

// What a launch of `sweep` tells the host.
struct Told {
    u32 finished, longest, steps, most, counters;
};

// The sum of the values of all threads before this one, and of all.
template <int BLOCK, typename T> DEVICE T block_before(T value, T& all) {
    __shared__ T of_warp[BLOCK / 32];
    const T upto = warp_inclusive_sum(value);
    __syncthreads();
    if (lane_id() == 31) of_warp[threadIdx.x / 32] = upto;
    __syncthreads();
    const T sums = warp_inclusive_sum(lane_id() < BLOCK / 32 ? of_warp[lane_id()] : T());
    all = shuffle(sums, 31);
    const T before = shuffle(sums, (threadIdx.x / 32 + 31) & 31);
    return (threadIdx.x < 32 ? T() : before) + upto - value;
}
// Where an entry goes: the chunk whose step it is, or behind the last, and the level.
struct Where {
    i32 step;
    u32 level;
};

struct Band {
    u64 row, begin, end;
    u32 have, row_bits;
    u32 window, extent, shift;
    u64 of_column;
    // The last chunk.
    i32 last;
    // Counters a step.
    u32 parts;
    u32 *bins, *bases, *counts;
    u16* chunk_of;

    // In shared memory: bins (then levels of each chunk, then levels of all before), base of each chunk, chunk of each bin, counters.
    DEVICE Band(u64 rows, u32 height, u32 bin_shift, const I* offsets) {
        row = u64(blockIdx.x) * height;
        have = u32(min(u64(height), rows - row)), row_bits = ::row_bits(height);
        of_column = CHUNK / (reach() / 8 * 3);
        begin = offsets[row], end = offsets[row + have];
        shift = bin_shift, last = 0, window = 0, extent = 0;
        parts = (have + STEP - 1) / STEP;
        bins = words, bases = words + BINS;
        chunk_of = reinterpret_cast<u16*>(bases + BINS), counts = words + 2 * BINS + BINS / 2;
    }
    // Columns that a step reaches.
    DEVICE u32 reach() const { return 1u << (32 - row_bits); }
    // What columns of a step are counted from.
    DEVICE u32 base(i32 step) const { return bases[min(step, last)]; }

    // The base of a step whose chunk ends with the bin.
    DEVICE u32 base_of(u32 end) const {
        const u32 upto = min(end << shift, extent);
        return window + (upto > reach() ? upto - reach() : 0);
    }
    // What a bin takes of a chunk.
    DEVICE u64 weight(u32 count) const { return max(count * OF_ENTRY, of_column << shift); }
    // Cuts columns into chunks; whether there are entries at all.
    DEVICE bool cut(const u32* columns) {
        for (u32 b = threadIdx.x; b < BINS; b += THREADS) bins[b] = 0;
        __syncthreads();
        constexpr u32 AT_ONCE = 8;
        u32 found = 0;
        for (u64 at = begin + threadIdx.x; at < end; at += AT_ONCE * THREADS) {
            u32 column[AT_ONCE];
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; i++) column[i] = at + i * THREADS < end ? columns[at + i * THREADS] - window : WINDOW;
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; i++)
                if (column[i] < WINDOW) atomicAdd(bins + (column[i] >> shift), 1u), found = 1;
        }
        if (!__syncthreads_or(found)) return false;
        constexpr u32 EACH = BINS / THREADS;
        const u32 first = threadIdx.x * EACH;
        u64 sum = 0, all;
        u32 count[EACH];
#pragma unroll
        for (u32 i = 0; i < EACH; i++) sum += weight(count[i] = bins[first + i]);
        u64 before = block_before<THREADS>(sum, all);
        // What came before the bin ahead, in chunks.
        u64 chunks_before = first == 0 ? ~0ull : (before - weight(bins[first - 1])) / CHUNK;
        u32 cuts = 0, chunks;
        bool cut[EACH];
#pragma unroll
        for (u32 i = 0; i < EACH; i++) {
            const u64 now = before / CHUNK;
            cuts += cut[i] = now != chunks_before;
            chunks_before = now, before += weight(count[i]);
        }
        u32 chunk = block_before<THREADS>(cuts, chunks);
#pragma unroll
        for (u32 i = 0; i < EACH; i++) {
            const u32 b = first + i;
            // The end of the chunk before.
            if (cut[i] && b > 0) bases[chunk - 1] = base_of(b);
            chunk += cut[i];
            chunk_of[b] = chunk - 1;
        }
        last = chunks - 1;
        if (threadIdx.x == 0) bases[last] = base_of(BINS);
        for (u32 b = first; b < first + EACH; b++) bins[b] = 0;
        __syncthreads();
        return true;
    }

    // what(row in the band, what was loaded, column, where) for each entry of the window. LANES lanes a row, in its order, and several rows
    // each.
    template <u32 AT_ONCE, typename Load, typename Do>
    DEVICE void walk(const I* offsets, const u32* columns, u32 from, u32 upto_row, Load load, Do what) const {
        constexpr u32 GROUPS = THREADS / LANES;
        constexpr i32 NONE = -(1 << 30);
        const u32 lane = threadIdx.x % LANES;
        typedef decltype(load(u64())) L;
        for (u32 first = from; first < upto_row; first += GROUPS * AT_ONCE) {
            u64 at[AT_ONCE];
            u32 length[AT_ONCE], level[AT_ONCE], longest = 0;
            // The largest of step less number in the row.
            i32 upto[AT_ONCE];
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; i++) {
                const u32 r = first + i * GROUPS + threadIdx.x / LANES;
                at[i] = r < upto_row ? u64(offsets[row + r]) : 0;
                length[i] = r < upto_row ? u32(u64(offsets[row + r + 1]) - at[i]) : 0;
                level[i] = 0, upto[i] = NONE;
            }
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; i++) longest = max(longest, length[i]);
            for (u32 k = lane; __any_sync(ALL, k - lane < longest); k += LANES) {
                u32 column[AT_ONCE];
                L loaded[AT_ONCE];
                i32 chunk[AT_ONCE], most[AT_ONCE];
                bool mine[AT_ONCE], far = false;
#pragma unroll
                for (u32 i = 0; i < AT_ONCE; i++) {
                    mine[i] = k < length[i];
                    column[i] = mine[i] ? columns[at[i] + k] : 0;
                    if (mine[i]) loaded[i] = load(at[i] + k);
                }
#pragma unroll
                for (u32 i = 0; i < AT_ONCE; i++) {
                    mine[i] = mine[i] && column[i] - window < WINDOW;
                    chunk[i] = mine[i] ? i32(chunk_of[(column[i] - window) >> shift]) : 0;
                    most[i] = mine[i] ? chunk[i] - i32(k) : NONE;
                }
#pragma unroll
                for (u32 by = 1; by < LANES; by *= 2)
#pragma unroll
                    for (u32 i = 0; i < AT_ONCE; i++) {
                        const i32 other = __shfl_up_sync(ALL, most[i], by, LANES);
                        if (lane >= by) most[i] = max(most[i], other);
                    }
#pragma unroll
                for (u32 i = 0; i < AT_ONCE; i++) {
                    most[i] = max(most[i], upto[i]);
                    far = far || (mine[i] && column[i] < base(most[i] + i32(k)));
                }
                const bool any_far = __any_sync(ALL, far);
#pragma unroll
                for (u32 i = 0; i < AT_ONCE; i++) {
                    Where where = {most[i] + i32(k), 0};
                    if (any_far) where = one_by_one(lane, k, mine[i], chunk[i], column[i], upto[i], level[i]);
                    else upto[i] = __shfl_sync(ALL, most[i], LANES - 1, LANES), level[i] = 0;
                    if (mine[i]) what(first + i * GROUPS + threadIdx.x / LANES, loaded[i], column[i], where);
                }
            }
        }
    }

    // Where each lane's entry goes if some are out of reach of the next step.
    DEVICE Where one_by_one(u32 lane, u32 k, bool mine, i32 chunk, u32 column, i32& upto, u32& level) const {
        Where now = {upto + i32(k - lane) - 1, level}, where = {0, 0};
#pragma unroll 1
        for (u32 j = 0; j < LANES; j++) {
            const i32 of = __shfl_sync(ALL, chunk, j, LANES);
            const u32 at = __shfl_sync(ALL, column, j, LANES);
            const bool there = __shfl_sync(ALL, mine, j, LANES);
            if (there) {
                if (of > now.step) now = {of, 0};
                else if (at >= base(now.step + 1)) now = {now.step + 1, 0};
                else now.level++;
                // Less its number in the row.
                upto = now.step - i32(k - lane + j), level = now.level;
            }
            if (j == lane) where = now;
        }
        return where;
    }
};

// Writes all entries to their steps, a tile of rows after the other: put in order by step in shared memory, so that what is written lies
// together. `counts` has where each step goes on.
template <typename Number>
DEVICE void write_by_tiles(const Band& band, const I* offsets, const u32* columns, const V* from, u32* places, V* values, u32 used, u32 counters,
                           Number number) {
    constexpr u32 EACH = TILE / THREADS;
    u32 *const goes_on = band.counts, *const here = goes_on + counters / 2, *const tile_places = goes_on + counters;
    u16 *const tile_steps = reinterpret_cast<u16*>(tile_places + TILE), *const sorted = tile_steps + TILE;
    const u32 mine = (used + THREADS - 1) / THREADS, first = min(threadIdx.x * mine, used), behind = min(first + mine, used);
    for (u32 row = 0; row < band.have;) {
        const u64 begin = offsets[band.row + row];
        const u32 r = row + threadIdx.x + 1;
        // As many rows as have room; the longest has.
        const u32 rows = __syncthreads_count(r <= band.have && u64(offsets[band.row + min(r, band.have)]) - begin <= TILE);
        const u32 have = u32(u64(offsets[band.row + row + rows]) - begin);
        for (u32 i = threadIdx.x; i < used; i += THREADS) here[i] = 0;
        band.walk<4>(offsets, columns, row, row + rows, [=](u64 e) { return u32(e - begin); }, [&](u32 r, u32 e, u32 column, Where where) {
            tile_places[e] = to_place(r, column - band.base(where.step), band.row_bits);
            tile_steps[e] = u16(number(where) * band.parts + r / STEP);
        });
        __syncthreads();
        u32 rank[EACH];
#pragma unroll
        for (u32 i = 0; i < EACH; i++) {
            const u32 e = threadIdx.x + i * THREADS;
            if (e < have) rank[i] = atomicAdd(here + tile_steps[e], 1u);
        }
        __syncthreads();
        u32 sum = 0, all;
        for (u32 i = first; i < behind; i++) sum += here[i];
        u32 before = block_before<THREADS>(sum, all);
        for (u32 i = first; i < behind; i++) {
            const u32 count = here[i];
            here[i] = before, before += count;
        }
        __syncthreads();
#pragma unroll
        for (u32 i = 0; i < EACH; i++) {
            const u32 e = threadIdx.x + i * THREADS;
            if (e < have) sorted[here[tile_steps[e]] + rank[i]] = u16(e);
        }
        __syncthreads();
#pragma unroll
        for (u32 i = 0; i < EACH; i++) {
            const u32 place = threadIdx.x + i * THREADS;
            if (place < have) {
                const u32 e = sorted[place], step = tile_steps[e];
                const u64 to = band.begin + goes_on[step] + (place - here[step]);
                places[to] = tile_places[e];
                values[to] = from[begin + e];
            }
        }
        __syncthreads();
        for (u32 i = first; i < behind; i++) goes_on[i] += (i + 1 < used ? here[i + 1] : have) - here[i];
        row += rows;
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    sweep(u64 rows, u64 all_columns, u32 height, u32 shift, const I* offsets, const u32* columns, const V* from, u32* lengths, u32* places, V* values,
          u32* noted_starts, u32* noted_bases, u32 each, u32 counters, u32 by_tiles, u32 in_rounds, u32* firsts, Told* told) {
    Band band(rows, height, shift, offsets);
    __shared__ u32 longest, tail, leveled;
    if (threadIdx.x == 0) longest = 0;
    __syncthreads();
    u32 mine = 0;
    for (u32 r = threadIdx.x; r < band.have; r += THREADS) {
        const u32 length = u32(u64(offsets[band.row + r + 1]) - u64(offsets[band.row + r]));
        lengths[band.row + r] = length;
        mine = max(mine, length);
    }
    if (mine > LONGEST) atomicMax(&longest, mine);
    __syncthreads();
    const u64 note = band.begin / ROOM + u64(blockIdx.x) * each;
    const u32 room = u32(band.end / ROOM - band.begin / ROOM) + each;
    u32 steps = 0, placed = 0;
    const u32 round = counters / band.parts;
    for (u64 window = 0; window < all_columns && longest == 0; window += WINDOW) {
        band.window = u32(window), band.extent = u32(min(all_columns - window, u64(WINDOW)));
        if (!band.cut(columns)) continue;
        if (threadIdx.x == 0) tail = TAIL, leveled = 0;
        __syncthreads();
        bool levels = false;
        u32 total = band.last + 1 + TAIL;
        const auto number = [&](Where where) { return u32(where.step) + where.level + (levels ? band.bins[min(where.step, band.last)] : 0); };
        for (u32 first = 0; first < total; first += round) {
            if (total > round && !in_rounds) {
                if (threadIdx.x == 0) atomicMax(&told->counters, total * band.parts);
                break;
            }
            const u32 counted = min(round, total - first);
            for (u32 i = threadIdx.x; i < counted * band.parts; i += THREADS) band.counts[i] = 0;
            __syncthreads();
            band.walk<4>(offsets, columns, 0, band.have, [](u64) { return 0; }, [&](u32 r, u32, u32, Where where) {
                if (!levels && where.level) atomicMax(band.bins + where.step, where.level), leveled = 1;
                if (!levels && where.step > band.last + TAIL) atomicMax(&tail, u32(where.step - band.last)), leveled = 1;
                const u32 step = number(where) - first;
                if (step < counted) atomicAdd(band.counts + step * band.parts + r / STEP, 1u);
            });
            __syncthreads();
            if (!levels && leveled) {
                // Room for levels, and once more.
                levels = true;
                u32 more = 0, all;
                constexpr u32 EACH = BINS / THREADS;
                for (u32 i = 0; i < EACH; i++) more += band.bins[threadIdx.x * EACH + i];
                u32 before = block_before<THREADS>(more, all);
                for (u32 i = 0; i < EACH; i++) {
                    u32& bin = band.bins[threadIdx.x * EACH + i];
                    const u32 here = bin;
                    bin = before, before += here;
                }
                total = band.last + 1 + all + tail;
                first = 0u - round;
                __syncthreads();
                continue;
            }
            // Where the parts of each step start.
            for (u32 i0 = 0; i0 < counted; i0 += THREADS) {
                const u32 i = i0 + threadIdx.x;
                u32* const count = band.counts + i * band.parts;
                u32 entries = 0, pieces = 0, full = STEP;
                if (i < counted)
                    for (u32 p = 0; p < band.parts; p++) {
                        const u32 here = count[p];
                        entries += here;
                        if (here && full + here > STEP) pieces++, full = 0;
                        full += here;
                    }
                u64 all;
                const u64 before = block_before<THREADS>(u64(pieces) << 32 | entries, all);
                if (entries) {
                    u32 start = placed + u32(before), piece = steps + u32(before >> 32);
                    // The chunk whose step it is.
                    i32 chunk = min(i32(first + i), band.last);
                    if (levels) {
                        i32 low = 0, high = band.last + 1;
                        while (low + 1 < high) {
                            const i32 middle = (low + high) / 2;
                            if (middle + band.bins[middle] <= first + i) low = middle;
                            else high = middle;
                        }
                        chunk = low;
                    }
                    full = STEP;
                    for (u32 p = 0; p < band.parts; p++) {
                        const u32 here = count[p];
                        if (here && full + here > STEP) {
                            if (piece < room) noted_starts[note + piece] = start, noted_bases[note + piece] = band.base(chunk);
                            piece++, full = 0;
                        }
                        full += here;
                        count[p] = start, start += here;
                    }
                }
                placed += u32(all), steps += u32(all >> 32);
            }
            __syncthreads();
            if (by_tiles && all_columns <= WINDOW && 2 * total * band.parts <= counters) {
                write_by_tiles(band, offsets, columns, from, places, values, total * band.parts, counters, number);
                continue;
            }
            band.walk<2>(offsets, columns, 0, band.have, [&](u64 e) { return from[e]; }, [&](u32 r, V value, u32 column, Where where) {
                const u32 step = number(where) - first;
                if (step < counted) {
                    const u64 at = band.begin + atomicAdd(band.counts + step * band.parts + r / STEP, 1u);
                    places[at] = to_place(r, column - band.base(where.step), band.row_bits);
                    values[at] = value;
                }
            });
            __syncthreads();
        }
    }
    __shared__ bool finishes;
    if (threadIdx.x == 0) {
        firsts[blockIdx.x] = steps;
        if (longest) atomicMax(&told->longest, longest);
        if (steps > room) atomicMax(&told->most, steps);
        __threadfence();
        finishes = atomicAdd(&told->finished, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!finishes) return;
    __threadfence();
    // The block that comes last adds up.
    u32 sum = 0;
    for (u32 b0 = 0; b0 < gridDim.x; b0 += THREADS) {
        const u32 b = b0 + threadIdx.x, here = b < gridDim.x ? __ldcg(firsts + b) : 0;
        u32 all;
        const u32 before = block_before<THREADS>(here, all);
        if (b < gridDim.x) firsts[b] = sum + before;
        sum += all;
    }
    if (threadIdx.x == 0) firsts[gridDim.x] = sum, told->steps = sum;
}

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

// Back: entries of a row are in the order of steps. A block a band, `height` words of shared memory: where each row goes on. Entries of the next
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
