// Binary search by column in the ascending entries of a row.
#pragma once
#include "common.cuh"

// Returns the first of the entries at .. end whose column is not less than `column`; `end` if there is none.
template <typename N, typename C> DEVICE N first_from(const u32* columns, N at, N end, C column) {
    while (at < end) {
        const N middle = at + (end - at) / 2;
        if (C(columns[middle]) < column) at = middle + 1;
        else end = middle;
    }
    return at;
}
