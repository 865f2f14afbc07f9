// Narrow levels of a Cuthill-McKee order: one cluster of blocks runs level after level, the frontier in its shared memory.
//
// A frontier is dealt to blocks in pieces of 2^n vertices, and these to groups of lanes, 2^spread vertices in a row to
// each. A lane holds up to HELD neighbours in registers:
//
//     neighbours of own vertices      from L2 or the device's memory
//     atomicMin on their marks        L2; at the same time the row of each neighbour
//       meeting 1                     all marks stand
//     marks again: whose children?    L2; each warp lists its own, by parent and number, in shared memory
//     each block's number of children to all blocks, into each other's shared memory
//       meeting 2                     meanwhile a lane a child ranks it among its parent's, by (degree, number)
//     a child's row to where the next frontier holds it, its number into the order
//       meeting 3
//
// That is three dependent reads of L2 and three meetings of hardware a level, and as few instructions between them as can
// be: sums by one a warp, no division, a lane an edge only as long as it has to be. Rows of up to 32 HELD neighbours,
// NARROW vertices and LISTED children a warp: what is more is left to others.
#pragma once
#include "cluster.cuh"
#include "row.cuh"

#define WARPS (THREADS / 32)
#define UNREACHED 0xffffffffu
#define LEAST 8                               // lanes of a group, at least
#define PIECE (THREADS / LEAST * HELD)        // vertices of a block
#define NARROW (CLUSTER * PIECE)
#define LISTED 128                            // children of a warp

struct Orders {
    u32 n;
    const u32* indices;
    const u64* vertices; // their rows
    u32* marks;
    u32* order;
    u64* rows; // of the vertices in the order
    u64* state;
};

// A level: its places in the order, its number, and the width of the widest so far.
struct Frontier {
    u32 head, tail, depth, width;
};

struct Narrow {
    u64 rows[2][PIECE]; // of this frontier's vertices, and of the next's
    // The children of each warp, by (parent, number).
    u64 row[WARPS][LISTED];
    u32 number[WARPS][LISTED];
    u8 parent[WARPS][LISTED]; // which of the warp's vertices
    u32 sums[WARPS];
    u32 messages[2][CLUSTER];
    u32 longest;
};

// Between blocks: their numbers of children, and the rows of these. Kept over all narrow levels of a launch, with the
// number of the next turn.
struct NarrowMail {
    Mail messages, rows;
};

// How a frontier is dealt: 2^piece vertices a block, 2^shift lanes a group, 2^spread vertices a group, `parts` reads of the
// group a row.
struct Deal {
    u32 piece, shift, spread, parts;

    // Whether it can be.
    DEVICE bool out(u32 count, u32 longest) {
        piece = bits_below(count, CLUSTER);
        shift = bits_below(longest, 1);
        shift = shift < 3 ? 3 : shift < 5 ? shift : 5;
        while (shift > 3 && THREADS >> shift < 1u << piece && longest <= HELD << (shift - 1)) shift--;
        parts = longest ? (longest - 1 >> shift) + 1 : 1;
        const u32 groups = bits_below(THREADS >> shift, 1);
        spread = piece > groups ? piece - groups : 0;
        return piece < 16 && parts << spread <= HELD;
    }
    // The smallest n for which 2^n of `unit` (a power of two) hold `count`.
    static DEVICE u32 bits_below(u32 count, u32 unit) { return count <= unit ? 0 : 32 - __clz((count - 1) / unit); }
};

// What warps, then blocks tell each other: the number of their children, and their longest row as far as it matters; or
// that the bandwidth is too large, or that a warp has more children than it can list.
#define LONGEST 0x3fffu
#define WIDE 0x8000u // in the upper half, which the largest is taken of: the wide go before the full
#define FULL 0x4000u
DEVICE u32 message(bool wide, bool full, u32 longest, u32 children) {
    return (wide ? WIDE : full ? FULL : longest < LONGEST ? longest : LONGEST) << 16 | children;
}
static_assert(THREADS * HELD < 1 << 16 && 32 * HELD < LONGEST, "a message holds a block's children, and tells what is too long");

// Sums of messages: all children, those before message number `mine`, and the rest of the message.
struct Sum {
    u32 found, earlier, most;

    DEVICE Sum(const u32* messages, u32 count, u32 mine) {
        const u32 word = lane_id() < count ? messages[lane_id()] : 0, children = word & 0xffff;
        found = sum_of_lanes(children);
        earlier = sum_of_lanes(lane_id() < mine ? children : 0);
        most = most_of_lanes(word >> 16);
    }
};

enum : u32 { GOES_ON = 4 }; // beside the statuses of a traversal

struct NarrowLevels {
    const Orders& s;
    Narrow& shared;
    NarrowMail& mail;
    u32& turn; // counts all levels
    u32& bandwidth;
    u64 limit;
    u32 rank; // of the block
    Frontier f;
    Deal deal;

    // One level, of SLOTS neighbours a lane.
    template <u32 SLOTS> DEVICE u32 level() {
        const u32 warp = threadIdx.x / 32, lanes = 1u << deal.shift, lane = lane_id() & (lanes - 1);
        const u32 count = f.tail - f.head, piece = 1u << deal.piece, start = rank * piece, here = turn & 1;
        const u32 mine = start < count ? (count - start < piece ? count - start : piece) : 0;
        const u32 used = SLOTS == 1 ? 1 : deal.parts << deal.spread;
        const u32 of_warp = (warp * 32 >> deal.shift) << deal.spread;            // the warp's first vertex
        const u32 of_group = (lane_id() >> deal.shift) << deal.spread;           // the group's, counted from there
        const u32 first_place = f.head + start + of_warp;
        const bool busy = of_warp < mine;
        u32 w[SLOTS];
        u64 row[SLOTS];
        u32 open = 0, k = 0, part = 0; // open: which of a lane's neighbours may be children
        if (threadIdx.x == 0) mail.messages.expect(turn, 4 * CLUSTER);
        if (busy) {
#pragma unroll
            for (u32 h = 0; h < SLOTS; h++) {
                w[h] = UNREACHED;
                if (h < used && of_warp + of_group + k < mine) {
                    const u64 r = shared.rows[here][of_warp + of_group + k];
                    const u32 e = (part << deal.shift) + lane;
                    if (e < row_length(r)) w[h] = __ldg(s.indices + row_start(r) + e);
                }
                if (++part == deal.parts) part = 0, k++;
            }
            k = part = 0;
#pragma unroll
            for (u32 h = 0; h < SLOTS; h++) {
                const u32 mark = first_place + of_group + k + 1;
                if (w[h] != UNREACHED) {
                    row[h] = __ldg(s.vertices + w[h]);
                    if (atomicMin(s.marks + w[h], mark) >= mark) open |= 1u << h; // its own where the level is done again
                }
                if (++part == deal.parts) part = 0, k++;
            }
        }
        cluster_meet_after(open);

        u32 all = 0, length = 0; // children of the warp, their longest row
        if (busy) {
            u32 now[SLOTS], children[SLOTS];
#pragma unroll
            for (u32 h = 0; h < SLOTS; h++) {
                now[h] = 0; // no vertex's mark
                if (open >> h & 1) now[h] = __ldcg(s.marks + w[h]);
            }
            u32 at = 0; // children of earlier groups
            k = part = 0;
#pragma unroll
            for (u32 h = 0; h < SLOTS; h++) {
                children[h] = __ballot_sync(ALL, now[h] == first_place + of_group + k + 1);
                at += __popc(children[h] & ((1u << (lane_id() - lane)) - 1));
                all += __popc(children[h]);
                if (++part == deal.parts) part = 0, k++;
            }
            const u32 group_lanes = (lanes == 32 ? ALL : (1u << lanes) - 1) << (lane_id() - lane);
            k = part = 0;
#pragma unroll
            for (u32 h = 0; h < SLOTS; h++) {
                const u32 siblings = children[h] & group_lanes, q = at + __popc(siblings & lanes_below());
                if (children[h] >> lane_id() & 1 && q < LISTED) {
                    shared.row[warp][q] = row[h];
                    shared.number[warp][q] = w[h];
                    shared.parent[warp][q] = u8(of_group + k);
                    length = length > row_length(row[h]) ? length : row_length(row[h]);
                }
                at += __popc(siblings);
                if (++part == deal.parts) part = 0, k++;
            }
            length = most_of_lanes(length);
        }
        if (lane_id() == 0) shared.sums[warp] = message(bandwidth > limit, all > LISTED, length, all);
        __syncthreads();
        const Sum block(shared.sums, WARPS, warp);
        if (threadIdx.x < CLUSTER) mail.messages.send(turn, &shared.messages[here][rank], threadIdx.x, block.most << 16 | block.found);
        // A lane a child.
        u32 spot[LISTED / 32];
#pragma unroll
        for (u32 c = 0; c < LISTED / 32; c++)
            if (32 * c < all) spot[c] = rank_of(warp, 32 * c + lane_id(), all < LISTED ? all : LISTED);
        mail.messages.wait(turn);
        const Sum sum(shared.messages[here], CLUSTER, rank);
        const u32 found = sum.found;
        const bool wide = sum.most & WIDE, full = !wide && sum.most & FULL;
        if (!found || full) {
            if (threadIdx.x == 0) mail.rows.expect(turn, 0); // nothing will come, but its turns count on
            turn++;
            if (full) // for others to do: they find the marks as they would set them
                for (u32 i = threadIdx.x; i < mine; i += THREADS) __stcg(s.rows + f.head + start + i, shared.rows[here][i]);
            return full ? 0 : wide ? 2 : 1;
        }
        const bool goes_on = !wide && deal.out(found, sum.most);
        if (threadIdx.x == 0) {
            const u32 each = 1u << deal.piece, from = rank * each;
            mail.rows.expect(turn, !goes_on || from >= found ? 0 : 8 * (found - from < each ? found - from : each));
        }
        u32 far = 0;
        const u32 to = sum.earlier + block.earlier;
#pragma unroll
        for (u32 c = 0; c < LISTED / 32; c++) {
            const u32 q = 32 * c + lane_id();
            if (q >= all) continue;
            const u32 i = to + spot[c], place = f.tail + i;
            const u64 r = shared.row[warp][q];
            if (goes_on) mail.rows.send(turn, &shared.rows[here ^ 1][i & ((1u << deal.piece) - 1)], i >> deal.piece, r);
            else __stcg(s.rows + place, r);
            __stcg(s.order + place, shared.number[warp][q]);
            const u32 distance = place - (first_place + shared.parent[warp][q]);
            far = far > distance ? far : distance;
        }
        if (far > bandwidth) atomicMax(&bandwidth, far);
        f.head = f.tail;
        f.tail += found;
        f.depth++;
        f.width = f.width > found ? f.width : found;
        mail.rows.wait(turn);
        turn++;
        return goes_on ? u32(GOES_ON) : wide ? 2 : 0;
    }

    // The place of child q among the warp's `all`, by (parent, degree, number): they are listed by (parent, number).
    DEVICE u32 rank_of(u32 warp, u32 q, u32 all) const {
        if (q >= all) return 0;
        const u32 parent = shared.parent[warp][q], degree = row_degree(shared.row[warp][q]);
        u32 spot = q;
        for (u32 i = q; i > 0 && shared.parent[warp][i - 1] == parent; i--) spot -= row_degree(shared.row[warp][i - 1]) > degree;
        for (u32 i = q + 1; i < all && shared.parent[warp][i] == parent; i++) spot += row_degree(shared.row[warp][i]) < degree;
        return spot;
    }

    // The rows of the first level, and whether it can be dealt out.
    DEVICE bool begin() {
        const u32 count = f.tail - f.head;
        u32 longest = 0; // all blocks look for it
        for (u32 i = threadIdx.x; i < count; i += THREADS) {
            const u32 length = row_length(__ldcg(s.rows + f.head + i));
            longest = longest > length ? longest : length;
        }
        longest = most_of_lanes(longest);
        if (threadIdx.x == 0) shared.longest = 0;
        __syncthreads();
        if (lane_id() == 0) atomicMax(&shared.longest, longest);
        __syncthreads();
        if (!deal.out(count, shared.longest)) return false;
        const u32 piece = 1u << deal.piece, start = rank * piece;
        for (u32 i = threadIdx.x; i < piece && start + i < count; i += THREADS) shared.rows[turn & 1][i] = __ldcg(s.rows + f.head + start + i);
        cluster_meet();
        return true;
    }

    // Runs levels, in all blocks of the cluster. Returns 1 where the traversal is over, 2 where its bandwidth exceeds the
    // limit, 0 where the next level is not for this; the next level's rows are then in s.rows, as they were on entry.
    DEVICE u64 run() {
        if (!begin()) return 0;
        u32 status = GOES_ON;
        while (status == GOES_ON) {
            const u32 used = deal.parts << deal.spread;
            status = used == 1 ? level<1>() : used == 2 ? level<2>() : used <= 4 ? level<4>() : level<8>();
        }
        return status;
    }
};
static_assert((THREADS & (THREADS - 1)) == 0 && (CLUSTER & (CLUSTER - 1)) == 0, "pieces are powers of two");
static_assert(HELD == 8, "levels of 1, 2, 4 and 8 neighbours a lane");
