// Greedy colours and maximal independent sets in the order of hashed priorities. A vertex is decided once all
// neighbours with higher priority are, and the decision depends on these alone, so that neither the number of rounds
// nor timing changes the result: it is that of the sequential algorithm. Sources: Jones and Plassmann 1993; Blelloch,
// Fineman and Shun 2012.
//
// Constants: OFFSET, THREADS.
#include "common.cuh"

typedef OFFSET I;
#define OPEN 0xffffffffu

// The priority of a vertex: a bijective hash of its number.
DEVICE u32 priority(u32 v) {
    v ^= v >> 16;
    v *= 0x7feb352d;
    v ^= v >> 15;
    v *= 0x846ca68b;
    return v ^ v >> 16;
}

// colours, initially all OPEN: the smallest colour that no neighbour with higher priority has. *left counts the
// vertices that stay open.
extern "C" __global__ void __launch_bounds__(THREADS) colour(u32 n, const I* offsets, const u32* indices, u32* colours, u32* left) {
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < n; i += u64(gridDim.x) * THREADS) {
        const u32 v = u32(i);
        if (__ldcg(colours + v) != OPEN) continue;
        const u32 own = priority(v);
        const u64 begin = offsets[v], end = offsets[i + 1];
        bool ready = true;
        u32 colour = OPEN;
        for (u32 window = 0; ready && colour == OPEN; window += 64) {
            u64 taken = 0;
            for (u64 k = begin; k < end && ready; k++) {
                const u32 w = indices[k];
                if (w == v || priority(w) < own) continue;
                const u32 other = __ldcg(colours + w);
                ready = other != OPEN;
                if (other - window < 64) taken |= u64(1) << (other - window);
            }
            if (~taken) colour = window + __ffsll(~taken) - 1;
        }
        if (ready) __stcg(colours + v, colour);
        else atomicAdd(left, 1);
    }
}

// set, initially all OPEN: 1 if no neighbour with higher priority is 1, else 0.
extern "C" __global__ void __launch_bounds__(THREADS) independent(u32 n, const I* offsets, const u32* indices, u32* set, u32* left) {
    for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < n; i += u64(gridDim.x) * THREADS) {
        const u32 v = u32(i);
        if (__ldcg(set + v) != OPEN) continue;
        const u32 own = priority(v);
        bool ready = true, taken = false;
        for (u64 k = offsets[v], end = offsets[i + 1]; k < end && !taken; k++) {
            const u32 w = indices[k];
            if (w == v || priority(w) < own) continue;
            const u32 other = __ldcg(set + w);
            ready &= other != OPEN;
            taken = other == 1;
        }
        if (taken) __stcg(set + v, 0u);
        else if (ready) __stcg(set + v, 1u);
        else atomicAdd(left, 1);
    }
}
