// Near-null vectors of multigrid on groups of unknowns: an orthonormal basis on each group, the prolongation from these
// bases, and what its smoothing along strong connections alone misses. src/backend/near_null.rs describes each step.
//
//     vectors   unknown 0: v0 v1 v2 | unknown 1: v0 v1 v2 | ...                                (`count` = 3 vectors)
//     r         group 0: row 0, row 1, row 2 | ...        rows in echelon form, as many as the basis has vectors
//     first     0, 3, 5, ...                              the column of each group's first vector
//
// One thread takes one group or one row, in the order of its members or entries, so that sums have the same bits as on
// the host. Groups have some dozens of unknowns, and there are thousands of them.
//
// Bytes moved: the vectors of a group once for each pair of them, from the caches.
//
// Constants: SCALAR, OFFSET (of the members, or of A), TARGET (of the prolongation, or of strong connections), THREADS.
#include "nodes.cuh"
#include "scalars.cuh"

typedef SCALAR T;
typedef real_of<T>::type R;
typedef OFFSET I;
typedef TARGET J;

// DEPENDENT and the square of LEAST_OWN.
constexpr f64 DEPENDENT = 1e-8, LEAST_OWN = 0.05;

extern "C" __global__ void __launch_bounds__(THREADS)
    group_bases(u64 groups, u32 count, const I* starts, const u32* members, const T* vectors, T* q, T* r, u32* ranks) {
    EACH(g, groups) {
        const u64 begin = starts[g], end = starts[g + 1];
        T* const rows = r + g * count * count;
        for (u32 k = 0; k < count * count; k++) rows[k] = T();
        u32 rank = 0;
        for (u32 j = 0; j < count; j++) {
            // Column `rank` of q has the vector while it is orthogonalised. It is not kept if it depends on the others.
            R whole = 0;
            for (u64 at = begin; at < end; at++) {
                const T value = vectors[u64(members[at]) * count + j];
                q[u64(members[at]) * count + rank] = value;
                whole += abs2(value);
            }
            for (u32 time = 0; time < 2; time++)
                for (u32 k = 0; k < rank; k++) {
                    T dot = T();
                    for (u64 at = begin; at < end; at++) {
                        const T* const row = q + u64(members[at]) * count;
                        dot = dot + conj(row[k]) * row[rank];
                    }
                    for (u64 at = begin; at < end; at++) {
                        T* const row = q + u64(members[at]) * count;
                        row[rank] = row[rank] - dot * row[k];
                    }
                    rows[k * count + j] = rows[k * count + j] + dot;
                }
            R square = 0;
            for (u64 at = begin; at < end; at++) square += abs2(q[u64(members[at]) * count + rank]);
            const R left = root(square);
            if (!(left > R(DEPENDENT) * root(whole)) || rank == end - begin) continue;
            rows[rank * count + j] = from_real<T>(left);
            const T inverse = from_real<T>(R(1) / left);
            for (u64 at = begin; at < end; at++) {
                T& value = q[u64(members[at]) * count + rank];
                value = value * inverse;
            }
            rank++;
        }
        ranks[g] = rank;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    basis_lengths(u64 n, const u32* group, const u32* first, u32* lengths) {
    EACH(i, n + 1) lengths[i] = i < n && group[i] != NO_GROUP ? first[group[i] + 1] - first[group[i]] : 0;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    basis_entries(u64 n, u32 count, const u32* group, const u32* first, const T* q, const J* offsets, u32* indices,
                  T* values) {
    EACH(i, n) {
        const u64 begin = offsets[i];
        const u32 rank = u32(offsets[i + 1] - begin);
        for (u32 j = 0; j < rank; j++) {
            indices[begin + j] = first[group[i]] + j;
            values[begin + j] = q[i * count + j];
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    basis_rows(u64 groups, u32 count, const u32* first, const T* r, T* rows, u32* group) {
    EACH(g, groups)
        for (u32 j = 0; j < first[g + 1] - first[g]; j++) {
            const u64 unknown = first[g] + j;
            group[unknown] = u32(g);
            for (u32 k = 0; k < count; k++) rows[unknown * count + k] = r[(g * count + j) * count + k];
        }
}

// The first numbers of a row of `missing` become the row's entries of C.
extern "C" __global__ void __launch_bounds__(THREADS)
    basis_corrections(u64 n, u32 count, const u32* group, const u32* first, const T* r, const T* scale, T* missing,
                      const J* offsets, T* values) {
    EACH(i, n) {
        if (group[i] == NO_GROUP) continue;
        const u32 rank = first[group[i] + 1] - first[group[i]];
        const T* const rows = r + u64(group[i]) * count * count;
        T* const row = missing + i * count;
        u32 column = 0;
        for (u32 j = 0; j < rank; j++) {
            while (column + 1 < count && is_zero(rows[j * count + column])) column++;
            const T own = rows[j * count + column];
            R square = abs2(own);
            T left = row[column] * scale[i];
            for (u32 above = 0; above < j; above++) {
                const T there = rows[above * count + column];
                square += abs2(there);
                left = left - row[above] * there;
            }
            row[j] = abs2(own) > R(LEAST_OWN * LEAST_OWN) * square ? divide(left, own) : T();
            values[u64(offsets[i]) + j] = values[u64(offsets[i]) + j] + row[j];
        }
    }
}

// Columns ascend, and so do their nodes and the neighbours of a node.
extern "C" __global__ void __launch_bounds__(THREADS)
    strong_blocks(u64 n, const I* offsets, const u32* columns, const u32* node, const J* starts, const u32* neighbours,
                  u8* kept, u32* lengths) {
    EACH(i, n + 1) {
        u32 count = 0;
        if (i < n) {
            const u32 own = node[i];
            u64 at = starts[own];
            const u64 end = starts[own + 1];
            for (u64 e = offsets[i]; e < offsets[i + 1]; e++) {
                const u32 there = node[columns[e]];
                while (at < end && neighbours[at] < there) at++;
                const bool keep = there == own || (at < end && neighbours[at] == there);
                kept[e] = keep;
                count += keep;
            }
        }
        lengths[i] = count;
    }
}
