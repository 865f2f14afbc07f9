// The value for lengths of rows of a product that are not known yet.
#pragma once
#include "common.cuh"

// A length that no row has: matrices with this many columns are not passed to these kernels.
constexpr u32 UNKNOWN = 0xffffffffu;
