// Entries of a row by their columns, which ascend.
#pragma once
#include "common.cuh"

// The first of the entries at .. end that is in this column or behind it; `end` where there is none.
template <typename N, typename C> DEVICE N first_from(const u32* columns, N at, N end, C column) {
    while (at < end) {
        const N middle = at + (end - at) / 2;
        if (C(columns[middle]) < column) at = middle + 1;
        else end = middle;
    }
    return at;
}
