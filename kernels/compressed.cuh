// Definitions for all kernels of the compressed format: how columns and values are stored, and sets of few keys.
#pragma once
#include "mixing.cuh"
#include "complex.cuh"

#define COMPRESSED_KINDS 0
#define COMPRESSED_CODES 1
#define COMPRESSED_WIDE 2
#define COMPRESSED_STORED 3
// All values are equal to one, and are not read.
#define COMPRESSED_ONE 4

// Rows of a window, within which rows may be ordered by length.
#define WINDOW 256

// The row at a place; `order` has the number of each row within its window, and is null if rows keep their order.
DEVICE u64 row_at(const u8* order, u64 place) { return order ? place / WINDOW * WINDOW + order[place] : place; }

// Column codes of 16 bits: the upper two choose one of a section's four bases, which is added to the code and the row.
// 65535 is no entry. If the section's distances (column - row) are within 65535 of each other, all four bases are the
// smallest. Otherwise there is a base for each of up to four ranges of RANGE distances: the start of the range, minus
// 16384 for each range before it.
#define BASES 4
#define RANGE 16383

DEVICE bool is_near(uint4 bases) { return bases.x == bases.y && bases.x == bases.z && bases.x == bases.w; }
DEVICE u32 base_of(uint4 bases, u32 code) {
    const u32 low = code & 0x4000 ? bases.y : bases.x, high = code & 0x4000 ? bases.w : bases.z;
    return code & 0x8000 ? high : low;
}
// The code with the first base that applies; bases of unused ranges come last.
DEVICE u32 code_of(uint4 bases, u32 distance) {
    const u32 base[BASES] = {bases.x, bases.y, bases.z, bases.w};
    u32 code = 65535;
#pragma unroll
    for (u32 b = BASES; b-- > 0;)
        if ((distance - base[b]) >> 14 == b) code = distance - base[b];
    return code;
}

// Converts a stored value to the matrix's type, if that is wider.
template <typename To, typename A> DEVICE To widened(A a) {
    if constexpr (same<A, To>::value) return a;
    else if constexpr (is_complex<A>::value) return To{a.re, a.im};
    else return To(a);
}

// ---- sets of few keys: open addressing, SLOTS slots, at most 256 keys are kept -------------------------------------

#define SLOTS 1024
#define MOST 256
#define EMPTY (~0ull)

// Computed in 32-bit steps, a few for each entry of the matrix.
DEVICE u32 slot_of(u64 key) {
    const u32 both = u32(key) * 0x9e3779b1u + u32(key >> 32) * 0x85ebca77u;
    return (both ^ both >> 16) * 0xc2b2ae3du >> 22;
}
static_assert(SLOTS == 1 << (32 - 22), "a slot is the upper bits");

// Returns the slot of a key, and inserts the key if it is new; SLOTS if there are more than MOST keys, which makes the
// set useless. Many blocks may insert at the same time and fill the set before any of them notices. The count is read
// at each step, so that they do not search through a full set. Slots hold inverted keys, so that zero is a free one.
// `taken` lists the slots in the order of insertion.
DEVICE u32 insert(volatile u64* slots, u32* count, u64 key, u16* taken) {
    if (key == EMPTY) atomicMax(count, MOST + 1);
#pragma unroll 1
    for (u32 slot = slot_of(key), probes = 0; probes < SLOTS; slot = (slot + 1) & (SLOTS - 1), probes++) {
        // Both loads are in flight at the same time.
        u64 found = slots[slot];
        const u32 have = *static_cast<volatile u32*>(count);
        if (found == ~key) return slot;
        if (have > MOST) return SLOTS;
        if (found != 0) continue;
        found = atomicCAS(const_cast<u64*>(slots + slot), 0, ~key);
        if (found == ~key) return slot;
        if (found != 0) continue;
        const u32 number = atomicAdd(count, 1u);
        if (number >= MOST) return SLOTS;
        taken[number] = u16(slot);
        return slot;
    }
    return SLOTS;
}

// Returns the slot of a key in the set; SLOTS if it is not there.
DEVICE u32 find(const u64* slots, u64 key) {
#pragma unroll 1
    for (u32 slot = slot_of(key), probes = 0; probes < SLOTS; slot = (slot + 1) & (SLOTS - 1), probes++) {
        if (slots[slot] == ~key) return slot;
        if (slots[slot] == 0) break;
    }
    return SLOTS;
}

// A value as a key; not available for values of sixteen bytes.
template <typename A> DEVICE u64 key_of(A a) {
    if constexpr (sizeof(A) == 4) return bits<u32>(a);
    else if constexpr (sizeof(A) == 8) return bits<u64>(a);
    else return EMPTY;
}
template <typename A> DEVICE bool same_bits(A a, A b) {
    if constexpr (sizeof(A) <= 8) return key_of(a) == key_of(b);
    else return bits<u128>(a).low == bits<u128>(b).low && bits<u128>(a).high == bits<u128>(b).high;
}

// ---- hashes of rows: sums over the entries, in any order. In 32-bit steps, which cost a quarter of 64-bit ones -----

struct Mix {
    u32 a, b;
    DEVICE void add(u32 word) {
        a = (a ^ word) * 0x85ebca77u;
        a ^= a >> 15;
        b = (b + a) * 0xc2b2ae3du;
        b ^= b >> 13;
    }
    DEVICE u64 value() const { return u64(a) * b + a; }
};
template <typename A> struct EntryHash {
    u64 pattern, line;
    DEVICE EntryHash(u32 k, u32 distance, A value) {
        Mix mix = {k * 0x9e3779b1u + 1, k};
        mix.add(distance);
        pattern = mix.value();
        const words_of<A> words = split(value);
#pragma unroll
        for (u32 word : words.word) mix.add(word);
        line = mix.value();
    }
};
DEVICE u64 row_key(u64 hash, u32 length) {
    const u64 key = mixed(hash + length);
    return key == EMPTY ? 0 : key;
}

// ---- rows like the row above, as nearly all rows of a grid are -----------------------------------------------------

struct Likeness {
    bool pattern, line;
};

// Compares the distances and values of a row with those of the row above, in the entries of this lane, which is one of
// LANES_A_ROW. If the row above has the same length, it starts `length` entries earlier, so its entries are loaded
// together with its offset, several at a time.
template <u32 LANES_A_ROW, bool VALUES_TOO, typename I, typename A>
DEVICE Likeness likeness(u64 row, u64 start, u32 length, const I* offsets, const u32* columns, const A* values) {
    constexpr u32 AT_ONCE = 2;
    if (row == 0 || start < length) return {false, false};
    const u64 above = offsets[row - 1];
    Likeness like = {true, true};
    const u32 *of_row = columns + start, *of_above = of_row - length;
    const A *its = values + start, *others = its - length;
    for (u32 first = threadIdx.x % LANES_A_ROW; like.pattern && first < length; first += AT_ONCE * LANES_A_ROW) {
        u32 column[AT_ONCE], other_column[AT_ONCE];
        A value[AT_ONCE], other_value[AT_ONCE];
#pragma unroll
        for (u32 j = 0; j < AT_ONCE; j++) {
            const u32 at = min(first + j * LANES_A_ROW, length - 1);
            column[j] = of_row[at], other_column[j] = of_above[at];
            if (VALUES_TOO) value[j] = its[at], other_value[j] = others[at];
        }
#pragma unroll
        for (u32 j = 0; j < AT_ONCE; j++) {
            like.pattern &= column[j] - other_column[j] == 1;
            if (VALUES_TOO) like.line &= same_bits(value[j], other_value[j]);
        }
    }
    like.pattern &= start - above == length;
    return like;
}

// Returns whether `mine` is true in all lanes of a row. The whole warp must call it.
template <u32 LANES_A_ROW> DEVICE bool all_lanes(bool mine) {
    const u32 first = lane_id() / LANES_A_ROW * LANES_A_ROW;
    const u32 row = (LANES_A_ROW == 32 ? ALL : (1u << LANES_A_ROW) - 1) << first;
    return (__ballot_sync(ALL, mine) & row) == row;
}
