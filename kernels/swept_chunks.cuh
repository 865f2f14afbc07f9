// Which step of a band each entry goes to (swept.cu draws bands and steps): columns are cut into chunks, and then a row alone tells.
//
//     | 1 . 7 . |     entries of the band in each column       2 1 3 1
//     | . . 8 . |     chunk of each column, of about 3         0 0 1 2
//     | . 4 3 . |     steps of the entries of row 0: 0 1       the chunk of the column, or one behind the entry before
//     | 2 . . 1 |     steps of the entries of row 2: 0 1
//
// Chunks without entries are left out.
//
// An entry goes to its chunk's step, or where that is not behind the step of the row's entry before, to the next one: a running
// maximum along the row, found again in each pass, so that nothing is kept an entry. A row that has fallen so far behind that its column is out of reach of
// the next step goes on in a second level of the one where it is, behind all of the first level; few do. Behind the last chunk steps go on as long as
// rows need.
//
// Constants: OFFSET (of CSR), LANES (a row), LONG (rows with more entries are a warp's), THREADS; of the host's rule too: STEP, BINS (of columns: a chunk has less than a bin
// too many), SHARE (entries that a chunk is meant to have), OF_ENTRY (parts of one).
#pragma once
#include "block_before.cuh"
#include "swept.cuh"

typedef OFFSET I;
extern __shared__ u32 words[];

// What a chunk is meant to take: SHARE entries, of OF_ENTRY each; or three eighths of the columns that a step reaches, so that entries of the two chunks before
// are mostly in its reach.
#define CHUNK (u64(SHARE) * OF_ENTRY)
// Columns that are swept at a time.
#define WINDOW (BINS << 14)

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
    // The last chunk; bins in which there are entries.
    i32 last;
    u32 filled;
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
        shift = bin_shift, last = 0, filled = 0, window = 0, extent = 0;
        parts = (have + STEP - 1) / STEP;
        bins = words, bases = words + BINS;
        chunk_of = reinterpret_cast<u16*>(bases + BINS), counts = words + 2 * BINS + BINS / 2;
    }
    // Columns that a step reaches.
    DEVICE u32 reach() const { return 1u << (32 - row_bits); }
    // What columns of a step are counted from.
    DEVICE u32 base(i32 step) const { return bases[min(step, last)]; }

    // The base of a step whose chunk ends ahead of the bin.
    DEVICE u32 base_of(u32 end) const {
        const u32 upto = min(end << shift, extent);
        return window + (upto > reach() ? upto - reach() : 0);
    }
    // Steps at most, but for second levels: chunks that entries fill, or columns, and the longest row; a step of more than STEP entries is cut.
    DEVICE u64 most_steps(u64 columns, u32 longest) const {
        const u64 windows = (columns + WINDOW - 1) / WINDOW, filled = (end - begin) / SHARE;
        return filled + (parts > 1 ? 2 * filled : 0) + windows * ((u64(BINS) << shift) / (reach() / 8 * 3) + 2 + longest);
    }
    // Whether rows beside each other are mostly in different steps: columns are many, or rows of very different lengths.
    DEVICE bool scattered(u32 longest) const { return u64(filled) << shift > 8 * u64(have) || u64(longest) * have > 16 * (end - begin); }
    // What a bin takes of a chunk.
    DEVICE u64 weight(u32 count) const { return max(u64(count) * OF_ENTRY, of_column << shift); }
    // Cuts columns into chunks; whether there are entries at all.
    DEVICE bool cut(const u32* columns) {
        for (u32 b = threadIdx.x; b < BINS; b += THREADS) bins[b] = 0, bases[b] = 0;
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
        // A bin with entries starts a chunk where the one ahead of it that has any is in another.
        u32 latest = ~0u, upto = ~0u, cuts = 0, chunks;
        u64 upto_here = before;
#pragma unroll
        for (u32 i = 0; i < EACH; i++) {
            if (count[i]) upto = u32(upto_here / CHUNK);
            upto_here += weight(count[i]);
        }
        latest = last_before<THREADS>(upto);
        bool cut[EACH];
#pragma unroll
        for (u32 i = 0; i < EACH; i++) {
            const u32 now = u32(before / CHUNK);
            cut[i] = count[i] && now != latest;
            if (count[i]) latest = now;
            // Bins with entries, and those that start a chunk.
            cuts += (count[i] ? 1u << 16 : 0) + cut[i];
            before += weight(count[i]);
        }
        u32 chunk = block_before<THREADS>(cuts, chunks) & 0xffff;
#pragma unroll
        for (u32 i = 0; i < EACH; i++) {
            chunk += cut[i];
            if (count[i]) chunk_of[first + i] = chunk - 1, atomicMax(bases + chunk - 1, first + i + 1);
        }
        last = (chunks & 0xffff) - 1, filled = chunks >> 16;
        for (u32 b = first; b < first + EACH; b++) bins[b] = 0;
        __syncthreads();
        for (u32 b = threadIdx.x; b <= u32(last); b += THREADS) bases[b] = base_of(bases[b]);
        __syncthreads();
        return true;
    }

    // what(row in the band, what was loaded, column, where) for each entry of the window in some rows. LANES lanes a row, in its order, and several rows
    // each; a row of more than LONG entries is its warp's, among few rows one of half as many. Few rows are shared out to all warps.
    template <u32 AT_ONCE, typename Load, typename Do>
    DEVICE void walk(const I* offsets, const u32* columns, u32 from, u32 upto_row, Load load, Do what) const {
        constexpr u32 GROUPS = THREADS / LANES, WARPS = THREADS / 32;
        const bool few = upto_row - from <= GROUPS;
        const u32 limit = upto_row - from <= 2 * GROUPS ? LONG / 2 : LONG;
        if (few && AT_ONCE > 1) return walk<1>(offsets, columns, from, upto_row, load, what);
        const u32 group = few ? lane_id() / LANES * WARPS + threadIdx.x / 32 : threadIdx.x / LANES;
        for (u32 first = from; first < upto_row; first += GROUPS * AT_ONCE) {
            u64 at[AT_ONCE];
            u32 row_of[AT_ONCE], length[AT_ONCE], longest = 0;
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; i++) {
                const u32 r = row_of[i] = first + i * GROUPS + group;
                at[i] = r < upto_row ? u64(offsets[row + r]) : 0;
                length[i] = r < upto_row ? u32(u64(offsets[row + r + 1]) - at[i]) : 0;
                longest = max(longest, length[i]);
            }
            if (__any_sync(ALL, longest > limit)) {
#pragma unroll
                for (u32 i = 0; i < AT_ONCE; i++) {
                    for (u32 some = __ballot_sync(ALL, length[i] > limit && lane_id() % LANES == 0); some; some &= some - 1) {
                        const u32 of = __ffs(some) - 1, r = __shfl_sync(ALL, row_of[i], of), have = __shfl_sync(ALL, length[i], of);
                        const u64 start = __shfl_sync(ALL, at[i], of);
                        along<32, true, 4>({r, r, r, r}, {start, start, start, start}, {have, have, have, have}, columns, load, what);
                    }
                    if (length[i] > limit) length[i] = 0;
                }
            }
            along<LANES, false, AT_ONCE>(row_of, at, length, columns, load, what);
        }
    }

    // The same for rows of so many entries from `at` on, whose lanes are known to be WIDTH; or, CHAINED, for one row, as many times WIDTH of its entries at once.
    template <u32 WIDTH, bool CHAINED, u32 AT_ONCE, typename Load, typename Do>
    DEVICE void along(const u32 (&row_of)[AT_ONCE], const u64 (&at)[AT_ONCE], const u32 (&length)[AT_ONCE], const u32* columns, Load load,
                      Do what) const {
        constexpr i32 NONE = -(1 << 30);
        constexpr u32 APART = CHAINED ? WIDTH : 0, ROWS = CHAINED ? 1 : AT_ONCE;
        // What comes next is under way while an entry is dealt with, where a lane has no other entries under way, or asks for columns only.
        typedef decltype(load(u64())) L;
        constexpr bool AHEAD = AT_ONCE == 1 || (same<L, i32>::value && !CHAINED);
        const u32 lane = threadIdx.x % WIDTH;
        u32 level[ROWS], longest = 0, next[AT_ONCE];
        L next_loaded[AT_ONCE];
        // The largest of step less number in the row.
        i32 upto[ROWS];
        const auto ask = [&](u32 k) {
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; i++)
                if (k + i * APART < length[i]) next[i] = columns[at[i] + k + i * APART], next_loaded[i] = load(at[i] + k + i * APART);
        };
#pragma unroll
        for (u32 i = 0; i < ROWS; i++) longest = max(longest, length[i]), level[i] = 0, upto[i] = NONE;
        if (AHEAD) ask(lane);
        for (u32 k = lane; __any_sync(ALL, k - lane < longest); k += max(WIDTH, AT_ONCE * APART)) {
            u32 column[AT_ONCE];
            L loaded[AT_ONCE];
            i32 chunk[AT_ONCE], most[AT_ONCE];
            bool mine[AT_ONCE], far = false;
            if (!AHEAD) ask(k);
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; i++)
                column[i] = next[i], loaded[i] = next_loaded[i], mine[i] = k + i * APART < length[i] && column[i] - window < WINDOW;
            if (AHEAD) ask(k + WIDTH);
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; i++) {
                chunk[i] = mine[i] ? i32(chunk_of[(column[i] - window) >> shift]) : 0;
                most[i] = mine[i] ? chunk[i] - i32(k + i * APART) : NONE;
            }
#pragma unroll
            for (u32 by = 1; by < WIDTH; by *= 2)
#pragma unroll
                for (u32 i = 0; i < AT_ONCE; i++) {
                    const i32 other = __shfl_up_sync(ALL, most[i], by, WIDTH);
                    if (lane >= by) most[i] = max(most[i], other);
                }
            i32 now[ROWS];
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; i++) {
                most[i] = max(most[i], i < ROWS ? upto[i] : now[0]);
                now[CHAINED ? 0 : i] = __shfl_sync(ALL, most[i], WIDTH - 1, WIDTH);
                far = far || (mine[i] && column[i] < base(most[i] + i32(k + i * APART)));
            }
            const bool any_far = __any_sync(ALL, far);
#pragma unroll
            for (u32 i = 0; i < AT_ONCE; i++) {
                const u32 r = CHAINED ? 0 : i;
                Where where = {most[i] + i32(k + i * APART), 0};
                if (any_far) where = one_by_one<WIDTH>(lane, k + i * APART, mine[i], chunk[i], column[i], upto[r], level[r]);
                else upto[r] = now[r], level[r] = 0;
                if (mine[i]) what(row_of[i], loaded[i], column[i], where);
            }
        }
    }

    // Where each lane's entry goes if some are out of reach of the next step.
    template <u32 WIDTH>
    DEVICE Where one_by_one(u32 lane, u32 k, bool mine, i32 chunk, u32 column, i32& upto, u32& level) const {
        Where now = {upto + i32(k - lane) - 1, level}, where = {0, 0};
#pragma unroll 1
        for (u32 j = 0; j < WIDTH; j++) {
            const i32 of = __shfl_sync(ALL, chunk, j, WIDTH);
            const u32 at = __shfl_sync(ALL, column, j, WIDTH);
            const bool there = __shfl_sync(ALL, mine, j, WIDTH);
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
