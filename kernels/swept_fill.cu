// CSR to bands of rows swept in the order of columns, but for the order within steps where it is that of columns (swept_order.cu).
//
// `sweep`, a block a band, counts the band's entries by bins of columns and cuts the columns into chunks (swept_chunks.cuh); counts the entries of each step;
// writes them there. A step of more than STEP entries is cut between rows, at multiples of STEP: all its entries are of different rows, so no part has
// more. Its base lies as far ahead of the end of its chunk as a step reaches.
//
// All blocks of a chip at once write what lies scattered at a fifth of the speed of what lies together, so entries go there by tiles, put in order by step in
// shared memory first: each warp finds by votes how many of its entries before go to the same step, so that those of a step stay in the order of rows. That is the
// order they are meant to have unless columns are many more than rows. Where there is no room for that (small chips, very many steps) they are written one by one,
// as many steps at a time as there are counters for, and swept_order.cu puts them in order.
//
// Bytes an entry: columns three times, values once; places and values of the target written once. 8 a step, noted.
//
// Constants: VALUE_BYTES (4, 8, 16), those of swept_chunks.cuh, LONGEST (entries of a row that is not refused).
#include "swept_chunks.cuh"
#include "votes.cuh"

typedef unsigned_of<VALUE_BYTES>::type V;

// Writes all entries to their steps, a tile after the other: put in order by step in shared memory, so that what is written lies together, and those of a step as they
// come, by rows. `counts` has where each part of a step starts. Whether there is room for this.
template <typename Number>
DEVICE bool write_by_tiles(const Band& band, const I* offsets, const u32* columns, u32 first_row, const V* all_values, u32* all_places, V* values_to,
                           u32 parts, u32 counters, Number number) {
    constexpr u32 WARPS = THREADS / 32;
    const u32 count = u32(band.end - band.begin), warp = threadIdx.x / 32;
    const bool by_rows = band.by_rows();
    const V* const from = all_values + band.begin;
    u32* const places = all_places + band.begin;
    V* const values = values_to + band.begin;
    // Parts that have entries are numbered.
    const u32 a_thread = (parts + THREADS - 1) / THREADS, part = min(threadIdx.x * a_thread, parts), behind = min(part + a_thread, parts);
    const u32 next = behind < parts ? band.counts[behind] : count;
    const auto upto = [&](u32 p) { return p + 1 < behind ? band.counts[p + 1] : next; };
    u32 some = 0, used;
    for (u32 p = part; p < behind; p++) some += band.counts[p] != upto(p);
    u32 of_part = block_before<THREADS>(some, used);
    // Where each goes on, where its entries of the tile start, and how many of these each warp has, then all warps before.
    u32 *const goes_on = band.counts + parts, *const here = goes_on + used;
    u16* const of_warps = reinterpret_cast<u16*>(here + used);
    // There the tile's entries are put in order then.
    u32* const tile_places = here + used;
    u16* const tile_steps = reinterpret_cast<u16*>(tile_places + TILE);
    if (parts + 2 * used + max(WARPS / 2 * used, u32(TILE) + TILE / 2) > counters) return false;
    for (u32 p = part; p < behind; p++) {
        const u32 start = band.counts[p], stop = upto(p);
        band.counts[p] = of_part;
        if (start != stop) goes_on[of_part++] = start;
    }
    const u32 mine = (used + THREADS - 1) / THREADS, first = min(threadIdx.x * mine, used), last = min(first + mine, used);
    band.walk(offsets, columns, first_row, [&](u32 tile, const Entries& entries) {
        for (u32 i = threadIdx.x; i < WARPS / 2 * used; i += THREADS) reinterpret_cast<u32*>(of_warps)[i] = 0;
        for (u32 i = first; i < last; i++) here[i] = 0;
        u32 place[EACH];
        u16 step[EACH];
#pragma unroll
        for (u32 i = 0; i < EACH; i++) step[i] = u16(used), place[i] = 0;
        entries.each([&](u32 i, u32 row, u32 column, u32 state) {
            step[i] = u16(band.counts[number(state) * band.parts + row / STEP]);
            place[i] = to_place(row, column - band.base(step_of(state)), band.row_bits);
        });
        u16 rank[EACH];
        if (by_rows) {
            // A warp goes through its entries in their order, 32 at a time: how many of the same step are before each.
            band.own_notes().put(step);
            __syncthreads();
            u16 *const of_warp = band.notes + warp * 32 * EACH + lane_id(), *const counts = of_warps + warp * used;
            u32 of[EACH], same[EACH];
#pragma unroll
            for (u32 i = 0; i < EACH; i++) of[i] = of_warp[32 * i], same[i] = ALL;
            for (u32 bit = 1; bit <= used; bit *= 2)
#pragma unroll
                for (u32 i = 0; i < EACH; i++) vote(same[i], of[i], bit);
#pragma unroll
            for (u32 i = 0; i < EACH; i++) {
                const u32 ahead = __popc(same[i] & lanes_below()), before = counts[min(of[i], used - 1)];
                __syncwarp();
                if (of[i] < used && !ahead) counts[of[i]] = u16(before + __popc(same[i]));
                of_warp[32 * i] = u16(before + ahead);
                __syncwarp();
            }
            band.own_notes().get(rank);
            __syncthreads();
            for (u32 i = first; i < last; i++) {
                u32 all = 0;
#pragma unroll 8
                for (u32 w = 0; w < WARPS; w++) {
                    const u32 had = of_warps[w * used + i];
                    of_warps[w * used + i] = u16(all), all += had;
                }
                here[i] = all;
            }
        } else {
            // They are sorted by columns later.
            __syncthreads();
#pragma unroll
            for (u32 i = 0; i < EACH; i++) rank[i] = step[i] < used ? u16(atomicAdd(here + step[i], 1u)) : u16(0);
            __syncthreads();
        }
        u32 sum = 0, have;
        for (u32 i = first; i < last; i++) sum += here[i];
        u32 before = block_before<THREADS>(sum, have);
        for (u32 i = first; i < last; i++) {
            const u32 had = here[i];
            here[i] = before, before += had;
        }
        __syncthreads();
        u16 to[EACH];
#pragma unroll
        for (u32 i = 0; i < EACH; i++) to[i] = step[i] < used ? u16(here[step[i]] + of_warps[warp * used + step[i]] + rank[i]) : u16(0);
        __syncthreads();
#pragma unroll
        for (u32 i = 0; i < EACH; i++)
            if (step[i] < used) tile_places[to[i]] = place[i], tile_steps[to[i]] = step[i], band.notes[to[i]] = u16(threadIdx.x * EACH + i);
        __syncthreads();
        V value[EACH];
#pragma unroll
        for (u32 i = 0; i < EACH; i++) {
            const u32 at = threadIdx.x + i * THREADS;
            // Nothing is kept of the tile before.
            value[i] = V();
            if (at < have) value[i] = from[tile + band.notes[at]];
        }
#pragma unroll
        for (u32 i = 0; i < EACH; i++) {
            const u32 at = threadIdx.x + i * THREADS;
            if (at < have) {
                const u32 of = tile_steps[at], to = goes_on[of] + (at - here[of]);
                places[to] = tile_places[at], values[to] = value[i];
            }
        }
        __syncthreads();
        band.own_notes() = Notes();
        for (u32 i = first; i < last; i++) goes_on[i] += (i + 1 < used ? here[i + 1] : have) - here[i];
        __syncthreads();
    });
    return true;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    sweep(u64 rows, u64 all_columns, u32 height, u32 shift, const I* offsets, const u32* columns, const V* from, u32* lengths, u32* places, V* values,
          u64* notes, u32* noted_starts, u32* noted_bases, u64 room, u32 an_entry, u32 counters, u32* firsts, Told* told) {
    Band band(rows, height, shift, offsets);
    __shared__ u32 longest, first_row, leveled, has_room;
    __shared__ u64 notes_begin;
    if (threadIdx.x == 0) longest = 0;
    __syncthreads();
    u32 mine = 0;
    for (u32 r = threadIdx.x; r < band.have; r += THREADS) {
        const u64 start = offsets[band.row + r];
        const u32 length = u32(u64(offsets[band.row + r + 1]) - start);
        lengths[band.row + r] = length;
        if (length && start == band.begin) first_row = r;
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
    u32 steps = 0, placed = 0, ordered = 0;
    const u32 round = counters / band.parts;
    for (u64 window = 0; window < all_columns && !refused; window += WINDOW) {
        band.window = u32(window), band.extent = u32(min(all_columns - window, u64(WINDOW)));
        if (!band.cut(columns)) continue;
        if (threadIdx.x == 0) leveled = 0;
        __syncthreads();
        bool levels = false, tiled = false;
        u32 total = band.last + longest;
        const auto number = [&](u32 state) {
            const u32 step = step_of(state);
            return step + level_of(state) + (levels ? band.bins[min(step, band.last)] : 0);
        };
        for (u32 first = 0; first < total; first += round) {
            const u32 counted = min(round, total - first);
            for (u32 i = threadIdx.x; i < counted * band.parts; i += THREADS) band.counts[i] = 0;
            __syncthreads();
            band.walk(offsets, columns, first_row, [&](u32, const Entries& entries) {
                entries.each([&](u32, u32 row, u32, u32 state) {
                    const u32 level = level_of(state), step = number(state) - first;
                    if (!levels && level) atomicMax(band.bins + step_of(state), level), leveled = 1;
                    if (step < counted) atomicAdd(band.counts + step * band.parts + row / STEP, 1u);
                });
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
                if (i < counted) {
                    u32 start = placed + u32(before), piece = steps + u32(before >> 32);
                    // The chunk whose step it is.
                    u32 chunk = min(first + i, band.last);
                    if (levels) {
                        u32 low = 0, high = band.last + 1;
                        while (low + 1 < high) {
                            const u32 middle = (low + high) / 2;
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
            tiled = counted == total && all_columns <= WINDOW &&
                    write_by_tiles(band, offsets, columns, first_row, from, places, values, total * band.parts, counters, number);
            if (tiled) break;
            band.walk(offsets, columns, first_row, [&](u32 tile, const Entries& entries) {
                const u32 mine = tile + threadIdx.x * EACH;
                entries.each([&](u32 i, u32 row, u32 column, u32 state) {
                    const u32 step = number(state) - first;
                    if (step >= counted) return;
                    const u64 at = band.begin + atomicAdd(band.counts + step * band.parts + row / STEP, 1u);
                    places[at] = to_place(row, column - band.base(step_of(state)), band.row_bits);
                    values[at] = from[band.begin + (mine + i)];
                });
            });
            __syncthreads();
        }
        // What is left to do with these steps.
        const u32 order = !band.by_rows() ? BY_COLUMNS : tiled ? IN_ORDER : BY_ROWS;
        if (order != IN_ORDER) {
            for (u32 i = ordered + threadIdx.x; i < min(steps, has_room); i += THREADS) noted_starts[note + i] |= order;
            if (threadIdx.x == 0) atomicMax(&told->unordered, 1u);
        }
        ordered = steps;
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
