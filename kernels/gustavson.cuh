// The products of rows of C = A B, one row of B for each entry of A's row.
//
//     A  | 1 . 7 . |   row 0 of C = A A:  row 0 of A times 1, then row 2 times 7:  1*1 in column 0 and 1*7 in 2,
//        | . . 8 . |   then 7*4 in column 1 and 7*3 in 2.
//        | . 4 3 . |
//        | 2 . . 1 |
//
// GROUP lanes take a row of C, so that a warp has several. Entries of A's row come one after the other, and the lanes
// share B's row out, with the loads for AHEAD entries under way. All lanes of a warp meet before the next entry: B's
// row has a column once, so that no two of the lanes of a row of C are told of the same column at a time.
//
// Source: Gustavson, ACM TOMS 4 (1978).
//
// Constants: OFFSET (of A and B), GROUP (lanes a row).
#pragma once
#include "entry_of.cuh"
#include "lanes_of_row.cuh"

typedef OFFSET I;

constexpr u32 AHEAD = 4;

// A row of C, whose `length` entries lie from `place` on, and the entries begin .. end of A's row.
struct ProductRow {
    u64 place, begin, end;
    u32 length;
};

// That of number i of the listed rows, or of all: empty beyond the last, for all lanes of a warp stay together.
template <typename J>
DEVICE ProductRow product_row(u64 i, u64 count, u32 listed, const u32* rows, const I* a_offsets, const J* offsets) {
    // By selections, so that the lanes stay together.
    const bool there = i < count;
    const u64 row = there ? listed ? u64(rows[i]) : i : 0, place = there ? u64(offsets[row]) : 0;
    const u32 length = there ? u32(offsets[row + 1] - place) : 0;
    return ProductRow{place, length ? u64(a_offsets[row]) : 0, length ? u64(a_offsets[row + 1]) : 0, length};
}

DEVICE Nothing from_lane(Nothing value, u32) { return value; }

// For the entries begin .. end of A, `use` is told the factor from A and an entry of B, and whether this lane has one:
// all lanes of a warp are there. `goes_on` is asked of every lane after each GROUP entries, and ends a row where one of
// its lanes says no.
template <typename V, typename Use, typename GoesOn>
DEVICE void each_product(u64 begin, u64 end, const u32* a_columns, const V* a_values, const I* b_offsets,
                         const u32* b_columns, const V* b_values, Use use, GoesOn goes_on) {
    const u32 lane = lane_id() % GROUP;
    for (u64 tile = begin; __any_sync(ALL, tile < end); tile += GROUP) {
        // Each lane asks for an entry of A and where B's row lies.
        I from = 0;
        u32 length = 0;
        V own = V();
        if (tile + lane < end) {
            const u64 k = a_columns[tile + lane];
            from = b_offsets[k];
            length = u32(b_offsets[k + 1] - from);
            own = value_of(a_values, tile + lane);
        }
        const u32 entries = most_of_lanes(tile < end ? u32(min(u64(GROUP), end - tile)) : 0u);
        const u32 longest = most_of_lanes(length);
        for (u32 e = 0; e < entries; e += AHEAD) {
            I first[AHEAD];
            u32 of_row[AHEAD];
            EntryOf<V> entry[AHEAD];
#pragma unroll
            for (u32 u = 0; u < AHEAD; u++) {
                first[u] = from_lane(from, e + u) + lane;
                of_row[u] = __shfl_sync(ALL, length, e + u, GROUP);
                entry[u] = EntryOf<V>();
                if (lane < of_row[u]) entry[u] = entry_of(b_columns, b_values, first[u]);
            }
#pragma unroll
            for (u32 u = 0; u < AHEAD; u++) {
                const V factor = from_lane(own, e + u);
                use(lane < of_row[u], factor, entry[u]);
                for (u32 j = GROUP; j < longest; j += GROUP) {
                    EntryOf<V> further = EntryOf<V>();
                    const bool has = j + lane < of_row[u];
                    if (has) further = entry_of(b_columns, b_values, I(first[u] + j));
                    use(has, factor, further);
                }
                __syncwarp();
            }
        }
        if (votes_of_row(!goes_on())) end = begin;
    }
}
