// Products of sparse matrices, C = A B, where rows of A have few entries: a thread takes a row of C, and merges rows of
// B.
//
//     A  | 1 . 7 . |   row 0 of C = A A merges row 0 of A, times 1, and row 2, times 7:
//        | . . 8 . |     columns  0: 1 2   2: 3    the least of 0 and 1 is 0:  C has 1*1 there, and row 0 goes on
//        | . 4 3 . |              2: 7     1: 4    the least of 2 and 1 is 1:  7*4, and row 2 goes on
//        | 2 . . 1 |              2: 7     2: 3    2:  1*7 + 7*3, and both are at their ends
//
// The position in each row of B, its column and its value are in registers. The columns of C are produced in ascending
// order, and products of an entry are added one by one in the order of A's row, as on the host. A row of C with n
// entries takes RUNS n steps, whatever the number of its products.
//
// Source: Gustavson, ACM TOMS 4 (1978); Gremse, Hofter, Schwen, Kiessling and Naumann, SIAM J. Sci. Comput. 37 (2015)
// (rows merged).
//
// Lanes of a warp have neighbouring rows of C, so this suits matrices whose neighbouring rows need neighbouring rows of
// B.
//
// Constants: OFFSET (of A and B), RUNS (maximum number of entries of a row of A).
#pragma once
#include "entry_of.cuh"

typedef OFFSET I;

// Greater than every column.
constexpr u32 BEHIND = 0xffffffffu;

// The rows of B for a row of C: their current positions and their ends.
template <typename V> struct Runs {
    I at[RUNS], end[RUNS];
    V factor[RUNS];
};

template <typename V>
DEVICE Runs<V> runs_of(u64 row, const I* a_offsets, const u32* a_columns, const V* a_values, const I* b_offsets) {
    Runs<V> runs;
    const u64 begin = a_offsets[row], end = a_offsets[row + 1];
#pragma unroll
    for (u32 r = 0; r < RUNS; r++) {
        const bool there = begin + r < end;
        const u64 k = there ? a_columns[begin + r] : 0;
        runs.at[r] = there ? b_offsets[k] : 0;
        runs.end[r] = there ? b_offsets[k + 1] : 0;
        runs.factor[r] = there ? value_of(a_values, begin + r) : V();
    }
    return runs;
}

// `put` gets each column, in ascending order, and its sum. Returns the number of columns.
template <typename V, typename Put>
DEVICE u32 merge(Runs<V> runs, const u32* b_columns, const V* b_values, Put put) {
    EntryOf<V> head[RUNS];
    const auto next = [&](u32 r) {
        head[r].column = BEHIND;
        if (runs.at[r] < runs.end[r]) head[r] = entry_of(b_columns, b_values, runs.at[r]++);
    };
#pragma unroll
    for (u32 r = 0; r < RUNS; r++) next(r);
    u32 length = 0;
    for (;; length++) {
        u32 least = head[0].column;
#pragma unroll
        for (u32 r = 1; r < RUNS; r++) least = min(least, head[r].column);
        if (least == BEHIND) return length;
        V sum = V();
#pragma unroll
        for (u32 r = 0; r < RUNS; r++)
            if (head[r].column == least) {
                sum = sum + runs.factor[r] * head[r].value;
                next(r);
            }
        put(length, least, sum);
    }
}
