// Systems of 33 to ROWS unknowns, each by a block of threads.
//
//     panel            others          1  The panel is eliminated with partial pivoting. Each thread has a row of it in
//     | u u | u u u u |                   registers, and the pivot row is passed on in shared memory.
//     | l u | u u u u |                2  The rows of U beside the panel are computed, one column per thread.
//     | l l | a a a a |                3  l times u is subtracted from all other rows, by small tiles.
//
// This is right-looking LU by blocks (Golub and Van Loan, Matrix Computations, 4th ed., 3.4). No row moves: `step_of`
// has the step at which each row was the pivot row, and `row_of` the row of each step. The matrix is in shared memory
// if a multiprocessor then still has room for several blocks of threads, else in global memory of the block of threads,
// most of which stays in the caches. Pivots are compared by the upper 27 bits of their size.
//
// Bytes: A twice, b and x once; if the matrix is not in shared memory, it is also read and written once per panel.
//
// Constants: SCALAR, ROWS, THREADS (at least ROWS), PANEL, TILE_COLUMNS, BLOCKS, and those of batch.cuh.
#include "batch_refine.cuh"
#include "batch_sums.cuh"

typedef SCALAR S;
typedef double_of<S>::type D;

// A tile of step 3 has TILE_ROWS rows for each of THREADS / 16 groups, and TILE_COLUMNS columns for each of 16 threads.
#define TILE_ROWS 4

struct Room {
    D candidates[2][WARPS][PANEL];
    u32 keys[2][WARPS];
    f64 sums[WARPS][6];
    u32 counts[WARPS];
};

// The system of a block of threads, with its factors.
struct Block {
    Room& room;
    D* m;
    D *right, *y, *r, *moving;
    f64* norms;
    i32* exponents;
    u32 *step_of, *row_of, *open_rows;
    u32 n, stride;

    DEVICE D& at(u32 row, u32 column) const { return m[u64(row) * stride + column]; }

    // Loads F A and the norms of its rows, one row per warp. Returns whether every row has a nonzero entry, within the
    // range of powers of two.
    DEVICE bool load(const Systems& systems, u64 system) const {
        bool sound = true;
        for (u32 row = warp_id(); row < n; row += WARPS) {
            f64 largest = 0;
            systems.entries(system, n, row, lane_id(), 32, [&](u32, D entry) {
                largest = fmax(largest, size_of(entry));
                sound = sound && is_finite(entry);
            });
#pragma unroll
            for (u32 with = 16; with; with /= 2) largest = fmax(largest, shuffle_xor(largest, with));
            const i32 found = exponent_of(largest);
            sound = sound && in_range(found);
            const i32 exponent = in_range(found) ? -found : 0;
            const f64 scale = power(exponent);
            if (systems.offsets) {
                for (u32 j = lane_id(); j < n; j += 32) at(row, j) = D();
                __syncwarp();
            }
            f64 norm = 0;
            systems.entries(system, n, row, lane_id(), 32, [&](u32 j, D entry) {
                const D own = scale * entry;
                at(row, j) = own;
                norm += abs2(own);
            });
            norm = sqrt(warp_sum(norm));
            if (lane_id() == 0) {
                norms[row] = norm;
                exponents[row] = exponent;
            }
        }
        return __syncthreads_and(sound);
    }

    // Step 1 for columns k to k + width of all rows that are still open. Returns false if a pivot is zero.
    DEVICE bool panel(u32 k, u32 width, u32& own_step) const {
        const u32 row = threadIdx.x;
        const bool mine = row < n && own_step == ~0u;
        D own[PANEL];
#pragma unroll
        for (u32 j = 0; j < PANEL; j++) own[j] = mine && j < width ? at(row, k + j) : D();
        bool sound = true;
#pragma unroll
        for (u32 j = 0; j < PANEL; j++) {
            if (j < width) {
                const bool open = mine && own_step == ~0u;
                const u32 bits = u32(u64(__double_as_longlong(size_of(own[j]))) >> 32);
                const u32 key = open ? (bits & ~63u) | 32 | (31 - lane_id()) : 0;
                const u32 best = most_of_lanes(key);
                if (key == best && key) {
#pragma unroll
                    for (u32 i = 0; i < PANEL; i++) room.candidates[j % 2][warp_id()][i] = own[i];
                }
                if (lane_id() == 0) room.keys[j % 2][warp_id()] = best;
                __syncthreads();
                u32 winner = 0, most = room.keys[j % 2][0];
#pragma unroll
                for (u32 w = 1; w < WARPS; w++) {
                    const u32 other = room.keys[j % 2][w];
                    if ((other & ~31u) > (most & ~31u)) {
                        most = other;
                        winner = w;
                    }
                }
                const u32 pivot_row = winner * 32 + 31 - (most & 31);
                sound = sound && most >= 64;
                const D* const pivot = room.candidates[j % 2][winner];
                const D by = inverse(pivot[j]);
                if (row == pivot_row) {
                    own_step = k + j;
                    step_of[row] = k + j;
                    row_of[k + j] = row;
                } else if (open) {
                    const D factor = own[j] * by;
                    own[j] = factor;
#pragma unroll
                    for (u32 i = j + 1; i < PANEL; i++) own[i] = fused(-factor, pivot[i], own[i]);
                }
            }
        }
        if (mine)
#pragma unroll
            for (u32 j = 0; j < PANEL; j++)
                if (j < width) at(row, k + j) = own[j];
        return sound;
    }

    // Lists the rows that are still open, in their order.
    DEVICE void list_open(u32 own_step) const {
        const bool open = threadIdx.x < n && own_step == ~0u;
        const u32 votes = __ballot_sync(ALL, open);
        if (lane_id() == 0) room.counts[warp_id()] = __popc(votes);
        __syncthreads();
        u32 before = 0;
        for (u32 w = 0; w < warp_id(); w++) before += room.counts[w];
        if (open) open_rows[before + __popc(votes & lanes_below())] = threadIdx.x;
        __syncthreads();
    }

    // Steps 2 and 3: everything to the right of the panel.
    DEVICE void update(u32 k, u32 width) const {
        const u32 from = k + width, open = n - from;
        for (u32 column = from + threadIdx.x; column < n; column += THREADS) {
            D u[PANEL];
#pragma unroll
            for (u32 i = 0; i < PANEL; i++) {
                if (i < width) {
                    const u32 row = row_of[k + i];
                    u[i] = at(row, column);
#pragma unroll
                    for (u32 j = 0; j < i; j++) u[i] = fused(-at(row, k + j), u[j], u[i]);
                    at(row, column) = u[i];
                }
            }
        }
        __syncthreads();
        const u32 across = threadIdx.x % 16, down = threadIdx.x / 16;
        for (u32 first = 0; first < open; first += TILE_ROWS * (THREADS / 16)) {
            // Entries beyond the end belong to other threads, which change them, so they must not be read.
            u32 rows[TILE_ROWS];
            bool has_row[TILE_ROWS];
#pragma unroll
            for (u32 i = 0; i < TILE_ROWS; i++) {
                const u32 place = first + down + i * (THREADS / 16);
                has_row[i] = place < open;
                rows[i] = open_rows[has_row[i] ? place : open - 1];
            }
            if (first + down >= open) continue;
            for (u32 left = from; left < n; left += 16 * TILE_COLUMNS) {
                D sums[TILE_ROWS][TILE_COLUMNS];
                u32 columns[TILE_COLUMNS];
#pragma unroll
                for (u32 j = 0; j < TILE_COLUMNS; j++) columns[j] = min(left + across + 16 * j, n - 1);
#pragma unroll
                for (u32 i = 0; i < TILE_ROWS; i++)
#pragma unroll
                    for (u32 j = 0; j < TILE_COLUMNS; j++)
                        sums[i][j] = has_row[i] && left + across + 16 * j < n ? at(rows[i], columns[j]) : D();
#pragma unroll 4
                for (u32 q = 0; q < width; q++) {
                    D l[TILE_ROWS], u[TILE_COLUMNS];
                    const u32 pivot = row_of[k + q];
#pragma unroll
                    for (u32 i = 0; i < TILE_ROWS; i++) l[i] = at(rows[i], k + q);
#pragma unroll
                    for (u32 j = 0; j < TILE_COLUMNS; j++) u[j] = at(pivot, columns[j]);
#pragma unroll
                    for (u32 i = 0; i < TILE_ROWS; i++)
#pragma unroll
                        for (u32 j = 0; j < TILE_COLUMNS; j++) sums[i][j] = fused(-l[i], u[j], sums[i][j]);
                }
#pragma unroll
                for (u32 i = 0; i < TILE_ROWS; i++)
#pragma unroll
                    for (u32 j = 0; j < TILE_COLUMNS; j++)
                        if (has_row[i] && left + across + 16 * j < n) at(rows[i], columns[j]) = sums[i][j];
            }
        }
        __syncthreads();
    }

    DEVICE bool eliminate(u32& own_step) const {
        own_step = ~0u;
        bool sound = true;
        for (u32 k = 0; k < n; k += PANEL) {
            const u32 width = min(u32(PANEL), n - k);
            sound = panel(k, width, own_step) && sound;
            if (k + width < n) {
                list_open(own_step);
                update(k, width);
            } else {
                __syncthreads();
            }
        }
        return sound;
    }

    // solution = A^-1 `moving`, which is overwritten. Triangles are solved by panels: one warp solves with the triangle
    // of a panel, then all threads apply the result to the other rows.
    DEVICE void solve(D* solution, u32 own_step) const {
        __syncthreads();
        for (u32 k = 0; k < n; k += PANEL) {
            const u32 width = min(u32(PANEL), n - k);
            if (warp_id() == 0) {
                const u32 row = row_of[k + min(lane_id(), width - 1)];
                D own = lane_id() < width ? moving[row] : D();
                for (u32 q = 0; q + 1 < width; q++) {
                    const D above = shuffle(own, q);
                    if (lane_id() > q) own = fused(-at(row, k + q), above, own);
                }
                if (lane_id() < width) moving[row] = own;
            }
            __syncthreads();
            if (threadIdx.x < n && own_step >= k + width) {
                D own = moving[threadIdx.x];
                for (u32 q = 0; q < width; q++) own = fused(-at(threadIdx.x, k + q), moving[row_of[k + q]], own);
                moving[threadIdx.x] = own;
            }
            __syncthreads();
        }
        for (u32 k = (n - 1) / PANEL * PANEL;; k -= PANEL) {
            const u32 width = min(u32(PANEL), n - k);
            if (warp_id() == 0) {
                const u32 row = row_of[k + min(lane_id(), width - 1)];
                D own = lane_id() < width ? moving[row] : D();
                const D by = inverse(at(row, k + min(lane_id(), width - 1)));
                for (u32 q = width; q-- > 0;) {
                    if (lane_id() == q) own = own * by;
                    const D below = shuffle(own, q);
                    if (lane_id() < q) own = fused(-at(row, k + q), below, own);
                }
                if (lane_id() < width) solution[k + lane_id()] = own;
            }
            __syncthreads();
            if (threadIdx.x < n && own_step < k) {
                D own = moving[threadIdx.x];
                for (u32 q = 0; q < width; q++) own = fused(-at(threadIdx.x, k + q), solution[k + q], own);
                moving[threadIdx.x] = own;
            }
            __syncthreads();
            if (k == 0) break;
        }
    }

    // Computes r = s F (b - A x), one row per warp, and judges it.
    DEVICE Judged judge(const Systems& systems, u64 system, const Units& units, bool accurate) const {
        f64 square[1] = {threadIdx.x < n ? abs2(y[threadIdx.x]) : 0.0};
        block_sums(room.sums, square);
        for (u32 row = warp_id(); row < n; row += WARPS) {
            const f64 scale = power(exponents[row]);
            if (accurate) {
                CompensatedOf<D> sum;
                if (lane_id() == 0) sum.start(right[row]);
                systems.entries(system, n, row, lane_id(), 32,
                                [&](u32 j, D a) { sum.subtract(scale * a, y[j]); });
#pragma unroll
                for (u32 with = 16; with; with /= 2) sum.merge(with);
                if (lane_id() == 0) r[row] = sum.value();
            } else {
                D sum = D();
                systems.entries(system, n, row, lane_id(), 32,
                                [&](u32 j, D a) { sum = fused(scale * a, y[j], sum); });
                sum = warp_sum(sum);
                if (lane_id() == 0) r[row] = right[row] - sum;
            }
        }
        __syncthreads();
        Squares sums = {};
        sums.sound = true;
        const u32 row = threadIdx.x;
        if (row < n)
            row_squares(sums, r[row], right[row], norms[row], exponents[row], systems.terms(system, n, row),
                        sqrt(square[0]), units, accurate);
        sums.sound = __syncthreads_and(sums.sound);
        block_sums(room.sums, sums.of);
        return judged(sums, units, systems);
    }
};

// One right-hand side of the system of a block of threads, for `refine`.
struct Work {
    const Block& block;
    const Systems& systems;
    u64 system;
    u32 own_step;
    Units units;
    // The thread's number of x.
    S solution;

    DEVICE u32 row() const { return threadIdx.x; }
    DEVICE bool any(bool yes) const { return yes; }
    DEVICE bool round() {
        D mine = row() < block.n ? block.y[row()] : D();
        const bool sound = __syncthreads_and(rounded(mine, units, solution));
        if (row() < block.n) block.y[row()] = mine;
        __syncthreads();
        return sound;
    }
    DEVICE Judged judge(bool accurate) const { return block.judge(systems, system, units, accurate); }
    DEVICE f64 correct(bool) const {
        if (row() < block.n) block.moving[row()] = block.r[row()];
        __syncthreads();
        block.solve(block.r, own_step);
        f64 squares[2] = {};
        if (row() < block.n) {
            squares[0] = abs2(block.r[row()]);
            squares[1] = abs2(block.y[row()]);
            block.y[row()] = block.y[row()] + block.r[row()];
        }
        block_sums(block.room.sums, squares);
        return sqrt(squares[0] / squares[1]);
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    solve_block(const __grid_constant__ Systems systems, D* kept) {
    extern __shared__ uint4 memory[];
    __shared__ Room room;
    const u32 size = systems.size, vectors = systems.vectors;
    const u32 stride = size | 1;
    D* place = reinterpret_cast<D*>(memory);
    D* const matrix = kept ? kept + u64(blockIdx.x) * size * stride : place;
    if (!kept) place += size * stride;
    D* const vector_room = place;
    f64* const norms = reinterpret_cast<f64*>(place + 4 * size);
    i32* const exponents = reinterpret_cast<i32*>(norms + size);
    u32* const numbers = reinterpret_cast<u32*>(exponents + size);
    const u32 row = threadIdx.x;

    for (u64 system = blockIdx.x; system < systems.count; system += gridDim.x) {
        if (!systems.is_asked(system)) continue;
        const u32 n = systems.rows(system);
        const u64 first_row = systems.first_row(system);
        const Block block = {room, matrix,
                             vector_room, vector_room + size, vector_room + 2 * size, vector_room + 3 * size,
                             norms, exponents, numbers, numbers + size, numbers + 2 * size, n, stride};
        __syncthreads();
        u32 own_step = ~0u;
        Story told = story(n == 0 || block.load(systems, system));
        told.good = told.good && (n == 0 || __syncthreads_and(block.eliminate(own_step)));
        for (u32 vector = 0; vector < vectors && told.good && n > 0; vector++) {
            const u64 at = (first_row + row) * vectors + vector;
            const D given = row < n ? to_double(systems.b[at]) : D();
            const i32 exponent = row < n ? exponents[row] : 0;
            const D scaled = power(exponent) * given;
            const f64 most = block_max(room.sums, size_of(given));
            const f64 most_scaled = block_max(room.sums, size_of(scaled));
            const i32 raised = exponent_of(most_scaled), size_of_b = exponent_of(most);
            const bool zero = most == 0;
            const bool within = zero || (in_range(raised) && in_range(size_of_b));
            told.good = __syncthreads_and(is_finite(given) && is_finite(scaled) && within);
            if (!told.good) break;
            if (zero) {
                if (row < n) systems.x[at] = S();
                continue;
            }
            const Units units = {-raised, size_of_b};
            if (row < n) block.right[row] = block.moving[row] = power(units.shift) * scaled;
            block.solve(block.y, own_step);
            Work work = {block, systems, system, own_step, units};
            const Refined found = refine<true>(work, true);
            told.add(found);
            if (found.known && row < n) systems.x[at] = work.solution;
        }
        if (row == 0) told.tell(systems, system);
    }
}
