// Bands of rows that are swept in the order of columns (swept.cu) to CSR.
//
// Bytes an entry: place and value read; column and value written.
//
// Constants: VALUE_BYTES (4, 8, 16), OFFSET (of CSR), STEP, BACK_THREADS.
#include "block_before.cuh"
#include "swept.cuh"

typedef unsigned_of<VALUE_BYTES>::type V;
typedef OFFSET I;
extern __shared__ uint4 shared[];

// What an entry takes of shared memory that is gathered there, and a row besides: where it goes on, and which steps
// have an entry of it.
#define ENTRY_BYTES u64(4 + VALUE_BYTES)
#define ROW_BYTES 8

// How many rows of a band are behind `targets` bytes of what all before them take, by all lanes of a warp.
DEVICE void rows_ahead(const I* offsets, u32 rows, const u64 (&targets)[2], u32 (&ahead)[2]) {
    const u64 begin = offsets[0];
    u32 among[2] = {rows + 1, rows + 1};
    ahead[0] = ahead[1] = 0;
    while (among[0] || among[1]) {
        u32 part[2];
        u64 at[2];
#pragma unroll
        for (u32 k = 0; k < 2; k++) {
            part[k] = (among[k] + 31) / 32;
            const u32 r = ahead[k] + lane_id() * part[k];
            at[k] = lane_id() * part[k] < among[k] ? (u64(offsets[r]) - begin) * ENTRY_BYTES + u64(r) * ROW_BYTES : ~0ull;
        }
#pragma unroll
        for (u32 k = 0; k < 2; k++) {
            const u32 below = __popc(__ballot_sync(ALL, at[k] < targets[k]));
            const u32 next = below ? (below - 1) * part[k] + 1 : 0;
            among[k] = below ? min(part[k] - 1, among[k] - next) : 0, ahead[k] += next;
        }
    }
}

// Entries of a row are in the order of steps, and none is twice in one. A warp takes a step, and a block as many steps
// at a time as it has warps: each row notes by a bit which of them have an entry of it, so an entry's place is where
// the row goes on and as many behind as bits are set below. A band is cut between rows into pieces of equal size, at
// most `most` bytes of shared memory and a row, which has `room`: there a block gathers a piece's entries, and writes
// one after the other. Scattered over memory they take twice the time, as where a row is too long for the room.
//
// Where steps are in the order of rows, a piece's rows lie together in each, and are searched for: no others are read,
// and no steps without any are taken. That steps are in that order shows in the number of entries that are found: where
// it is not that of the rows' entries, all is done again with every entry of each step looked at.
extern "C" __global__ void __launch_bounds__(BACK_THREADS)
    swept_to_csr(u64 rows, u32 height, u32 split, u32 most, u32 room, const u32* firsts, const u64* starts, const u32* bases,
                 const u32* places, const V* values, const I* offsets, u32* columns, V* to_values) {
    constexpr u32 WARPS = BACK_THREADS / 32, AT_ONCE = 4, LISTED = BACK_THREADS / 2;
    static_assert(WARPS <= 32, "a bit a warp");
    static_assert(STEP <= 64 * 32, "a bit for each of a lane's entries");
    // Steps that have entries of the piece: the first of them, from the band's on, and how many, above the step's
    // number in this part of the list.
    __shared__ u32 list_starts[LISTED], list_counts[LISTED];
    const u32 band = blockIdx.x / split, bits = row_bits(height), warp = threadIdx.x / 32;
    const u64 row0 = u64(band) * height, of_band = offsets[row0];
    const u32 of_rows = u32(min(u64(height), rows - row0));
    const u64 bytes = (u64(offsets[row0 + of_rows]) - of_band) * ENTRY_BYTES + u64(of_rows) * ROW_BYTES;
    const u32 pieces = u32((bytes + most - 1) / most), first_step = firsts[band], end = firsts[band + 1];
    const u64 a_piece = (bytes + pieces - 1) / pieces;
    const u32* const of_places = places + of_band;
    const V* const of_values = values + of_band;
    const auto row_at = [&](u32 at) { return row_in_band(__ldg(of_places + at), bits); };
    for (u32 piece = blockIdx.x % split; piece < pieces; piece += split) {
        u32 bounds[2];
        rows_ahead(offsets + row0, of_rows, {a_piece * piece, min(a_piece * (piece + 1), bytes)}, bounds);
        const u32 from = bounds[0], have = bounds[1] - from;
        const u64 row = row0 + from, begin = offsets[row];
        const u32 count = u32(u64(offsets[row + have]) - begin);
        if (!count) continue;
        const bool gathers = count * ENTRY_BYTES + have * ROW_BYTES <= room;
        V* const gathered = reinterpret_cast<V*>(shared);
        u32 *const gathered_columns = reinterpret_cast<u32*>(gathered + (gathers ? count : 0)), *const goes_on =
                                                                                                    gathered_columns +
                                                                                                    (gathers ? count : 0);
        u32* const seen = goes_on + have;
        V* const value_to = gathers ? gathered : to_values + begin;
        u32* const column_to = gathers ? gathered_columns : columns + begin;
        bool ordered = pieces > 1;
        while (true) {
            const bool searched = ordered;
            for (u32 i = threadIdx.x; i < have; i += BACK_THREADS) goes_on[i] = u32(u64(offsets[row + i]) - begin), seen[i] = 0;
            u32 found = 0;
            for (u32 listed = first_step; listed < end; listed += LISTED) {
                const u32 step = listed + threadIdx.x;
                u32 first = 0, stop = 0;
                if (threadIdx.x < LISTED && step < end) first = u32(starts[step] - of_band), stop = u32(starts[step + 1] - of_band);
                if (ordered) {
                    // A look at some tells most steps that are not in the order of rows, and where about these rows
                    // are.
                    constexpr u32 LOOKS = 8;
                    u32 looked[LOOKS], low[2] = {first, first}, high[2] = {stop, stop};
                    const auto look_at = [&](u32 i) { return first + (stop - first) * i / LOOKS; };
#pragma unroll
                    for (u32 i = 0; i < LOOKS; i++) looked[i] = first < stop ? row_at(look_at(i)) : 0;
                    bool falls = false;
#pragma unroll
                    for (u32 i = 1; i < LOOKS; i++) falls = falls || looked[i] < looked[i - 1];
                    if (__syncthreads_or(falls)) {
                        ordered = false;
                    } else {
                        // The first of these rows, and the first behind them.
                        const u32 wanted[2] = {from, from + have};
#pragma unroll
                        for (u32 k = 0; k < 2; k++)
#pragma unroll
                            for (u32 i = 0; i < LOOKS; i++) {
                                if (first < stop && looked[i] < wanted[k]) low[k] = look_at(i) + 1;
                                if (looked[LOOKS - 1 - i] >= wanted[k]) high[k] = look_at(LOOKS - 1 - i);
                            }
                        while (low[0] < high[0] || low[1] < high[1]) {
                            u32 r[2];
#pragma unroll
                            for (u32 k = 0; k < 2; k++) r[k] = low[k] < high[k] ? row_at((low[k] + high[k]) / 2) : 0;
#pragma unroll
                            for (u32 k = 0; k < 2; k++)
                                if (low[k] < high[k]) {
                                    const u32 middle = (low[k] + high[k]) / 2;
                                    if (r[k] < wanted[k]) low[k] = middle + 1;
                                    else high[k] = middle;
                                }
                        }
                        first = low[0], stop = max(low[0], low[1]);
                    }
                }
                u32 all;
                const u32 number = block_before<BACK_THREADS>(u32(first < stop), all);
                if (first < stop) list_starts[number] = first, list_counts[number] = (stop - first) << 16 | threadIdx.x;
                for (u32 taken = 0; taken < all; taken += WARPS) {
                    __syncthreads();
                    const bool mine = taken + warp < all;
                    const u32 start = mine ? list_starts[taken + warp] : 0, both = mine ? list_counts[taken + warp] : 0,
                              stop = start + (both >> 16);
                    const u32 base = mine ? bases[listed + (both & 0xffff)] : 0;
                    const auto at = [&](u32 i) { return start + i * 32 + lane_id(); };
                    // Which of a lane's entries are of these rows.
                    u64 its = 0;
                    for (u32 i0 = 0; start + i0 * 32 < stop; i0 += AT_ONCE) {
                        u32 r[AT_ONCE];
#pragma unroll
                        for (u32 i = 0; i < AT_ONCE; i++) r[i] = at(i0 + i) < stop ? row_at(at(i0 + i)) - from : have;
#pragma unroll
                        for (u32 i = 0; i < AT_ONCE; i++)
                            if (r[i] < have) atomicOr(seen + r[i], 1u << warp), its |= u64(1) << (i0 + i), found++;
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
                                const u32 entry = at(__ffsll(its) - 1);
                                its &= its - 1, place[i] = of_places[entry], value[i] = of_values[entry];
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
            }
            u32 all;
            block_before<BACK_THREADS>(found, all);
            if (all == count || !searched) break;
            ordered = false;
        }
        if (gathers)
            for (u32 i = threadIdx.x; i < count; i += BACK_THREADS)
                columns[begin + i] = gathered_columns[i], to_values[begin + i] = gathered[i];
        __syncthreads();
    }
}
