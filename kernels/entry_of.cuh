// Entries of a sparse matrix as a kernel reads them: a column and a value, or only a column.
#pragma once
#include "complex.cuh"

// Takes the place of values if only columns are needed.
struct Nothing {};

DEVICE Nothing operator*(Nothing, Nothing) { return {}; }
DEVICE Nothing operator+(Nothing, Nothing) { return {}; }

template <typename V> struct EntryOf {
    u32 column;
    V value;
};

template <typename I> DEVICE EntryOf<Nothing> entry_of(const u32* columns, const Nothing*, I at) {
    return {columns[at], Nothing()};
}
template <typename V, typename I> DEVICE EntryOf<V> entry_of(const u32* columns, const V* values, I at) {
    return {columns[at], values[at]};
}
DEVICE Nothing value_of(const Nothing*, u64) { return Nothing(); }
template <typename V> DEVICE V value_of(const V* values, u64 at) { return values[at]; }
