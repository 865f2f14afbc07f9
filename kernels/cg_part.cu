// The vector half of a conjugate gradient iteration on one of several ranks: the steps of krylov.cu with sums over all
// ranks.
//
//     cg_part_residual    p.q of all ranks;  alpha = rho / p.q;  r -= alpha q;  this rank's r.r, r.z     3 vectors
//     cg_part_direction   r.r, r.z of all ranks;  x += alpha p;  beta = r.z / rho;  p = z + beta p       5 vectors
//
// The sums over all ranks are either in memory, where a separate launch has added them up, or they are read from the
// windows of GPUs (peers.cuh). In the latter case no launch comes between: the last block of one kernel writes this
// rank's sums to the windows of all, and every block of the next kernel waits at its start for the words of all ranks,
// and adds them in the order of ranks. The latency between GPUs is hidden by the start of that kernel. The entries of p
// that other ranks need are sent to their windows by the blocks that computed them, while the product with the rank's
// own columns starts.
//
// Constants: SCALAR, DIAGONAL, those of krylov.cu and of peers.cuh.
#include "cg_vectors.cuh"
#include "peers.cuh"

// Maximum number of ranks whose words fit shared memory (tuning `PART_RANKS`).
constexpr u32 MOST_RANKS = 32;

// Adds up, over all ranks, the sums of the last round in which this rank published its own. `totals` is in shared
// memory, and is NaN if a rank's sums do not arrive.
template <int COUNT> DEVICE void sums_of_all(u64 rank, u64 ranks, const u64* windows, u64* rounds, T* totals) {
    __shared__ u32 words[MOST_RANKS * COUNT * WORDS];
    const u64 round = rounds[0], own = windows[rank];
    bool all = true;
    for (u32 i = threadIdx.x; i < ranks * COUNT * WORDS; i += blockDim.x) {
        const u32 other = i / (COUNT * WORDS), k = i / WORDS % COUNT;
        all = word_of(sum_words(own, ranks, round, other, k) + i % WORDS, u32(round), rounds, words[i]) && all;
    }
    all = __syncthreads_and(all);
    if (threadIdx.x < COUNT) {
        T sum = T();
        for (u32 other = 0; other < ranks; other++) {
            words_of<T> of_rank;
#pragma unroll
            for (u32 w = 0; w < WORDS; w++) of_rank.word[w] = words[(other * COUNT + threadIdx.x) * WORDS + w];
            const T value = join<T>(of_rank);
            sum = other ? sum + value : value;
        }
        totals[threadIdx.x] = all ? sum : no_number<T>();
    }
    __syncthreads();
}

// d is null unless the inverse is a diagonal; `general`: r.z is summed later, and r.r is left in `sums`. If `pq` is
// null, p.q is read from the windows. If there are no windows, this rank's sums are written to `sums`.
extern "C" __global__ void __launch_bounds__(SUM_THREADS)
    cg_part_residual(const D* d, const T* pq, const T* q, T* r, T* sums, R* state, u64 n, u64 general, Sums* partials, u32* finished,
                     u64 rank, u64 ranks, const u64* windows, u64* rounds) {
    after_predecessors();
    __shared__ T total[1];
    // Loaded before any wait.
    const R known[SLOTS] = {state[STATUS], state[RR], state[CURVATURE], state[RHO], state[ALPHA], state[THRESHOLD]};
    const u64 next = windows ? rounds[0] + 1 : 0;
    Step step;
    const auto along = [&](R& alpha) {
        if (pq) {
            if (threadIdx.x == 0) total[0] = pq[0];
            __syncthreads();
        } else {
            // Done whatever the status, because a rank that skipped a round would stay one round behind.
            sums_of_all<1>(rank, ranks, windows, rounds, total);
        }
        step = step_along(total[0], known);
        alpha = step.alpha;
        return known[STATUS] == R(RUNNING) && step.fault == RUNNING;
    };
    Sums mine = {};
    const bool steps = d ? descend<true>(n, d, q, r, mine, along) : descend<false>(n, d, q, r, mine, along);
    if (!steps) {
        if (blockIdx.x == 0 && threadIdx.x == 0) {
            state[ALPHA] = 0;
            if (known[STATUS] == R(RUNNING)) refuse(state, step);
        }
        return;
    }
    launch_sum<SUM_THREADS>(mine, partials, finished, [=](Sums all) {
        state[CURVATURE] = step.curvature;
        state[ALPHA] = step.alpha;
        if (windows && !general) {
            put_sum(windows, rank, ranks, next, 0, from_real<T>(all.rr));
            put_sum(windows, rank, ranks, next, 1, from_real<T>(all.rz));
            rounds[0] = next;
        } else {
            sums[0] = from_real<T>(all.rr);
            if (!general) sums[1] = from_real<T>(all.rz);
        }
    });
}

// Sends entries of p to other ranks, from the pieces of THREADS VEC entries that this block has computed: for k from
// marks[piece] on, entry `numbers[k]` goes to place `places[k]` of this rank's outgoing data.
DEVICE void send_pieces(u64 block, const T* p, u64 n, u64 rank, u64 ranks, const u64* windows, u64* rounds, u64 room, const u64* starts,
                        const u32* marks, const u32* numbers, const u32* places) {
    __shared__ u32 found, list[THREADS];
    const u64 round = rounds[SENT] + 1, count = starts[ranks], pieces = (n + THREADS * VEC - 1) / (THREADS * VEC);
    u32 mine = 0;
    // The pieces of this block that have such entries, in any order.
    for (u64 base = block; base < pieces; base += u64(THREADS) * gridDim.x) {
        __syncthreads();
        if (threadIdx.x == 0) found = 0;
        __syncthreads();
        const u64 piece = base + u64(threadIdx.x) * gridDim.x;
        if (piece < pieces && marks[piece] < marks[piece + 1]) list[atomicAdd(&found, 1u)] = u32(piece);
        __syncthreads();
        for (u32 i = 0; i < found; i++) {
            const u32 begin = marks[list[i]], end = marks[list[i] + 1];
            mine += end - begin;
            for (u32 k = begin + threadIdx.x; k < end; k += THREADS) {
                const u64 e = places[k], to = part_of(starts, ranks, e);
                halo_place(windows[to], ranks, room, round, rank)[e - starts[to]] = p[numbers[k]];
            }
        }
    }
    if (mine == 0 && (count > 0 || block > 0)) return;
    // The entries are visible to other GPUs before any is notified.
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0 && atomicAdd(sent(rounds), mine) + mine == count) {
        *sent(rounds) = 0;
        __threadfence_system();
        for (u64 other = 0; other < ranks; other++) store_system(halo_flag(windows[other], ranks, rank), round);
        rounds[SENT] = round;
    }
}

// z is r if the inverse is the identity or a diagonal; d is null unless it is a diagonal. If `sums` is null, the sums
// are read from the windows. If `marks` is null, nothing is sent. Block 0 does the work of block `first`, which
// therefore starts first.
extern "C" __global__ void __launch_bounds__(THREADS)
    cg_part_direction(const D* d, const T* z, const T* sums, T* p, T* x, R* state, u64 n, u32* finished, u64 rank, u64 ranks,
                      const u64* windows, u64* rounds, u64 room, const u64* starts, const u32* marks, const u32* numbers, const u32* places,
                      u64 first) {
    after_predecessors();
    __shared__ T totals[2];
    // alpha does not change until all blocks have reached the end, so either all of them take a step or none.
    const R alpha = state[ALPHA], old_rho = state[RHO];
    const u64 block = (blockIdx.x + first) % gridDim.x;
    const auto scalars = [&](R& along, R& beta) {
        if (alpha == 0) return false;
        if (sums) {
            if (threadIdx.x < 2) totals[threadIdx.x] = sums[threadIdx.x];
            __syncthreads();
        } else {
            sums_of_all<2>(rank, ranks, windows, rounds, totals);
        }
        along = alpha;
        beta = turn(real_part(totals[1]), old_rho);
        return finite(real_part(totals[0]));
    };
    if (d) advance<true>(block, n, d, z, p, x, scalars);
    else advance<false>(block, n, d, z, p, x, scalars);
    // Also after the recurrence has ended, because the products that are queued after this launch wait for it.
    if (marks) send_pieces(block, p, n, rank, ranks, windows, rounds, room, starts, marks, numbers, places);
    if (alpha != 0 && threadIdx.x == 0) {
        __threadfence();
        if (atomicAdd(finished, 1u) == gridDim.x - 1) {
            const R rr = real_part(totals[0]);
            state[RR] = rr;
            if (!finite(rr)) {
                state[ALPHA] = 0;
                state[STATUS] = R(NOT_FINITE);
            } else {
                if (rr <= state[THRESHOLD]) state[STATUS] = R(CONVERGED);
                turned(state, totals[1], real_part(totals[1]));
            }
            *finished = 0;
        }
    }
}
