// The products of rows of C = A B, with one row of B for each entry of A's row.
//
//     A  | 1 . 7 . |   row 0 of C = A A:  row 0 of A times 1, then row 2 times 7:  1*1 in column 0 and 1*7 in 2,
//        | . . 8 . |   then 7*4 in column 1 and 7*3 in 2.
//        | . 4 3 . |
//        | 2 . . 1 |
//
// GROUP lanes take a row of C, so a warp has several. Entries of A's row are taken one after another, and the lanes
// share B's row, with the loads for AHEAD entries in flight. All lanes of a warp synchronise before the next entry: a
// row of B has each column once, so no two lanes of a row of C get the same column at a time.
//
// Source: Gustavson, ACM TOMS 4 (1978).
//
// Constants: OFFSET (of A and B), GROUP (lanes per row).
#pragma once
#include "entry_of.cuh"
#include "lanes_of_row.cuh"

typedef OFFSET I;

constexpr u32 AHEAD = 4;

// A row of C, whose `length` entries are stored from `place` on, and the entries begin .. end of A's row.
struct ProductRow {
    u64 place, begin, end;
    u32 length;
};

// Row number i of the listed rows, or of all; empty beyond the last, because all lanes of a warp stay together.
template <typename J>
DEVICE ProductRow product_row(u64 i, u64 count, u32 listed, const u32* rows, const I* a_offsets, const J* offsets) {
    // Selections instead of branches, so that the lanes stay together.
    const bool there = i < count;
    const u64 row = there ? listed ? u64(rows[i]) : i : 0, place = there ? u64(offsets[row]) : 0;
    const u32 length = there ? u32(offsets[row + 1] - place) : 0;
    return ProductRow{place, length ? u64(a_offsets[row]) : 0, length ? u64(a_offsets[row + 1]) : 0, length};
}

DEVICE Nothing from_lane(Nothing value, u32) { return value; }

// For the entries begin .. end of A, `use` gets the factor from A and an entry of B, and whether this lane has one; all
// lanes of a warp call it. `goes_on` is called by every lane after each GROUP entries, and the row ends if it returns
// false in one of its lanes.
template <typename V, typename Use, typename GoesOn>
DEVICE void each_product(u64 begin, u64 end, const u32* a_columns, const V* a_values, const I* b_offsets,
                         const u32* b_columns, const V* b_values, Use use, GoesOn goes_on) {
    const u32 lane = lane_id() % GROUP;
    for (u64 tile = begin; __any_sync(ALL, tile < end); tile += GROUP) {
        // Each lane loads an entry of A and the range of B's row.
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
