// One level of a breadth-first search on one of several ranks, which owns the vertices first .. first + rows of n.
//
// Each rank has the bits of all vertices visited before (`seen`), and computes the bits of those that it reaches
// (`reached`, initially zero). Between the kernels these are combined over all ranks; part_settle processes the
// vertices that are new.
//
//     part_queue    turns the rank's frontier into a queue of parts of rows
//     part_push     follows the edges of the queue; or
//     part_pull     searches a visited neighbour for each of the rank's unvisited vertices
//     part_settle   marks the new vertices as visited; own ones get their level and are the next frontier (`last`)
//
// With symmetric patterns push and pull reach the same vertices. `offsets` are those of the rank's own rows, `first` is
// a multiple of 32, and `tail` is the number of the queue's entries, zero before part_queue. `figures`, initially
// zero, counts the rank's new vertices and their edges; they are integers, so the order of additions does not matter.
//
// Constants: those of bfs.cuh.
#include "bfs.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
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

extern "C" __global__ void __launch_bounds__(THREADS)
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

extern "C" __global__ void __launch_bounds__(THREADS)
    part_queue(u32 rows, const I* offsets, const u32* last, u64* queue, u64* tail) {
    __shared__ u64 buffer[ROOM];
    __shared__ u32 count, direct;
    if (threadIdx.x == 0) count = direct = 0;
    __syncthreads();
    Search s = {};
    s.queue = queue;
    s.tail = tail;
    const Found found = {buffer, &count, &direct};
    const u32 words = (rows + 31) / 32, warps = gridDim.x * WARPS, warp = blockIdx.x + threadIdx.x / 32 * gridDim.x;
    for (u32 base = 32 * warp; base < words; base += 32 * warps) {
        // Each lane reads a word; then all lanes process the vertices of one word after another, one per lane.
        const u32 word = base + lane_id();
        const u32 bits = word < words ? last[word] : 0;
        u32 rest = __ballot_sync(ALL, bits);
        while (rest) {
            const u32 whose = __ffs(rest) - 1;
            rest &= rest - 1;
            const u32 own = 32 * (base + whose) + lane_id();
            const bool mine = __shfl_sync(ALL, bits, whose) >> lane_id() & 1;
            const u64 start = mine ? u64(offsets[own]) : 0, length = mine ? u64(offsets[own + 1]) - start : 0;
            found.add_row(s, mine, start, length);
        }
    }
    flush(s, found);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    part_settle(u32 n, u32 first, u32 rows, const I* offsets, u32 level, u32* reached, u32* seen, u32* levels, u32* last, f64* figures) {
    const u32 own_first = first / 32, own_words = (rows + 31) / 32, others = (n + 31) / 32 - own_words;
    const u32 warps = gridDim.x * WARPS, warp = blockIdx.x + threadIdx.x / 32 * gridDim.x;
    // The words of other ranks, one per thread.
    for (u64 k = u64(blockIdx.x) * THREADS + threadIdx.x; k < others; k += u64(gridDim.x) * THREADS) {
        const u64 word = k < own_first ? k : k + own_words;
        const u32 given = reached[word];
        if (!given) continue;
        seen[word] |= given;
        reached[word] = 0;
    }
    u64 vertices = 0, edges = 0;
    for (u32 k = warp; k < own_words; k += warps) {
        const u32 word = own_first + k, own = 32 * k + lane_id();
        const u32 given = reached[word], before = seen[word], fresh = given & ~before;
        __syncwarp(); // all lanes have read before one writes
        if (lane_id() == 0) {
            last[k] = fresh;
            if (given) reached[word] = 0;
            if (fresh) seen[word] = before | fresh;
        }
        if (!(fresh >> lane_id() & 1)) continue;
        levels[own] = level;
        vertices++;
        edges += u64(offsets[own + 1]) - u64(offsets[own]);
    }
    __syncwarp();
    vertices = warp_sum(vertices);
    edges = warp_sum(edges);
    if (lane_id() == 0 && vertices) {
        atomicAdd(figures, f64(vertices));
        atomicAdd(figures + 1, f64(edges));
    }
}
