// Which step of a band each entry goes to (swept.cu draws bands and steps): columns are cut into chunks, and then a row
// alone tells.
//
//     | 1 . 7 . |     entries of the band in each column       2 1 3 1
//     | . . 8 . |     chunk of each column, of about 3         0 0 1 2
//     | . 4 3 . |     steps of the entries of row 0: 0 1       the chunk of the column, or one behind the entry before
//     | 2 . . 1 |     steps of the entries of row 2: 0 1
//
// Chunks without entries are left out.
//
// An entry goes to its chunk's step, or where that is not behind the step of the row's entry before, to the next one: a
// running maximum along the row, found again in each pass, so that nothing is kept an entry. A row that has fallen so
// far behind that its column is out of reach of the next step goes on in a second level of the one where it is, behind
// all of the first level; few do. Behind the last chunk steps go on as long as rows need.
//
// A block takes the band's entries a tile after the other, each thread EACH that follow each other, whatever rows they
// are of. Step less number within the tile is a maximum along the row, so a scan over the block tells each thread what
// the entries of its first row ahead of it ask for, and it follows its own one by one.
//
// Constants: OFFSET (of CSR), THREADS, TILE (entries of a block at a time); of the host's rule too: STEP, BINS (of
// columns: a chunk has less than a bin too many), SHARE (entries that a chunk is meant to have), OF_ENTRY (parts of
// one), SPREAD (columns for each row, from which on steps are in the order of columns).
#pragma once
#include "block_before.cuh"
#include "swept.cuh"

typedef OFFSET I;
extern __shared__ u32 words[];

// What a chunk is meant to take: SHARE entries, of OF_ENTRY each; or three eighths of the columns that a step reaches,
// so that entries of the two chunks before are mostly in its reach.
#define CHUNK (u64(SHARE) * OF_ENTRY)
// Columns that are swept at a time.
#define WINDOW (BINS << 14)

// Where the i-th of some words in shared memory lies. A thread's EACH entries follow each other, and mostly so do their
// steps, so lanes would ask every EACH-th word, of a few banks: a word of 32 is left out.
DEVICE u32 padded(u32 i) { return i + i / 32; }

// Entries that a thread deals with at a time.
constexpr u32 EACH = TILE / THREADS;
// A short number for each of a thread's entries.
struct alignas(16) Notes {
    uint4 eight[EACH / 8];

    DEVICE void get(u16 (&of)[EACH]) const { memcpy(of, eight, sizeof(Notes)); }
};

// Where the entry before in the row went: one more than its step, above the level there; 0 where there is none.
DEVICE u32 state_of(u32 step, u32 level) { return (step + 1) << 16 | level; }
DEVICE u32 next_step(u32 state) { return state >> 16; }
DEVICE u32 step_of(u32 state) { return (state >> 16) - 1; }
DEVICE u32 level_of(u32 state) { return state & 0xffff; }

// Entries of a tile that follow each other.
struct Entries {
    // A bit for each that is there: of the band, and of the window.
    u32 there;
    // Row of the tile's first entry, one more than that of its last, and that of the entry before the thread's; the row
    // of each entry that starts one, less `open`.
    u32 open, behind, row;
    u16 mark[EACH];
    u32 column[EACH], state[EACH];

    // Whether all are there, and none is in a second level.
    bool plain;

    DEVICE bool has(u32 i) const { return there >> i & 1; }
    // what(i, row, column, state) for each.
    template <typename Do> DEVICE void each(Do what) const {
        u32 r = row;
        if (plain) {
#pragma unroll
            for (u32 i = 0; i < EACH; i++) {
                if (mark[i]) r = open + mark[i];
                what(i, r, column[i], state_of(step_of(state[i]), 0));
            }
            return;
        }
#pragma unroll
        for (u32 i = 0; i < EACH; i++) {
            if (mark[i]) r = open + mark[i];
            if (has(i)) what(i, r, column[i], state[i]);
        }
    }
    DEVICE void ask(const u32* columns, u32 first, u32 count, u32 window) {
        there = 0;
        if (first < count && first + EACH <= count) {
#pragma unroll
            for (u32 i = 0; i < EACH; i += 4) {
                const uint4 four = __ldg(reinterpret_cast<const uint4*>(columns + first + i));
                column[i] = four.x, column[i + 1] = four.y, column[i + 2] = four.z, column[i + 3] = four.w;
            }
        } else {
#pragma unroll
            for (u32 i = 0; i < EACH; i++) column[i] = first + i < count ? columns[first + i] : window - 1;
        }
#pragma unroll
        for (u32 i = 0; i < EACH; i++) there |= u32(column[i] - window < WINDOW) << i;
    }
};

// Rows are numbered in the upper half of a key; in the lower one, the largest of step less number within the tile that
// any of the row's entries asks for, and more than 0.
DEVICE u32 joined(u32 ahead, u32 key) { return key >> 16 ? key : max(ahead, (ahead & 0xffff0000) | key); }
// Of the keys of all threads ahead of this one, behind `first`.
DEVICE u32 keys_ahead(u32 key, u32 first, u32* of_warp) {
    const auto upto = [](u32 key) {
#pragma unroll
        for (u32 by = 1; by < 32; by *= 2) {
            const u32 other = __shfl_up_sync(ALL, key, by);
            if (lane_id() >= by) key = joined(other, key);
        }
        return key;
    };
    const u32 all = upto(key);
    if (lane_id() == 31) of_warp[threadIdx.x / 32] = all;
    __syncthreads();
    const u32 warps = upto(lane_id() < THREADS / 32 ? of_warp[lane_id()] : 0);
    const u32 before = __shfl_sync(ALL, warps, (threadIdx.x / 32 + 31) & 31), here = __shfl_up_sync(ALL, all, 1);
    key = threadIdx.x < 32 ? first : joined(first, before);
    return lane_id() == 0 ? key : joined(key, here);
}

struct Band {
    u64 row, begin, end;
    u32 have, row_bits;
    u32 window, extent, shift;
    u64 of_column;
    // The last chunk; bins in which there are entries.
    u32 last;
    // Bins that have entries; whether all columns are in reach of every step.
    u32 filled;
    bool near;
    // Counters a step.
    u32 parts;
    u32 *bins, *bases, *counts;
    u16 *chunk_of, *notes;

    // In shared memory: bins (then levels of each chunk, then levels of all before), base of each chunk, chunk of each
    // bin, notes of a tile's entries, counters.
    DEVICE Band(u64 rows, u32 height, u32 bin_shift, const I* offsets) {
        row = u64(blockIdx.x) * height;
        have = u32(min(u64(height), rows - row)), row_bits = ::row_bits(height);
        of_column = CHUNK / (reach() / 8 * 3);
        begin = offsets[row], end = offsets[row + have];
        shift = bin_shift, last = 0, filled = 0, near = false, window = 0, extent = 0;
        parts = (have + STEP - 1) / STEP;
        bins = words, bases = words + BINS;
        chunk_of = reinterpret_cast<u16*>(bases + BINS), notes = chunk_of + BINS, counts = reinterpret_cast<u32*>(notes + TILE);
    }
    DEVICE u32& count(u32 i) const { return counts[padded(i)]; }
    // Columns that a step reaches.
    DEVICE u32 reach() const { return 1u << (32 - row_bits); }
    // What columns of a step are counted from.
    DEVICE u32 base(u32 step) const { return bases[min(step, last)]; }

    // The base of a step whose chunk ends ahead of the bin.
    DEVICE u32 base_of(u32 end) const {
        const u32 upto = min(end << shift, extent);
        return window + (upto > reach() ? upto - reach() : 0);
    }
    // Steps at most, but for second levels: chunks that entries fill, or columns, and the longest row; a step of more
    // than STEP entries is cut.
    DEVICE u64 most_steps(u64 columns, u32 longest) const {
        const u64 windows = (columns + WINDOW - 1) / WINDOW, filled = (end - begin) / SHARE;
        return filled + (parts > 1 ? 2 * filled : 0) + windows * ((u64(BINS) << shift) / (reach() / 8 * 3) + 2 + longest);
    }
    // Whether the entries of a step lie in the order of rows: where columns are not many more than rows, those of a
    // step that follow each other by rows are mostly close to each other by columns, too.
    DEVICE bool by_rows() const { return u64(filled) << shift <= u64(SPREAD) * have; }
    DEVICE Notes& own_notes() const { return reinterpret_cast<Notes*>(notes)[threadIdx.x]; }
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
        u32 latest = ~0u, upto = ~0u, cuts = 0, chunks, lowest = BINS;
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
            if (count[i]) latest = now, lowest = min(lowest, first + i);
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
        for (u32 b = threadIdx.x; b <= last; b += THREADS) bases[b] = base_of(bases[b]);
        __syncthreads();
        near = !__syncthreads_or(window + (lowest << shift) < bases[last]);
        return true;
    }

    // what(first, entries) for each tile of entries in the order of CSR: the number of its first, from the band's on
    // (below zero where those do not start at a multiple of 16 bytes), and EACH entries a thread. `first_row` is the
    // first row that has any.
    template <typename Do> DEVICE void walk(const I* offsets, const u32* all_columns, u32 first_row, Do what) const {
        __shared__ u32 of_warp[THREADS / 32], next_row, goes_on, last_state;
        const u32* const columns = all_columns + begin;
        const u32 count = u32(end - begin), apart = u32(u64(columns) / 4 % 4), mine = threadIdx.x * EACH;
        u32 open = first_row, opened = 0;
        own_notes() = Notes();
        __syncthreads();
        for (u32 tile = 0; tile < count + apart; tile += TILE) {
            const u32 first = tile - apart, behind = min(first + TILE, count);
            Entries entries;
            entries.ask(columns, first + mine, count, window);
            // Rows that start here, counted from the one that the tile starts in; and the one that the next tile starts
            // in.
            constexpr u32 ROWS = 2;
            for (u32 next = open + threadIdx.x; next < have; next += ROWS * THREADS) {
                u32 from[ROWS], upto[ROWS];
#pragma unroll
                for (u32 i = 0; i < ROWS; i++) {
                    const u32 r = min(next + i * THREADS, have - 1);
                    from[i] = u32(offsets[row + r] - begin), upto[i] = u32(offsets[row + r + 1] - begin);
                }
#pragma unroll
                for (u32 i = 0; i < ROWS; i++) {
                    const u32 r = next + i * THREADS;
                    if (r >= have || from[i] == upto[i] || from[i] > behind) continue;
                    if (r > open && from[i] < behind) notes[from[i] - first] = u16(r - open);
                    if (behind < upto[i]) next_row = r, goes_on = from[i] < behind;
                }
                if (from[ROWS - 1] > behind) break;
            }
            __syncthreads();
            const u32 next = next_row, next_opened = goes_on, carried = opened ? last_state : 0;
            own_notes().get(entries.mark);
            own_notes() = Notes();
            u32 chunk[EACH], key = 0;
            entries.plain = near && entries.there == (1u << EACH) - 1;
            if (entries.plain) {
                u32 started = 0, most = 0;
#pragma unroll
                for (u32 i = 0; i < EACH; i++) {
                    chunk[i] = chunk_of[(entries.column[i] - window) >> shift];
                    if (entries.mark[i]) started = entries.mark[i], most = 0;
                    most = max(most, TILE - mine - i + chunk[i]);
                }
                key = started << 16 | most;
            } else {
#pragma unroll
                for (u32 i = 0; i < EACH; i++) {
                    if (entries.mark[i]) key = u32(entries.mark[i]) << 16;
                    // Those that are not there have a column, too.
                    chunk[i] = chunk_of[(entries.has(i) ? entries.column[i] - window : 0) >> shift];
                    const u32 wanted = entries.has(i) ? TILE - (mine + i) + chunk[i] : 0;
                    key = max(key, (key & 0xffff0000) | wanted);
                }
            }
            key = keys_ahead(key, carried ? TILE + next_step(carried) : 0, of_warp);
            // What the thread's first entry finds: of a row that is in no second level, so far.
            entries.open = open, entries.behind = behind < count ? min(next + 1, have) : have, entries.row = open + (key >> 16);
            u32 found = key & 0xffff ? state_of((key & 0xffff) + mine - TILE - 1, 0) : 0, state;
            if (threadIdx.x == 0) found = carried;
            const auto follow = [&]() {
                bool levels = false;
                state = found;
#pragma unroll
                for (u32 i = 0; i < EACH; i++) {
                    if (entries.mark[i]) state = 0;
                    const u32 step = next_step(state);
                    const bool reached = near || entries.column[i] >= base(step);
                    const u32 now = chunk[i] >= step || reached ? state_of(max(chunk[i], step), 0) : state + 1;
                    levels = levels || (entries.has(i) && level_of(now));
                    if (entries.has(i)) state = now;
                    entries.state[i] = state;
                }
                return levels;
            };
            if (near) {
                // No levels.
                u32 next = next_step(found);
#pragma unroll
                for (u32 i = 0; i < EACH; i++) {
                    if (entries.mark[i]) next = 0;
                    const u32 now = max(chunk[i], next);
                    entries.state[i] = state_of(now, 0);
                    if (entries.has(i)) next = now + 1;
                }
                state = next << 16;
            } else {
                // Where there are levels, a thread tells the next one what its last entry leaves, until none hears
                // anything new.
                bool again = follow();
                while (__syncthreads_or(again)) {
                    u32 told = __shfl_up_sync(ALL, state, 1);
                    if (lane_id() == 31) of_warp[threadIdx.x / 32] = state;
                    __syncthreads();
                    if (lane_id() == 0) told = threadIdx.x ? of_warp[threadIdx.x / 32 - 1] : carried;
                    again = told != found, found = told;
                    if (again) follow();
                }
            }
            if (threadIdx.x == THREADS - 1) last_state = state;
            what(first, entries);
            open = next, opened = next_opened;
        }
    }
};
