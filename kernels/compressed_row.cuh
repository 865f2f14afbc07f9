// The sum of a row in a section of the compressed format. Up to N of its entries are loaded without a branch between
// them: places without an entry read x_0 and don't use it. Matrices are larger than the caches, so it matters that a
// multiprocessor is full of threads, which MIN_BLOCKS requests of the compiler: it then keeps fewer loads of a row in
// flight, but of more rows. No instruction is spent on entries that a row does not have, since instructions are the
// limit for short rows.
//
// The including file must define T (vectors) before.
//
// A section's words are in quads of entries: for each, those of the columns, then, if values are codes, one of values.
// STRIDE is the number of words per quad. Columns have a type with CODES, the number of codes per word (0: none is
// read); from(k), the columns from entry k on, a multiple of a quad later; word(i), the row's word i; column(word, k,
// here), the column of entry k, which is in the word, and whether there is one. Values have a type with Raw<N>, N of
// them as stored; from(k); ask(raw), which loads them; of(raw, k).
#pragma once
#include "product_dot.cuh"
#include "compressed.cuh"

DEVICE u32 base_of(u32 base, u32) { return base; }

// Columns of 32 bits; of 16 above one base; or of 16 above one of four bases. The row has been added to the bases.
template <u32 STRIDE> struct Far {
    static constexpr u32 CODES = 1;
    const u32* words;
    DEVICE Far from(u32 k) const { return {words + u64(k / 4) * (STRIDE * 32)}; }
    DEVICE u32 word(u32 i) const { return passing(words + (i / 4 * STRIDE + i % 4) * 32); }
    DEVICE u32 column(u32 word, u32, bool& here) const {
        here = word != ~0u;
        return word;
    }
};
template <u32 STRIDE, typename B> struct Above {
    static constexpr u32 CODES = 2;
    const u32* words;
    B bases;
    DEVICE Above from(u32 k) const { return {words + u64(k / 4) * (STRIDE * 32), bases}; }
    DEVICE u32 word(u32 i) const { return passing(words + (i / 2 * STRIDE + i % 2) * 32); }
    DEVICE u32 column(u32 word, u32 k, bool& here) const {
        const u32 code = word >> (16 * (k % 2)) & 65535;
        here = code != 65535;
        return base_of(bases, code) + code;
    }
};
// Codes of one byte: numbers of distances.
template <u32 STRIDE> struct Near {
    static constexpr u32 CODES = 4;
    const u32 *words, *distances;
    u32 row;
    DEVICE Near from(u32 k) const { return {words + u64(k / 4) * (STRIDE * 32), distances, row}; }
    DEVICE u32 word(u32 i) const { return passing(words + i * (STRIDE * 32)); }
    DEVICE u32 column(u32 word, u32 k, bool& here) const {
        const u32 code = word >> (8 * (k % 4)) & 255;
        here = code != 255;
        return row + cached(distances + code);
    }
};
// A kind of rows with these distances.
struct Kind {
    static constexpr u32 CODES = 0;
    const u32* distances;
    u32 row, length;
    DEVICE Kind from(u32 k) const { return {distances + k, row, length > k ? length - k : 0}; }
    DEVICE u32 word(u32) const { return 0; }
    DEVICE u32 column(u32, u32 k, bool& here) const {
        here = k < length;
        return here ? row + distances[k] : 0;
    }
};

// Stored values.
template <typename S> struct Stored {
    const S* values;
    u32 conjugate;
    template <u32 N> struct Raw {
        S value[N];
    };
    DEVICE Stored from(u32 k) const { return {values + u64(k) * 32, conjugate}; }
    template <u32 N> DEVICE void ask(Raw<N>& raw) const {
#pragma unroll
        for (u32 u = 0; u < N; u++) raw.value[u] = passing(values + u * 32);
    }
    template <u32 N> DEVICE T of(const Raw<N>& raw, u32 k) const { return entry<T>(raw.value[k], conjugate); }
};
// Numbers of values in a table; `words` are the words of the values.
template <u32 STRIDE, typename V> struct Coded {
    const u32* words;
    const V* table;
    u32 conjugate;
    template <u32 N> struct Raw {
        u32 word[(N + 3) / 4];
    };
    DEVICE Coded from(u32 k) const { return {words + u64(k / 4) * (STRIDE * 32), table, conjugate}; }
    template <u32 N> DEVICE void ask(Raw<N>& raw) const {
#pragma unroll
        for (u32 q = 0; q < (N + 3) / 4; q++) raw.word[q] = passing(words + q * (STRIDE * 32));
    }
    template <u32 N> DEVICE T of(const Raw<N>& raw, u32 k) const {
        return entry<T>(cached(table + (raw.word[k / 4] >> (8 * (k % 4)) & 255)), conjugate);
    }
};
// All values are one.
struct Only {
    T value;
    template <u32 N> struct Raw {};
    DEVICE Only from(u32) const { return *this; }
    template <u32 N> DEVICE void ask(Raw<N>&) const {}
    template <u32 N> DEVICE T of(const Raw<N>&, u32) const { return value; }
};

// Adds N entries.
template <u32 N, typename C, typename A> DEVICE T add_entries(T sum, const C& columns, const A& values, const T* x) {
    constexpr u32 CODES = C::CODES ? C::CODES : N, WORDS = (N + CODES - 1) / CODES;
    u32 word[WORDS], column[N];
    bool here[N];
    typename A::template Raw<N> raw;
    T of_x[N];
#pragma unroll
    for (u32 w = 0; w < WORDS; w++) word[w] = columns.word(w);
    values.template ask<N>(raw);
#pragma unroll
    for (u32 u = 0; u < N; u++) {
        const u32 its = columns.column(word[u / CODES], u, here[u]);
        column[u] = here[u] ? its : 0;
    }
#pragma unroll
    for (u32 u = 0; u < N; u++) of_x[u] = cached(x + column[u]);
#pragma unroll
    for (u32 u = 0; u < N; u++) {
        const T more = sum + values.template of<N>(raw, u) * of_x[u];
        sum = here[u] ? more : sum;
    }
    return sum;
}
// Adds the remaining entries, fewer than N.
template <u32 N, typename C, typename A> DEVICE T add_rest(u32 left, T sum, const C& columns, const A& values, const T* x) {
    if constexpr (N > 1) {
        if (left == N - 1) return add_entries<N - 1>(sum, columns, values, x);
        return add_rest<N - 1>(left, sum, columns, values, x);
    }
    return sum;
}
// Returns the sum of a row in a section of this width, from left to right, so that two runs give the same bits;
// `values` are the row's.
template <u32 N, typename C, typename A> DEVICE T row_sum(u32 width, const C& columns, const A& values, const T* x) {
    static_assert(N % 4 == 0, "a step begins with a quad of its own");
    T sum = T();
    u32 k = 0;
    for (; k + N <= width; k += N) sum = add_entries<N>(sum, columns.from(k), values.from(k), x);
    return add_rest<N>(width - k, sum, columns.from(k), values.from(k), x);
}
