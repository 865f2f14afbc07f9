// Finds in one pass what repeats in a CSR matrix, for the choice of its compressed storage.
//
// Four sets are collected, each given up at more than 256 keys: distances (column - row), values (their bits), and
// hashes of rows by distances alone (patterns) and with values (lines). For the latter two, the first row with each
// hash and its length are kept, with which compressed_rows (compressed_fill.cu) later compares entry by entry, so that
// nothing depends on hashes alone. Rows that are like the row above are skipped. A block collects in shared memory and
// adds to the global sets at the end; LANES threads per row read it in order. Rows longer than `longest` are left out;
// their numbers are written to `long_rows`.
//
// Most matrices that are not grids have too many distances, patterns and lines. Blocks find that out together: if its
// first rows bring many new keys, a block adds these to the global sets directly, and from then on checks whether a
// global set was given up. When only values are left to examine, they are read directly, because those of neighbouring
// rows are contiguous.
//
// Bytes per nonzero: value + 4. The keys found do not depend on the order in which blocks finish, but their slots do.
//
// Constants: VALUE (values), OFFSET (offsets), THREADS (a multiple of 128), LANES (a power of two), BLOCKS (per
// multiprocessor).
#include "compressed.cuh"

typedef VALUE V;
typedef OFFSET I;

#define AT_ONCE 4

// Counters: keys of each set, whether a value needs its full width, and the number of long rows.
enum : u32 { DISTANCES, NUMBERS, PATTERNS, LINES, FULL_WIDTH, LONG };

DEVICE bool narrow(f64 v) { return v == v && bits<u64>(f64(f32(v))) == bits<u64>(v); }
DEVICE bool narrow(f32) { return true; }
DEVICE bool narrow(c64 v) { return narrow(v.re) && narrow(v.im); }
DEVICE bool narrow(c32) { return true; }

// The block's sets.
__shared__ u64 key[4][SLOTS];
__shared__ u32 first[2][SLOTS];
__shared__ u32 count[4];
__shared__ u16 used[4][MOST];

// The global sets: 4 sets of SLOTS keys, then first row << 32 | length for the slots of patterns and of lines, all
// inverted; then the counters, room for the totals of compressed_sizes.cu and a word for errors found by
// compressed_fill.cu, the slots of each set's keys in the order of insertion, MOST numbers of 16 bits, and the long
// rows as row << 32 | length. All initially zero.
struct Found {
    u64* keys;
    DEVICE u64* first_row() const { return keys + 4 * SLOTS; }
    DEVICE u32* counters() const { return reinterpret_cast<u32*>(first_row() + 2 * SLOTS); }
    DEVICE u16* listed() const { return reinterpret_cast<u16*>(first_row() + 2 * SLOTS + 3 + 6 + 1); }
    DEVICE void add_long(u64 row, u64 entries) const { reinterpret_cast<u64*>(listed() + 4 * MOST)[atomicAdd(counters() + LONG, 1u)] = row << 32 | entries; }
};

// Returns whether a set still accepts keys.
DEVICE bool open(u32 set) { return static_cast<volatile u32*>(count)[set] <= MOST; }
// Returns which of the four sets are open, one bit each; the result is equal in all lanes.
DEVICE u32 open_sets() { return __ballot_sync(ALL, lane_id() < 4 && open(lane_id() % 4)); }

// Adds a row under its hash; returns true if the hash was new or the set is full.
DEVICE bool add(u32 set, u64 hash, u32 row) {
    if (!open(set)) return true;
    const u32 slot = insert(key[set], count + set, hash, used[set]);
    if (slot == SLOTS) return true;
    const u32 before = static_cast<volatile u32*>(first[set - PATTERNS])[slot];
    if (before > row) atomicMin(&first[set - PATTERNS][slot], row);
    return before == ~0u;
}

// Adds the block's sets to the global ones. A warp takes keys of one set in parallel: all blocks come at about the same
// time, and a set's count is then read once for 32 keys.
__device__ __noinline__ void add_to_all(Found found, const I* offsets) {
    const u32 set = threadIdx.x / 32 % 4, have = count[set];
    u32* const of_all = found.counters() + set;
    if (have > MOST) {
        if (threadIdx.x < 4 * 32 && lane_id() == 0) atomicMax(of_all, MOST + 1);
        return;
    }
    for (u32 n = threadIdx.x / (4 * 32) * 32 + lane_id(); n < have; n += THREADS / 4) {
        const u32 at = used[set][n], slot = insert(found.keys + set * SLOTS, of_all, ~key[set][at], found.listed() + set * MOST);
        if (set < PATTERNS || slot == SLOTS) continue;
        const u32 row = first[set - PATTERNS][at];
        atomicMax(found.first_row() + (set - PATTERNS) * SLOTS + slot, ~(u64(row) << 32 | u32(offsets[row + 1] - offsets[row])));
    }
}

// Adds a row's values, if they are still collected, and records whether one needs its full width. Many values equal the
// one before.
struct Values {
    V last;
    bool has_last, take;
    u32 full;
    DEVICE void look_at(V value) {
        full |= !narrow(value);
        if (!take || (has_last && same_bits(last, value))) return;
        insert(key[NUMBERS], count + NUMBERS, key_of(value), used[NUMBERS]);
        last = value;
        has_last = true;
    }
};

// Adds the distances and values of those entries of a row that this lane reads. Several entries are loaded at once,
// since those of a long row would otherwise be loaded one after another. Returns whether a value needs its full width.
// It is a separate function because the loop over rows has few registers; for a grid almost no row gets here.
__device__ __noinline__ u32 look_at_row(u32 row, const u32* columns, const V* values, u32 entries, bool distances, bool looks_at_values) {
    Values seen = {V(), false, open(NUMBERS), 0};
    for (u32 first = threadIdx.x % LANES; first < entries; first += AT_ONCE * LANES) {
        u32 column[AT_ONCE];
        V value[AT_ONCE];
#pragma unroll
        for (u32 j = 0; j < AT_ONCE; j++) {
            const u32 at = min(first + j * LANES, entries - 1);
            if (distances) column[j] = columns[at];
            if (looks_at_values) value[j] = values[at];
        }
#pragma unroll
        for (u32 j = 0; j < AT_ONCE; j++) {
            if (first + j * LANES >= entries) break;
            if (distances) insert(key[DISTANCES], count + DISTANCES, column[j] - row, used[DISTANCES]);
            if (looks_at_values) seen.look_at(value[j]);
        }
    }
    return seen.full;
}

// The first row of a block's GROUP consecutive rows in a turn.
constexpr u32 GROUP = THREADS / LANES;
DEVICE u64 first_of(u64 turn) { return (turn * gridDim.x + blockIdx.x) * GROUP; }

// Processes all rows from a turn on when only values are left to examine. Each lane reads the offsets of one row, and
// the warp then reads the values in pieces of neighbouring rows. Returns whether a value needs its full width.
__device__ __noinline__ u32 look_at_values(Found found, u32 turn, u64 rows, const I* offsets, const V* values, u32 longest, u32 full) {
    constexpr u32 PIECE = GROUP < 32 ? GROUP : 32;
    Values seen = {V(), false, true, full};
    for (u64 of_warp = threadIdx.x / 32 * 32; first_of(turn + of_warp / GROUP) < rows; of_warp += THREADS) {
        const u64 number = of_warp + lane_id(), row = first_of(turn + number / GROUP) + number % GROUP;
        const u64 start = offsets[min(row, rows)], end = offsets[min(row + 1, rows)];
        const bool is_long = end - start > longest;
        if (is_long) found.add_long(row, end - start);
        seen.take = open_sets() >> NUMBERS & 1;
        if (!seen.take && __any_sync(ALL, seen.full)) continue;
        const u32 long_ones = __ballot_sync(ALL, is_long);
        for (u32 r = 0; r < 32;) {
            // A whole piece is processed together, unless one of its rows is long.
            const bool whole = r % PIECE == 0 && !(long_ones >> r & u32((1ull << PIECE) - 1));
            const u32 first_row = r, last_row = whole ? r + PIECE - 1 : r;
            r = last_row + 1;
            const u64 from = shuffle(start, first_row), to = shuffle(end, last_row);
            if (long_ones >> first_row & 1) continue;
            for (u64 k = from + lane_id(); k < to; k += 32 * AT_ONCE) {
                V value[AT_ONCE];
#pragma unroll
                for (u32 j = 0; j < AT_ONCE; j++) value[j] = values[min(k + 32 * j, to - 1)];
#pragma unroll
                for (u32 j = 0; j < AT_ONCE; j++) seen.look_at(value[j]);
            }
            __syncwarp();
        }
    }
    return seen.full;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) survey(u64 rows, const I* offsets, const u32* columns, const V* values, u32 longest, u64* of_all) {
    const Found found = {of_all};
    for (u32 i = threadIdx.x; i < 4 * SLOTS; i += THREADS) key[0][i] = 0;
    for (u32 i = threadIdx.x; i < 2 * SLOTS; i += THREADS) first[0][i] = ~0u;
    if (threadIdx.x < 4) count[threadIdx.x] = 0;
    __syncthreads();
    const u32 lane = threadIdx.x % LANES;
    u32 full = 0;
    for (u32 turn = 0; first_of(turn) < rows; turn++) {
        const u32 takes = open_sets();
        const u64 row = first_of(turn) + threadIdx.x / LANES;
        const u64 start = row < rows ? offsets[row] : 0;
        const u64 all = row < rows ? offsets[row + 1] - start : 0;
        const bool taken = row < rows && all <= longest;
        if (row < rows && !taken && lane == 0) found.add_long(row, all);
        const u32 entries = taken ? u32(all) : 0;
        bool new_pattern = taken, new_line = taken;
        if (takes & (1u << PATTERNS | 1u << LINES)) {
            // A row like the one above brings nothing new: that is the case for most rows of a grid, and comparing is
            // cheaper than hashing.
            const bool compares_values = takes >> LINES & 1;
            const Likeness like = !taken          ? Likeness{true, true}
                                  : compares_values ? likeness<LANES, true>(row, start, entries, offsets, columns, values)
                                                    : likeness<LANES, false>(row, start, entries, offsets, columns, values);
            new_pattern = !all_lanes<LANES>(like.pattern), new_line = !all_lanes<LANES>(like.pattern && like.line) || (taken && !compares_values);
            const bool hashes_pattern = new_pattern && takes >> PATTERNS & 1, hashes_line = new_line && takes >> LINES & 1;
            if (__any_sync(ALL, hashes_pattern || hashes_line)) {
                u64 pattern = 0, line = 0;
                if (hashes_pattern || hashes_line)
#pragma unroll 4
                    for (u32 k = lane; k < entries; k += LANES) {
                        const EntryHash<V> hash(k, columns[start + k] - u32(row), values[start + k]);
                        pattern += hash.pattern;
                        line += hash.line;
                    }
                __syncwarp();
#pragma unroll
                for (u32 with = LANES / 2; with; with /= 2) {
                    pattern += shuffle_xor(pattern, with);
                    line += shuffle_xor(line, with);
                }
                if (lane == 0) {
                    if (hashes_pattern) new_pattern = add(PATTERNS, row_key(pattern, entries), u32(row));
                    if (hashes_line) new_line = add(LINES, row_key(line, entries), u32(row));
                }
                // The keys of a row with the same hash are in the sets already. If two rows share a hash but differ,
                // compressed_fill finds out.
                new_pattern = __shfl_sync(ALL, new_pattern, 0, LANES);
                new_line = __shfl_sync(ALL, new_line, 0, LANES);
            }
        }
        new_pattern = new_pattern && takes >> DISTANCES & 1;
        // If there are too many values already, the only thing left to find is one that needs its full width.
        new_line = new_line && (takes >> NUMBERS & 1 || !full);
        if (new_pattern || new_line) full |= look_at_row(u32(row), columns + start, values + start, entries, new_pattern, new_line);
        __syncwarp();
        // Done only in some turns, because it takes as long as the slowest warp.
        if (turn & (turn - 1)) continue;
        if (turn == 0) {
            if (first_of(4) >= rows || !__syncthreads_or(threadIdx.x < 4 && count[threadIdx.x] > MOST / 16)) continue;
            add_to_all(found, offsets);
        } else if (threadIdx.x < 4 && static_cast<volatile u32*>(found.counters())[threadIdx.x] > MOST) {
            atomicMax(count + threadIdx.x, MOST + 1);
        }
        if (!__syncthreads_or(threadIdx.x < 4 && threadIdx.x != NUMBERS && open(threadIdx.x))) {
            full = look_at_values(found, turn + 1, rows, offsets, values, longest, full);
            break;
        }
    }
    // Once per block, because stores to one word are serialised.
    if (__syncthreads_or(full) && threadIdx.x == 0) found.counters()[FULL_WIDTH] = 1;
    add_to_all(found, offsets);
}
