// y = alpha A x + beta y with A in bands of rows, each swept in the order of columns, a block a band.
//
//     | 1 . 7 . |     one band, steps of at most 3 entries (here of 2048)
//     | . . 8 . |     step 0  (0,0) 1   (2,1) 4   (3,0) 2
//     | . 4 3 . |     step 1  (0,2) 7   (1,2) 8   (2,2) 3
//     | 2 . . 1 |     step 2  (3,3) 1
//
// Neighbouring threads read neighbouring columns: where a band has an entry in every few columns, elements of x that
// lie in one sector of the second-level cache are fetched once a band and not once a nonzero, and a warp asks the
// first-level cache for few lines. The sums of the band's rows are in shared memory. (Within a step entries lie in the
// order of columns, or of rows where these bring columns together as well.) No two entries of a step are of one row, so
// threads add to them without atomic operations, and in the order of steps, which is that of columns: the same bits
// every time.
//
// AHEAD steps of the matrix and one of x are under way while a step is added.
//
// Bytes a nonzero: value + 4; 12 a step; a sector of x for each that a band has an entry in. A row: y.
// Source of the place of an entry within its block, half of its bits of row and half of column there: Buluc, Fineman,
// Frigo, Gilbert and Leiserson, "Parallel sparse matrix-vector and matrix-transpose-vector multiplication using
// compressed sparse blocks" (SPAA 2009).
//
// Constants: SCALAR (vectors), STORED (values), THREADS (of a block; at most, where ITEMS is 1), ITEMS (entries of a
// step that a thread has at most), AHEAD.
#include "product.cuh"
#include "swept.cuh"

typedef SCALAR T;
typedef STORED V;
extern __shared__ uint4 shared[];

struct Bands {
    const u64* starts;
    const u32* bases;
    const u32* places;
    const V* values;
    u32 row_bits;
};

// Where the next step lies, known before it is asked for: else each request would wait for two reads.
template <bool NARROW> struct Next {
    u64 step, end, start, stop;
    u32 base;

    DEVICE Next(u64 first, u64 behind, const Bands& a) : step(first), end(behind), start(0), stop(0), base(0) {
        if (step >= end) return;
        start = a.starts[step], stop = a.starts[step + 1], base = a.bases[step];
    }
    // Its first entry, number of entries and base, if there is one.
    DEVICE bool take(u64& at, u32& have, u32& of, const Bands& a) {
        have = 0;
        if (step >= end) return false;
        at = start, have = u32(stop - start), of = base;
        start = stop;
        if (++step < end) stop = cached(a.starts + step + 1), base = cached(a.bases + step);
        return true;
    }
};
// Small steps would wait for that too: here a lane knows one of 32 steps, and one of the 32 behind these.
template <> struct Next<true> {
    u32 taken, step, end;
    // Of the band's entries: the step's first, and behind its last.
    u32 start, stop, base, next_start, next_stop, next_base;
    u64 begin;

    DEVICE Next(u64 first, u64 behind, const Bands& a)
        : taken(0), step(u32(first)), end(u32(behind)), begin(first < behind ? a.starts[first] : 0) {
        read(step, a);
        turn(a);
    }
    DEVICE void read(u32 from, const Bands& a) {
        const u32 at = from + lane_id();
        next_start = next_stop = next_base = 0;
        if (at >= end) return;
        next_start = u32(cached(a.starts + at) - begin), next_stop = u32(cached(a.starts + at + 1) - begin),
        next_base = cached(a.bases + at);
    }
    DEVICE void turn(const Bands& a) {
        start = next_start, stop = next_stop, base = next_base;
        read(step += 32, a);
    }
    DEVICE bool take(u64& at, u32& have, u32& of, const Bands& a) {
        const u32 lane = taken++ % 32, first = __shfl_sync(ALL, start, lane);
        at = begin + first, have = __shfl_sync(ALL, stop, lane) - first, of = __shfl_sync(ALL, base, lane);
        if (lane == 31) turn(a);
        return have > 0;
    }
};
typedef Next<ITEMS == 1> Ahead;

// A thread's entries of one step, THREADS apart where it has several.
struct Step {
    u32 base, have;
    u32 place[ITEMS];
    V value[ITEMS];
    T of_x[ITEMS];

    DEVICE bool there(u32 i) const { return threadIdx.x + i * THREADS < have; }
    DEVICE void ask(Ahead& next, const Bands& a) {
        u64 at;
        if (!next.take(at, have, base, a)) return;
        at += threadIdx.x;
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++)
            if (there(i)) {
                place[i] = stream(a.places + at + i * THREADS);
                value[i] = stream(a.values + at + i * THREADS);
            }
    }
    DEVICE void ask_x(const T* x, u32 row_bits) {
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++)
            if (there(i)) of_x[i] = cached(x + base + column_in_reach(place[i], row_bits));
    }
    DEVICE void add_to(T* sums, u32 row_bits, u32 conjugate) const {
#pragma unroll
        for (u32 i = 0; i < ITEMS; i++)
            if (there(i)) {
                T& sum = sums[row_in_band(place[i], row_bits)];
                sum = sum + entry<T>(value[i], conjugate) * of_x[i];
            }
    }
};

extern "C" __global__ void __launch_bounds__(THREADS)
    swept(u64 rows, u32 height, const u32* firsts, const u64* starts, const u32* bases, const u32* places, const V* values, T alpha,
          const T* x, T beta, T* y, u32 conjugate) {
    after_predecessors();
    T* const sums = reinterpret_cast<T*>(shared);
    const Bands a = {starts, bases, places, values, row_bits(height)};
    const u64 row = u64(blockIdx.x) * height, first = firsts[blockIdx.x], end = firsts[blockIdx.x + 1];
    const u32 have = u32(min(u64(height), rows - row)), threads = ITEMS == 1 ? blockDim.x : THREADS;
    Ahead next(first, end, a);
    Step steps[AHEAD];
#pragma unroll
    for (u32 k = 0; k < AHEAD; k++) steps[k].ask(next, a);
    for (u32 i = threadIdx.x; i < have; i += threads) sums[i] = T();
    steps[0].ask_x(x, a.row_bits);
    __syncthreads();
    for (u64 step = first; step < end; step += AHEAD) {
#pragma unroll
        for (u32 k = 0; k < AHEAD; k++) {
            if (step + k >= end) break;
            steps[(k + 1) % AHEAD].ask_x(x, a.row_bits);
            steps[k].add_to(sums, a.row_bits, conjugate);
            steps[k].ask(next, a);
            __syncthreads();
        }
    }
    for (u32 i = threadIdx.x; i < have; i += threads) finish(alpha, sums[i], beta, y + row + i);
}
