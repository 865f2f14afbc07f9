// Groups of nodes, and the diagonal of a row of A without weak couplings.
#pragma once
#include "scalars.cuh"

// The value for a node in no group.
constexpr u32 NO_GROUP = 0xffffffffu;
// The part of a diagonal that must be left after weak couplings are added to it.
constexpr f64 SMALLEST_LUMPED = 0.3;

// A diagonal plus the weak couplings of its row, unless too little of it would be left.
template <typename T> DEVICE T with_lumped(T diagonal, T lumped) {
    const T whole = diagonal + lumped;
    return real_part(whole) >= typename real_of<T>::type(SMALLEST_LUMPED) * real_part(diagonal) ? whole : diagonal;
}
