// Comparisons of neighbouring keys.
//
// Constants: KEY, THREADS.
#include "common.cuh"

typedef KEY K;
#define EACH(i, n) for (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < (n); i += u64(gridDim.x) * THREADS)

// *wrong becomes 1 if a key is smaller than its left neighbour or, if `strictly`, equal to it. A warp writes that once
// and stops, because stores to one word are serialised.
extern "C" __global__ void __launch_bounds__(THREADS) is_sorted(const K* keys, u64 n, u32 strictly, u32* wrong) {
    bool found = false;
    EACH(i, n) {
        if (i == 0) continue;
        const auto a = key_bits<K>::to(keys[i - 1]), b = key_bits<K>::to(keys[i]);
        found = strictly ? b <= a : b < a;
        if (found) break;
    }
    if (__any_sync(ALL, found) && lane_id() == 0) *wrong = 1;
}

// heads[i] = 1 if a run of equal keys starts at i.
extern "C" __global__ void __launch_bounds__(THREADS) run_heads(const K* keys, u64 n, u8* heads) {
    EACH(i, n) heads[i] = i == 0 || !same_key(keys[i - 1], keys[i]);
}
