// Definitions for all kernel files: type names, vector access, order-preserving bits of keys, sums over a warp.
//
// Compiled by NVRTC without any other header, as C++17, for compute capability 7.5 and later. Nothing here relies on a
// warp running in lockstep: lanes exchange data through the `_sync` intrinsics and synchronise with `__syncwarp`.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef float f32;
typedef double f64;
struct alignas(8) c32 { f32 re, im; };
struct alignas(16) c64 { f64 re, im; };
struct alignas(16) u128 { u64 low, high; };

#define DEVICE __device__ __forceinline__
#define ALL 0xffffffffu
// The column of padding in SELL. In a matrix with 2^32 columns it is also a valid column.
#define PADDING 0xffffffffu

DEVICE c32 operator+(c32 a, c32 b) { return {a.re + b.re, a.im + b.im}; }
DEVICE c64 operator+(c64 a, c64 b) { return {a.re + b.re, a.im + b.im}; }

// The first statement of kernels that are launched early (tuning `starts_early`): their blocks become resident while
// the previous launch ends, and wait here until everything that it wrote is visible. After that the next launch may be
// started early.
DEVICE void after_predecessors() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// `after_predecessors` in two steps, for kernels that know whether their matrix is settled, that is, not written by the
// previous launch. They load a settled matrix while that launch still runs, and wait before reading vectors. Vectors
// are read by plain loads after this call: a load through the read-only path may be moved before it.
DEVICE void before_matrix(u32 settled) {
    if (!settled) after_predecessors();
}
DEVICE void before_vectors(u32 settled) {
    if (settled) after_predecessors();
}

DEVICE u32 lane_id() { return threadIdx.x & 31; }
DEVICE u32 lanes_below() { return (1u << lane_id()) - 1; }
// The address in shared memory of a generic pointer.
DEVICE u32 in_shared(const void* p) { return u32(__cvta_generic_to_shared(p)); }

// ---- unsigned integer of a given size, and bits of a value as such -------------------------------------------------

template <int BYTES> struct unsigned_of;
template <> struct unsigned_of<1> { typedef u8 type; };
template <> struct unsigned_of<2> { typedef u16 type; };
template <> struct unsigned_of<4> { typedef u32 type; };
template <> struct unsigned_of<8> { typedef u64 type; };
template <> struct unsigned_of<16> { typedef u128 type; };

template <typename To, typename From> DEVICE To bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "bits: sizes differ");
    To to;
    memcpy(&to, &from, sizeof(To));
    return to;
}

template <typename A, typename B> struct same { static constexpr bool value = false; };
template <typename A> struct same<A, A> { static constexpr bool value = true; };
template <typename T> struct is_float { static constexpr bool value = same<T, f32>::value || same<T, f64>::value; };
template <typename T> struct is_complex { static constexpr bool value = same<T, c32>::value || same<T, c64>::value; };
template <typename T> struct is_signed {
    static constexpr bool value = same<T, i8>::value || same<T, i16>::value || same<T, i32>::value || same<T, i64>::value;
};

// ---- keys: bits that compare as the keys do (IEEE 754 totalOrder for floats) ---------------------------------------

template <typename K> struct key_bits {
    typedef typename unsigned_of<sizeof(K)>::type type;
    static constexpr type SIGN = type(type(1) << (8 * sizeof(K) - 1));
    static DEVICE type to(K key) {
        type b = bits<type>(key);
        if (is_float<K>::value) return b & SIGN ? type(~b) : type(b ^ SIGN);
        if (is_signed<K>::value) return b ^ SIGN;
        return b;
    }
    static DEVICE K from(type b) {
        if (is_float<K>::value) return bits<K>(type(b & SIGN ? b ^ SIGN : ~b));
        if (is_signed<K>::value) return bits<K>(type(b ^ SIGN));
        return bits<K>(b);
    }
};

// Keys are equal if their bits are: NaN equals itself, and -0 differs from +0, as in the order above.
template <typename K> DEVICE bool same_key(K a, K b) {
    typedef typename unsigned_of<sizeof(K)>::type U;
    return bits<U>(a) == bits<U>(b);
}

// ---- 16-byte access ------------------------------------------------------------------------------------------------

template <typename T> struct vector_of {
    static constexpr int SIZE = 16 / sizeof(T);
};
DEVICE bool aligned16(const void* p) { return (reinterpret_cast<u64>(p) & 15) == 0; }

template <typename T, int N> DEVICE void load16(const T* p, T (&v)[N]) {
    static_assert(sizeof(T) * N == 16, "load16 moves 16 bytes");
    uint4 raw = __ldg(reinterpret_cast<const uint4*>(p));
    memcpy(v, &raw, 16);
}
// Stores N values to consecutive addresses, 16 bytes per store.
template <typename T, int N> DEVICE void store16(T* p, const T (&v)[N]) {
    static_assert(sizeof(T) * N % 16 == 0, "store16 moves multiples of 16 bytes");
    uint4 raw[sizeof(T) * N / 16];
    memcpy(raw, v, sizeof(T) * N);
#pragma unroll
    for (int i = 0; i < int(sizeof(T) * N / 16); i++) __stcs(reinterpret_cast<uint4*>(p) + i, raw[i]);
}

// ---- a value of any size through a shuffle -------------------------------------------------------------------------

template <typename T> struct words_of {
    u32 word[(sizeof(T) + 3) / 4];
};
template <typename T> DEVICE words_of<T> split(T v) {
    words_of<T> w = {};
    memcpy(&w, &v, sizeof(T));
    return w;
}
template <typename T> DEVICE T join(const words_of<T>& w) {
    T v;
    memcpy(&v, &w, sizeof(T));
    return v;
}
template <typename T, typename F> DEVICE T each_word(T v, F of_word) {
    words_of<T> w = split(v);
#pragma unroll
    for (u32& x : w.word) x = of_word(x);
    return join<T>(w);
}
template <typename T> DEVICE T shuffle(T v, u32 from) {
    return each_word(v, [=](u32 x) { return __shfl_sync(ALL, x, from); });
}
template <typename T> DEVICE T shuffle_up(T v, u32 by) {
    return each_word(v, [=](u32 x) { return __shfl_up_sync(ALL, x, by); });
}
template <typename T> DEVICE T shuffle_down(T v, u32 by) {
    return each_word(v, [=](u32 x) { return __shfl_down_sync(ALL, x, by); });
}
template <typename T> DEVICE T shuffle_xor(T v, u32 with) {
    return each_word(v, [=](u32 x) { return __shfl_xor_sync(ALL, x, with); });
}

// Sum over the lanes up to and including this one. The tree is fixed, so floating-point sums have the same bits every
// time.
template <typename T> DEVICE T warp_inclusive_sum(T v) {
#pragma unroll
    for (u32 by = 1; by < 32; by *= 2) {
        T other = shuffle_up(v, by);
        if (lane_id() >= by) v = other + v;
    }
    return v;
}
// `warp_inclusive_sum` for counts, in fewer instructions: a predicate of the shuffle says whether the source lane
// exists.
DEVICE u32 count_to_lane(u32 own) {
#pragma unroll
    for (u32 by = 1; by < 32; by *= 2)
        asm("{ .reg .u32 r; .reg .pred p; shfl.sync.up.b32 r|p, %0, %1, 0, 0xffffffff; @p add.u32 %0, %0, r; }" : "+r"(own) : "r"(by));
    return own;
}
template <typename T> DEVICE T warp_sum(T v) {
#pragma unroll
    for (u32 with = 16; with; with /= 2) v = v + shuffle_xor(v, with);
    return v;
}

// Minimum and maximum over all lanes, by one instruction if the chip has it.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
DEVICE u32 least_of_lanes(u32 v) { return __reduce_min_sync(ALL, v); }
DEVICE u32 most_of_lanes(u32 v) { return __reduce_max_sync(ALL, v); }
#else
DEVICE u32 least_of_lanes(u32 v) {
#pragma unroll
    for (u32 with = 16; with; with /= 2) v = min(v, __shfl_xor_sync(ALL, v, with));
    return v;
}
DEVICE u32 most_of_lanes(u32 v) {
#pragma unroll
    for (u32 with = 16; with; with /= 2) v = max(v, __shfl_xor_sync(ALL, v, with));
    return v;
}
#endif
