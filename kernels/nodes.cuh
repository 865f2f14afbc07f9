// Definitions for steps over nodes, where a thread takes one node at a time.
//
// Constants: THREADS.
#pragma once
#include "groups.cuh"

#define EACH(i, n) for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < (n); i += u64(gridDim.x) * THREADS)
