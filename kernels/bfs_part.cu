// One level of a breadth-first search on one of several parts, which owns the vertices first .. first + rows of n.
//
// Each part has the bits of all vertices that were seen before (`seen`), and gives the bits of those that it reaches
// (`reached`, zero before). These become those of all parts between the kernels; what of them is new is settled.
//
// part_push    along the edges of this part's frontier
// part_pull    from this part's vertices that were not seen, each to the first neighbour that was
// part_settle  the new ones are seen from here on; this part's get their level and become its frontier
//
// With symmetric patterns both ways reach the same vertices. `offsets` are those of the part's own rows, `first` is a
// multiple of 32, and `tail` is the number of the frontier's entries, zero before part_settle. `figures`, zero before,
// counts this part's new vertices and their edges: whole numbers, so that the order of additions does not matter.
//
// Constants: those of bfs.cuh.
#include "bfs.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    part_push(const u32* indices, const u64* queue, const u64* tail, const u32* seen, u32* reached) {
    const u32 warps = gridDim.x * WARPS, warp = blockIdx.x + threadIdx.x / 32 * gridDim.x;
    each_edge<false>(indices, queue, u32(*tail), warp, warps, [&](u32 (&w)[MANY], bool (&open)[MANY], bool (&)[MANY]) {
        u32 bits[MANY];
#pragma unroll
        for (u32 k = 0; k < MANY; k++)
            if (open[k]) bits[k] = __ldcg(seen + w[k] / 32) | __ldcg(reached + w[k] / 32);
#pragma unroll
        for (u32 k = 0; k < MANY; k++)
            if (open[k] && !(bits[k] >> (w[k] & 31) & 1)) atomicOr(reached + w[k] / 32, 1u << (w[k] & 31));
    });
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    part_pull(u32 first, u32 rows, const I* offsets, const u32* indices, const u32* seen, u32* reached) {
    const u32 warps = gridDim.x * WARPS, warp = blockIdx.x + threadIdx.x / 32 * gridDim.x;
    for (u32 word = warp; word < (rows + 31) / 32; word += warps) {
        const u32 own = 32 * word + lane_id();
        u64 start = 0, end = 0;
        if (own < rows && !(__ldcg(seen + first / 32 + word) >> lane_id() & 1)) {
            start = __ldg(offsets + own);
            end = __ldg(offsets + own + 1);
        }
        const u32 fresh = __ballot_sync(ALL, has_neighbour(seen, indices, start, end));
        if (lane_id() == 0 && fresh) __stcg(reached + first / 32 + word, fresh);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    part_settle(u32 n, u32 first, u32 rows, const I* offsets, u32 level, u32* reached, u32* seen, u32* levels, u64* queue, u64* tail,
                f64* figures) {
    __shared__ u64 buffer[ROOM];
    __shared__ u32 count, direct;
    if (threadIdx.x == 0) count = direct = 0;
    __syncthreads();
    Search s = {};
    s.queue = queue;
    s.tail = tail;
    const Found found = {buffer, &count, &direct};
    const u32 words = (n + 31) / 32, own_first = first / 32, own_end = (first + rows + 31) / 32;
    const u32 warps = gridDim.x * WARPS, warp = blockIdx.x + threadIdx.x / 32 * gridDim.x;
    u64 vertices = 0, edges = 0;
    for (u32 base = 32 * warp; base < words; base += 32 * warps) {
        // A word a lane; then the new vertices of one word after the other, a lane each.
        const u32 word = base + lane_id();
        const u32 given = word < words ? reached[word] : 0;
        const u32 before = given ? seen[word] : 0, fresh = given & ~before;
        if (given) reached[word] = 0;
        if (fresh) seen[word] = before | fresh;
        u32 rest = __ballot_sync(ALL, fresh && word >= own_first && word < own_end);
        while (rest) {
            const u32 whose = __ffs(rest) - 1;
            rest &= rest - 1;
            const u32 own = 32 * (base + whose - own_first) + lane_id();
            const bool mine = __shfl_sync(ALL, fresh, whose) >> lane_id() & 1;
            const u64 start = mine ? u64(offsets[own]) : 0, length = mine ? u64(offsets[own + 1]) - start : 0;
            if (mine) levels[own] = level;
            vertices += mine;
            edges += length;
            found.add_row(s, mine, start, length);
        }
    }
    vertices = warp_sum(vertices);
    edges = warp_sum(edges);
    if (lane_id() == 0 && vertices) {
        atomicAdd(figures, f64(vertices));
        atomicAdd(figures + 1, f64(edges));
    }
    flush(s, found);
}
