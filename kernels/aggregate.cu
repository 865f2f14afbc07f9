// Groups of nodes of a graph in compressed rows: independent sets at distance two, aggregates, and pairs of nodes that
// prefer each other. src/backend/coarsen.rs describes each step. One thread takes one node.
//
// In every step a node reads only what other nodes were before the step, so that neither the order of blocks nor the
// chip changes the results. All sums are of integers.
//
// Sources: Kelley and Rajamanickam, IPDPS 2022 (independent sets); Vanek, Mandel and Brezina, Computing 56 (1996).
//
// Constants: OFFSET (of the graph), MOST_OF_BLOCK (maximum number of unknowns of a block), LANES (per node, in kernels
// where several lanes take a node), THREADS.
#include "mixing.cuh"
#include "nodes.cuh"

typedef OFFSET I;

constexpr u64 MEMBER = 0, NOT_ASKED = 1, OUT = ~0ull;
constexpr f32 ALIKE = 1e-5f;

DEVICE u64 priority(u64 node, u64 round) {
    const u64 random = mixed(mixed(node) + round * 0x9e3779b97f4a7c15ull);
    return (((random >> 33) + 1) << 32) | node;
}

// Adds the counts of a block's threads to a counter.
DEVICE void add_counts(u32 count, u32* all) {
    count = warp_sum(count);
    if (lane_id() == 0 && count) atomicAdd(all, count);
}

extern "C" __global__ void __launch_bounds__(THREADS) ungrouped(u64 n, const I* offsets, const u32* group, u32* flags) {
    EACH(i, n + 1) flags[i] = i < n && group[i] == NO_GROUP && offsets[i] < offsets[i + 1];
}

extern "C" __global__ void __launch_bounds__(THREADS)
    independent_start(u64 n, const u32* flags, u64* state, u64* smallest) {
    EACH(i, n) {
        state[i] = flags[i] ? priority(i, 0) : OUT;
        smallest[i] = flags[i] ? MEMBER : NOT_ASKED;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    independent_least(u64 n, const I* offsets, const u32* columns, const u64* state, u64* smallest) {
    EACH(i, n) {
        if (smallest[i] == OUT || smallest[i] == NOT_ASKED) continue;
        u64 least = state[i];
        for (u64 at = offsets[i]; at < offsets[i + 1]; at++) least = min(least, state[columns[at]]);
        smallest[i] = least == MEMBER ? OUT : least;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    independent_decide(u64 n, const I* offsets, const u32* columns, const u64* smallest, u64 round, u64* state,
                       u32* undecided) {
    u32 left = 0;
    EACH(i, n) {
        const u64 own = state[i];
        if (own == MEMBER || own == OUT) continue;
        bool out = smallest[i] == OUT, least = smallest[i] == own;
        for (u64 at = offsets[i]; at < offsets[i + 1]; at++) {
            const u64 beside = smallest[columns[at]];
            if (beside == NOT_ASKED) continue;
            out |= beside == OUT;
            least &= beside == own;
        }
        state[i] = out ? OUT : least ? MEMBER : priority(i, round);
        left += !out && !least;
    }
    add_counts(left, undecided);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    group_roots(u64 n, const I* offsets, const u32* columns, const u32* group, const u64* state, u32 least, u32* flags) {
    EACH(i, n + 1) {
        bool root = i < n && state[i] == MEMBER;
        if (root && least) {
            u32 free = 0;
            for (u64 at = offsets[i]; at < offsets[i + 1]; at++) free += group[columns[at]] == NO_GROUP;
            root = free >= least;
        }
        flags[i] = root;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    gather_groups(u64 n, const I* offsets, const u32* columns, const u32* flags, const u32* places, u32 first, u32* group) {
    EACH(i, n) {
        if (flags[i]) group[i] = first + places[i];
        else if (group[i] == NO_GROUP)
            for (u64 at = offsets[i]; at < offsets[i + 1]; at++)
                if (flags[columns[at]]) {
                    group[i] = first + places[columns[at]];
                    break;
                }
    }
}

// Requires: sizes is zero.
extern "C" __global__ void __launch_bounds__(THREADS)
    group_sizes(u64 n, const u32* group, const u32* weights, u64 groups, u32* sizes) {
    u32 all = 0;
    EACH(i, n) {
        if (group[i] == NO_GROUP) continue;
        const u32 weight = weights ? weights[i] : 1;
        atomicAdd(sizes + group[i], weight);
        all += weight;
    }
    add_counts(all, sizes + groups);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    join_groups(u64 n, const I* offsets, const u32* columns, const f32* weights, const u32* before, u64 groups,
                const u32* sizes, u32* group) {
    const u64 twice = 2 * u64(sizes[groups]), most = groups ? (twice + groups - 1) / groups : twice;
    EACH(i, n) {
        if (group[i] != NO_GROUP) continue;
        const u64 begin = offsets[i], end = offsets[i + 1];
        u32 best = NO_GROUP;
        f32 best_weight = 0;
        bool best_full = true;
        for (u64 at = begin; at < end; at++) {
            if (columns[at] == i) continue;
            const u32 candidate = before[columns[at]];
            if (candidate == NO_GROUP) continue;
            bool seen = false;
            for (u64 k = begin; k < at && !seen; k++) seen = columns[k] != i && before[columns[k]] == candidate;
            if (seen) continue;
            f32 weight = 0;
            for (u64 k = at; k < end; k++)
                if (columns[k] != i && before[columns[k]] == candidate) weight += weights[k];
            const u32 size = sizes[candidate];
            const bool full = size >= most;
            const bool better =
                best == NO_GROUP || (best_full && !full) ||
                (best_full == full && (weight > best_weight * (1 + ALIKE) ||
                                       (weight >= best_weight * (1 - ALIKE) && size < sizes[best])));
            if (better) {
                best = candidate;
                best_weight = weight;
                best_full = full;
            }
        }
        group[i] = best;
    }
}

// LANES lanes take a node: they read neighbouring entries of its row, so that nodes with long rows don't keep others
// waiting. Of two neighbours that are preferred equally, the first is taken.
extern "C" __global__ void __launch_bounds__(THREADS)
    preferred_partners(u64 n, const I* offsets, const u32* columns, const f32* weights, const u32* sizes,
                       const u32* partner, u64 round, u32* best) {
    const u64 of_round = mixed(round);
    const u32 lane = lane_id() % LANES, mask = ((1u << LANES) - 1) << (lane_id() / LANES * LANES);
    EACH(thread, n * LANES) {
        const u64 i = thread / LANES;
        u32 found = NO_GROUP;
        u64 most = 0;
        if (partner[i] == NO_GROUP)
            for (u64 at = offsets[i] + lane; at < offsets[i + 1]; at += LANES) {
                const u64 j = columns[at];
                if (j == i || !(weights[at] > 0) || partner[j] != NO_GROUP || sizes[i] + sizes[j] > MOST_OF_BLOCK) continue;
                const u64 random = mixed(((min(u64(i), j) << 32) | max(u64(i), j)) ^ of_round);
                const u64 preference = (u64(bits<u32>(weights[at]) >> 23) << 48) | (random >> 16);
                if (preference > most) {
                    most = preference;
                    found = u32(j);
                }
            }
#pragma unroll
        for (u32 with = LANES / 2; with; with /= 2) {
            const u64 more = __shfl_xor_sync(mask, most, with);
            const u32 other = __shfl_xor_sync(mask, found, with);
            if (more > most || (more == most && other < found)) {
                most = more;
                found = other;
            }
        }
        if (lane == 0) best[i] = found;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) agree(u64 n, const u32* best, u32* partner, u32* found) {
    u32 count = 0;
    EACH(i, n)
        if (best[i] != NO_GROUP && best[best[i]] == i) {
            partner[i] = best[i];
            count++;
        }
    add_counts(count, found);
}

extern "C" __global__ void __launch_bounds__(THREADS) pair_groups(u64 n, const u32* partner, u32* group) {
    EACH(i, n) group[i] = partner[i] == NO_GROUP ? NO_GROUP : min(u32(i), partner[i]);
}

extern "C" __global__ void __launch_bounds__(THREADS) lead_groups(u64 n, u32* group, u32* flags) {
    EACH(i, n + 1) {
        if (i < n && group[i] == NO_GROUP) group[i] = u32(i);
        flags[i] = i < n && group[i] == i;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    bid_for_groups(u64 n, const I* offsets, const u32* columns, const f32* weights, const u32* group, const u32* own,
                   const u32* sizes, u64* bids, u32* choice, u64* highest) {
    EACH(i, n) {
        u32 best = NO_GROUP;
        f32 most = 0;
        if (group[i] == NO_GROUP)
            for (u64 at = offsets[i]; at < offsets[i + 1]; at++) {
                if (columns[at] == i) continue;
                const u32 to = group[columns[at]];
                if (to != NO_GROUP && weights[at] > most && sizes[to] + own[i] <= MOST_OF_BLOCK) {
                    best = to;
                    most = weights[at];
                }
            }
        const u64 bid = best == NO_GROUP ? 0 : (u64(bits<u32>(most)) << 32) | (0xffffffffu - u32(i));
        choice[i] = best;
        bids[i] = bid;
        if (best != NO_GROUP) atomicMax(highest + best, bid);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    accept_bids(u64 n, const u64* bids, const u32* choice, const u64* highest, const u32* own, u32* group, u32* sizes) {
    EACH(i, n)
        if (choice[i] != NO_GROUP && highest[choice[i]] == bids[i]) {
            group[i] = choice[i];
            // No other node bids this much for this group, so only one thread adds to it.
            sizes[choice[i]] += own[i];
        }
}

extern "C" __global__ void __launch_bounds__(THREADS) group_flags(u64 n, const u32* group, u32 grouped, u32* flags) {
    EACH(i, n + 1) flags[i] = i < n && (group[i] != NO_GROUP) == (grouped != 0);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    number_groups(u64 n, const u32* flags, const u32* places, u32 first, u32* group) {
    EACH(i, n) if (flags[i]) group[i] = first + places[i];
}
