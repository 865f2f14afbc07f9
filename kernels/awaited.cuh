// Numbers that one warp computes while other warps wait for them. All bits are set in a number that has not been
// computed yet, which is one of the many representations of NaN; a NaN that was computed gets another. Nothing else in
// memory is passed between warps together with a number, so loads and stores need no ordering.
//
// A warp waits only for warps with smaller turns. Turns are given out in ascending order to running warps, so the warp
// with the smallest unfinished turn waits for no other, and all warps finish.
#pragma once
#include "complex.cuh"

DEVICE u32 load_now(const u32* p) {
    u32 v;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}
DEVICE f32 load_now(const f32* p) {
    f32 v;
    asm volatile("ld.relaxed.gpu.global.f32 %0, [%1];" : "=f"(v) : "l"(p) : "memory");
    return v;
}
DEVICE f64 load_now(const f64* p) {
    f64 v;
    asm volatile("ld.relaxed.gpu.global.f64 %0, [%1];" : "=d"(v) : "l"(p) : "memory");
    return v;
}
DEVICE c32 load_now(const c32* p) { return {load_now(&p->re), load_now(&p->im)}; }
DEVICE c64 load_now(const c64* p) { return {load_now(&p->re), load_now(&p->im)}; }

DEVICE void store_now(u32* p, u32 v) { asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }

DEVICE bool absent(u32 v) { return v == 0xffffffffu; }
DEVICE bool absent(f32 v) { return bits<u32>(v) == 0xffffffffu; }
DEVICE bool absent(f64 v) { return bits<u64>(v) == ~0ull; }
DEVICE bool absent(c32 v) { return absent(v.re) || absent(v.im); }
DEVICE bool absent(c64 v) { return absent(v.re) || absent(v.im); }

template <typename T> struct nothing_of;
template <> struct nothing_of<f32> { static DEVICE f32 get() { return bits<f32>(0xffffffffu); } };
template <> struct nothing_of<f64> { static DEVICE f64 get() { return bits<f64>(~0ull); } };
template <> struct nothing_of<c32> { static DEVICE c32 get() { return {nothing_of<f32>::get(), nothing_of<f32>::get()}; } };
template <> struct nothing_of<c64> { static DEVICE c64 get() { return {nothing_of<f64>::get(), nothing_of<f64>::get()}; } };

DEVICE void hand_on(f32* p, f32 v) { store_now(reinterpret_cast<u32*>(p), absent(v) ? 0x7fffffffu : bits<u32>(v)); }
DEVICE void hand_on(f64* p, f64 v) {
    const u64 word = absent(v) ? 0x7fffffffffffffffull : bits<u64>(v);
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(word) : "memory");
}
DEVICE void hand_on(c32* p, c32 v) {
    hand_on(&p->re, v.re);
    hand_on(&p->im, v.im);
}
DEVICE void hand_on(c64* p, c64 v) {
    hand_on(&p->re, v.re);
    hand_on(&p->im, v.im);
}

// Returns the next turn, the same in all lanes of the warp. `turns` is initially zero.
DEVICE u64 next_turn(u32* turns) {
    u32 turn = 0;
    if (lane_id() == 0) turn = atomicAdd(turns, 1);
    return __shfl_sync(ALL, turn, 0);
}

// Returns whether a condition holds in all of the WIDTH lanes of this lane's group; all lanes of the warp must call it.
template <u32 WIDTH> DEVICE bool in_group(bool condition) {
    const u32 votes = __ballot_sync(ALL, condition);
    const u32 group = (WIDTH == 32 ? ALL : (1u << WIDTH) - 1) << (lane_id() / WIDTH * WIDTH);
    return (votes & group) == group;
}
