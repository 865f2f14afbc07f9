// y = alpha A x with A a stencil of a point and its neighbours on the points of a grid, some of them in other planes:
// the same sums as in compressed_grid.cu, bit by bit, with x in shared memory.
//
//     block 0: lines 0 .. 2   | plane 0 | plane 1 | plane 2 |   A block has a few lines and planes, and goes through
//     block 1: lines 3 .. 5   | plane 0 | plane 1 | plane 2 |   the planes; it reads its lines and one on both sides,
//     block 2: lines 0 .. 2   | plane 3 | plane 4 | plane 5 |   which are contiguous: one thread loads them in bulk.
//
// All blocks run at the same time, and blocks with neighbouring lines are in the same plane at about the same time, so
// that lines that two of them read come from device memory once. The last warp loads planes, STAGES of them ahead, into
// a ring; the others compute: a thread has runs of one column, and sums of three planes in progress. Lines beyond the
// grid stay zero in the ring.
//
// Bytes per row: x and y, and if there are holes, two bits (MARKS) or a byte. Multiprocessors read (1 + 2 / lines) (1 +
// 2 / planes) times x.
//
// HOLES: marks or kinds of rows are loaded with a plane. They may begin at any byte, so what is loaded begins at the
// previous multiple of 16 bytes. MARKS: the marks are those of the plane's own rows; the sum of a row with only its own
// point is replaced as soon as its plane is there, and gets nothing from the plane after. Listed rows are computed by
// warps without points, of which there is at least one, while the others march through the planes. PARTS: the kinds are
// those of rows two planes ahead, and each product is a predicated instruction: a separate path for warps with complete
// rows made the other warps slower, and blocks proceed at the pace of the slowest.
//
// Constants: those of compressed_grid.cuh, STAGES, THREADS and BLOCKS (per multiprocessor, at least, for a product: so
// that blocks of the next launch fit while this one ends).
#include "block_sum.cuh"
#include "bulk.cuh"
#include "compressed_grid.cuh"

// Points per line, lines per plane, planes; runs per line; groups of lines of a plane, and the lines of the largest;
// slabs of planes; warps that compute.
struct Grid {
    u32 points, lines, planes, runs, groups, tile, slabs, warps;
};

// The ring: for each stage, whether its plane is there, and whether all threads have finished with it. Each thread
// arrives by itself, since racecheck only recognises threads that arrive at a barrier, and it costs no time.
struct Ring {
    u64 full[STAGES], empty[STAGES];
    u64 table; // PARTS: the kinds' stencil points are there (racecheck takes a named barrier for the block's)
};
constexpr u32 BARRIERS = 128, TABLE = HOLES == PARTS ? 1024 : 0; // bytes before the first stage
constexpr u32 KINDS_AHEAD = HOLES == PARTS ? 2 : 0; // distance from a plane to the one whose kinds are loaded with it
constexpr u32 MOST_LISTED = 6; // maximum number of listed rows per thread without other work
constexpr u32 ROWS_A_BYTE = HOLES == MARKS ? 4 : 1, ROWS_A_COPY = 16 * ROWS_A_BYTE; // of kinds or marks
static_assert(sizeof(Ring) <= BARRIERS, "the barriers fit");

// A position in the ring.
struct Place {
    u32 stage = 0, parity = 0;

    DEVICE void advance() {
        if (++stage == STAGES) stage = 0, parity ^= 1;
    }
};

// A block's part of the grid: lines begin .. end of planes from .. to.
struct Part {
    u32 begin, end, from, to;

    DEVICE explicit Part(const Grid& grid) {
        const u32 slab = blockIdx.x / grid.groups, group = blockIdx.x - slab * grid.groups;
        begin = u64(grid.lines) * group / grid.groups, end = u64(grid.lines) * (group + 1) / grid.groups;
        from = u64(grid.planes) * slab / grid.slabs, to = u64(grid.planes) * (slab + 1) / grid.slabs;
    }
};

// Called by one thread: loads all planes that the block reads, as stages become empty.
DEVICE void fetch(const Grid& grid, const Part& part, const T* x, const u8* kind_of, char* stages, u32 stage_bytes, Ring& ring) {
    const u32 line = grid.points * u32(sizeof(T)), low = part.begin ? part.begin - 1 : 0, high = min(part.end + 1, grid.lines);
    const u32 first = part.from ? part.from - 1 : 0, last = min(part.to + 1, grid.planes);
    const u64 plane = u64(grid.points) * grid.lines;
    Place at;
    for (u32 k = first; k < last; k++, at.advance()) {
        wait(ring.empty + at.stage, at.parity ^ 1);
        char* const stage = stages + at.stage * stage_bytes;
        u64 from = 0;
        u32 kinds = 0;
        if (HOLES && k >= part.from && k + KINDS_AHEAD < part.to) {
            const u64 begin = (k + KINDS_AHEAD) * plane + u64(part.begin) * grid.points, end = (k + KINDS_AHEAD) * plane + u64(part.end) * grid.points;
            // Marks are padded to a multiple of 16 bytes. There may be no kinds for the last rows.
            const u64 whole = HOLES == MARKS ? ~u64(0) : plane * grid.planes & ~u64(15);
            from = begin / ROWS_A_COPY * 16;
            kinds = from < whole ? u32(min((end + ROWS_A_COPY - 1) / ROWS_A_COPY * 16, whole) - from) : 0;
            if (HOLES == PARTS)
                for (u64 row = max(from, whole); row < end; row++) stage[(grid.tile + 2) * line + u32(row - from)] = kind_of[row];
        }
        arrive(ring.full + at.stage, (high - low) * line + kinds);
        bulk_load(stage + (part.begin ? 0 : line), x + k * plane + u64(low) * grid.points, (high - low) * line, ring.full + at.stage);
        if (kinds) bulk_load(stage + (grid.tile + 2) * line, kind_of + from, kinds, ring.full + at.stage);
    }
}

// The stencil points of a thread's rows in a plane.
struct OfPlane {
    u32 of[LINES][RUN];
};
// The stencil points of a thread's rows in three consecutive planes. `planes[1]` is the plane whose elements of x are
// being added; p is 1 for rows of the plane before it, and -1 for rows of the plane after it.
struct SomePlaces {
    static constexpr bool SOME = true;
    const OfPlane (&planes)[3];

    DEVICE bool operator()(int p, int r, int i, int place) const { return planes[1 - p].of[r][i] & 1u << place; }
};

// MARKS: elements are added to the sums of those rows of the plane before that have more than their own point.
struct NotAlone {
    static constexpr bool SOME = !MIRRORED;
    const u32 (&marks)[LINES];

    DEVICE bool operator()(int p, int r, int i, int) const { return p < 1 || !is_alone(marks[r], i); }
};

// The ring, and the bytes of a stage; the stencil points of each kind.
struct Shared {
    Ring& ring;
    char* stages;
    u32 stage_bytes;
    u32* places_of;
};
DEVICE Shared shared_of(const Grid& grid) {
    extern __shared__ __align__(128) char shared[];
    const u32 kinds = HOLES ? (grid.tile * grid.points / ROWS_A_BYTE + 32) & ~15 : 0;
    const u32 stage_bytes = grid.points * u32(sizeof(T)) * (grid.tile + 2) + kinds;
    return {*reinterpret_cast<Ring*>(shared), shared + BARRIERS + TABLE, stage_bytes, reinterpret_cast<u32*>(shared + BARRIERS)};
}

// Prepares the ring and computes the block's part of the grid. No vector is read or written, so this may run before the
// previous launch has ended.
DEVICE Part prepare_ring(const Grid& grid) {
    const Part part(grid);
    const Shared shared = shared_of(grid);
    if (threadIdx.x == 0) {
        for (u32 i = 0; i < STAGES; i++) {
            barrier_init(shared.ring.full + i, 1);
            barrier_init(shared.ring.empty + i, 32 * grid.warps);
        }
        if (HOLES == PARTS) barrier_init(&shared.ring.table, THREADS - 32);
        barrier_init_done();
    }
    for (u32 i = threadIdx.x; i < STAGES * grid.runs; i += THREADS) {
        const u32 stage = i / grid.runs;
        Points* const column = reinterpret_cast<Points*>(shared.stages + stage * shared.stage_bytes) + (i - stage * grid.runs);
        if (part.begin == 0) column[0] = {};
        if (part.end == grid.lines) column[(part.end - part.begin + 1) * grid.runs] = {};
    }
    __syncthreads();
    return part;
}

template <typename F> DEVICE void sums(const Grid& grid, const Part& part, const Numbers& numbers, const Kinds& kinds, const T* x, F& rows) {
    const Shared shared = shared_of(grid);
    Ring& ring = shared.ring;
    char* const stages = shared.stages;
    const u32 stage_bytes = shared.stage_bytes;
    const u32 line = grid.points * u32(sizeof(T)), warp = threadIdx.x / 32;
    // Planes are loaded before the data of kinds is read.
    if (warp == THREADS / 32 - 1) {
        if (lane_id() == 0) fetch(grid, part, x, kinds.of, stages, stage_bytes, ring);
        return;
    }
    if (HOLES == PARTS) {
        for (u32 kind = threadIdx.x; kind < kinds.count(); kind += THREADS - 32) shared.places_of[kind] = kinds.places_of[kind];
        arrive(&ring.table);
        wait(&ring.table, 0);
    }
    if (HOLES == MARKS) {
        // If few rows are listed, warps with points don't compute them: they would wait for the slowest of them.
        const u32 others = THREADS / 32 - 1 - grid.warps;
        const bool all = kinds.listed() > others * gridDim.x * 32 * MOST_LISTED;
        if (all || warp >= grid.warps) take_listed(kinds, grid.points, grid.lines, numbers, x, all ? warp : warp - grid.warps, all ? THREADS / 32 - 1 : others, rows);
    }
    if (warp >= grid.warps) return;

    const u64 plane = u64(grid.points) * grid.lines;
    const u32 group = threadIdx.x / grid.runs, run = threadIdx.x - group * grid.runs;
    const bool left = run > 0, right = run + 1 < grid.runs;
    // The last threads may share lines with those before them, or have none of their own.
    const u32 r0 = min(group * LINES, grid.tile - LINES);
    bool own[LINES];
#pragma unroll
    for (int r = 0; r < LINES; r++) own[r] = r0 + r >= group * LINES && part.begin + r0 + r < part.end;
    const char* const column = stages + r0 * line + run * u32(sizeof(Points));
    u64 row = part.from * plane + u64(part.begin + r0) * grid.points + run * RUN;
    // Sums of the planes before, at and after the plane whose elements came last; the elements of the plane before, and
    // those of this one.
    Points before[LINES], itself[LINES] = {}, after[LINES] = {}, of_before[LINES], of_x[LINES];
    Place at;
    // MARKS: marks of the plane before the next one, and of the next one.
    u32 marks_before[LINES] = {}, marks_itself[LINES];
    // PARTS: the stencil points of rows in the planes before, at and after the plane that comes next, and in the one
    // after these.
    OfPlane planes[3] = {}, next = {};
    u32 k = part.from ? part.from - 1 : 0; // the plane that comes next
    // Reads the kinds of the thread's rows, of which the first is `first` rows after `from`.
    auto read_kinds = [&](const u8* from, u32 first, u32 (&to)[LINES]) {
#pragma unroll
        for (int r = 0; r < LINES; r++) {
            const u32 at = first + r * grid.points;
            if (HOLES == MARKS) to[r] = own[r] ? marks_of(from[at / 4], at) : 0;
            else to[r] = own[r] ? *reinterpret_cast<const RunKinds*>(from + at) : 0;
        }
    };
    auto look_up = [&](const u32 (&of)[LINES], OfPlane& to) {
#pragma unroll
        for (int r = 0; r < LINES; r++)
#pragma unroll
            for (int i = 0; i < RUN; i++) to.of[r][i] = shared.places_of[of[r] >> 8 * i & 255];
    };
    if (HOLES == PARTS) {
        u32 of[2][LINES] = {};
        read_kinds(kinds.of + row, 0, of[0]);
        if (part.from + 1 < part.to) read_kinds(kinds.of + row + plane, 0, of[1]);
        look_up(of[0], planes[1]);
        look_up(of[1], planes[2]);
        if (part.from) next = planes[2], planes[2] = planes[1];
    }
    // Adds a plane's elements to the sums of the planes given by `whom`.
    auto add = [&](int whom) {
        wait(ring.full + at.stage, at.parity);
        const char* const of_stage = column + at.stage * stage_bytes;
        const bool brings_kinds = HOLES == PARTS ? k >= part.from && k + 2 < part.to : HOLES && whom & FOR_ITSELF;
        u32 of_next[LINES] = {};
        if (brings_kinds) {
            const u32 skipped = u32((k + KINDS_AHEAD) * plane + u64(part.begin) * grid.points) % ROWS_A_COPY;
            read_kinds(reinterpret_cast<const u8*>(stages + at.stage * stage_bytes + (grid.tile + 2) * line), skipped + r0 * grid.points + run * RUN, of_next);
        }
        auto add_all = [&](const auto& places) {
#pragma unroll
            for (int m = -1; m <= LINES; m++)
                if (is_read(whom, m) || (F::READS_OWN && whom & FOR_ITSELF && m >= 0 && m < LINES)) {
                    const T* const p = reinterpret_cast<const T*>(of_stage + (m + 1) * line);
                    const Points now = *reinterpret_cast<const Points*>(p);
                    const T beside_left = is_needed(whom, m, -1) && left ? p[-1] : T(), beside_right = is_needed(whom, m, 1) && right ? p[RUN] : T();
                    add_run(whom, m, now, beside_left, beside_right, numbers, places, before, itself, after);
                    if (F::READS_OWN && m >= 0 && m < LINES) of_x[m] = now;
                }
        };
        if constexpr (HOLES == PARTS) add_all(SomePlaces{planes});
        else if constexpr (HOLES == MARKS) add_all(NotAlone{marks_before});
        else add_all(AllPlaces());
        if (HOLES == PARTS && brings_kinds) look_up(of_next, next);
        if (HOLES == MARKS && whom & FOR_ITSELF)
#pragma unroll
            for (int r = 0; r < LINES; r++) {
                marks_itself[r] = of_next[r];
                replace_sums(marks_itself[r], numbers, *reinterpret_cast<const Points*>(of_stage + (r + 1) * line), itself[r]);
            }
        k++;
        arrive(ring.empty + at.stage);
        at.advance();
    };
    auto finish = [&]() {
        // The usual case, where no row is listed, is the same for all lines.
        bool some = false;
#pragma unroll
        for (int r = 0; r < LINES; r++) {
            some = some || some_listed(marks_before[r]);
#pragma unroll
            for (int i = 0; i < RUN; i++)
                if (MIRRORED && !is_alone(marks_before[r], i)) before[r].of[i] = before[r].of[i] + after[r].of[i];
        }
#pragma unroll
        for (int r = 0; r < LINES; r++)
            if (own[r] && !some) rows.take(row + r * u64(grid.points), before[r], of_before[r], {}, 0);
        if (some)
#pragma unroll
            for (int r = 0; r < LINES; r++)
#pragma unroll
                for (int i = 0; i < RUN; i++)
                    if (own[r] && !is_listed(marks_before[r], i)) rows.take_row(row + r * u64(grid.points) + i, before[r].of[i], of_before[r].of[i]);
        row += plane;
    };
    auto advance = [&]() {
#pragma unroll
        for (int r = 0; r < LINES; r++) before[r] = itself[r], itself[r] = after[r], after[r] = {}, of_before[r] = of_x[r];
        if (HOLES == MARKS)
#pragma unroll
            for (int r = 0; r < LINES; r++) marks_before[r] = marks_itself[r];
        if (HOLES == PARTS) planes[0] = planes[1], planes[1] = planes[2], planes[2] = next;
    };
    if (part.from) {
        add(FOR_AFTER);
        advance();
    }
    add(FOR_ITSELF | FOR_AFTER);
    advance();
#pragma unroll 1
    for (u32 i = part.from + 1; i < part.to; i++) {
        add(FOR_BEFORE | FOR_ITSELF | FOR_AFTER);
        finish();
        advance();
    }
    if (part.to < grid.planes) add(FOR_BEFORE);
    finish();
}

#define GRID const __grid_constant__ Grid grid, const __grid_constant__ Numbers numbers, const u8 *kind_of, const u32 *places_of, const u64 *list, const __grid_constant__ Expected expected
#define KINDS \
    Kinds { kind_of, places_of, list, expected }

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) compressed_march(GRID, T alpha, const T* x, T* y) {
    const Part part = prepare_ring(grid);
    after_predecessors();
    Product rows = {alpha, y};
    sums(grid, part, numbers, KINDS, x, rows);
}

extern "C" __global__ void __launch_bounds__(THREADS) compressed_march_dot(GRID, const T* x, T* y, T* xy, T* partials, u32* finished) {
    const Part part = prepare_ring(grid);
    after_predecessors();
    ProductDot rows = {y, T()};
    sums(grid, part, numbers, KINDS, x, rows);
    launch_sum<THREADS>(rows.dot, partials, finished, [=](T all) { *xy = all; });
}
