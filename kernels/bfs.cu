// Breadth-first levels of a graph in CSR, all levels in one cooperative launch.
//
// Three ways to go from a level to the next, chosen level by level:
//   narrow the first cluster of blocks keeps the frontier in its shared memory and runs level after level, the others
//          wait. A block continues with the vertices that it found, until one has so many more than others that all
//          wait for it: then the frontier is distributed evenly;
//   push   the frontier's edges are distributed to the lanes of the grid; the lane that sets a vertex's bit first adds
//          the vertex to the queue;
//   pull   a warp takes 32 vertices: those without a bit search their neighbours for one with a bit, and stop at the
//          first. A neighbour whose bit was set before this level is in the previous level.
// Sources: Merrill, Garland and Grimshaw 2012 (gathering by scan, bitmask); Beamer, Asanovic and Patterson 2012
// (direction); Hwu, Kirk and El Hajj, chapter 15 (frontiers in shared memory, many levels per launch).
//
// state, zeroed: 0 to 3 meetings, 4 end of the queue, 5 edges of frontiers that were followed, 6 vertices found by
// pulls, 7 sources that are not vertices, 8 levels, 9 and 10 messages of the first block, 11 edges of vertices found by
// pulls. Counters are read by all blocks between two meetings during which no block counts.
//
// Constants: OFFSET, THREADS, CHUNK, CLUSTER (blocks of a cluster), PIECE (entries of a narrow frontier that a block
// processes when it is distributed), ROOM (of a block's buffer for what it finds), STAYS (up to this number of entries
// always stay in their block), LONG (mean neighbours per vertex beyond which rows are long), BY_ITSELF (neighbours that
// a lane checks alone in a pull before its warp helps).
#include "bfs.cuh"
#include "cluster.cuh"

#define NARROW (CLUSTER * PIECE)

// Follows the edges of `count` entries; vertices that are found get `level`.
template <bool SHARED>
DEVICE void push(const Search& s, const u64* entries, u32 count, u32 warp, u32 warps, u32 level, const Found& found) {
    each_edge<SHARED>(s.indices, entries, count, warp, warps, [&](u32 (&w)[MANY], bool (&open)[MANY], bool (&used)[MANY]) {
        if (s.look)
#pragma unroll
            for (u32 k = 0; k < MANY; k++)
                if (open[k]) open[k] = !(__ldcg(s.seen + w[k] / 32) >> (w[k] & 31) & 1);
        I start[MANY], end[MANY];
        u32 before[MANY];
#pragma unroll
        for (u32 k = 0; k < MANY; k++)
            if (open[k]) { // the loads and the bit are in flight at the same time
                start[k] = __ldg(s.offsets + w[k]);
                end[k] = __ldg(s.offsets + w[k] + 1);
                before[k] = atomicOr(s.seen + w[k] / 32, 1u << (w[k] & 31));
            }
#pragma unroll
        for (u32 k = 0; k < MANY; k++) {
            if (!used[k]) continue;
            const bool mine = open[k] && !(before[k] >> (w[k] & 31) & 1);
            if (mine) s.levels[w[k]] = level;
            found.add_row(s, mine, mine ? start[k] : 0, mine ? end[k] - start[k] : 0);
        }
    });
}

// Shared memory of a block while levels are narrow.
struct Narrow {
    u64 entries[ROOM]; // the block's part of the frontier
    u32 counts[2];      // numbers of entries found in even and odd turns; initially zero
    u32 messages[2][CLUSTER];
};

// Messages between blocks: `told` carries the number of entries that each block found, `dealt` the entries that are
// redistributed. `turn` and `deals` are the numbers of their next uses.
struct Letters {
    Mail told, dealt;
    u32 turn, deals;
};

// Runs levels in the cluster with ranks 0 to CLUSTER - 1, from the queue's entries head .. tail on, until the next
// level is empty or has more entries than fit. Appends the entries of that level to the queue and returns their number;
// `level` is the level of the entries, before and after.
DEVICE u32 narrow_levels(const Search& s, Narrow& shared, Letters& mail, u32 rank, u32 head, u32 tail, u32& level, u64* buffer,
                         u32* direct) {
    u32 total = tail - head, piece = (total + CLUSTER - 1) / CLUSTER;
    // The block's part of the frontier, and the buffer for the next one. They are swapped if all entries stay where
    // they are.
    u64 *from = shared.entries, *to = buffer;
    u32 first = rank * piece, mine = first < total ? (total - first < piece ? total - first : piece) : 0;
    for (u32 i = threadIdx.x; i < mine; i += THREADS) from[i] = __ldcg(s.queue + head + first + i);
    cluster_meet();
    for (;;) {
        const u32 turn = mail.turn++;
        const Found found = {to, shared.counts + (turn & 1), direct};
        if (threadIdx.x == 0) mail.told.expect(turn, 4 * CLUSTER);
        push<true>(s, from, mine, threadIdx.x / 32, WARPS, level + 1, found);
        __syncthreads();
        const u32 own = (*found.count < ROOM ? *found.count : ROOM) + *direct;
        if (threadIdx.x == 0) shared.counts[turn & 1 ^ 1] = 0; // all threads have read it
        if (threadIdx.x < CLUSTER) mail.told.send(turn, &shared.messages[turn & 1][rank], threadIdx.x, own);
        mail.told.wait(turn);
        level++;
        const u32 of_block = lane_id() < CLUSTER ? shared.messages[turn & 1][lane_id()] : 0;
        total = sum_of_lanes(of_block);
        const u32 largest = most_of_lanes(of_block);
        if (total == 0 || total > s.narrow || largest > ROOM) {
            flush(s, found);
            return total;
        }
        piece = (total + CLUSTER - 1) / CLUSTER;
        if (largest <= STAYS || largest <= piece + piece / 4) {
            u64* const next = to;
            to = from, from = next;
            mine = own;
            continue;
        }
        const u32 before = sum_of_lanes(lane_id() < rank ? of_block : 0);
        first = rank * piece;
        mine = first < total ? (total - first < piece ? total - first : piece) : 0;
        const u32 deal = mail.deals++; // the same in all blocks
        if (threadIdx.x == 0) mail.dealt.expect(deal, 8 * mine);
        for (u32 i = threadIdx.x; i < own; i += THREADS) {
            const u32 block = (before + i) / piece;
            mail.dealt.send(deal, from + (before + i - block * piece), block, to[i]);
        }
        mail.dealt.wait(deal);
        __syncthreads(); // the outgoing entries may be overwritten
    }
}

// Vertices without a bit in `before` search for a neighbour that has one; `after` gets the bits of both.
DEVICE void pull(const Search& s, const u32* before, u32* after, u32 warp, u32 warps, u32 level, u32& found, u64& edges) {
    for (u32 word = warp; word < (s.n + 31) / 32; word += warps) {
        const u32 seen = __ldcg(before + word);
        const u32 v = 32 * word + lane_id();
        u64 end = 0, start = 0;
        if (v < s.n && !(seen >> lane_id() & 1)) {
            start = __ldg(s.offsets + v);
            end = __ldg(s.offsets + v + 1);
        }
        const bool hit = has_neighbour(before, s.indices, start, end);
        const u32 fresh = __ballot_sync(ALL, hit);
        if (lane_id() == 0) __stcg(after + word, seen | fresh);
        if (hit) {
            s.levels[v] = level;
            found++;
            edges += end - start;
        }
    }
}

// Returns whether a pull is cheaper than pushing `edges`. A pull reads the bit of every vertex, and each unvisited
// vertex checks neighbours until one is in the frontier; the expected number of checks follows from the frontier's
// share of all edges.
DEVICE bool pays(u64 n, u64 m, u64 edges, u64 done, u64 left) {
    const u64 open = m > done ? m - done : 0;
    const u64 looks = u64(double(left) * double(m) / double(edges ? edges : 1));
    return 2 * edges > n / 8 + (looks < open ? looks : open);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) OF_CLUSTERS
    bfs(u32 n, u64 m, const I* offsets, const u32* indices, const u32* sources, u32 source_count, u32* levels, u32* seen,
        u64* queue, u64* state) {
    __shared__ Narrow narrow;
    __shared__ u64 buffer[ROOM];
    __shared__ u64 boxes[2][2];
    __shared__ u32 count, direct;
    Letters mail = {Mail(boxes[0]), Mail(boxes[1]), 0, 0};
    if (threadIdx.x == 0) {
        count = direct = narrow.counts[0] = narrow.counts[1] = 0;
        mail.told.begin(), mail.dealt.begin();
    }
    cluster_meet();
    const u32 words = (n + 31) / 32, warps = gridDim.x * WARPS, warp = blockIdx.x + threadIdx.x / 32 * gridDim.x;
    const u64 thread = u64(blockIdx.x) * THREADS + threadIdx.x, threads = u64(gridDim.x) * THREADS;
    Team team = {state, blockIdx.x, gridDim.x, 0};
    const bool long_rows = m > LONG * u64(n);
    Search s = {n, offsets, indices, levels, seen, queue, state + 4, long_rows, long_rows ? u32(NARROW * u64(LONG) * n / m) : NARROW};
    u32* other = seen + words;
    for (u64 v = thread; v < n; v += threads) levels[v] = UNREACHED;
    for (u64 i = thread; i < words; i += threads) seen[i] = 0;
    team.meet(0);

    const Found found = {buffer, &count, &direct};
    for (u64 base = thread - lane_id(); base < source_count; base += threads) {
        const u32 v = base + lane_id() < source_count ? sources[base + lane_id()] : UNREACHED;
        if (base + lane_id() < source_count && v >= n) atomicAdd(state + 7, u64(1));
        const bool mine = v < n && !(atomicOr(seen + v / 32, 1u << (v & 31)) >> (v & 31) & 1);
        if (mine) levels[v] = 0;
        found.add_row(s, mine, mine ? offsets[v] : 0, mine ? offsets[v + 1] - offsets[v] : 0);
    }
    u32 head = 0, tail = u32(team.meet(flush(s, found)));
    u32 level = 0;
    u64 edges_done = 0, asked_before = 0, reached_before = 0, found_before = 0;
    while (head < tail) {
        if (tail - head <= s.narrow) {
            u32 all = 0;
            if (blockIdx.x < CLUSTER)
                all = narrow_levels(s, narrow, mail, blockIdx.x, head, tail, level, buffer, &direct);
            u64 told[1] = {level};
            const u32 added = u32(team.tell(reinterpret_cast<u64(*)[1]>(state + 9), blockIdx.x == 0 ? all : 0, told));
            level = u32(told[0]);
            head = tail;
            tail += added;
            continue;
        }
        bool pulls = false;
        u64 edges = 0;
        if (tail - head > n / 1024) {
            u64 mine = 0;
            for (u64 i = head + thread; i < tail; i += threads) mine += __ldcg(queue + i) & 0xffffff;
            mine = warp_sum(mine);
            if (lane_id() == 0 && mine) atomicAdd(state + 5, mine);
            team.meet(0);
            const u64 now = __ldcg(state + 5);
            edges = now - asked_before;
            asked_before = now;
            edges_done += edges;
            pulls = pays(n, m, edges, edges_done, n > tail + found_before ? n - tail - found_before : 0);
        }
        if (!pulls) {
            push<false>(s, queue + head, tail - head, warp, warps, level + 1, found);
            const u32 added = u32(team.meet(flush(s, found)));
            head = tail;
            tail += added;
            level++;
            continue;
        }
        u32 reached = tail; // an estimate: long rows have several entries
        u64 found_now;
        do {
            u32 mine = 0;
            u64 reach = 0;
            pull(s, s.seen, other, warp, warps, level + 1, mine, reach);
            mine = warp_sum(mine);
            reach = warp_sum(reach);
            if (lane_id() == 0 && mine) atomicAdd(state + 6, u64(mine)), atomicAdd(state + 11, reach);
            team.meet(0);
            u32* swap = s.seen;
            s.seen = other;
            other = swap;
            level++;
            const u64 now = __ldcg(state + 6), reached_now = __ldcg(state + 11);
            found_now = now - found_before;
            edges = reached_now - reached_before;
            found_before = now;
            reached_before = reached_now;
            edges_done += edges;
            pulls = pays(n, m, edges, edges_done, n > reached + found_before ? n - reached - found_before : 0);
            team.meet(0); // no block counts again before all have read
        } while (found_now && pulls);
        head = tail;
        if (!found_now) break;
        for (u64 base = thread - lane_id(); base < n; base += threads) {
            const u32 v = base + lane_id();
            const bool mine = v < n && ((__ldcg(s.seen + v / 32) & ~__ldcg(other + v / 32)) >> (v & 31) & 1);
            found.add_row(s, mine, mine ? offsets[v] : 0, mine ? offsets[v + 1] - offsets[v] : 0);
        }
        tail += u32(team.meet(flush(s, found)));
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) state[8] = level;
}

// parents[v] = the smallest neighbour in the previous level; v for a source.
extern "C" __global__ void __launch_bounds__(THREADS)
    parents(u32 n, const I* offsets, const u32* indices, const u32* levels, u32* parents) {
    for (u64 base = u64(blockIdx.x) * THREADS + threadIdx.x - lane_id(); base < n; base += u64(gridDim.x) * THREADS) {
        const u32 v = u32(base) + lane_id();
        const u32 level = v < n ? levels[v] : UNREACHED;
        u32 parent = level == 0 ? v : UNREACHED;
        u64 k = 0, end = 0;
        if (level != UNREACHED && level) {
            k = offsets[v], end = offsets[v + 1];
            const u64 stop = end - k < BY_ITSELF ? end : k + BY_ITSELF;
            for (; k < stop && parent == UNREACHED; k++) {
                const u32 w = indices[k];
                if (levels[w] == level - 1) parent = w;
            }
        }
        u32 rest = __ballot_sync(ALL, parent == UNREACHED && k < end);
        while (rest) {
            const u32 whose = __ffs(rest) - 1;
            rest &= rest - 1;
            const u64 last = shuffle(end, whose);
            const u32 before = __shfl_sync(ALL, level, whose) - 1;
            u32 first = UNREACHED;
            for (u64 i = shuffle(k, whose); i < last && first == UNREACHED; i += 32) {
                const u32 w = i + lane_id() < last ? indices[i + lane_id()] : UNREACHED;
                const u32 hits = __ballot_sync(ALL, w != UNREACHED && levels[w] == before);
                if (hits) first = __shfl_sync(ALL, w, __ffs(hits) - 1);
            }
            if (lane_id() == whose) parent = first;
        }
        if (v < n) parents[v] = parent;
    }
}
