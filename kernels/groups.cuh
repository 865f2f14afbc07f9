// Groups of nodes, and what becomes of a row of A where weak couplings are left out.
#pragma once
#include "scalars.cuh"

// In no group.
constexpr u32 NO_GROUP = 0xffffffffu;
// The part of a diagonal that has to be left once weak couplings are added to it.
constexpr f64 SMALLEST_LUMPED = 0.3;

// A diagonal with the weak couplings of its row, unless too little of it would be left.
template <typename T> DEVICE T with_lumped(T diagonal, T lumped) {
    const T whole = diagonal + lumped;
    return real_part(whole) >= typename real_of<T>::type(SMALLEST_LUMPED) * real_part(diagonal) ? whole : diagonal;
}
