// Cuthill-McKee orders of a graph in CSR, all levels in one cooperative launch; several traversals at the same time,
// with a team of blocks for each.
//
// The frontier is a range of the order itself. A level takes two steps with a meeting after each:
//   mark     every neighbour of the vertex at place p that is not in the order yet gets the smallest p + 1 (atomicMin);
//   collect  the vertex at p reads its neighbours' marks: its children are those that have its own. Read in the
//            order of places and neighbours they are sorted by (place of the parent, number); only the children of one
//            parent are left to be sorted by degree.
// Three ways to do that, chosen level by level:
//   narrow   the team's first cluster keeps the frontier in shared memory and runs level after level (narrow.cuh);
//   alone    for few vertices, one of which has too long a row for that: the first block runs level after level;
//   wide     all blocks of the team; the places of children follow from the numbers of children of earlier tiles, which
//            blocks send each other without a third meeting.
// A team has at least one cluster, and at most 255 blocks. If a vertex has more children than a warp can sort, the
// kernel stops after that level; the caller sorts the level and starts the kernel again. The result depends on the
// graph and the roots alone. Sources: Cuthill and McKee 1969; Karantasis et al. 2014 (levels first, then places).
//
// vertices: the row of each, see row.cuh. marks: 2^32 - 1 for vertices not reached, 0 for roots, else 1 + place of the
// parent. states: a header per team, zeroed, then `tiles` words per team. A header: 0 to 3 meetings (zeroed before
// every start), 4 head, 5 tail (of the frontier), 6 its level, 7 width, 8 bandwidth, 9 largest useful bandwidth, 10
// status (0 running, 1 finished, 2 stopped by 9, 3 frontier needs sorting), 11 end (degree << 32 | vertex, of the last
// level), 12 to 15 the leader's messages.
//
// Constants: OFFSET, THREADS, ALONE (vertices of a frontier that one block processes), STAGE (children of a warp that
// are sorted in shared memory), CLUSTER (blocks of a cluster), HELD (neighbours that a lane holds in a narrow level),
// NARROW (vertices of the widest narrow level).
#include "team.cuh"
#include "narrow.cuh"

typedef OFFSET I;
#define HEADER 16
#define STAGED (STAGE / 32)

struct Shared {
    union {
        u64 keys[WARPS][STAGE]; // degree << 32 | vertex
        Narrow narrow;
    };
    u8 owners[WARPS][STAGE];
    u32 counts[WARPS];
    u32 before; // number of children of earlier tiles
    u32 bandwidth, bad;
};

// A warp's vertices of the frontier: lane i has the one at place first + i.
struct Rows {
    u64 first_edge; // minus the edges of earlier lanes
    I inclusive, total;
    u32 place;

    DEVICE void load(const Orders& s, u64 place_of_lane, bool has) {
        const u64 row = has ? __ldcg(s.rows + place_of_lane) : 0;
        const I length = I(row_length(row));
        inclusive = warp_inclusive_sum(length);
        total = shuffle(inclusive, 31);
        first_edge = row_start(row) - (inclusive - length);
        place = u32(place_of_lane);
    }
    // The neighbour at edge e, and the lane of its vertex; e differs between lanes only by the lane number.
    DEVICE u32 neighbour(const Orders& s, I e, u32& owner) const {
        owner = owner_of(e, inclusive);
        const u64 edge = shuffle(first_edge, owner) + e;
        return e < total ? __ldg(s.indices + edge) : UNREACHED;
    }
};

DEVICE void mark(const Orders& s, const Rows& rows) {
    for (I base = 0; base < rows.total; base += 32 * MANY) {
        u32 w[MANY], mine[MANY];
#pragma unroll
        for (u32 k = 0; k < MANY; k++) {
            w[k] = UNREACHED;
            if (base + 32 * k >= rows.total) continue;
            u32 owner;
            w[k] = rows.neighbour(s, base + 32 * k + lane_id(), owner);
            mine[k] = __shfl_sync(ALL, rows.place, owner) + 1;
        }
        u32 now[MANY];
#pragma unroll
        for (u32 k = 0; k < MANY; k++) now[k] = w[k] == UNREACHED ? 0 : __ldcg(s.marks + w[k]);
#pragma unroll
        for (u32 k = 0; k < MANY; k++)
            if (now[k] > mine[k]) atomicMin(s.marks + w[k], mine[k]);
    }
}

// Up to 32 * MANY edges from `base` on, and which of them lead to children.
struct Children {
    u32 w[MANY], owner[MANY], mask[MANY];

    DEVICE u32 find(const Orders& s, const Rows& rows, I base) {
        u32 mine[MANY], count = 0;
#pragma unroll
        for (u32 k = 0; k < MANY; k++) {
            w[k] = UNREACHED;
            owner[k] = mine[k] = 0;
            if (base + 32 * k >= rows.total) continue;
            w[k] = rows.neighbour(s, base + 32 * k + lane_id(), owner[k]);
            mine[k] = __shfl_sync(ALL, rows.place, owner[k]) + 1;
        }
        u32 now[MANY];
#pragma unroll
        for (u32 k = 0; k < MANY; k++) now[k] = w[k] == UNREACHED ? 0 : __ldcg(s.marks + w[k]);
#pragma unroll
        for (u32 k = 0; k < MANY; k++) {
            mask[k] = __ballot_sync(ALL, now[k] == mine[k] && w[k] != UNREACHED);
            count += __popc(mask[k]);
        }
        return count;
    }
    DEVICE bool child(u32 k) const { return mask[k] >> lane_id() & 1; }
};

DEVICE void put(const Orders& s, u64 place, u32 v, u64 row) {
    __stcg(s.order + place, v);
    __stcg(s.rows + place, row);
}

// Writes a warp's many children, parent by parent, to the places from `at` on. If a parent has too many, its children
// are written unsorted, and `shared.bad` records that. Returns the largest distance of a child from its parent.
DEVICE u32 parent_by_parent(const Orders& s, const Rows& rows, u32 parents, u64 at, Shared& shared) {
    const u32 warp = threadIdx.x / 32;
    u32 far = 0;
    for (u32 j = 0; j < parents; j++) {
        const I begin = j ? shuffle(rows.inclusive, j - 1) : I(0), end = shuffle(rows.inclusive, j);
        const u64 first = shuffle(rows.first_edge, j);
        const u32 parent = __shfl_sync(ALL, rows.place, j);
        u32 found = 0;
        for (I e = begin; e < end; e += 32) {
            const u32 w = e + lane_id() < end ? __ldg(s.indices + first + e + lane_id()) : UNREACHED;
            const bool child = w != UNREACHED && __ldcg(s.marks + w) == parent + 1;
            const u32 mask = __ballot_sync(ALL, child);
            const u32 q = found + __popc(mask & lanes_below());
            if (child) {
                const u64 row = __ldg(s.vertices + w);
                if (q < STAGE) shared.keys[warp][q] = u64(row_degree(row)) << 32 | w;
                put(s, at + q, w, row); // stays unsorted if there are too many
            }
            found += __popc(mask);
        }
        __syncwarp();
        if (found > STAGE) shared.bad = 1;
        else
            for (u32 q = lane_id(); q < found; q += 32) {
                const u64 key = shared.keys[warp][q];
                u32 below = 0;
                for (u32 i = 0; i < found; i++) below += shared.keys[warp][i] < key;
                put(s, at + below, u32(key), __ldg(s.vertices + u32(key)));
            }
        __syncwarp();
        at += found;
        const u32 distance = found ? u32(at - 1 - parent) : 0;
        far = far > distance ? far : distance;
    }
    return far;
}

// Called by a block's first warp: publishes the number of children of tile t, and waits for the tiles between the
// block's last one and this. Returns their number of children.
DEVICE u32 children_between(u64* tiles, u32 t, u32 blocks, u32 depth, u32 own) {
    if (lane_id() == 0) __stcg(tiles + t, u64(depth + 1) << 32 | own);
    u32 sum = 0;
    const u32 first = t < blocks ? 0 : t - blocks;
    for (u32 i = first + lane_id(); i < t; i += 32) {
        u64 word;
        do word = *reinterpret_cast<volatile u64*>(tiles + i);
        while (word >> 32 != depth + 1);
        sum += u32(word);
    }
    return warp_sum(sum);
}

// Processes one level: appends the children of the vertices at head .. tail after tail. Returns to every thread the
// number of children: all of them if LONE (one block processes the level), otherwise those of the block's own tiles.
template <bool LONE> DEVICE u32 level(const Orders& s, Shared& shared, Team& team, u32 head, u32 tail, u32 depth) {
    const u32 rank = LONE ? 0 : team.rank, blocks = LONE ? 1 : team.blocks;
    const u32 warp = threadIdx.x / 32;
    const u32 each = share(tail - head, blocks * WARPS), tile = each * WARPS;
    const u32 tiles = u32((u64(tail) - head + tile - 1) / tile);
    Rows rows;
    for (u32 t = rank; t < tiles; t += blocks) {
        const u64 place = head + u64(t) * tile + warp * each + lane_id();
        rows.load(s, place, lane_id() < each && place < tail);
        mark(s, rows);
    }
    if (LONE) __syncthreads();
    else team.meet(0);

    u32 own = 0, before = 0; // number of children of the block's tiles so far; of all tiles before the last one
    for (u32 t = rank; t < tiles; t += blocks) {
        if (tiles > blocks) { // otherwise the rows are still there
            const u64 place = head + u64(t) * tile + warp * each + lane_id();
            rows.load(s, place, lane_id() < each && place < tail);
        }
        Children children;
        u32 count = 0;
        for (I base = 0; base < rows.total; base += 32 * MANY) count += children.find(s, rows, base);
        if (lane_id() == 0) shared.counts[warp] = count;
        // Children are sorted in shared memory while the counts are exchanged.
        u32 spot[STAGED], owner[STAGED], vertex[STAGED];
        u64 row[STAGED];
        if (count <= STAGE) {
            u32 at = 0;
            for (I base = 0; base < rows.total; base += 32 * MANY) {
                if (rows.total > 32 * MANY) children.find(s, rows, base);
#pragma unroll
                for (u32 k = 0; k < MANY; k++) {
                    if (children.child(k)) {
                        const u32 q = at + __popc(children.mask[k] & lanes_below());
                        const u64 row = __ldg(s.vertices + children.w[k]);
                        shared.keys[warp][q] = u64(row_degree(row)) << 32 | children.w[k];
                        shared.owners[warp][q] = u8(children.owner[k]);
                    }
                    at += __popc(children.mask[k]);
                }
            }
            __syncwarp();
#pragma unroll
            for (u32 k = 0; k < STAGED; k++) {
                const u32 q = 32 * k + lane_id();
                spot[k] = UNREACHED;
                if (q >= count) continue;
                const u64 key = shared.keys[warp][q];
                vertex[k] = u32(key);
                row[k] = __ldg(s.vertices + vertex[k]);
                owner[k] = shared.owners[warp][q];
                u32 start = q, below = 0;
                while (start > 0 && shared.owners[warp][start - 1] == owner[k]) below += shared.keys[warp][--start] < key;
                for (u32 i = q + 1; i < count && shared.owners[warp][i] == owner[k]; i++) below += shared.keys[warp][i] < key;
                spot[k] = start + below;
            }
        }
        __syncthreads();
        // The place of the warp's children: after those of earlier warps and earlier tiles.
        const u32 other = lane_id() < WARPS ? shared.counts[lane_id()] : 0;
        const u32 upto = warp_inclusive_sum(other);
        const u32 total = __shfl_sync(ALL, upto, 31);
        const u32 offset = __shfl_sync(ALL, upto - other, warp);
        if (!LONE && warp == 0) {
            const u32 sum = children_between(s.tiles, t, blocks, depth, total);
            if (lane_id() == 0) shared.before = sum;
        }
        if (!LONE) {
            __syncthreads();
            before += shared.before;
        }
        const u64 to = u64(tail) + (LONE ? own : before) + offset;
        own += total;
        u32 far = 0;
        if (count <= STAGE) {
#pragma unroll
            for (u32 k = 0; k < STAGED; k++) {
                const u32 parent = __shfl_sync(ALL, rows.place, spot[k] == UNREACHED ? 0 : owner[k]);
                if (spot[k] == UNREACHED) continue;
                put(s, to + spot[k], vertex[k], row[k]);
                const u32 distance = u32(to + spot[k] - parent);
                far = far > distance ? far : distance;
            }
        } else {
            far = parent_by_parent(s, rows, each, to, shared);
        }
        if (far > shared.bandwidth) atomicMax(&shared.bandwidth, far);
        __syncthreads(); // the counts may be overwritten
    }
    return own;
}

// Sends the leader's position and status to the whole team. Returns the status.
DEVICE u64 tell(Team& team, u64* words, u64 status, Frontier& f) {
    u64 told[2] = {u64(f.head) << 32 | f.tail, u64(f.depth) << 32 | f.width};
    status = u32(team.tell(reinterpret_cast<u64(*)[2]>(words), team.rank == 0 ? status : 0, told));
    f = {u32(told[0] >> 32), u32(told[0]), u32(told[1] >> 32), u32(told[1])};
    return status;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) OF_CLUSTERS
    cuthill_mckee(u32 n, const u32* indices, const u64* vertices, u32 teams, u32* marks, u32* order, u64* rows, u64* states, u64 tiles) {
    __shared__ Shared shared;
    __shared__ u64 boxes[2][2];
    NarrowMail mail = {Mail(boxes[0]), Mail(boxes[1]), 0, 0};
    if (threadIdx.x == 0) mail.messages.begin(), mail.rows.begin();
    cluster_meet();
    // Each team gets a cluster, and its share of the other blocks.
    const u32 first = teams * CLUSTER, others = (gridDim.x - first) / teams, blocks = CLUSTER + others;
    const bool in_cluster = blockIdx.x < first;
    if (!in_cluster && blockIdx.x - first >= teams * others) return;
    const u32 which = in_cluster ? blockIdx.x / CLUSTER : (blockIdx.x - first) / others;
    const u32 rank = in_cluster ? blockIdx.x % CLUSTER : CLUSTER + (blockIdx.x - first) % others;
    Orders s = {n, indices, vertices, marks + u64(which) * n, order + u64(which) * n, rows + u64(which) * n, states + which * HEADER, states + teams * HEADER + which * tiles};
    u64* const state = s.state;
    Team team = {state, rank, blocks, 0};
    if (threadIdx.x == 0) shared.bandwidth = shared.bad = 0;
    // The leader changes these at the end, when all blocks have read them.
    Frontier f = {u32(__ldcg(state + 4)), u32(__ldcg(state + 5)), u32(__ldcg(state + 6)), u32(__ldcg(state + 7))};
    const u64 limit = __ldcg(state + 9), status_before = __ldcg(state + 10);
    if (status_before == 1 || status_before == 2) return;
    const u64 thread = u64(team.rank) * THREADS + threadIdx.x, threads = u64(blocks) * THREADS;
    if (f.head == 0)
        for (u64 v = thread; v < n; v += threads) __stcg(s.marks + v, UNREACHED);
    team.meet(0);
    for (u64 i = f.head + thread; i < f.tail; i += threads) {
        const u32 v = __ldcg(s.order + i);
        __stcg(s.rows + i, __ldg(s.vertices + v));
        if (f.head == 0) __stcg(s.marks + v, 0u);
    }
    team.meet(0);
    f.width = f.width > f.tail - f.head ? f.width : f.tail - f.head;
    u64 status = 0;
    while (!status) {
        if (f.tail - f.head <= NARROW) {
            const u32 before = f.depth;
            if (team.rank < CLUSTER) {
                NarrowLevels levels = {s, shared.narrow, mail, limit, team.rank, f};
                status = levels.run(shared.bandwidth);
                f = levels.f;
            }
            status = tell(team, state + 12, status, f);
            if (status || f.depth > before) continue;
        }
        if (f.tail - f.head <= ALONE) {
            if (team.rank == 0) {
                u32 bad, wide, found;
                do {
                    found = level<true>(s, shared, team, f.head, f.tail, f.depth);
                    bad = shared.bad, wide = shared.bandwidth > limit;
                    f.go_on(found);
                } while (found && found <= ALONE && !bad && !wide);
                status = wide ? 2 : found ? bad ? 3 : 0 : 1;
            }
            status = tell(team, state + 12, status, f);
            continue;
        }
        const u64 next = level<false>(s, shared, team, f.head, f.tail, f.depth);
        // A team has at most 255 blocks, so the sum can be separated into both parts.
        const u64 signal = shared.bandwidth > limit ? 256 : shared.bad;
        const u64 word = team.meet(next + (signal << 48));
        const u32 signals = u32(word >> 48), found = u32(word);
        f.go_on(found);
        status = signals >= 256 ? 2 : !found ? 1 : signals ? 3 : 0;
    }
    if (threadIdx.x == 0) atomicMax(state + 8, u64(shared.bandwidth));
    // At the end: the vertex of the last level with the lowest (degree, number).
    if (team.rank == 0) {
        __shared__ u64 lowest;
        if (threadIdx.x == 0) lowest = ~u64(0);
        __syncthreads();
        u64 mine = ~u64(0);
        if (status == 1)
            for (u64 i = f.head + threadIdx.x; i < f.tail; i += THREADS) {
                const u32 v = __ldcg(s.order + i);
                const u64 key = u64(row_degree(__ldg(s.vertices + v))) << 32 | v;
                mine = mine < key ? mine : key;
            }
        atomicMin(&lowest, mine);
        __syncthreads();
        if (threadIdx.x == 0) {
            state[4] = f.head, state[5] = f.tail, state[6] = f.depth, state[7] = f.width, state[10] = status, state[11] = lowest;
        }
    }
}
