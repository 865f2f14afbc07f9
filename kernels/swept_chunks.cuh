// Which step of a band each entry goes to (swept.cu draws bands and steps): columns are cut into chunks, and then a row alone tells.
//
//     | 1 . 7 . |     entries of the band in each column       2 1 3 1
//     | . . 8 . |     chunk of each column, of about 3         0 0 1 2
//     | . 4 3 . |     steps of the entries of row 0: 0 1       the chunk of the column, or one behind the entry before
//     | 2 . . 1 |     steps of the entries of row 2: 0 1
//
// An entry goes to its chunk's step, or where that is not behind the step of the row's entry before, to the next one: a running
// maximum along the row, found again in each pass, so that nothing is kept an entry. A row that has fallen so far behind that its column is out of reach of
// the next step goes on in a second level of the one where it is, behind all of the first level; few do. Behind the last chunk steps go on as long as
// rows need.
//
// Constants: OFFSET (of CSR), LANES (a row), THREADS.
#pragma once
#include "block_before.cuh"
#include "swept.cuh"

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
