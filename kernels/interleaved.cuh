// Several interleaved vectors: element i of vector j is at i * vectors + j. A thread takes WIDTH of them at once.
//
// Constants: WIDTH (1, or 16 bytes' worth). The file that includes this has T, the type of the elements.
#pragma once
#include "product.cuh"

struct alignas(sizeof(T) * WIDTH) Part {
    T of[WIDTH];
};
DEVICE Part load_part(const T* p) {
    Part part;
    if constexpr (sizeof(Part) == 16) part = bits<Part>(__ldg(reinterpret_cast<const uint4*>(p)));
    else part.of[0] = cached(p);
    return part;
}
DEVICE void store_part(T alpha, const Part& sum, T beta, T* y) {
    Part* const to = reinterpret_cast<Part*>(y);
    Part old = {};
    if (!is_zero(beta)) old = *to;
#pragma unroll
    for (int w = 0; w < WIDTH; w++) old.of[w] = is_zero(beta) ? alpha * sum.of[w] : alpha * sum.of[w] + beta * old.of[w];
    *to = old;
}
DEVICE Part operator+(const Part& a, const Part& b) {
    Part sum;
#pragma unroll
    for (int w = 0; w < WIDTH; w++) sum.of[w] = a.of[w] + b.of[w];
    return sum;
}
DEVICE void add_product(Part& sum, T value, const Part& of_x) {
#pragma unroll
    for (int w = 0; w < WIDTH; w++) sum.of[w] = sum.of[w] + value * of_x.of[w];
}
