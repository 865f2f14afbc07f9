// Connected components, and statistics of traversals of many components at once.
//
// Labels: union by compare-and-swap, the larger root under the smaller, so that a component's label is its smallest
// vertex whatever the timing. Source: Jaiganesh and Burtscher 2018. A traversal of many components orders them
// interleaved, level by level; a stable sort by component puts them one after another, each in the order that it would
// have alone.
//
// Constants: OFFSET, THREADS (a multiple of LANES), LANES (threads per row: a power of two).
#include "common.cuh"

typedef OFFSET I;
#define NONE 0xffffffffu
#define EACH(i, n) (u64 i = u64(blockIdx.x) * THREADS + threadIdx.x; i < (n); i += u64(gridDim.x) * THREADS)

DEVICE u32 find(u32* labels, u32 v) {
    u32 up = __ldcg(labels + v);
    while (up != v) {
        const u32 above = __ldcg(labels + up);
        if (above != up) __stcg(labels + v, above); // always a smaller vertex of the component
        v = up;
        up = above;
    }
    return v;
}

// Requires: labels[v] = v.
extern "C" __global__ void __launch_bounds__(THREADS) hook(u32 n, const I* offsets, const u32* indices, u32* labels) {
    const u32 lane = threadIdx.x % LANES;
    for (u64 v = (u64(blockIdx.x) * THREADS + threadIdx.x) / LANES; v < n; v += u64(gridDim.x) * (THREADS / LANES))
        for (u64 k = offsets[v] + lane, end = offsets[v + 1]; k < end; k += LANES) {
            const u32 w = indices[k];
            if (w >= v) continue;
            u32 a = find(labels, u32(v)), b = find(labels, w);
            while (a != b) {
                const u32 high = a > b ? a : b, low = a > b ? b : a;
                const u32 before = atomicCAS(labels + high, high, low);
                if (before == high) break;
                a = find(labels, before);
                b = find(labels, low);
            }
        }
}

// Paths are not shortened on the way here: a late store of another thread could restore an old label.
extern "C" __global__ void __launch_bounds__(THREADS) flatten(u32 n, u32* labels) {
    for EACH(v, n) {
        u32 root = u32(v), up;
        while ((up = __ldcg(labels + root)) != root) root = up;
        __stcg(labels + v, root);
    }
}

// For each component, at its label: the smallest degree << 32 | vertex (initially all bits set), and a flag.
extern "C" __global__ void __launch_bounds__(THREADS) lowest_of_each(u32 n, const u32* labels, const u32* degrees, u64* lowest, u8* flags) {
    for EACH(v, n) {
        const u32 label = labels[v];
        const u64 key = u64(degrees[v]) << 32 | v;
        flags[v] = label == v;
        if (__ldcg(lowest + label) > key) atomicMin(lowest + label, key);
    }
}

// rank[label of the component] = the first root in it (initially NONE).
extern "C" __global__ void __launch_bounds__(THREADS) rank_roots(u64 count, const u32* roots, const u32* labels, u32* rank) {
    for EACH(i, count) atomicMin(rank + labels[roots[i]], u32(i));
}

// The component of each place. *doubled counts roots in the same component as an earlier root.
extern "C" __global__ void __launch_bounds__(THREADS)
    rank_places(u64 places, u64 count, const u32* order, const u32* labels, const u32* rank, u32* components, u32* doubled) {
    for EACH(i, places) {
        const u32 component = rank[labels[order[i]]];
        components[i] = component;
        if (i < count && component != i) atomicAdd(doubled, 1);
    }
}

// places[final[i]] = i
extern "C" __global__ void __launch_bounds__(THREADS) invert(u64 n, const u32* final, u32* places) {
    for EACH(i, n) places[final[i]] = u32(i);
}

DEVICE void raise(u32* to, u32 value) {
    if (__ldcg(to) < value) atomicMax(to, value);
}

// Height, width and bandwidth of each component, initially zero. final, components: place by place, sorted by
// component; order: from the traversal; marks: 1 + the parent's place there, 0 for a root.
extern "C" __global__ void __launch_bounds__(THREADS)
    figures(u64 n, const u32* final, const u32* components, const u32* starts, const u32* order, const u32* marks,
            const u32* levels, const u32* places, u32* height, u32* width, u32* bandwidth) {
    for EACH(i, n) {
        const u32 v = final[i], c = components[i], level = levels[v];
        const u32 mark = marks[v];
        if (mark) raise(bandwidth + c, u32(i) - places[order[mark - 1]]);
        if (i + 1 < n && components[i + 1] == c && levels[final[i + 1]] == level) continue;
        raise(height + c, level);
        u64 low = starts[c], high = i; // the first place of this level
        while (low < high) {
            const u64 middle = (low + high) / 2;
            if (levels[final[middle]] < level) low = middle + 1;
            else high = middle;
        }
        raise(width + c, u32(i + 1 - low));
    }
}

// ends[c], initially all bits set: the smallest degree << 32 | vertex of the last level.
extern "C" __global__ void __launch_bounds__(THREADS)
    last_levels(u64 n, const u32* final, const u32* components, const u32* levels, const u32* height, const u32* degrees, u64* ends) {
    for EACH(i, n) {
        const u32 v = final[i], c = components[i];
        if (levels[v] != height[c]) continue;
        const u64 key = u64(degrees[v]) << 32 | v;
        if (__ldcg(ends + c) > key) atomicMin(ends + c, key);
    }
}

// flags[i]: the vertex at place i has the same degree as its component's root, and is not the root.
extern "C" __global__ void __launch_bounds__(THREADS)
    alike(u64 n, const u32* final, const u32* components, const u32* starts, const u32* degrees, u32* flags) {
    for EACH(i, n) {
        const u32 first = starts[components[i]];
        flags[i] = i != first && degrees[final[i]] == degrees[final[first]];
    }
}

// peers[3 c ..]: of the k vertices of component c with a flag, those at k / 2, k / 4, 3 k / 4, none twice; NONE if k
// exceeds 1 / `one_in` of the component. sums: exclusive sums of the flags, n + 1 of them.
extern "C" __global__ void __launch_bounds__(THREADS)
    pick_peers(u64 count, const u32* final, const u32* starts, const u32* sums, u32 one_in, u32* peers) {
    for EACH(c, count) {
        const u32 start = starts[c], end = starts[c + 1], before = sums[start], k = sums[end] - before;
        for (u32 j = 0; j < 3; j++) {
            const u32 which = j == 0 ? k / 2 : j == 1 ? k / 4 : u32(3 * u64(k) / 4);
            u32 peer = NONE;
            if (k > j && k <= (end - start) / one_in) {
                u32 low = start, high = end - 1; // the place after which the sum exceeds before + which
                while (low < high) {
                    const u32 middle = low + (high - low) / 2;
                    if (sums[middle + 1] > before + which) high = middle;
                    else low = middle + 1;
                }
                peer = final[low];
            }
            peers[3 * c + j] = peer;
        }
    }
}
