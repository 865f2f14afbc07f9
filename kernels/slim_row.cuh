// The sum of a row in a section of the slim format whose values are stored. Up to N entries of it are asked for with no branch between:
// where there is none, x_0 is read and not used. Matrices are larger than the caches, so what counts is that a multiprocessor is full of threads, as
// MIN_BLOCKS tells the compiler: it then keeps fewer of a row's loads under way, of more rows.
//
// What a file includes this behind: T (vectors), S (values as stored). Columns are of a type with CODES, how many of them a word has (0: none is
// read); from(k), the columns from entry k on, a whole number of words behind; word(i), the row's word i; column(word, k, here), that of entry k, which is in
// the word, and whether there is one.
#pragma once
#include "product_dot.cuh"
#include "slim.cuh"

// Adds N entries.
template <u32 N, typename C> DEVICE T add_entries(T sum, const C& columns, const S* values, const T* x, u32 conjugate) {
    constexpr u32 CODES = C::CODES ? C::CODES : N, WORDS = (N + CODES - 1) / CODES;
    u32 word[WORDS], column[N];
    bool here[N];
    S value[N];
    T of_x[N];
#pragma unroll
    for (u32 w = 0; w < WORDS; w++) word[w] = columns.word(w);
#pragma unroll
    for (u32 u = 0; u < N; u++) value[u] = passing(values + u * 32);
#pragma unroll
    for (u32 u = 0; u < N; u++) {
        const u32 its = columns.column(word[u / CODES], u, here[u]);
        column[u] = here[u] ? its : 0;
    }
#pragma unroll
    for (u32 u = 0; u < N; u++) of_x[u] = cached(x + column[u]);
#pragma unroll
    for (u32 u = 0; u < N; u++) {
        const T more = sum + entry<T>(value[u], conjugate) * of_x[u];
        sum = here[u] ? more : sum;
    }
    return sum;
}
// As many as are left, fewer than N.
template <u32 N, typename C> DEVICE T add_rest(u32 left, T sum, const C& columns, const S* values, const T* x, u32 conjugate) {
    if constexpr (N > 1) {
        if (left == N - 1) return add_entries<N - 1>(sum, columns, values, x, conjugate);
        return add_rest<N - 1>(left, sum, columns, values, x, conjugate);
    }
    return sum;
}
// Of a section so wide; `values` are the row's. From left to right: two runs give the same bits.
template <u32 N, typename C> DEVICE T row_sum(u32 width, const C& columns, const S* values, const T* x, u32 conjugate) {
    T sum = T();
    u32 k = 0;
    for (; k + N <= width; k += N) sum = add_entries<N>(sum, columns.from(k), values + u64(k) * 32, x, conjugate);
    return add_rest<N>(width - k, sum, columns.from(k), values + u64(k) * 32, x, conjugate);
}
