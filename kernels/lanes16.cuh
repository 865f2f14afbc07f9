// VEC elements of a vector from place i on, loaded by one instruction if `wide` allows it. The including file defines
// T, the type of vectors.
#pragma once
#include "complex.cuh"
#define VEC int(16 / sizeof(T))

template <typename A> DEVICE void get(bool wide, const A* p, u64 i, u64 n, A (&v)[VEC]) {
    if (wide && sizeof v == 16) {
        uint4 raw = *reinterpret_cast<const uint4*>(p + i);
        memcpy(v, &raw, sizeof v);
    } else if (wide && sizeof v == 8) {
        uint2 raw = *reinterpret_cast<const uint2*>(p + i);
        memcpy(v, &raw, sizeof v);
    } else {
#pragma unroll
        for (int k = 0; k < VEC; k++) v[k] = i + k < n ? p[i + k] : A();
    }
}
DEVICE void put(bool wide, T* p, u64 i, u64 n, const T (&v)[VEC]) {
    if (wide) {
        uint4 raw;
        memcpy(&raw, v, 16);
        *reinterpret_cast<uint4*>(p + i) = raw;
    } else {
#pragma unroll
        for (int k = 0; k < VEC; k++)
            if (i + k < n) p[i + k] = v[k];
    }
}
