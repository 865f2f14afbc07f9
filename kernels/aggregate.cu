// Groups of nodes of a graph in compressed rows: independent sets at distance two, aggregates, and pairs of nodes that
// prefer each other. src/backend/coarsen.rs describes each step. One thread takes one node, or 2^`log_lanes` neighbouring
// lanes of a warp do if rows are long: a thread that reads a long row alone waits for one entry after another.
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

// The lanes of a warp that take a node.
struct Lanes {
    u32 count, lane, mask;

    DEVICE explicit Lanes(u32 log_lanes)
        : count(1u << log_lanes), lane(lane_id() & (count - 1)), mask((ALL >> (32 - count)) << (lane_id() - lane)) {}

    template <typename V> DEVICE V least(V value) const {
        for (u32 with = count / 2; with; with /= 2) value = min(value, __shfl_xor_sync(mask, value, with));
        return value;
    }
    // The bits that all lanes have.
    DEVICE u32 common(u32 value) const {
        for (u32 with = count / 2; with; with /= 2) value &= __shfl_xor_sync(mask, value, with);
        return value;
    }
    DEVICE u32 sum(u32 value) const {
        for (u32 with = count / 2; with; with /= 2) value += __shfl_xor_sync(mask, value, with);
        return value;
    }
};

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
    independent_least(u64 n, u32 log_lanes, const I* offsets, const u32* columns, const u64* state, u64* smallest) {
    const Lanes lanes(log_lanes);
    EACH(thread, n << log_lanes) {
        const u64 i = thread >> log_lanes, own = smallest[i];
        if (own == OUT || own == NOT_ASKED) continue;
        u64 least = state[i];
        for (u64 at = offsets[i] + lanes.lane; at < offsets[i + 1]; at += lanes.count)
            least = min(least, state[columns[at]]);
        least = lanes.least(least);
        if (lanes.lane == 0) smallest[i] = least == MEMBER ? OUT : least;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    independent_decide(u64 n, u32 log_lanes, const I* offsets, const u32* columns, const u64* smallest, u64 round,
                       u64* state, u32* undecided) {
    constexpr u32 STAYS = 1, LEAST = 2;
    const Lanes lanes(log_lanes);
    u32 left = 0;
    EACH(thread, n << log_lanes) {
        const u64 i = thread >> log_lanes, own = state[i];
        if (own == MEMBER || own == OUT) continue;
        const auto seen = [=](u64 there) { return (there != OUT ? STAYS : 0) | (there == own ? LEAST : 0); };
        u32 all = seen(smallest[i]);
        for (u64 at = offsets[i] + lanes.lane; at < offsets[i + 1]; at += lanes.count) {
            const u64 beside = smallest[columns[at]];
            if (beside != NOT_ASKED) all &= seen(beside);
        }
        all = lanes.common(all);
        if (lanes.lane == 0) {
            state[i] = !(all & STAYS) ? OUT : all & LEAST ? MEMBER : priority(i, round);
            left += all == STAYS;
        }
    }
    add_counts(left, undecided);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    group_roots(u64 n, u32 log_lanes, const I* offsets, const u32* columns, const u32* group, const u64* state, u32 least,
                u32* flags) {
    const Lanes lanes(log_lanes);
    EACH(thread, (n + 1) << log_lanes) {
        const u64 i = thread >> log_lanes;
        bool root = i < n && state[i] == MEMBER;
        if (root && least) {
            u32 free = 0;
            for (u64 at = offsets[i] + lanes.lane; at < offsets[i + 1]; at += lanes.count)
                free += group[columns[at]] == NO_GROUP;
            root = lanes.sum(free) >= least;
        }
        if (lanes.lane == 0) flags[i] = root;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    gather_groups(u64 n, u32 log_lanes, const I* offsets, const u32* columns, const u32* flags, const u32* places,
                  u32 first, u32* group) {
    const Lanes lanes(log_lanes);
    EACH(thread, n << log_lanes) {
        const u64 i = thread >> log_lanes;
        const bool root = flags[i], open = group[i] == NO_GROUP;
        // The place of the first root among the neighbours.
        u64 found = ~0ull;
        if (!root && open) {
            for (u64 at = offsets[i] + lanes.lane; at < offsets[i + 1]; at += lanes.count)
                if (flags[columns[at]]) {
                    found = at;
                    break;
                }
            found = lanes.least(found);
        }
        if (lanes.lane > 0) continue;
        if (root) group[i] = first + places[i];
        else if (found != ~0ull) group[i] = first + places[columns[found]];
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

// The group that a node joins, among candidates in the order of its neighbours. Groups of `most` nodes are full.
struct Choice {
    u64 most;
    u32 best, size;
    f32 weight;
    bool full;

    DEVICE explicit Choice(u64 most) : most(most), best(NO_GROUP), size(0), weight(0), full(true) {}

    DEVICE void consider(u32 candidate, f32 of_candidate, u32 its_size) {
        const bool is_full = its_size >= most;
        const bool better = best == NO_GROUP || (full && !is_full) ||
                            (full == is_full && (of_candidate > weight * (1 + ALIKE) ||
                                                 (of_candidate >= weight * (1 - ALIKE) && its_size < size)));
        if (!better) return;
        best = candidate;
        weight = of_candidate;
        size = its_size;
        full = is_full;
    }
};

struct Neighbours {
    u64 i, begin, end;
    const u32* columns;
    const f32* weights;
    const u32* group;

    DEVICE u32 group_of(u64 at) const {
        const u32 j = at < end ? columns[at] : u32(i);
        return j == i ? NO_GROUP : group[j];
    }
};

DEVICE u32 choice_of_thread(const Neighbours& all, const u32* sizes, Choice choice) {
    for (u64 at = all.begin; at < all.end; at++) {
        const u32 candidate = all.group_of(at);
        if (candidate == NO_GROUP) continue;
        bool seen = false;
        for (u64 k = all.begin; k < at && !seen; k++) seen = all.group_of(k) == candidate;
        if (seen) continue;
        f32 weight = 0;
        for (u64 k = at; k < all.end; k++)
            if (all.group_of(k) == candidate) weight += all.weights[k];
        choice.consider(candidate, weight, sizes[candidate]);
    }
    return choice.best;
}

// The same by a warp, of which each lane takes a neighbour at a time. Weights are added in the same order.
DEVICE u32 choice_of_warp(const Neighbours& all, const u32* sizes, Choice choice) {
    for (u64 from = all.begin; from < all.end; from += 32) {
        const u64 at = from + lane_id();
        const u32 candidate = all.group_of(at);
        bool first = candidate != NO_GROUP;
        f32 weight = 0;
        for (u64 other = all.begin; other < all.end && __any_sync(ALL, first); other += 32) {
            const u64 there = other + lane_id();
            const u32 group = all.group_of(there);
            const f32 part = there < all.end ? all.weights[there] : 0;
#pragma unroll
            for (u32 k = 0; k < 32; k++) {
                const bool alike = shuffle(group, k) == candidate;
                const f32 part_of_k = shuffle(part, k);
                if (other + k < at) first = first && !alike;
                else if (alike) weight += part_of_k;
            }
        }
        const u32 size = first ? sizes[candidate] : 0;
        for (u32 left = __ballot_sync(ALL, first); left; left &= left - 1) {
            const u32 lane = __ffs(left) - 1;
            choice.consider(shuffle(candidate, lane), shuffle(weight, lane), shuffle(size, lane));
        }
    }
    return choice.best;
}

// The work for a row grows with the square of its length: a warp takes rows with more entries than this.
constexpr u64 FOR_WARPS = 24;

extern "C" __global__ void __launch_bounds__(THREADS)
    join_groups(u64 n, u32 log_lanes, const I* offsets, const u32* columns, const f32* weights, const u32* before,
                u64 groups, const u32* sizes, u32* group) {
    const u64 twice = 2 * u64(sizes[groups]), most = groups ? (twice + groups - 1) / groups : twice;
    const Lanes lanes(log_lanes);
    const auto of_node = [=](u64 i) { return Neighbours{i, offsets[i], offsets[i + 1], columns, weights, before}; };
    // All lanes of a warp stay together.
    for (u64 first = u64(blockIdx.x) * THREADS + threadIdx.x - lane_id(); first < n << log_lanes;
         first += u64(gridDim.x) * THREADS) {
        const u64 i = (first + lane_id()) >> log_lanes;
        const bool open = lanes.lane == 0 && i < n && group[i] == NO_GROUP;
        const bool is_long = open && u64(offsets[i + 1]) - offsets[i] > FOR_WARPS;
        if (open && !is_long) group[i] = choice_of_thread(of_node(i), sizes, Choice(most));
        for (u32 left = __ballot_sync(ALL, is_long); left; left &= left - 1) {
            const u64 node = shuffle(i, __ffs(left) - 1);
            const u32 best = choice_of_warp(of_node(node), sizes, Choice(most));
            if (lane_id() == 0) group[node] = best;
        }
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
