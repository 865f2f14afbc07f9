// CSR to bands of rows swept in the order of columns, but for the order within steps where it is that of columns
// (swept_order.cu).
//
// `sweep`, a block a band, counts the band's entries by bins of columns and cuts the columns into chunks
// (swept_chunks.cuh); counts the entries of each step; writes them there. A step of more than STEP entries is cut
// between rows, at multiples of STEP: all its entries are of different rows, so no part has more. Its base lies as far
// ahead of the end of its chunk as a step reaches.
//
// All blocks of a chip at once write what lies scattered at a fifth of the speed of what lies together, so entries go
// there by tiles, put in order by step in shared memory first. A row has one entry in a step at most, so a step's
// entries of the tile are marks, one a row, and an entry's place is how many are set below: those of a step are in the
// order of rows. That is the order they are meant to have unless columns are many more than rows; then counters number
// them. Where there is no room for marks (small chips, very many steps of short rows) entries are written one by one,
// as many steps at a time as there are counters for, and swept_order.cu puts them in order.
//
// Bytes an entry: columns three times, values once; places and values of the target written once. 8 a step, noted.
//
// Constants: VALUE_BYTES (4, 8, 16), those of swept_chunks.cuh, LONGEST (entries of a row that is not refused).
#include "swept_chunks.cuh"

typedef unsigned_of<VALUE_BYTES>::type V;
// Parts of a band at most.
constexpr u32 MOST_PARTS = 65536 / STEP;
// In place of a step's number: of no entry.
constexpr u32 NONE = 0xffff;

// Writes all entries to their steps, a tile after the other: put in order by step in shared memory, so that what is
// written lies together, and those of a step by rows. `counts` has where each part of a step starts. Whether there is
// room for this.
template <typename Number>
DEVICE bool write_by_tiles(const Band& band, const I* offsets, const u32* columns, u32 first_row, const V* all_values,
                           u32* all_places, V* values_to, u32 parts, u32 counters, Number number) {
    const u32 count = u32(band.end - band.begin);
    const bool by_rows = band.by_rows();
    const V* const from = all_values + band.begin;
    u32* const places = all_places + band.begin;
    V* const values = values_to + band.begin;
    // Parts that have entries are marked above where they start, then numbered: those of the same rows follow each
    // other, of which a tile has few.
    constexpr u32 SOME = 1u << 31;
    __shared__ u32 of_rows[MOST_PARTS + 1];
    const u32 a_thread = (parts + THREADS - 1) / THREADS, part = min(threadIdx.x * a_thread, parts), behind = min(part + a_thread, parts);
    const u32 next = behind < parts ? band.count(behind) : count;
    __syncthreads();
    for (u32 p = part; p < behind; p++)
        if (band.count(p) != (p + 1 < behind ? band.count(p + 1) : next)) band.count(p) |= SOME;
    __syncthreads();
    // The p-th by rows, then steps.
    const u32 steps = parts / band.parts;
    const auto by_part = [&](u32 p) -> u32& { return band.count(p % steps * band.parts + p / steps); };
    u32 some = 0, used;
    for (u32 p = part; p < behind; p++) some += by_part(p) >> 31;
    u32 number_of = block_before<THREADS>(some, used);
    const auto unmarked = [&]() {
        for (u32 p = part; p < behind; p++) band.count(p) &= ~SOME;
        __syncthreads();
        return false;
    };
    // Where each goes on, and where its entries of the tile start; then a tile's marks, and behind these its entries in
    // order.
    u32 *const goes_on = band.counts + padded(parts), *const here = goes_on + used, *const marks = here + padded(used);
    u32 *const tile_places = marks, *const tile_steps = marks + TILE;
    const u32 taken = padded(parts) + used + padded(used);
    if (taken + 2 * u32(TILE) > counters) return unmarked();
    // Words of marks, of which one in 32 is left out, and half a word each for how many are set before it.
    const u32 room = (counters - taken) / 25 * 16;
    u16* const before_word = reinterpret_cast<u16*>(marks + padded(room));
    // Where rows are short and steps many, marks of a tile would be gone through several times.
    const u32 rows_a_tile = band.have * min(u32(TILE), count) / count,
              of_tile = u32(u64(used) * min(rows_a_tile / STEP + 2, band.parts) / band.parts);
    if (used > room || (by_rows && of_tile * (rows_a_tile / 32 + 1) > room)) return unmarked();
    for (u32 p = part; p < behind; p++) {
        const u32 start = by_part(p);
        if (p % steps == 0) of_rows[p / steps] = number_of;
        by_part(p) = number_of;
        if (start & SOME) goes_on[number_of++] = start & ~SOME;
    }
    if (threadIdx.x == 0) of_rows[band.parts] = used;
    band.walk(offsets, columns, first_row, [&](u32 tile, const Entries& entries) {
        u32 place[EACH];
        u16 step[EACH];
#pragma unroll
        for (u32 i = 0; i < EACH; i++) step[i] = u16(used), place[i] = 0;
        entries.each([&](u32 i, u32 row, u32 column, u32 state) {
            step[i] = u16(band.count(number(state) * band.parts + row / STEP));
            place[i] = to_place(row, column - band.base(step_of(state)), band.row_bits);
        });
        // Steps of the tile's rows; the number of each entry among those of its step.
        const u32 lowest = of_rows[entries.open / STEP], have_steps = of_rows[(entries.behind - 1) / STEP + 1] - lowest;
        const u32 mine = (have_steps + THREADS - 1) / THREADS, first = min(threadIdx.x * mine, have_steps),
                  last = min(first + mine, have_steps);
#pragma unroll
        for (u32 i = 0; i < EACH; i++) step[i] = step[i] < used ? u16(step[i] - lowest) : u16(NONE);
        u32 to[EACH];
        for (u32 i = first; i < last; i++) here[padded(i)] = 0;
        if (by_rows) {
            // Rows of the tile, as many at a time as there are marks for.
            const u32 wanted = (entries.behind - entries.open + 31) / 32, words_a_step = min(wanted, room / max(have_steps, 1)),
                      rows = 32 * words_a_step;
            for (u32 row0 = entries.open; row0 < entries.behind; row0 += rows) {
                if (row0 != entries.open) __syncthreads();
                for (u32 i = threadIdx.x; i < padded(have_steps * words_a_step); i += THREADS) marks[i] = 0;
                __syncthreads();
#pragma unroll
                for (u32 i = 0; i < EACH; i++) {
                    const u32 row = row_in_band(place[i], band.row_bits) - row0;
                    if (step[i] != NONE && row < rows) atomicOr(marks + padded(step[i] * words_a_step + row / 32), 1u << (row & 31));
                }
                __syncthreads();
                // LANES count the marks of a step.
                constexpr u32 LANES = 4;
                const u32 lane = threadIdx.x % LANES, a_lane = (words_a_step + LANES - 1) / LANES;
                for (u32 s0 = 0; s0 < have_steps; s0 += THREADS / LANES) {
                    const u32 s = s0 + threadIdx.x / LANES, begin = s * words_a_step + lane * a_lane;
                    const u32 end = s < have_steps ? min(begin + a_lane, (s + 1) * words_a_step) : 0;
                    u32 before = s < have_steps ? here[padded(s)] : 0, sum = 0;
                    for (u32 w = begin; w < end; w++) sum += __popc(marks[padded(w)]);
                    u32 upto = sum;
#pragma unroll
                    for (u32 by = 1; by < LANES; by *= 2) {
                        const u32 other = __shfl_up_sync(ALL, upto, by, LANES);
                        if (lane >= by) upto += other;
                    }
                    before += upto - sum;
                    __syncwarp();
                    for (u32 w = begin; w < end; w++) before_word[w] = u16(before), before += __popc(marks[padded(w)]);
                    if (lane == LANES - 1 && s < have_steps) here[padded(s)] = before;
                }
                __syncthreads();
#pragma unroll
                for (u32 i = 0; i < EACH; i++) {
                    const u32 row = row_in_band(place[i], band.row_bits) - row0, word = step[i] * words_a_step + row / 32;
                    if (step[i] != NONE && row < rows) to[i] = before_word[word] + __popc(marks[padded(word)] & ((1u << (row & 31)) - 1));
                }
            }
        } else {
            __syncthreads();
#pragma unroll
            for (u32 i = 0; i < EACH; i++)
                if (step[i] != NONE) to[i] = atomicAdd(here + padded(step[i]), 1u);
            __syncthreads();
        }
        u32 sum = 0, have;
        for (u32 i = first; i < last; i++) sum += here[padded(i)];
        u32 before = block_before<THREADS>(sum, have);
        // Where the tile's entries of a step start; the first of them lies where the step goes on.
        for (u32 i = first; i < last; i++) {
            const u32 had = here[padded(i)];
            here[padded(i)] = before, goes_on[lowest + i] -= before, before += had;
        }
        __syncthreads();
#pragma unroll
        for (u32 i = 0; i < EACH; i++)
            if (step[i] != NONE) {
                to[i] += here[padded(step[i])];
                tile_places[to[i]] = place[i], tile_steps[to[i]] = u32(step[i]) << 16 | (threadIdx.x * EACH + i);
            }
        __syncthreads();
        V value[EACH];
#pragma unroll
        for (u32 i = 0; i < EACH; i++) {
            const u32 at = threadIdx.x + i * THREADS;
            // Nothing is kept of the tile before.
            value[i] = V();
            if (at < have) value[i] = from[tile + (tile_steps[at] & 0xffff)];
        }
#pragma unroll
        for (u32 i = 0; i < EACH; i++) {
            const u32 at = threadIdx.x + i * THREADS;
            if (at < have) {
                const u32 to = goes_on[lowest + (tile_steps[at] >> 16)] + at;
                places[to] = tile_places[at], values[to] = value[i];
            }
        }
        __syncthreads();
        for (u32 i = first; i < last; i++) goes_on[lowest + i] += i + 1 < have_steps ? here[padded(i + 1)] : have;
        __syncthreads();
    });
    return true;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    sweep(u64 rows, u64 all_columns, u32 height, u32 shift, const I* offsets, const u32* columns, const V* from, u32* lengths,
          u32* places, V* values, u64* notes, u32* noted_starts, u32* noted_bases, u64 room, u32 an_entry, u32 counters,
          u32* firsts, Told* told) {
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
    const u32 round = counters / 33 * 32 / band.parts;
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
            for (u32 i = threadIdx.x; i < padded(counted * band.parts); i += THREADS) band.counts[i] = 0;
            __syncthreads();
            band.walk(offsets, columns, first_row, [&](u32, const Entries& entries) {
                entries.each([&](u32, u32 row, u32, u32 state) {
                    const u32 level = level_of(state), step = number(state) - first;
                    if (!levels && level) atomicMax(band.bins + step_of(state), level), leveled = 1;
                    if (step < counted) atomicAdd(&band.count(step * band.parts + row / STEP), 1u);
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
                const auto count = [&](u32 p) -> u32& { return band.count(i * band.parts + p); };
                u32 entries = 0, pieces = 0, full = STEP;
                if (i < counted)
                    for (u32 p = 0; p < band.parts; p++) {
                        const u32 here = count(p);
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
                        const u32 here = count(p);
                        if (here && full + here > STEP) {
                            if (piece < has_room) noted_starts[note + piece] = start, noted_bases[note + piece] = band.base(chunk);
                            piece++, full = 0;
                        }
                        full += here;
                        count(p) = start, start += here;
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
                    const u64 at = band.begin + atomicAdd(&band.count(step * band.parts + row / STEP), 1u);
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
