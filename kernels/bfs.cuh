// Parts common to breadth-first searches on one device (bfs.cu) and on one of several ranks (bfs_part.cu): the queue of
// a frontier, the distribution of its edges to lanes, and the search for a neighbour that was visited.
//
// The queue holds parts of rows, at most CHUNK neighbours each: first edge << 24 | length.
//
// Constants: OFFSET, THREADS, CHUNK, ROOM (of a block's buffer for what it finds), BY_ITSELF (neighbours that a lane
// checks alone before its warp helps).
#pragma once
#include "team.cuh"

typedef OFFSET I;
#define WARPS (THREADS / 32)
#define UNREACHED 0xffffffffu

struct Search {
    u32 n;
    const I* offsets;
    const u32* indices;
    u32* levels;
    u32* seen;
    u64* queue;
    u64* tail; // end of the queue
    bool look;  // whether to read a bit before setting it: if rows are long, most neighbours were visited
    u32 narrow; // maximum number of entries of a frontier that one cluster processes; smaller if rows are long
};

// A block's part of the next frontier: up to ROOM entries; further ones go directly to the queue.
struct Found {
    u64* buffer;
    u32* count;
    u32* direct;

    DEVICE void add(const Search& s, bool has, u64 entry) const {
        const u32 mask = __ballot_sync(ALL, has);
        if (!mask) return;
        u32 place = 0;
        if (lane_id() == 0) place = atomicAdd(count, __popc(mask));
        place = __shfl_sync(ALL, place, 0) + __popc(mask & lanes_below());
        if (has && place < ROOM) buffer[place] = entry;
        const u32 more = __ballot_sync(ALL, has && place >= ROOM);
        if (!more) return;
        u64 at = 0;
        if (lane_id() == 0) {
            at = atomicAdd(s.tail, u64(__popc(more)));
            atomicAdd(direct, __popc(more));
        }
        at = shuffle(at, 0) + __popc(more & lanes_below());
        if (more >> lane_id() & 1) __stcg(s.queue + at, entry);
    }

    // Adds the row of a vertex, which has at least one entry.
    DEVICE void add_row(const Search& s, bool has, u64 start, u64 length) const {
        add(s, has, start << 24 | (length < CHUNK ? length : CHUNK));
        u32 long_rows = __ballot_sync(ALL, has && length > CHUNK);
        while (long_rows) {
            const u32 whose = __ffs(long_rows) - 1;
            long_rows &= long_rows - 1;
            const u64 first = shuffle(start, whose), all = shuffle(length, whose);
            for (u64 base = CHUNK; base < all; base += 32 * CHUNK) {
                const u64 done = base + lane_id() * CHUNK;
                const u64 part = done < all ? (all - done < CHUNK ? all - done : CHUNK) : 0;
                add(s, part > 0, (first + done) << 24 | part);
            }
        }
    }
};

// Follows the edges of `count` entries, MANY per lane at a time. In visit(w, open, used), w[k] is the vertex at the end
// of this lane's edge k, open[k] says whether there is such an edge, and used[k] whether there is one in any lane. All
// lanes of a warp call visit together.
template <bool SHARED, typename Visit>
DEVICE void each_edge(const u32* indices, const u64* entries, u32 count, u32 warp, u32 warps, const Visit& visit) {
    const u32 each = share(count, warps);
    for (u64 base = u64(warp) * each; base < count; base += u64(warps) * each) {
        u64 entry = 0;
        if (lane_id() < each && base + lane_id() < count) entry = SHARED ? entries[base + lane_id()] : __ldcg(entries + base + lane_id());
        const u32 inclusive = warp_inclusive_sum(u32(entry & 0xffffff));
        const u32 total = __shfl_sync(ALL, inclusive, 31);
        const u64 first = (entry >> 24) - (inclusive - u32(entry & 0xffffff));
        for (u32 e = lane_id(); e - lane_id() < total; e += 32 * MANY) {
            u32 w[MANY];
            bool open[MANY], used[MANY];
#pragma unroll
            for (u32 k = 0; k < MANY; k++) {
                open[k] = false;
                used[k] = e - lane_id() + 32 * k < total;
                if (!used[k]) continue;
                const u64 row = shuffle(first, owner_of(e + 32 * k, inclusive));
                open[k] = e + 32 * k < total;
                if (open[k]) w[k] = __ldg(indices + row + e + 32 * k);
            }
            visit(w, open, used);
        }
    }
}

// Writes the block's buffer to the queue. Returns the number of entries that the block added, in the first thread.
DEVICE u32 flush(const Search& s, const Found& found) {
    __shared__ u64 at;
    __syncthreads();
    const u32 count = *found.count < ROOM ? *found.count : ROOM;
    const u32 all = count + *found.direct;
    if (threadIdx.x == 0 && count) at = atomicAdd(s.tail, u64(count));
    __syncthreads();
    for (u32 i = threadIdx.x; i < count; i += THREADS) __stcg(s.queue + at + i, found.buffer[i]);
    if (threadIdx.x == 0) *found.count = *found.direct = 0;
    __syncthreads();
    return all;
}

// Returns whether a neighbour from place k to `end` has a bit. All lanes of a warp call it together, each for its own
// vertex; a lane checks a few alone, then the warp helps.
DEVICE bool has_neighbour(const u32* bits, const u32* indices, u64 k, u64 end) {
    bool hit = false;
    const u64 stop = end - k < BY_ITSELF ? end : k + BY_ITSELF;
    for (; k < stop && !hit; k += MANY) {
        u32 w[MANY];
#pragma unroll
        for (u32 i = 0; i < MANY; i++) w[i] = __ldg(indices + (k + i < stop ? k + i : k));
#pragma unroll
        for (u32 i = 0; i < MANY; i++) hit |= __ldcg(bits + w[i] / 32) >> (w[i] & 31) & 1;
    }
    u32 rest = __ballot_sync(ALL, !hit && k < end);
    while (rest) {
        const u32 whose = __ffs(rest) - 1;
        rest &= rest - 1;
        const u64 last = shuffle(end, whose);
        bool any = false;
        for (u64 i = shuffle(k, whose); i < last && !any; i += 32) {
            const u32 w = i + lane_id() < last ? __ldg(indices + i + lane_id()) : UNREACHED;
            any = __any_sync(ALL, w != UNREACHED && (__ldcg(bits + w / 32) >> (w & 31) & 1));
        }
        if (lane_id() == whose) hit = any;
    }
    return hit;
}
