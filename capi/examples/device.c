/* Arrays on a GPU and a stream of the caller: a matrix from CSR and from COO, and a time loop with new values. Only the
 * last call waits for the GPU. CUDA's driver is loaded at run time; without a GPU the program does nothing. */
#include "residua.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                                             \
    do {                                                                                                             \
        if (!(condition)) {                                                                                          \
            fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, residua_last_error());                       \
            exit(1);                                                                                                 \
        }                                                                                                            \
    } while (0)

enum { N = 20000, SLOW = 1 << 28, STEPS = 4 };
typedef unsigned long long address;

/* The driver's functions that this program uses, declared as in cuda.h. */
static int (*init)(unsigned), (*retain)(void **, int), (*enter)(void *), (*allocate)(address *, size_t);
static int (*stream_create)(void **, unsigned), (*stream_wait)(void *);
static int (*to_device)(address, const void *, size_t, void *), (*to_host)(void *, address, size_t, void *);
static int (*set)(address, unsigned char, size_t, void *);

static int load(void *to, void *library, const char *name) {
    void *found = dlsym(library, name);
    memcpy(to, &found, sizeof found);
    return found != NULL;
}

static void *driver(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *context = NULL;
    if (!library || !load(&init, library, "cuInit") || init(0) != 0)
        return NULL;
    CHECK(load(&retain, library, "cuDevicePrimaryCtxRetain") && load(&enter, library, "cuCtxSetCurrent"));
    CHECK(load(&allocate, library, "cuMemAlloc_v2") && load(&stream_create, library, "cuStreamCreate"));
    CHECK(load(&stream_wait, library, "cuStreamSynchronize") && load(&to_device, library, "cuMemcpyHtoDAsync_v2"));
    CHECK(load(&to_host, library, "cuMemcpyDtoHAsync_v2") && load(&set, library, "cuMemsetD8Async"));
    return retain(&context, 0) == 0 && enter(context) == 0 ? context : NULL;
}

static address on_gpu(const void *from, size_t bytes, void *stream) {
    address made = 0;
    CHECK(allocate(&made, bytes) == 0);
    CHECK(from == NULL || to_device(made, from, bytes, stream) == 0);
    return made;
}

#define AT(place) ((void *)(uintptr_t)(place))

int main(void) {
    if (!driver()) {
        puts("device: skipped, there is no GPU");
        return 0;
    }
    static int64_t offsets[N + 1];
    static int32_t rows[3 * N], columns[3 * N];
    static double values[STEPS][3 * N], b[STEPS][N], x[STEPS][N], zero[N];
    int64_t entries = 0;
    for (int i = 0; i < N; i++) {
        offsets[i] = entries;
        for (int j = i > 0 ? i - 1 : 0; j <= i + 1 && j < N; j++) {
            rows[entries] = i + 1, columns[entries] = j + 1;
            for (int step = 0; step < STEPS; step++)
                values[step][entries] = (i == j ? 4 : -1) * (1.0 + step);
            entries++;
        }
    }
    offsets[N] = entries;
    for (int step = 0; step < STEPS; step++)
        for (int i = 0; i < N; i++)
            for (int64_t k = offsets[i]; k < offsets[i + 1]; k++)
                b[step][i] += values[step][k] * (1 + (columns[k] - 1) % 7);
    void *stream = NULL;
    CHECK(stream_create(&stream, 1 /* it does not wait for the default stream */) == 0);
    address slow = on_gpu(NULL, SLOW, stream), device_b = on_gpu(NULL, sizeof zero, stream);
    address device_x = on_gpu(NULL, sizeof zero, stream), device_values = on_gpu(values[0], sizeof values[0], stream);
    address device_rows = on_gpu(rows, sizeof rows, stream), device_columns = on_gpu(columns, sizeof columns, stream);
    residua_options *options = NULL;
    residua_solver *solver = NULL;
    residua_report *report = NULL;
    CHECK(residua_options_create(&options) == RESIDUA_OK);
    CHECK(residua_options_set(options, "tolerance", "1e-11") == RESIDUA_OK);
    CHECK(residua_options_set(options, "updates", "yes") == RESIDUA_OK);
    CHECK(residua_solver_from_coo_device(&solver, options, RESIDUA_FLOAT64, N, N, entries, 1, 32, AT(device_rows),
                                         AT(device_columns), AT(device_values), stream) == RESIDUA_OK);
    for (int step = 0; step < STEPS; step++) {
        int32_t converged = 0;
        /* Slow work before the copies: a solve that did not wait for the stream would read the old values. */
        for (int turn = 0; turn < 40; turn++)
            CHECK(set(slow, (unsigned char)turn, SLOW, stream) == 0);
        CHECK(to_device(device_values, values[step], sizeof values[step], stream) == 0);
        CHECK(to_device(device_b, b[step], sizeof b[step], stream) == 0);
        CHECK(to_device(device_x, zero, sizeof zero, stream) == 0);
        CHECK(residua_solver_update_device(solver, AT(device_values), entries, stream) == RESIDUA_OK);
        CHECK(residua_solver_solve_device(solver, 1, AT(device_b), N, AT(device_x), N, stream, &report) == RESIDUA_OK);
        CHECK(residua_report_converged(report, &converged) == RESIDUA_OK && converged);
        CHECK(residua_report_destroy(report) == RESIDUA_OK);
        CHECK(to_host(x[step], device_x, sizeof zero, stream) == 0);
    }
    CHECK(stream_wait(stream) == 0);
    for (int step = 0; step < STEPS; step++)
        for (int i = 0; i < N; i++)
            CHECK(x[step][i] - (1 + i % 7) < 1e-8 && x[step][i] - (1 + i % 7) > -1e-8);
    /* Mistakes that are detected: an array on the host, and vectors that overlap. */
    CHECK(residua_solver_solve_device(solver, 1, b[0], N, AT(device_x), N, stream, &report) ==
          RESIDUA_INVALID_ARGUMENT);
    CHECK(residua_solver_solve_device(solver, 1, AT(device_x), N, AT(device_x), N, stream, &report) ==
          RESIDUA_INVALID_ARGUMENT);
    CHECK(residua_solver_destroy(solver) == RESIDUA_OK);
    /* Offsets of 64 bits and columns of 32 bits, both counted from 0. */
    for (int64_t k = 0; k < entries; k++)
        columns[k]--;
    address device_offsets = on_gpu(offsets, sizeof offsets, stream);
    CHECK(to_device(device_columns, columns, sizeof columns, stream) == 0);
    CHECK(residua_solver_from_csr_device(&solver, options, RESIDUA_FLOAT64, N, N, entries, 0, 64, AT(device_offsets), 32,
                                         AT(device_columns), AT(device_values), stream) == RESIDUA_OK);
    CHECK(to_device(device_x, zero, sizeof zero, stream) == 0);
    CHECK(residua_solver_solve_device(solver, 1, AT(device_b), N, AT(device_x), N, stream, &report) == RESIDUA_OK);
    CHECK(residua_report_destroy(report) == RESIDUA_OK);
    CHECK(to_host(x[0], device_x, sizeof zero, stream) == 0 && stream_wait(stream) == 0);
    for (int i = 0; i < N; i++)
        CHECK(x[0][i] - (1 + i % 7) < 1e-8 && x[0][i] - (1 + i % 7) > -1e-8);
    /* A column index beyond the matrix is detected on the GPU. */
    columns[5] = N;
    CHECK(to_device(device_columns, columns, sizeof columns, stream) == 0);
    residua_solver *none = NULL;
    CHECK(residua_solver_from_csr_device(&none, options, RESIDUA_FLOAT64, N, N, entries, 0, 64, AT(device_offsets), 32,
                                         AT(device_columns), AT(device_values), stream) == RESIDUA_INVALID_MATRIX);
    CHECK(residua_solver_destroy(solver) == RESIDUA_OK && residua_options_destroy(options) == RESIDUA_OK);
    puts("device: ok");
    return 0;
}
