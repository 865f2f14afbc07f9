// The scalars of a recurrence and straight-line programs on them; src/backend/scalars.rs defines both.
//
//     state    0 status | 1 r.r | 2 curvature | 3 threshold | 4 ended | the method's own scalars | temporaries, constants
//     word     code | target | a | b                                                              (an instruction)
//
// A program is short and each instruction needs results of earlier ones, so one thread runs it, on a copy of the state
// in shared memory; the other threads of its block copy state and program there.
//
// A unit for one program has it as text, which the compiler turns into straight-line code on registers: no instruction
// waits for shared memory, at the price of a compilation. Both give the same bits.
//
// Constants: PROGRAM (a STEP(code, target, a, b) for each instruction; not defined if words are interpreted). Compiled
// with --fmad=false if the host's bits are wanted.
#pragma once
#include "complex.cuh"

// Maximum number of scalars of a state (Slot::MOST), and instructions that are in shared memory at a time.
#define MOST_SCALARS 192
#define LOADED 256

enum : u32 { STATUS, RR, CURVATURE, THRESHOLD, ENDED };
enum : u32 { RUNNING, CONVERGED, NOT_POSITIVE_DEFINITE, NOT_FINITE, BREAKDOWN };

// The instructions, in the order of `Code`.
enum : u32 {
    COPY, ADD, SUBTRACT, MULTIPLY, DIVIDE, NEGATE, CONJUGATE, ROOT, MAGNITUDE, SQUARE, REAL_PART, LESS, FINITE,
    HYPOTENUSE, WHERE, LARGER, BEGIN, FINISH, FAIL
};

DEVICE f32 real_part(f32 a) { return a; }
DEVICE f64 real_part(f64 a) { return a; }
DEVICE f32 real_part(c32 a) { return a.re; }
DEVICE f64 real_part(c64 a) { return a.re; }
template <typename T> DEVICE T from_real(typename real_of<T>::type a) {
    if constexpr (is_complex<T>::value) return {a, 0};
    else return a;
}

DEVICE f32 root(f32 a) { return sqrtf(a); }
DEVICE f64 root(f64 a) { return sqrt(a); }
DEVICE f32 length(f32 a, f32 b) { return hypotf(a, b); }
DEVICE f64 length(f64 a, f64 b) { return hypot(a, b); }
DEVICE f32 magnitude(f32 a) { return fabsf(a); }
DEVICE f64 magnitude(f64 a) { return fabs(a); }
DEVICE f32 magnitude(c32 a) { return length(a.re, a.im); }
DEVICE f64 magnitude(c64 a) { return length(a.re, a.im); }

DEVICE bool finite(f32 a) { return a - a == 0; }
DEVICE bool finite(f64 a) { return a - a == 0; }
DEVICE bool finite(c32 a) { return finite(a.re) && finite(a.im); }
DEVICE bool finite(c64 a) { return finite(a.re) && finite(a.im); }

// Division as in num_complex.
template <typename T> DEVICE T divide(T a, T b) {
    if constexpr (is_complex<T>::value) {
        const typename real_of<T>::type square = abs2(b);
        return {(a.re * b.re + a.im * b.im) / square, (a.im * b.re - a.re * b.im) / square};
    } else {
        return a / b;
    }
}

// (a^2 + b^2)^(1/2) of nonnegative numbers, without overflow in between.
template <typename R> DEVICE R hypotenuse(R a, R b) {
    const R large = a < b ? b : a, small = a < b ? a : b;
    if (large == 0 || !finite(large)) return large + small;
    const R ratio = small / large;
    return large * root(R(1) + ratio * ratio);
}

// Executes an instruction. Returns whether the program continues after it.
template <typename T> DEVICE bool carry_out(u32 code, u32 to, u32 left, u32 right, T* state) {
    typedef typename real_of<T>::type R;
    const T a = state[left], b = state[right];
    if (code == BEGIN) state[to] = a;
    if (!is_zero(state[ENDED])) return false;
    const bool given = real_part(a) != 0;
    T result = a;
    switch (code) {
    case COPY: break;
    case ADD: result = a + b; break;
    case SUBTRACT: result = a - b; break;
    case MULTIPLY: result = a * b; break;
    case DIVIDE: result = divide(a, b); break;
    case NEGATE: result = -a; break;
    case CONJUGATE: result = conj(a); break;
    case ROOT: result = from_real<T>(root(real_part(a))); break;
    case MAGNITUDE: result = from_real<T>(magnitude(a)); break;
    case SQUARE: result = from_real<T>(abs2(a)); break;
    case REAL_PART: result = from_real<T>(real_part(a)); break;
    case LESS: result = from_real<T>(R(real_part(a) < real_part(b) ? 1 : 0)); break;
    case FINITE: result = from_real<T>(R(finite(a) ? 1 : 0)); break;
    case HYPOTENUSE: result = from_real<T>(hypotenuse<R>(magnitude(a), magnitude(b))); break;
    case WHERE:
        if (!given) return true;
        result = b;
        break;
    case LARGER: result = from_real<T>(real_part(a) < real_part(b) ? real_part(b) : real_part(a)); break;
    case FINISH:
    case FAIL:
        if (!given) return true;
        if (code == FAIL) state[ENDED] = b;
        state[to] = b;
        return false;
    default: return true;
    }
    state[to] = result;
    return true;
}

// Executes instructions on a state in shared memory, by one thread. Returns whether the program continues after them.
template <typename T> DEVICE bool interpret(const uint4* words, u32 count, T* state) {
    uint4 next = words[0];
    for (u32 i = 0; i < count; i++) {
        const uint4 now = next;
        if (i + 1 < count) next = words[i + 1];
        if (!carry_out(now.x, now.y, now.z, now.w, state)) return false;
    }
    return true;
}

#ifdef PROGRAM
// The only program of this unit: every place is known to the compiler, so that its scalars are in registers.
template <typename T> DEVICE void run_compiled(T* state) {
#define STEP(code, to, a, b) \
    if (!carry_out(code, to, a, b, state)) return;
    PROGRAM
#undef STEP
}
#endif

// A state and a part of a program in shared memory. All threads of a block of BLOCK call each function.
template <typename T> struct Desk {
    T state[MOST_SCALARS];
    uint4 words[LOADED];
    bool goes_on;

    // A barrier must come between this and `run`, and between `run` and this.
    template <int BLOCK> DEVICE void load(const T* from, u32 size, const uint4* program, u32 count) {
        for (u32 i = threadIdx.x; i < size; i += BLOCK) state[i] = from[i];
        load_words<BLOCK>(program, count);
    }
    template <int BLOCK> DEVICE void load_words(const uint4* program, u32 count) {
#ifndef PROGRAM
        for (u32 i = threadIdx.x; i < min(count, u32(LOADED)); i += BLOCK) words[i] = program[i];
#endif
    }
    // Runs the program whose beginning has been copied by `load`.
    template <int BLOCK> DEVICE void run(const uint4* program, u32 count) {
#ifdef PROGRAM
        if (threadIdx.x == 0) run_compiled(state);
        __syncthreads();
#else
        for (u32 first = 0; first < count; first += LOADED) {
            const u32 left = count - first;
            if (first > 0) {
                load_words<BLOCK>(program + first, left);
                __syncthreads();
            }
            if (threadIdx.x == 0) goes_on = interpret(words, min(left, u32(LOADED)), state);
            __syncthreads();
            if (!goes_on) return;
        }
#endif
    }
    template <int BLOCK> DEVICE void store(T* to, u32 size) const {
        for (u32 i = threadIdx.x; i < size; i += BLOCK) to[i] = state[i];
    }
};
