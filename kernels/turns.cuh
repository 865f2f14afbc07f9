// Warps of a block that take turns, around and around, at something of which the order counts, and do all else at any time.
//
// A warp waits at the barrier of its number, which the warp before it reaches without waiting. What a warp wrote to memory before it
// passed the turn, and its atomics, come before those of the next. There are 16 barriers: no more warps than that, and
// no __syncthreads (barrier 0) between the first turn and the last.
#pragma once
#include "common.cuh"

DEVICE void wait_turn(u32 warp) { asm volatile("bar.sync %0, 64;" ::"r"(warp) : "memory"); }
DEVICE void pass_turn(u32 next) { asm volatile("bar.arrive %0, 64;" ::"r"(next) : "memory"); }
