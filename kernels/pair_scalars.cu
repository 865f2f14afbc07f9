// The small dense steps of a pair of Arnoldi steps, by one warp each (src/backend/pairs.rs, src/backend/host/pairs.rs):
// factors from products, and the two new columns of the Hessenberg matrix. Lane i has vector i of the basis.
//
//     dense, W = columns + 1     G = V^H V, W W | h_1, h_2, W each, r, s_1, s_2, ||w_1||^2, ||w_2||^2 |
//                                combination, columns W | R, columns W | rotations, 2 columns | g, W
//
// Constants: SCALAR (element type).
#include "rotation.cuh"

typedef SCALAR T;
typedef real_of<T>::type R;

#define MOST 32
#define BEHIND 5
#define MOST_COSINE R(1.0 / 64)

// If the rest of a vector is smaller than this relative to the vector, it consists of rounding errors: unit roundoff to
// the power 0.7.
DEVICE f32 negligible(f32) { return 1.4142e-5f; }
DEVICE f64 negligible(f64) { return 1.1051e-11; }

struct Dense {
    u32 width;
    T *gram, *factors, *combination, *triangle, *rotations, *right;

    DEVICE Dense(T* dense, u32 columns)
        : width(columns + 1), gram(dense), factors(gram + width * width), combination(factors + 2 * width + BEHIND),
          triangle(combination + columns * width), rotations(triangle + columns * width), right(rotations + 2 * columns) {}

    // The column of R for a vector that is not used, so that y is zero there. Called by the whole warp.
    DEVICE void neutralise(u32 column) const {
        for (u32 i = lane_id(); i < width; i += 32) triangle[column * width + i] = from_real<T>(R(i == column ? 1 : 0));
        if (lane_id() == 0) right[column] = T();
    }
};

DEVICE bool is_next(const T* state, u32 taken, u32 column) {
    return is_zero(state[STATUS]) && real_part(state[taken]) == R(column);
}

// The length of the rest of a vector, from its square, but at least the rounding errors of the whole vector; any
// positive number for a zero vector.
DEVICE R length_left(R left, R whole) {
    if (!(whole > 0)) return 1;
    const R least = whole * unit_roundoff(whole) * unit_roundoff(whole);
    return root(left > least ? left : least);
}

extern "C" __global__ void __launch_bounds__(32)
    pair_factors(u32 column, u32 columns, const T* products, T* dense, T* state, u32 taken, u32 lone) {
    after_predecessors();
    __shared__ T gram[MOST][MOST + 1];
    const u32 lane = lane_id(), count = column + 1;
    const Dense parts(dense, columns);
    const T status = state[STATUS];
    const bool next = is_next(state, taken, column);
    __syncwarp();
    if (lone) {
        if (!next) return;
    } else {
        if (lane == 0) state[ENDED] = status;
        if (!is_zero(status)) return;
    }
    const bool mine = lane < count;
    // The new columns of G, added to the old ones in shared memory.
    for (u32 j = 0; j < count; j++)
        if (mine) gram[lane][j] = parts.gram[lane + j * parts.width];
    __syncwarp();
    const T g2 = mine ? products[2 * count + lane] : T(), g3 = mine ? products[3 * count + lane] : T();
    if (column > 0 && lane < column) {
        gram[lane][column - 1] = g2;
        gram[column - 1][lane] = conj(g2);
    }
    __syncwarp();
    if (mine) {
        gram[lane][column] = g3;
        gram[column][lane] = conj(g3);
    }
    __syncwarp();
    for (u32 j = 0; j < count; j++)
        if (mine && (j + 1 >= column || lane + 1 >= column)) parts.gram[lane + j * parts.width] = gram[lane][j];
    const T t1 = mine ? products[lane] : T(), t2 = mine ? products[count + lane] : T();
    const R own = mine ? real_part(gram[lane][lane]) : R(1);
    const T square1 = products[4 * count], between = products[4 * count + 1], square2 = products[4 * count + 2];
    // Whether the new vectors are so far from orthogonal to the others that the corrections do not suffice.
    bool oblique = false;
    for (u32 at = column > 0 ? column - 1 : 0; at <= column; at++) {
        const R other = real_part(gram[at][at]);
        if (!mine || lane > at) continue;
        oblique |= !(own > 0 && other > 0) || (lane < at && abs2(gram[lane][at]) > MOST_COSINE * MOST_COSINE * own * other);
    }
    const bool whole = finite(t1) && finite(t2) && finite(g2) && finite(g3) && finite(square1) && finite(between) && finite(square2);
    const bool all_whole = __all_sync(ALL, whole);
    if (!all_whole || __any_sync(ALL, oblique)) {
        parts.neutralise(column);
        const T fault = from_real<T>(R(all_whole ? BREAKDOWN : NOT_FINITE));
        if (lane == 0) state[STATUS] = state[ENDED] = fault;
        return;
    }
    // h = G^-1 t by Jacobi's iteration.
    const T scale = from_real<T>(1 / own);
    T h1 = t1 * scale, h2 = t2 * scale;
    for (int turn = 0; turn < 2; turn++) {
        T image1 = T(), image2 = T();
        for (u32 j = 0; j < count; j++) {
            const T g = mine ? gram[lane][j] : T();
            image1 = image1 + g * shuffle(h1, j);
            image2 = image2 + g * shuffle(h2, j);
        }
        h1 = h1 + (t1 - image1) * scale;
        h2 = h2 + (t2 - image2) * scale;
    }
    const R along1 = real_part(warp_sum(conj(h1) * t1)), along2 = real_part(warp_sum(conj(h2) * t2));
    const T across = warp_sum(conj(h1) * t2);
    const R s1 = length_left(real_part(square1) - along1, real_part(square1));
    const T r = (between - across) * from_real<T>(1 / s1);
    const R s2 = length_left(real_part(square2) - along2 - abs2(r), real_part(square2));
    if (mine) {
        parts.factors[lane] = h1;
        parts.factors[parts.width + lane] = h2;
    }
    T* const behind = parts.factors + 2 * parts.width;
    if (lane == 0) {
        behind[0] = r;
        behind[1] = from_real<T>(s1);
        behind[2] = from_real<T>(s2);
        behind[3] = square1;
        behind[4] = square2;
    }
    // A was multiplied by v_column, and by w_1 = V h_1 + s_1 v_(column + 1).
    T* const one = parts.combination + column * parts.width;
    for (u32 i = lane; i < parts.width; i += 32) {
        one[i] = from_real<T>(R(i == column ? 1 : 0));
        if (!lone) one[parts.width + i] = i < count ? h1 : i == count ? from_real<T>(s1) : T();
    }
}

extern "C" __global__ void __launch_bounds__(32)
    pair_columns(u32 column, u32 columns, const T* squares, T* dense, T* state, u32 taken, u32 lone) {
    after_predecessors();
    __shared__ T entry[MOST + 1], cosine[MOST], sine[MOST];
    __shared__ u32 verdict;
    const u32 lane = lane_id(), count = column + 1;
    const Dense parts(dense, columns);
    const bool next = is_next(state, taken, column);
    const R threshold = real_part(state[THRESHOLD]);
    __syncwarp();
    if (!next) return;
    const T* const behind = parts.factors + 2 * parts.width;
    const R norm = lane < count ? root(real_part(parts.gram[lane + lane * parts.width])) : R(0);
    if (lane < column) {
        cosine[lane] = parts.rotations[2 * lane];
        sine[lane] = parts.rotations[2 * lane + 1];
    }
    u32 steps = lone ? 1 : 2;
    bool first_is_zero = false;
    for (u32 step = 0; step < steps; step++) {
        const u32 j = column + step;
        const R of_new = lone ? R(1) : root(real_part(squares[step]));
        R below = real_part(behind[1 + step]) * of_new;
        if (below <= negligible(below) * root(real_part(behind[3 + step]))) below = 0;
        T mine = lane < count ? parts.factors[step * parts.width + lane] * from_real<T>(norm) : T();
        if (step == 1 && lane == count) mine = behind[0] * from_real<T>(root(real_part(squares[0])));
        const R size = root(warp_sum(abs2(mine)) + below * below);
        entry[lane] = mine;
        __syncwarp();
        // If the first vector is zero, the second is ignored.
        const bool nothing = step == 1 && first_is_zero;
        if (lane == 0 && !nothing) {
            T above = entry[0];
            for (u32 i = 0; i < j; i++) {
                const T c = cosine[i], s = sine[i], under = entry[i + 1];
                entry[i] = c * above + s * under;
                above = c * under - conj(s) * above;
            }
            verdict = rotate(j, above, below, size, parts.triangle + j * parts.width, parts.rotations, parts.right, state, threshold);
            cosine[j] = parts.rotations[2 * j];
            sine[j] = parts.rotations[2 * j + 1];
        }
        __syncwarp();
        const u32 fault = nothing ? u32(RUNNING) : verdict;
        if (nothing || fault != RUNNING) {
            parts.neutralise(j);
        } else if (lane < j) {
            parts.triangle[j * parts.width + lane] = entry[lane];
        }
        // All lanes know whether the first column was sufficient; if it was, no fault is reported.
        const bool running = is_zero(state[STATUS]);
        __syncwarp();
        if (fault != RUNNING) {
            if (running) {
                if (lane == 0) state[STATUS] = state[ENDED] = from_real<T>(R(fault));
                steps = step;
            }
            break;
        }
        first_is_zero = step == 0 && below == 0;
        __syncwarp();
    }
    if (lane == 0) state[taken] = from_real<T>(R(column + steps));
}
