// Narrow levels of a Cuthill-McKee order: one cluster of blocks runs level after level, the frontier in its shared
// memory.
//
// A block deals its part of the frontier to groups of lanes, some vertices in a row to each. A lane holds up to HELD
// neighbours in registers:
//
//     neighbours of own vertices      from the first-level cache where the last level asked for them, else from L2 or memory
//     atomicMin on their marks        L2; at the same time the row of each neighbour
//       meeting 1                     all marks stand
//     marks again: whose children?    L2; each warp lists its own, by parent and number, in shared memory
//     each block's number of children to all blocks, into each other's shared memory
//       meeting 2                     meanwhile a lane a child ranks it among its parent's, by (degree, number)
//     a child's row to where the next frontier holds it, its number into the order
//       meeting 3                     only of the block's own threads where children stay in the block that found them
//
// A block's children are neighbours in the next frontier too, so they stay where they are until one block has so many
// more than others that all wait for it: then they are dealt out evenly. As a rule that is an atomic operation and a
// read of L2 a level, and as few instructions beside them as can be: sums by one a warp, no division and no new
// decision while things stay as they are, a lane an edge only as long as it has to be. Frontiers of up to NARROW
// vertices, rows of up to 32 HELD neighbours, LISTED children a warp: what is more is left to others.
#pragma once
#include "cluster.cuh"
#include "row.cuh"

#define WARPS (THREADS / 32)
#define UNREACHED 0xffffffffu
#define LEAST 8                               // lanes of a group, at least
#define PIECE (THREADS / LEAST * HELD)        // vertices of a block
#define LISTED 128                            // children of a warp

struct Orders {
    u32 n;
    const u32* indices;
    const u64* vertices; // their rows
    u32* marks;
    u32* order;
    u64* rows; // of the vertices in the order
    u64* state; // the team's header
    u64* tiles; // a word for each tile of a wide level
};

// A level: its places in the order, its number, and the width of the widest so far.
struct Frontier {
    u32 head, tail, depth, width;

    // To the next level, of `found` vertices, where there is one.
    DEVICE void go_on(u32 found) {
        if (!found) return;
        head = tail;
        tail += found;
        depth++;
        width = width > found ? width : found;
    }
};

struct Narrow {
    u64 rows[2][PIECE]; // of this frontier's vertices, and of the next's
    // The children of each warp, by (parent, number).
    u64 row[WARPS][LISTED];
    u32 number[WARPS][LISTED];
    u32 family[WARPS][LISTED]; // which of the warp's vertices is the parent | its first child here << 8 | one past its last << 16
    u32 sums[WARPS];
    u32 messages[2][CLUSTER];
    u32 longest;
    u32 asked[2][THREADS]; // what nobody reads: a place for each copy of a level
};

// A child: its row, its number, which of the warp's vertices is its parent, its place among the warp's children.
struct Child {
    u64 row;
    u32 number, parent, spot;
};

// Between blocks: their numbers of children, and the rows of these, which go only where they are dealt out. Kept over
// all narrow levels of a launch, with the numbers of the next turns.
struct NarrowMail {
    Mail messages, rows;
    u32 turn, deals;
};

// How blocks deal their vertices to groups of 2^shift lanes: `each` vertices a group, `parts` reads of the group a row.
struct Deal {
    u32 shift, parts, each;
    u32 longest, least, most; // stands for this longest row, and blocks of more than `least` and up to `most` vertices

    // For the largest block and the longest row. Whether lanes can hold that many neighbours.
    DEVICE bool out(u32 vertices, u32 longest_row) {
        longest = longest_row;
        shift = longest <= 8 ? 3 : longest <= 16 ? 4 : 5;
        while (shift > 3 && THREADS >> shift < vertices && longest <= HELD << (shift - 1)) shift--;
        parts = longest ? (longest - 1 >> shift) + 1 : 1;
        const u32 groups = THREADS >> shift;
        each = vertices + groups - 1 >> (31 - __clz(THREADS)) - shift;
        most = each * groups;
        least = most - groups;
        return slots() <= HELD;
    }
    DEVICE u32 slots() const { return parts * each; }

    // Whether it serves blocks of up to `largest` of all `vertices` as well as any, and to share them evenly would not
    // make rounds fewer.
    DEVICE bool still_serves(u32 vertices, u32 largest, u32 longest_row) const {
        return longest_row == longest && largest > least && largest <= most && vertices > CLUSTER * least;
    }
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

// Sums of messages: all children, those before message number `mine`, the most of one, and the rest of the message. One
// sum for both: all children that are listed fit in 16 bits; where a warp has more, nobody goes on with these sums.
struct Sum {
    u32 word, found, earlier, largest, most;

    DEVICE Sum(const u32* messages, u32 count, u32 mine) {
        word = lane_id() < count ? messages[lane_id()] : 0;
        const u32 children = word & 0xffff, both = sum_of_lanes(lane_id() < mine ? children << 16 | children : children);
        found = both & 0xffff;
        earlier = both >> 16;
        largest = most_of_lanes(children);
        most = most_of_lanes(word >> 16);
    }
    DEVICE u32 of(u32 message) const { return __shfl_sync(ALL, word, message) & 0xffff; }
};
static_assert(CLUSTER * WARPS * LISTED < 1 << 16, "the children of a level fit in half a word");

enum : u32 { GOES_ON = 4 }; // beside the statuses of a traversal

struct NarrowLevels {
    const Orders& s;
    Narrow& shared;
    NarrowMail& mail;
    u64 limit;
    u32 rank; // of the block
    Frontier f;
    u32 bandwidth; // as far as this lane has seen
    Deal deal;
    u32 start, mine; // the block's vertices in the frontier

    // One level, of SLOTS neighbours a lane.
    template <u32 SLOTS> DEVICE u32 level() {
        const u32 warp = threadIdx.x / 32, lanes = 1u << deal.shift, lane = lane_id() & (lanes - 1), turn = mail.turn++, here = turn & 1;
        const u32 parts = SLOTS == 1 ? 1 : deal.parts, each = SLOTS == 1 ? 1 : deal.each, used = parts * each;
        const u32 of_warp = (warp * 32 >> deal.shift) * each;  // the warp's first vertex
        const u32 of_group = (lane_id() >> deal.shift) * each; // the group's, counted from there
        const u32 first_place = f.head + start + of_warp;
        const bool busy = of_warp < mine;
        u32 w[SLOTS];
        u64 row[SLOTS];
        u32 open = 0, last = 0, k = 0, part = 0; // which of a lane's neighbours may be children; are of a row's last part
        if (threadIdx.x == 0) mail.messages.expect(turn, 4 * CLUSTER);
        if (busy) {
            u32 before[SLOTS];
#pragma unroll
            for (u32 h = 0; h < SLOTS; h++) {
                w[h] = UNREACHED;
                if (h < used && of_warp + of_group + k < mine) {
                    const u64 r = shared.rows[here][of_warp + of_group + k];
                    const u32 e = (part << deal.shift) + lane;
                    if (e < row_length(r)) w[h] = __ldg(s.indices + row_start(r) + e);
                }
                if (++part == parts) part = 0, k++, last |= 1u << h;
            }
            k = part = 0;
#pragma unroll
            for (u32 h = 0; h < SLOTS; h++) {
                before[h] = 0;
                if (w[h] != UNREACHED) {
                    row[h] = __ldg(s.vertices + w[h]);
                    before[h] = atomicMin(s.marks + w[h], first_place + of_group + k + 1);
                }
                if (last >> h & 1) k++;
            }
            k = 0;
#pragma unroll
            for (u32 h = 0; h < SLOTS; h++) {
                if (before[h] > first_place + of_group + k) open |= 1u << h; // its own where the level is done again
                if (last >> h & 1) k++;
            }
        }
        cluster_meet_after(open);
        finish_asking(); // what the last level asked for, long since there

        u32 all = 0, length = 0; // children of the warp, their longest row
        if (busy) {
            u32 now[SLOTS], siblings[SLOTS], begin[SLOTS], end[SLOTS];
#pragma unroll
            for (u32 h = 0; h < SLOTS; h++) {
                now[h] = 0; // no vertex's mark
                if (open >> h & 1) now[h] = __ldcg(s.marks + w[h]);
            }
            const u32 first_lane = lane_id() - lane, group_lanes = (lanes == 32 ? ALL : (1u << lanes) - 1) << first_lane;
            u32 at = 0; // children of earlier groups, then of earlier slots
            k = 0;
#pragma unroll
            for (u32 h = 0; h < SLOTS; h++) {
                const u32 children = __ballot_sync(ALL, now[h] == first_place + of_group + k + 1);
                at += __popc(children & ((1u << first_lane) - 1));
                all += __popc(children);
                siblings[h] = children & group_lanes;
                if (last >> h & 1) k++;
            }
            u32 first = at;
#pragma unroll
            for (u32 h = 0; h < SLOTS; h++) {
                begin[h] = first;
                end[h] = at + __popc(siblings[h] & lanes_below()); // its own place, for now
                at += __popc(siblings[h]);
                if (last >> h & 1) first = at;
            }
            k = __popc(last);
#pragma unroll
            for (u32 h = SLOTS; h-- > 0;) {
                if (last >> h & 1) first = end[h] + __popc(siblings[h] & ~lanes_below()), k--;
                const u32 q = end[h];
                if (siblings[h] >> lane_id() & 1 && q < LISTED) {
                    shared.row[warp][q] = row[h];
                    shared.number[warp][q] = w[h];
                    shared.family[warp][q] = of_group + k | begin[h] << 8 | (first < LISTED ? first : LISTED) << 16;
                    length = length > row_length(row[h]) ? length : row_length(row[h]);
                }
            }
            length = most_of_lanes(length);
        }
        const bool too_far = __any_sync(ALL, bandwidth > limit);
        if (lane_id() == 0) shared.sums[warp] = message(too_far, all > LISTED, length, all);
        __syncthreads();
        u32 to = 0; // where the warp's children go, in the next frontier
        if (all || warp == 0) {
            const Sum block(shared.sums, WARPS, warp);
            to = block.earlier;
            if (threadIdx.x < CLUSTER) mail.messages.send(turn, &shared.messages[here][rank], threadIdx.x, block.most << 16 | block.found);
        }
        // A lane a child; the first 32 of a warp ask, for copies of one level have a place each.
        all = all < LISTED ? all : LISTED;
        constexpr u32 ROUNDS = SLOTS < LISTED / 32 ? SLOTS : LISTED / 32;
        Child child[ROUNDS] = {};
#pragma unroll
        for (u32 c = 0; c < ROUNDS; c++) {
            if (32 * c >= all) break;
            if (32 * c + lane_id() < all) child[c] = ranked(warp, 32 * c + lane_id(), c == 0);
        }
        mail.messages.wait(turn);
        const Sum sum(shared.messages[here], CLUSTER, rank);
        const u32 found = sum.found;
        const bool wide = sum.most & WIDE, full = !wide && sum.most & FULL;
        if (!found || full) {
            if (full) // for others to do: they find the marks as they would set them
                for (u32 i = threadIdx.x; i < mine; i += THREADS) __stcg(s.rows + f.head + start + i, shared.rows[here][i]);
            return full ? 0 : wide ? 2 : 1;
        }
        to += sum.earlier;
        u32 piece = 0; // a block's share where they are dealt out again
        bool goes_on = !wide && found <= NARROW;
        if (goes_on && !deal.still_serves(found, sum.largest, sum.most)) {
            Deal even;
            piece = (found + CLUSTER - 1) / CLUSTER;
            goes_on = even.out(piece, sum.most);
            if (goes_on && deal.out(sum.largest, sum.most) && deal.slots() <= even.slots()) piece = 0;
            else deal = even;
        }
        start = piece ? rank * piece : sum.earlier;
        mine = piece ? start < found ? (found - start < piece ? found - start : piece) : 0 : sum.of(rank);
        const u32 deal_turn = mail.deals; // the same in all blocks
        if (goes_on && piece) {
            mail.deals++;
            if (threadIdx.x == 0) mail.rows.expect(deal_turn, 8 * mine);
        }
#pragma unroll
        for (u32 c = 0; c < ROUNDS; c++) {
            if (32 * c >= all) break;
            if (32 * c + lane_id() >= all) continue;
            const u32 i = to + child[c].spot, place = f.tail + i;
            if (!goes_on) __stcg(s.rows + place, child[c].row);
            else if (!piece) shared.rows[here ^ 1][i - start] = child[c].row;
            else mail.rows.send(deal_turn, &shared.rows[here ^ 1][i % piece], i / piece, child[c].row);
            __stcg(s.order + place, child[c].number);
            const u32 distance = place - (first_place + child[c].parent);
            bandwidth = bandwidth > distance ? bandwidth : distance;
        }
        f.go_on(found);
        if (goes_on && piece) mail.rows.wait(deal_turn);
        else __syncthreads();
        return goes_on ? u32(GOES_ON) : wide ? 2 : 0;
    }

    // Child q of the warp, and its place among the warp's by (parent, degree, number): they are listed by (parent,
    // number). Asks for its neighbours on the way where `asks`: the block that finds a child reads them, as a rule, in
    // the next level.
    DEVICE Child ranked(u32 warp, u32 q, bool asks) {
        const u64 row = shared.row[warp][q];
        const u32 family = shared.family[warp][q], begin = family >> 8 & 0xff, end = family >> 16;
        Child child = {row, shared.number[warp][q], family & 0xff, begin};
        if (end - begin > 1)
#pragma unroll 1
            for (u32 i = begin; i < end; i++) {
                const u32 degree = row_degree(shared.row[warp][i]);
                child.spot += degree < row_degree(row) || degree == row_degree(row) && i < q;
            }
        if (asks && row_length(row)) {
            ask_for(s.indices + row_start(row), shared.asked[0] + threadIdx.x);
            ask_for(s.indices + row_start(row) + row_length(row) - 1, shared.asked[1] + threadIdx.x);
        }
        return child;
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
        const u32 piece = (count + CLUSTER - 1) / CLUSTER;
        if (!deal.out(piece, shared.longest)) return false;
        start = rank * piece;
        mine = start < count ? (count - start < piece ? count - start : piece) : 0;
        for (u32 i = threadIdx.x; i < mine; i += THREADS) shared.rows[mail.turn & 1][i] = __ldcg(s.rows + f.head + start + i);
        cluster_meet();
        return true;
    }

    // Runs levels, in all blocks of the cluster. Returns 1 where the traversal is over, 2 where its bandwidth exceeds
    // the limit, 0 where the next level is not for this; the next level's rows are then in s.rows, as they were on
    // entry.
    DEVICE u64 run(u32& all_bandwidth) {
        if (!begin()) return 0;
        u32 status = GOES_ON;
        while (status == GOES_ON) {
            const u32 used = deal.slots();
            status = used == 1 ? level<1>() : used == 2 ? level<2>() : used <= 4 ? level<4>() : level<8>();
        }
        finish_asking();
        const u32 farthest = most_of_lanes(bandwidth);
        if (lane_id() == 0) atomicMax(&all_bandwidth, farthest);
        __syncthreads();
        return status;
    }
};
static_assert((THREADS & (THREADS - 1)) == 0 && (CLUSTER & (CLUSTER - 1)) == 0, "pieces are powers of two");
static_assert(HELD == 8, "levels of 1, 2, 4 and 8 neighbours a lane");
