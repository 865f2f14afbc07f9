// Narrow levels of a Cuthill-McKee order: one cluster of blocks runs level after level, with the frontier in its shared
// memory.
//
// A block distributes its part of the frontier to groups of lanes, several consecutive vertices to each. A lane holds
// up to HELD neighbours in registers:
//
//     neighbours of own vertices      from the first-level cache if the last level requested them, else L2 or memory
//     atomicMin on their marks        L2; at the same time the row of each neighbour
//       meeting 1                     all marks are written
//     marks again: whose children?    L2; each warp lists its own, by parent and number, in shared memory
//     each block's number of children to all blocks, into each other's shared memory
//       meeting 2                     meanwhile one lane per child ranks it among its parent's, by (degree, number)
//     a child's row is written to its place in the next frontier, its number to the order
//       meeting 3                     only of the block's own threads if children stay in the block that found them
//
// A block's children are neighbours in the next frontier too, so they stay where they are until one block has so many
// more than others that all wait for it; then they are distributed evenly. Usually that takes one atomic operation and
// one read of L2 per level, and as few other instructions as possible: sums by one instruction per warp, no division
// and no new decision while nothing changes, one lane per edge only as long as necessary. Frontiers have up to NARROW
// vertices, rows up to 32 HELD neighbours, warps up to LISTED children; beyond that other kernels are used.
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
    u64* rows; // rows of the vertices in the order
    u64* state; // the team's header
    u64* tiles; // a word for each tile of a wide level
};

// A level: its places in the order, its number, and the largest width so far.
struct Frontier {
    u32 head, tail, depth, width;

    // Goes on to the next level of `found` vertices, unless there are none.
    DEVICE void go_on(u32 found) {
        if (!found) return;
        head = tail;
        tail += found;
        depth++;
        width = width > found ? width : found;
    }
};

struct Narrow {
    u64 rows[2][PIECE]; // of this frontier's vertices, and of the next one's
    // The children of each warp, by (parent, number).
    u64 row[WARPS][LISTED];
    u32 number[WARPS][LISTED];
    u32 family[WARPS][LISTED]; // which of the warp's vertices is the parent | its first child here << 8 | one past its last << 16
    u32 sums[WARPS];
    u32 messages[2][CLUSTER];
    u32 longest;
    u32 asked[2][THREADS]; // never read: a place for each copy of a level
};

// A child: its row, its number, its parent among the warp's vertices, its place among the warp's children.
struct Child {
    u64 row;
    u32 number, parent, spot;
};

// Messages between blocks: their numbers of children, and the rows of these, which are sent only if they are
// redistributed. Kept over all narrow levels of a launch, with the numbers of the next turns.
struct NarrowMail {
    Mail messages, rows;
    u32 turn, deals;
};

// How blocks distribute their vertices to groups of 2^shift lanes: `each` vertices per group, and `parts` reads of the
// group per row.
struct Deal {
    u32 shift, parts, each;
    u32 longest, least, most; // valid for this longest row, and blocks of more than `least` and up to `most` vertices

    // Sets the distribution for the largest block and the longest row. Returns whether lanes can hold that many
    // neighbours.
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

    // Returns whether the distribution is still as good as any for blocks of up to `largest` of all `vertices`, and
    // redistributing them evenly would not reduce the number of rounds.
    DEVICE bool still_serves(u32 vertices, u32 largest, u32 longest_row) const {
        return longest_row == longest && largest > least && largest <= most && vertices > CLUSTER * least;
    }
};

// Messages of warps, then of blocks: the number of their children, and their longest row, limited to LONGEST; instead
// of the row, WIDE says that the bandwidth is too large, and FULL that a warp has more children than it can list.
#define LONGEST 0x3fffu
#define WIDE 0x8000u // in the upper half, whose maximum is taken, so that this takes precedence over too many children
#define FULL 0x4000u
DEVICE u32 message(bool wide, bool full, u32 longest, u32 children) {
    return (wide ? WIDE : full ? FULL : longest < LONGEST ? longest : LONGEST) << 16 | children;
}
static_assert(THREADS * HELD < 1 << 16 && 32 * HELD < LONGEST, "a message holds a block's children, and tells what is too long");

// Sums of messages: all children, those before message number `mine`, the largest number of one message, and the rest
// of the message. One sum for both: the number of all listed children fits 16 bits; if a warp has more, these sums are
// not used.
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

enum : u32 { GOES_ON = 4 }; // in addition to the statuses of a traversal

struct NarrowLevels {
    const Orders& s;
    Narrow& shared;
    NarrowMail& mail;
    u64 limit;
    u32 rank; // of the block
    Frontier f;
    u32 bandwidth; // as seen by this lane so far
    Deal deal;
    u32 start, mine; // the block's vertices in the frontier

    // One level with SLOTS neighbours per lane.
    template <u32 SLOTS> DEVICE u32 level() {
        const u32 warp = threadIdx.x / 32, lanes = 1u << deal.shift, lane = lane_id() & (lanes - 1), turn = mail.turn++, here = turn & 1;
        const u32 parts = SLOTS == 1 ? 1 : deal.parts, each = SLOTS == 1 ? 1 : deal.each, used = parts * each;
        const u32 of_warp = (warp * 32 >> deal.shift) * each;  // the warp's first vertex
        const u32 of_group = (lane_id() >> deal.shift) * each; // the group's, counted from there
        const u32 first_place = f.head + start + of_warp;
        const bool busy = of_warp < mine;
        u32 w[SLOTS];
        u64 row[SLOTS];
        u32 open = 0, last = 0, k = 0, part = 0; // neighbours that may be children; in the last part of a row
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
                if (before[h] > first_place + of_group + k) open |= 1u << h; // its own if the level is repeated
                if (last >> h & 1) k++;
            }
        }
        cluster_meet_after(open);
        finish_asking(); // the loads that the previous level requested, which have long arrived

        u32 all = 0, length = 0; // children of the warp, their longest row
        if (busy) {
            u32 now[SLOTS], siblings[SLOTS], begin[SLOTS], end[SLOTS];
#pragma unroll
            for (u32 h = 0; h < SLOTS; h++) {
                now[h] = 0; // the mark of no vertex
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
                end[h] = at + __popc(siblings[h] & lanes_below()); // its own place, temporarily
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
        u32 to = 0; // place of the warp's children in the next frontier
        if (all || warp == 0) {
            const Sum block(shared.sums, WARPS, warp);
            to = block.earlier;
            if (threadIdx.x < CLUSTER) mail.messages.send(turn, &shared.messages[here][rank], threadIdx.x, block.most << 16 | block.found);
        }
        // One lane per child; the first 32 of a warp request loads, because copies of one level have one place each.
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
            if (full) // left to other kernels, which find the marks as they would set them
                for (u32 i = threadIdx.x; i < mine; i += THREADS) __stcg(s.rows + f.head + start + i, shared.rows[here][i]);
            return full ? 0 : wide ? 2 : 1;
        }
        to += sum.earlier;
        u32 piece = 0; // a block's share if they are redistributed
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

    // Child q of the warp, and its place among the warp's by (parent, degree, number); they are listed by (parent,
    // number). If `asks`, requests loads of its neighbours: the block that finds a child usually reads them in the next
    // level.
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

    // Loads the rows of the first level; returns whether it can be distributed.
    DEVICE bool begin() {
        const u32 count = f.tail - f.head;
        u32 longest = 0; // computed by all blocks
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

    // Runs levels, in all blocks of the cluster. Returns 1 if the traversal is over, 2 if its bandwidth exceeds the
    // limit, 0 if the next level must be processed by another kernel; the next level's rows are then in s.rows, as they
    // were on entry.
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
