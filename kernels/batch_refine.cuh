// From factors, or from an iteration, to an x that is proven to meet the goal. All kernels for small systems refine in
// these steps, as src/backend/host/batch/judge.rs does on the CPU.
//
//     round y -> judge it -> met: x is y
//                         -> missed by less than half of what it was missed by before: y += A^-1 r, and again
//                         -> else the system is left uncertain, or, in single precision:
//     y += A^-1 r, unrounded -> met: rounding alone prevents a better x, so x is at the limit of its precision
//
// Constants: those of batch.cuh.
#pragma once
#include "batch.cuh"

// The macro without a type is a long number.
constexpr u32 IS_LIMITED = LIMITED;
#define INFINITE __longlong_as_double(0x7ff0000000000000)

// What is known of the x of one right-hand side: the steps that it took, or IS_LIMITED and tenths of its right digits.
struct Refined {
    bool known;
    u32 code;
    f64 relative;
};

// The same of all right-hand sides of a system: the most steps, or the fewest digits, and the largest residual.
struct Story {
    bool good;
    u32 steps, tenths;
    f64 worst;

    DEVICE void add(const Refined& one) {
        good = good && one.known;
        if (one.code & IS_LIMITED) {
            tenths = min(tenths, one.code & ~IS_LIMITED);
        } else {
            steps = max(steps, one.code);
        }
        worst = fmax(worst, one.relative);
    }
    DEVICE void tell(const Systems& systems, u64 system) const {
        const u32 code = !good ? ~0u : tenths == ~0u ? steps : IS_LIMITED | tenths;
        systems.steps[system] = code;
        // Most often none is, and a single number tells so.
        if (code & IS_LIMITED) atomicMax(systems.worst, code);
        systems.residuals[system] = good ? worst : __longlong_as_double(0x7ff8000000000000);
    }
};
DEVICE Story story(bool good) { return {good, 0, ~0u, 0}; }

// Refines y, if `open`. Work knows one right-hand side of one system:
//
//     any(yes)           whether it holds for any system whose threads have to take part
//     round()            y becomes what x is once rounded to the caller's type; false if that overflows
//     judge(accurate)    r becomes the residual of y; what is said of y
//     correct(open)      y += A^-1 r, if open; the norm of that step relative to the norm of y
//
// `BEGUN`: whether y is a first solution. If not, y is zero and r the right-hand side, so that solving once more, as
// for a step of refinement, makes one: the code of a solve is in a kernel only once then.
template <bool BEGUN, typename Work> DEVICE Refined refine(Work& work, bool open) {
    Refined found = {false, 0, 0};
    f64 last = INFINITE;
    bool missed = false;
#pragma unroll 1
    for (u32 step = 0; step <= REFINEMENTS && work.any(open); step++) {
        if (!BEGUN || step > 0) work.correct(open);
        open = work.round() && open;
        Judged now = work.judge(false);
        if (work.any(open && !now.met)) {
            const Judged accurate = work.judge(true);
            if (!now.met) now = accurate;
        }
        if (open && now.met) {
            found = {true, step, now.relative};
            open = false;
        }
        // A step that does not halve what is missing leads nowhere.
        const bool falls = now.excess < 0.5 * last;
        missed = missed || (open && !falls);
        open = open && falls;
        if (open) last = now.excess;
    }
    if constexpr (same<SCALAR, f32>::value || same<SCALAR, c32>::value) {
        if (work.any(missed)) {
            f64 moved = 0;
            // Residuals are accurate in any case, so that bits do not depend on what other systems need.
#pragma unroll 1
            for (u32 step = 0; step < 2; step++) {
                const bool met = work.judge(true).met;
                missed = missed && (step == 0 || met);
                moved = work.correct(missed);
            }
            // What another step changes is an estimate of the error of y, to which rounding adds its own.
            const f64 error = fmax(moved, 5.960464477539063e-08);
            missed = work.round() && missed && error <= 0.1;
            const Judged now = work.judge(true);
            if (missed) found = {true, now.met ? REFINEMENTS : IS_LIMITED | u32(-10 * log10(error)), now.relative};
        }
    }
    return found;
}
