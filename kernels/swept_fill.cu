// CSR to bands of rows swept in the order of columns, but for the order within each step (swept_order.cu).
//
// `sweep`, a block a band, counts the band's entries by bins of columns and cuts the columns into chunks (swept_chunks.cuh); counts the entries of each step;
// writes them there in any order. A step of more than STEP entries is cut between rows, at multiples of STEP: all its entries are of different rows, so no part has
// more. Its base lies as far ahead of the end of its chunk as a step reaches.
//
// All blocks of a chip at once write what lies scattered at a fifth of the speed of what lies together, so entries go there by tiles of rows, put in order by step in
// shared memory first. Blocks with few entries (`by_tiles` is not set) write them one by one, and so do those whose neighbouring rows are in the same steps, or that have many; where counters are too few for all of them,
// as many steps at a time as there are counters for.
//
// Bytes an entry: columns three times, values once; places and values of the target written once. 8 a step, noted.
//
// Constants: VALUE_BYTES (4, 8, 16), those of swept_chunks.cuh, LONGEST (entries of a row that is not refused), TILE (entries that are written at a time, at least LONGEST).
#include "swept_chunks.cuh"

typedef unsigned_of<VALUE_BYTES>::type V;

// What a launch of `sweep` tells the host: places for notes that were asked for, the longest row where that is refused, steps, whether a band has more than it asked
// for.
struct Told {
    u64 notes;
    u32 finished, longest, steps, more;
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
          u64* notes, u32* noted_starts, u32* noted_bases, u64 room, u32 an_entry, u32 counters, u32 by_tiles, u32* firsts, Told* told) {
    Band band(rows, height, shift, offsets);
    __shared__ u32 longest, leveled, has_room;
    __shared__ u64 notes_begin;
    if (threadIdx.x == 0) longest = 0;
    __syncthreads();
    u32 mine = 0;
    for (u32 r = threadIdx.x; r < band.have; r += THREADS) {
        const u32 length = u32(u64(offsets[band.row + r + 1]) - u64(offsets[band.row + r]));
        lengths[band.row + r] = length;
        mine = max(mine, length);
    }
    atomicMax(&longest, mine);
    __syncthreads();
    const bool refused = longest > LONGEST;
    if (threadIdx.x == 0) {
        // As many as there can be steps; an entry each where second levels were more.
        const u64 entries = band.end - band.begin, most = an_entry ? entries : min(entries, band.most_steps(all_columns, longest));
        notes_begin = notes[blockIdx.x] = atomicAdd(&told->notes, most);
        has_room = notes_begin + most <= room ? u32(most) : 0;
    }
    __syncthreads();
    const u64 note = notes_begin;
    u32 steps = 0, placed = 0;
    const u32 round = counters / band.parts;
    for (u64 window = 0; window < all_columns && !refused; window += WINDOW) {
        band.window = u32(window), band.extent = u32(min(all_columns - window, u64(WINDOW)));
        if (!band.cut(columns)) continue;
        if (threadIdx.x == 0) leveled = 0;
        __syncthreads();
        bool levels = false;
        u32 total = band.last + longest;
        const auto number = [&](Where where) { return u32(where.step) + where.level + (levels ? band.bins[min(where.step, band.last)] : 0); };
        for (u32 first = 0; first < total; first += round) {
            const u32 counted = min(round, total - first);
            for (u32 i = threadIdx.x; i < counted * band.parts; i += THREADS) band.counts[i] = 0;
            __syncthreads();
            band.walk<4>(offsets, columns, 0, band.have, [](u64) { return 0; }, [&](u32 r, u32, u32, Where where) {
                if (!levels && where.level) atomicMax(band.bins + where.step, where.level), leveled = 1;
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
                total = band.last + longest + all;
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
                            if (piece < has_room) noted_starts[note + piece] = start, noted_bases[note + piece] = band.base(chunk);
                            piece++, full = 0;
                        }
                        full += here;
                        count[p] = start, start += here;
                    }
                }
                placed += u32(all), steps += u32(all >> 32);
            }
            __syncthreads();
            if (by_tiles && all_columns <= WINDOW && 2 * total * band.parts <= counters && band.scattered(longest)) {
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
        if (refused) atomicMax(&told->longest, longest);
        if (has_room && steps > has_room) atomicMax(&told->more, 1u);
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
