// CUB's times for `benches/device`, one line each: "NAME MILLISECONDS". Inputs are generated as there. The functions
// are those of kernels_cub.cu, whose parts are compiled in parallel:
//     for p in 0 1 2 3 4; do nvcc -O3 -std=c++17 -arch=sm_90 -DPART=$p -c kernels_cub.cu -o cub$p.o & done; wait
//     nvcc -O3 -std=c++17 -arch=sm_90 cub_figures.cu cub?.o -o cub_figures
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

typedef uint32_t u32;
typedef uint64_t u64;
typedef double f64;
typedef void* Temp;
extern "C" {
int cub_sum_f64(Temp, size_t*, const f64*, f64*, u64, cudaStream_t);
int cub_dot_f64(Temp, size_t*, const f64*, const f64*, f64*, u64, cudaStream_t);
int cub_scan_u32(Temp, size_t*, const u32*, u32*, u64, cudaStream_t);
int cub_scan_u64(Temp, size_t*, const u64*, u64*, u64, cudaStream_t);
int cub_unique_u32(Temp, size_t*, const u32*, u32*, u64*, u64, cudaStream_t);
int cub_flagged_u32(Temp, size_t*, const u32*, const uint8_t*, u32*, u64*, u64, cudaStream_t);
int cub_reduce_by_key(Temp, size_t*, const u64*, const f64*, u64*, f64*, u64*, u64, cudaStream_t);
int cub_histogram_u32(Temp, size_t*, const u32*, int*, u64, int, cudaStream_t);
int cub_keys_u32(Temp, size_t*, const u32*, u32*, u64, int, cudaStream_t);
int cub_pairs_u32(Temp, size_t*, const u32*, u32*, const u32*, u32*, u64, int, cudaStream_t);
int cub_keys_u64(Temp, size_t*, const u64*, u64*, u64, int, cudaStream_t);
int cub_pairs_u64(Temp, size_t*, const u64*, u64*, const u32*, u32*, u64, int, cudaStream_t);
int cub_merge_sort(Temp, size_t*, const u64*, u64*, const u32*, u32*, u64, cudaStream_t);
int cub_segmented_sum(Temp, size_t*, const f64*, f64*, u64, const u32*, cudaStream_t);
int cub_segmented_sort(Temp, size_t*, const u32*, u32*, const f64*, f64*, u64, u64, const u32*, cudaStream_t);
}

__host__ __device__ inline u64 hash_of(u64 i) {
    u64 z = i * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}
// How element i is generated: by one of these rules, with a parameter.
enum Kind { SMALL, HASH, BITS, RUNS, HALF, POWER, COUNT, OFFSETS };
template <typename T> __global__ void fill(T* x, u64 n, Kind kind, u64 p, u64 last) {
    for (u64 i = blockIdx.x * u64(blockDim.x) + threadIdx.x; i < n; i += u64(gridDim.x) * blockDim.x) {
        u64 h = hash_of(i);
        f64 u = f64(h >> 11) / f64(1ull << 53);
        if (kind == SMALL) x[i] = T(h & p);
        else if (kind == HASH) x[i] = T(h);
        else if (kind == BITS) x[i] = T(h >> (64 - p));
        else if (kind == RUNS) x[i] = T(i / p);
        else if (kind == HALF) x[i] = T(h & 1);
        else if (kind == POWER) x[i] = T((1 << 20) * (p == 1 ? u : u * u * u * u));
        else if (kind == COUNT) x[i] = T(i);
        else x[i] = T(i + 1 == n ? last : i * p);
    }
}
template <typename T> struct Array {
    T* p = nullptr;
    explicit Array(u64 n) { if (cudaMalloc(&p, n * sizeof(T))) { fprintf(stderr, "no memory\n"); exit(1); } }
    Array(u64 n, Kind kind, u64 q = 0, u64 last = 0) : Array(n) { fill<<<1024, 256>>>(p, n, kind, q, last); }
    Array(const Array&) = delete;
    ~Array() { cudaFree(p); }
};
typedef std::function<int(Temp, size_t*)> Call;

static void row(const std::string& name, Call call) {
    size_t bytes = 0;
    if (call(nullptr, &bytes)) return;
    Array<char> temp(bytes + 1);
    cudaEvent_t a, b;
    cudaEventCreate(&a), cudaEventCreate(&b);
    std::vector<float> times;
    Array<char> busy(1 << 27);
    for (int i = 0; i < 11; i++) {
        cudaMemsetAsync(busy.p, 0, 1 << 27);  // keeps the device busy while the timed work is enqueued
        cudaEventRecord(a);
        int error = call(temp.p, &bytes);
        cudaEventRecord(b);
        cudaEventSynchronize(b);
        float ms;
        cudaEventElapsedTime(&ms, a, b);
        if (error || cudaGetLastError()) { fprintf(stderr, "%s failed\n", name.c_str()); return; }
        if (i > 1) times.push_back(ms);
    }
    std::sort(times.begin(), times.end());
    printf("%s %.5f\n", name.c_str(), times[times.size() / 2]);
    fflush(stdout);
}

template <typename K> static void sort_rows(u64 n, int bits, bool pairs, const std::string& name) {
    Array<K> keys(n, sizeof(K) == 8 ? BITS : HASH, bits), out(n);
    Array<u32> values(pairs ? n : 1, COUNT), values_out(pairs ? n : 1);
    row(name, [&](Temp t, size_t* b) {
        if constexpr (sizeof(K) == 8) return pairs ? cub_pairs_u64(t, b, keys.p, out.p, values.p, values_out.p, n, bits, 0) : cub_keys_u64(t, b, keys.p, out.p, n, bits, 0);
        else return pairs ? cub_pairs_u32(t, b, keys.p, out.p, values.p, values_out.p, n, bits, 0) : cub_keys_u32(t, b, keys.p, out.p, n, bits, 0);
    });
}

int main() {
    Array<u64> count(1);
    {
        u64 n = 1 << 28;
        Array<f64> x(n, SMALL, 0xff), y(n, SMALL, 0xff), out(1);
        row("sum f64", [&](Temp t, size_t* b) { return cub_sum_f64(t, b, x.p, out.p, n, 0); });
        row("dot f64", [&](Temp t, size_t* b) { return cub_dot_f64(t, b, x.p, x.p, out.p, n, 0); });
        row("dot f64, two arrays", [&](Temp t, size_t* b) { return cub_dot_f64(t, b, x.p, y.p, out.p, n, 0); });
    }
    for (int p : {29, 20}) {
        u64 n = 1ull << p;
        Array<u32> x(n, SMALL, 0x3f), out(n);
        row("exclusive scan u32 2^" + std::to_string(p), [&](Temp t, size_t* b) { return cub_scan_u32(t, b, x.p, out.p, n, 0); });
    }
    for (int p : {28, 20}) {
        u64 n = 1ull << p;
        Array<u64> x(n, SMALL, 0x3f), out(n);
        row("exclusive scan u64 2^" + std::to_string(p), [&](Temp t, size_t* b) { return cub_scan_u64(t, b, x.p, out.p, n, 0); });
    }
    for (u64 length : {1, 4, 64}) {
        u64 n = 1 << 27;
        Array<u64> keys(n, RUNS, length), keys_out(n);
        Array<f64> values(n, SMALL, 0xff), out(n);
        row("reduce by key u64 + f64, runs of " + std::to_string(length), [&](Temp t, size_t* b) { return cub_reduce_by_key(t, b, keys.p, values.p, keys_out.p, out.p, count.p, n, 0); });
    }
    for (u64 mean : {4, 27, 1000}) {
        u64 n = 1 << 27, segments = n / mean;
        Array<f64> x(n, SMALL, 0xff), out(segments);
        Array<u32> offsets(segments + 1, OFFSETS, mean, n);
        row("segmented sum f64, mean " + std::to_string(mean), [&](Temp t, size_t* b) { return cub_segmented_sum(t, b, x.p, out.p, segments, offsets.p, 0); });
    }
    {
        u64 n = 1 << 28;
        Array<u32> x(n, RUNS, 4), out(n);
        Array<uint8_t> flags(n, HALF);
        row("unique u32, runs of 4", [&](Temp t, size_t* b) { return cub_unique_u32(t, b, x.p, out.p, count.p, n, 0); });
        row("compact u32, half kept", [&](Temp t, size_t* b) { return cub_flagged_u32(t, b, x.p, flags.p, out.p, count.p, n, 0); });
        Array<int> bins(1 << 20);
        for (int power : {1, 4}) {
            Array<u32> keys(n, POWER, power);
            row(std::string("histogram 2^20 bins, ") + (power == 1 ? "uniform" : "power law"), [&](Temp t, size_t* b) { return cub_histogram_u32(t, b, keys.p, bins.p, n, 1 << 20, 0); });
        }
    }
    for (int p : {28, 20, 16}) {
        sort_rows<u32>(1ull << p, 32, false, "sort u32 2^" + std::to_string(p));
        sort_rows<u32>(1ull << p, 32, true, "sort u32 + u32 2^" + std::to_string(p));
    }
    for (int p : {27, 20, 16}) {
        sort_rows<u64>(1ull << p, 64, false, "sort u64 2^" + std::to_string(p));
        for (int bits : {64, 46, 40}) sort_rows<u64>(1ull << p, bits, true, "sort u64 + u32 2^" + std::to_string(p) + ", " + std::to_string(bits) + " bits");
    }
    {
        u64 n = 1 << 27;
        Array<u64> keys(n, HASH), out(n);
        Array<u32> values(n, COUNT), values_out(n);
        row("merge sort u64 + u32", [&](Temp t, size_t* b) { return cub_merge_sort(t, b, keys.p, out.p, values.p, values_out.p, n, 0); });
    }
    for (u64 mean : {7, 27, 1000}) {
        u64 n = 1 << 26, segments = n / mean;
        Array<u32> keys(n, HASH), out(n), offsets(segments + 1, OFFSETS, mean, n);
        Array<f64> values(n, COUNT), values_out(n);
        row("segmented sort u32 + f64, mean " + std::to_string(mean), [&](Temp t, size_t* b) { return cub_segmented_sort(t, b, keys.p, out.p, values.p, values_out.p, n, segments, offsets.p, 0); });
    }
    return 0;
}
