// Data exchange between the GROUP lanes of a warp that share a row. All lanes of the warp must take part.
//
// Constants: GROUP (a power of two).
#pragma once
#include "common.cuh"

// One bit for each lane of the row.
DEVICE u32 votes_of_row(bool vote) {
    const u32 votes = __ballot_sync(ALL, vote);
    return GROUP == 32 ? votes : votes >> (lane_id() / GROUP * GROUP) & ((1u << (GROUP & 31)) - 1);
}

// The value of a lane of the row.
template <typename A> DEVICE A from_lane(A value, u32 lane) {
    return each_word(value, [=](u32 word) { return __shfl_sync(ALL, word, lane, GROUP); });
}
