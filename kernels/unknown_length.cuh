// Lengths of rows of a product that are not known yet.
#pragma once
#include "common.cuh"

// A length that no row has: a matrix with so many columns does not get here.
constexpr u32 UNKNOWN = 0xffffffffu;
