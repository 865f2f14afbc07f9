// The value for lengths of rows of a product that are not known yet.
#pragma once
#include "common.cuh"

// A length that no row has: a matrix with as many columns is not passed to these kernels.
constexpr u32 UNKNOWN = 0xffffffffu;
