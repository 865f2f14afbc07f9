// What the inverted blocks of pivots of fronts (fronts.cuh) tell about the matrix: its determinant and, if it is
// Hermitian, the number of its negative eigenvalues. With D as the blocks, det M is the product of all det D, and the
// inertia of M the sum of theirs (Haynsworth, Linear Algebra Appl. 1, 1968).
//
// A block of threads factorises D^-1 of one front in shared memory: with partial pivoting or, if it is Hermitian, with
// pivots of one and two rows by the rule of Bunch and Kaufman (Math. Comp. 31, 1977). By Sylvester's law these have as
// many negative eigenvalues as D^-1, and so as D. Every warp searches for the same pivot, so none is passed on.
//
// Constants: SCALAR, THREADS, PIVOTS (columns of D at most).
#include "fronts.cuh"

typedef SCALAR T;
typedef real_of<T>::type R;
// (1 + sqrt 17) / 8
constexpr f64 ALPHA = 0.6403882032022076;

DEVICE f64 size_of(f32 a) { return fabs(f64(a)); }
DEVICE f64 size_of(f64 a) { return fabs(a); }
template <typename C> DEVICE f64 size_of(C a) { return hypot(f64(a.re), f64(a.im)); }

struct Largest { f64 size; u32 at; };

// The largest of the entries begin .. end, the first of equal ones; size 0 if there are none.
DEVICE Largest largest_of(const T* entries, u32 begin, u32 end) {
    Largest found = {0, begin};
    for (u32 i = begin + lane_id(); i < end; i += 32)
        if (size_of(entries[i]) > found.size) found = {size_of(entries[i]), i};
#pragma unroll
    for (u32 with = 16; with; with /= 2) {
        const Largest other = {shuffle_xor(found.size, with), shuffle_xor(found.at, with)};
        if (other.size > found.size || (other.size == found.size && other.at < found.at)) found = other;
    }
    return found;
}

// The product of pivots, as a number of magnitude 1 and a logarithm, and the number of negative eigenvalues.
struct Product {
    T sign = from_real<T>(1);
    f64 logarithm = 0;
    u32 negatives = 0;

    DEVICE void multiply(T pivot) {
        const f64 size = size_of(pivot);
        sign = sign * (R(1 / size) * pivot);
        logarithm += log(size);
    }
};

// Exchanges the rows or columns p and q of an n x n matrix, beginning at entry `first` of each.
DEVICE void exchange(T* a, u32 p, u32 q, u32 stride, u32 across, u32 first, u32 n) {
    for (u32 j = first + threadIdx.x; p != q && j < n; j += THREADS) {
        const T kept = a[p * stride + j * across];
        a[p * stride + j * across] = a[q * stride + j * across];
        a[q * stride + j * across] = kept;
    }
    __syncthreads();
}

// Calls update(i, j) for all entries from row and column `first` on.
template <typename F> DEVICE void each_from(u32 first, u32 n, F update) {
    const u32 rest = n - first;
    for (u32 k = threadIdx.x; k < rest * rest; k += THREADS) update(first + k % rest, first + k / rest);
    __syncthreads();
}

// Multiplies `product` by the pivots of an n x n matrix.
DEVICE void eliminate(T* a, u32 n, Product& product) {
    for (u32 k = 0; k < n; k++) {
        const u32 at = largest_of(a + k * n, k, n).at;
        __syncthreads();
        exchange(a, k, at, 1, n, k, n);
        const T pivot = a[k + k * n];
        product.multiply(at == k ? pivot : -pivot);
        each_from(k + 1, n, [=](u32 i, u32 j) {
            a[i + j * n] = a[i + j * n] - a[i + k * n] * divide(a[k + j * n], pivot);
        });
    }
}

// The same for a Hermitian matrix, both of whose triangles are stored.
DEVICE void eliminate_hermitian(T* a, u32 n, Product& product) {
    for (u32 k = 0; k < n;) {
        const f64 diagonal = fabs(f64(real_part(a[k + k * n])));
        const Largest below = largest_of(a + k * n, k + 1, n);
        u32 at = k;
        bool two = false;
        if (diagonal < ALPHA * below.size) {
            const T* column = a + below.at * n;
            const f64 beside = max(largest_of(column, k, below.at).size, largest_of(column, below.at + 1, n).size);
            if (diagonal * beside < ALPHA * below.size * below.size) {
                at = below.at;
                two = fabs(f64(real_part(column[at]))) < ALPHA * beside;
            }
        }
        __syncthreads();
        const u32 place = two ? k + 1 : k;
        exchange(a, place, at, 1, n, k, n);
        exchange(a, place, at, n, 1, k, n);
        const R p = real_part(a[k + k * n]);
        if (two) {
            const T c = a[k + 1 + k * n];
            const R q = real_part(a[k + 1 + (k + 1) * n]), determinant = p * q - abs2(c);
            product.multiply(from_real<T>(determinant));
            product.negatives += determinant < 0 ? 1 : p < 0 ? 2 : 0;
            const R over = 1 / determinant;
            each_from(k + 2, n, [=](u32 i, u32 j) {
                const T e = a[k + j * n], f = a[k + 1 + j * n];
                const T first = over * (q * e - conj(c) * f), second = over * (p * f - c * e);
                a[i + j * n] = a[i + j * n] - (a[i + k * n] * first + a[i + (k + 1) * n] * second);
            });
            k += 2;
        } else {
            product.multiply(from_real<T>(p));
            product.negatives += p < 0;
            each_from(k + 1, n, [=](u32 i, u32 j) {
                a[i + j * n] = a[i + j * n] - a[i + k * n] * (R(1 / p) * a[k + j * n]);
            });
            k++;
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    front_determinants(const Front* fronts, const u32* steps, const T* factors, u32 hermitian, T* signs,
                       f64* logarithms, u32* negatives) {
    __shared__ T a[PIVOTS * PIVOTS];
    const Front front = fronts[blockIdx.x];
    const u64 m = front.height;
    Product product;
    for (u32 step = 0; step < front.step_count; step++) {
        const u32 begin = steps[front.steps + step], n = steps[front.steps + step + 1] - begin;
        const T* block = factors + front.panel + begin + begin * m;
        for (u32 k = threadIdx.x; k < n * n; k += THREADS) {
            const u32 i = k % n, j = k / n;
            // Triangles of an inverse differ by rounding.
            a[k] = hermitian && i < j ? conj(block[j + i * m]) : block[i + j * m];
        }
        __syncthreads();
        if (hermitian) eliminate_hermitian(a, n, product);
        else eliminate(a, n, product);
    }
    if (threadIdx.x) return;
    signs[blockIdx.x] = product.sign;
    logarithms[blockIdx.x] = product.logarithm;
    negatives[blockIdx.x] = product.negatives;
}
