// What of a CSR matrix repeats, for the choice of its compressed storage, in one pass over it.
//
// Four sets are collected, each of at most 256 keys, else given up: distances (column - row), values (their bits), and
// the hashes of rows, by distances alone (patterns) and with values (lines). For the latter two, the first row of each
// and its length are kept, which slim_rows (slim_fill.cu) then compares entry by entry: a hash decides nothing alone.
// Rows that are like the row above are passed over.
// A block collects into shared memory and adds to the sets of all when it is done; LANES threads a row read it in order.
// Rows longer than `longest` are left out; their numbers go to `long_rows`.
//
// Bytes a nonzero: value + 4. What is found does not depend on the order in which blocks finish, but for the slots.
//
// Constants: VALUE (values), OFFSET (offsets), THREADS (a multiple of 128), LANES (a power of two).
#include "slim.cuh"

typedef VALUE V;
typedef OFFSET I;

#define AT_ONCE 4

// Counters: keys of each set, whether a value needs its full width, and how many long rows there are.
enum : u32 { DISTANCES, NUMBERS, PATTERNS, LINES, FULL_WIDTH, LONG };

DEVICE bool narrow(f64 v) { return v == v && bits<u64>(f64(f32(v))) == bits<u64>(v); }
DEVICE bool narrow(f32) { return true; }
DEVICE bool narrow(c64 v) { return narrow(v.re) && narrow(v.im); }
DEVICE bool narrow(c32) { return true; }

// Whether a set still takes keys.
DEVICE bool open(const u32* count) { return *static_cast<const volatile u32*>(count) <= MOST; }

// Notes a row under its hash; whether it was new here, or the set is full.
DEVICE bool add(u64* keys, u32* first, u32* count, u16* taken, u64 key, u32 row) {
    if (*static_cast<volatile u32*>(count) > MOST) return true;
    const u32 slot = insert(keys, count, key, taken);
    if (slot == SLOTS) return true;
    const u32 before = static_cast<volatile u32*>(first)[slot];
    if (before > row) atomicMin(&first[slot], row);
    return before == ~0u;
}

// found: 4 sets of SLOTS keys, then first row << 32 | length for the slots of patterns and of lines, all with their bits turned over; then
// the counters, room for the totals of slim_sizes.cu and a word for what slim_fill.cu finds wrong, the slots of each set's keys in the order in
// which they came, MOST numbers of 16 bits, and behind them the long rows as row << 32 | length. Zero before.
extern "C" __global__ void __launch_bounds__(THREADS) survey(u64 rows, const I* offsets, const u32* columns, const V* values, u32 longest, u64* found) {
    u64* const keys = found;
    u64* const first_row = keys + 4 * SLOTS;
    u32* const counters = reinterpret_cast<u32*>(first_row + 2 * SLOTS);
    u16* const listed = reinterpret_cast<u16*>(first_row + 2 * SLOTS + 3 + 6 + 1);
    u64* const long_rows = reinterpret_cast<u64*>(listed + 4 * MOST);
    __shared__ u64 key[4][SLOTS];
    __shared__ u32 first[2][SLOTS];
    __shared__ u32 count[4];
    __shared__ u16 used[4][MOST];
    for (u32 i = threadIdx.x; i < 4 * SLOTS; i += THREADS) key[0][i] = 0;
    for (u32 i = threadIdx.x; i < 2 * SLOTS; i += THREADS) first[0][i] = ~0u;
    if (threadIdx.x < 4) count[threadIdx.x] = 0;
    __syncthreads();
    const u32 lane = threadIdx.x % LANES;
    u32 full = 0;
    V last = {};
    bool has_last = false;
    for (u64 base = u64(blockIdx.x) * (THREADS / LANES); base < rows; base += u64(gridDim.x) * (THREADS / LANES)) {
        const u64 row = base + threadIdx.x / LANES;
        const u64 start = row < rows ? offsets[row] : 0;
        const u64 entries = row < rows ? offsets[row + 1] - start : 0;
        const bool taken = row < rows && entries <= longest;
        if (row < rows && !taken && lane == 0) long_rows[atomicAdd(counters + LONG, 1u)] = row << 32 | entries;
        // A row like the one above brings nothing new: most rows of a grid, and to compare is cheaper than to hash.
        const Likeness like = taken ? likeness<LANES>(row, start, entries, offsets, columns, values) : Likeness{true, true};
        const bool same = all_lanes<LANES>(like.pattern), alike = all_lanes<LANES>(like.pattern && like.line);
        const bool hashes_pattern = !same && open(count + PATTERNS), hashes_line = !alike && open(count + LINES);
        const bool takes_values = open(count + NUMBERS);
        u64 pattern = 0, line = 0;
        // Where rows are hashed no more, and values are not looked at below, one that needs its full width is all there is to find.
        if (!alike && (hashes_pattern || hashes_line || (!full && !takes_values)))
#pragma unroll 4
            for (u32 k = lane; k < entries; k += LANES) {
                const V value = values[start + k];
                full |= !narrow(value);
                if (!hashes_pattern && !hashes_line) continue;
                const EntryHash<V> hash(k, columns[start + k] - u32(row), value);
                pattern += hash.pattern;
                line += hash.line;
            }
        __syncwarp();
#pragma unroll
        for (u32 with = LANES / 2; with; with /= 2) {
            pattern += shuffle_xor(pattern, with);
            line += shuffle_xor(line, with);
        }
        bool new_pattern = !same, new_line = !alike;
        if (lane == 0) {
            if (hashes_pattern) new_pattern = add(key[PATTERNS], first[0], count + PATTERNS, used[PATTERNS], row_key(pattern, u32(entries)), u32(row));
            if (hashes_line) new_line = add(key[LINES], first[1], count + LINES, used[LINES], row_key(line, u32(entries)), u32(row));
        }
        // What a row like it brought in is there already. Should two rows share a hash and differ, slim_fill tells.
        new_pattern = __shfl_sync(ALL, new_pattern, 0, LANES) && open(count + DISTANCES);
        new_line = __shfl_sync(ALL, new_line, 0, LANES) && takes_values;
        // Several entries are loaded at once, for those of a long row would come one after the other.
        if (new_pattern || new_line)
            for (u32 first = lane; first < entries; first += AT_ONCE * LANES) {
                u32 column[AT_ONCE];
                V value[AT_ONCE];
#pragma unroll
                for (u32 j = 0; j < AT_ONCE; j++) {
                    const u64 at = start + min(first + j * LANES, u32(entries) - 1);
                    column[j] = columns[at];
                    value[j] = values[at];
                }
#pragma unroll
                for (u32 j = 0; j < AT_ONCE; j++) {
                    if (first + j * LANES >= entries) break;
                    if (new_pattern) insert(key[DISTANCES], count + DISTANCES, column[j] - u32(row), used[DISTANCES]);
                    // Many values are the one before.
                    if (!new_line || (has_last && same_bits(last, value[j]))) continue;
                    full |= !narrow(value[j]);
                    insert(key[NUMBERS], count + NUMBERS, key_of(value[j]), used[NUMBERS]);
                    last = value[j];
                    has_last = true;
                }
            }
        __syncwarp();
    }
    // Once a block: stores to one word queue up.
    if (__syncthreads_or(full) && threadIdx.x == 0) counters[FULL_WIDTH] = 1;
    // A warp takes keys of one set, side by side: blocks come all at once, and each load of a set's count is one for 32 keys.
    const u32 set = threadIdx.x / 32 % 4, have = count[set];
    if (have > MOST) {
        if (threadIdx.x < 4 * 32 && lane_id() == 0) atomicMax(counters + set, MOST + 1);
        return;
    }
    for (u32 n = threadIdx.x / (4 * 32) * 32 + lane_id(); n < have; n += THREADS / 4) {
        const u32 at = used[set][n], slot = insert(keys + set * SLOTS, counters + set, ~key[set][at], listed + set * MOST);
        if (set < PATTERNS || slot == SLOTS) continue;
        const u32 row = first[set - PATTERNS][at];
        atomicMax(first_row + (set - PATTERNS) * SLOTS + slot, ~(u64(row) << 32 | u32(offsets[row + 1] - offsets[row])));
    }
}
