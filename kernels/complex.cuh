// Arithmetic of scalars: built in for real types, defined here for complex ones. Layout as in C and Rust: real part
// first.
#pragma once
#include "common.cuh"

template <typename T> struct real_of { typedef T type; };
template <> struct real_of<c32> { typedef f32 type; };
template <> struct real_of<c64> { typedef f64 type; };

template <typename T> DEVICE T conj(T a) { return a; }
DEVICE c32 conj(c32 a) { return {a.re, -a.im}; }
DEVICE c64 conj(c64 a) { return {a.re, -a.im}; }

DEVICE f32 abs2(f32 a) { return a * a; }
DEVICE f64 abs2(f64 a) { return a * a; }
DEVICE f32 abs2(c32 a) { return a.re * a.re + a.im * a.im; }
DEVICE f64 abs2(c64 a) { return a.re * a.re + a.im * a.im; }

DEVICE c32 operator-(c32 a, c32 b) { return {a.re - b.re, a.im - b.im}; }
DEVICE c64 operator-(c64 a, c64 b) { return {a.re - b.re, a.im - b.im}; }
DEVICE c32 operator-(c32 a) { return {-a.re, -a.im}; }
DEVICE c64 operator-(c64 a) { return {-a.re, -a.im}; }
DEVICE c32 operator*(c32 a, c32 b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
DEVICE c64 operator*(c64 a, c64 b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
DEVICE c32 operator*(f32 a, c32 b) { return {a * b.re, a * b.im}; }
DEVICE c64 operator*(f64 a, c64 b) { return {a * b.re, a * b.im}; }

// a b + c, where products of reals are not rounded.
DEVICE f32 fused(f32 a, f32 b, f32 c) { return __fmaf_rn(a, b, c); }
DEVICE f64 fused(f64 a, f64 b, f64 c) { return __fma_rn(a, b, c); }
template <typename A> DEVICE A fused(A a, A b, A c) {
    return {fused(a.re, b.re, fused(-a.im, b.im, c.re)), fused(a.re, b.im, fused(a.im, b.re, c.im))};
}

DEVICE bool is_zero(f32 a) { return a == 0; }
DEVICE bool is_zero(f64 a) { return a == 0; }
DEVICE bool is_zero(c32 a) { return a.re == 0 && a.im == 0; }
DEVICE bool is_zero(c64 a) { return a.re == 0 && a.im == 0; }

// Converts a stored value to the type of the computation, without loss.
template <typename T> struct widen { static DEVICE T from(T a) { return a; } };
template <> struct widen<f64> {
    static DEVICE f64 from(f64 a) { return a; }
    static DEVICE f64 from(f32 a) { return a; }
};
template <> struct widen<c64> {
    static DEVICE c64 from(c64 a) { return a; }
    static DEVICE c64 from(c32 a) { return {a.re, a.im}; }
};
