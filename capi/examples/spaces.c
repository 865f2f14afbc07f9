/* Options that are arrays: the null space of a problem with Neumann conditions all around, the points of a mesh, and
vectors that A maps almost to zero. Solutions are checked by b - A x. */
#include "residua.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 40, N = SIDE * SIDE };
#define CHECK(condition)                                                                                             \
    do {                                                                                                             \
        if (!(condition)) {                                                                                          \
            fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, residua_last_error());                       \
            exit(1);                                                                                                 \
        }                                                                                                            \
    } while (0)

static int64_t offsets[N + 1];
static int32_t columns[5 * N];
static double values[5 * N], points[2 * N], ones[N], b[N], x[N];

/* The graph Laplacian of a square grid, plus `shift` on the diagonal. */
static int64_t assemble(double shift) {
    int64_t entries = 0;
    for (int i = 0; i < N; i++) {
        int row = i / SIDE, column = i % SIDE;
        int near[] = {row > 0 ? i - SIDE : -1, column > 0 ? i - 1 : -1, column + 1 < SIDE ? i + 1 : -1,
                      row + 1 < SIDE ? i + SIDE : -1};
        int64_t diagonal = entries++;
        columns[diagonal] = i, values[diagonal] = shift;
        for (int k = 0; k < 4; k++)
            if (near[k] >= 0)
                columns[entries] = near[k], values[entries++] = -1, values[diagonal] += 1;
        offsets[i + 1] = entries;
        points[2 * i] = column, points[2 * i + 1] = row, ones[i] = 1;
    }
    return entries;
}

/* The largest of |beyond + A x - b|. */
static double residual(double beyond) {
    double largest = 0;
    for (int i = 0; i < N; i++) {
        double r = beyond - b[i];
        for (int64_t k = offsets[i]; k < offsets[i + 1]; k++)
            r += values[k] * x[columns[k]];
        largest = fmax(largest, fabs(r));
    }
    return largest;
}

/* Creates a solver with these options, solves from zero, and returns the number of this name from the report. */
static double solve(residua_options *options, int64_t entries, const char *name) {
    residua_solver *solver = NULL;
    residua_report *report = NULL;
    double number = NAN;
    CHECK(residua_solver_from_csr(&solver, options, RESIDUA_FLOAT64, N, N, entries, 0, 64, offsets, 32, columns, values) ==
          RESIDUA_OK);
    memset(x, 0, sizeof x);
    CHECK(residua_solver_solve(solver, b, N, x, N, &report) == RESIDUA_OK);
    CHECK(residua_report_number(report, name, &number) == RESIDUA_OK);
    CHECK(residua_report_destroy(report) == RESIDUA_OK && residua_solver_destroy(solver) == RESIDUA_OK);
    return number;
}

int main(void) {
    residua_options *options = NULL;
    residua_solver *solver = NULL;
    int64_t entries = assemble(0);
    double mean = 0, sum = 0;
    for (int i = 0; i < N; i++)
        b[i] = sin(i) + 0.5, mean += b[i] / N;
    for (int by_array = 0; by_array < 2; by_array++) {
        CHECK(residua_options_create(&options) == RESIDUA_OK);
        CHECK(residua_options_set(options, "tolerance", "1e-10") == RESIDUA_OK);
        CHECK(residua_options_set(options, "null_space", "ones") == RESIDUA_INVALID_ARGUMENT);
        if (by_array)
            CHECK(residua_options_set_null_space(options, RESIDUA_FLOAT64, N, 1, ones) == RESIDUA_OK);
        else
            CHECK(residua_options_set(options, "null_space", "constants") == RESIDUA_OK);
        /* The constant part of b is outside the range of A: a vector with the norm |mean| sqrt(N). */
        CHECK(fabs(solve(options, entries, "outside_range") - fabs(mean) * sqrt(N)) < 1e-9);
        CHECK(residual(mean) < 1e-8);
        sum = 0;
        for (int i = 0; i < N; i++)
            sum += x[i];
        CHECK(fabs(sum) < 1e-6);
        CHECK(residua_options_destroy(options) == RESIDUA_OK);
    }
    CHECK(residua_options_create(&options) == RESIDUA_OK);
    points[0] = 1; /* no longer a vector of ones: A does not take it to zero */
    CHECK(residua_options_set_null_space(options, RESIDUA_FLOAT64, N, 1, points) == RESIDUA_OK);
    CHECK(residua_solver_from_csr(&solver, options, RESIDUA_FLOAT64, N, N, entries, 0, 64, offsets, 32, columns, values) !=
          RESIDUA_OK);
    CHECK(residua_options_set_null_space(options, 17, N, 1, ones) == RESIDUA_INVALID_ARGUMENT);
    CHECK(residua_options_set_null_space(options, RESIDUA_FLOAT64, N, 1, NULL) == RESIDUA_NULL_POINTER);
    CHECK(residua_options_destroy(options) == RESIDUA_OK);

    entries = assemble(1e-3);
    for (int kind = 0; kind < 2; kind++) {
        CHECK(residua_options_create(&options) == RESIDUA_OK);
        CHECK(residua_options_set(options, "method", "cg") == RESIDUA_OK);
        CHECK(residua_options_set(options, "preconditioner", "amg") == RESIDUA_OK);
        CHECK(residua_options_set_coordinates(options, 4, N, points) == RESIDUA_INVALID_ARGUMENT);
        if (kind)
            CHECK(residua_options_set_near_null_space(options, N, 1, ones) == RESIDUA_OK);
        else
            CHECK(residua_options_set_coordinates(options, 2, N, points) == RESIDUA_OK);
        double iterations = solve(options, entries, "iterations");
        CHECK(residual(0) < 1e-5 && iterations > 0 && iterations < 40);
        CHECK(residua_options_destroy(options) == RESIDUA_OK);
    }
    CHECK(residua_options_create(&options) == RESIDUA_OK);
    CHECK(residua_options_set(options, "preconditioner", "amg") == RESIDUA_OK);
    CHECK(residua_options_set_near_null_space(options, N - 1, 1, ones) == RESIDUA_OK);
    CHECK(residua_solver_from_csr(&solver, options, RESIDUA_FLOAT64, N, N, entries, 0, 64, offsets, 32, columns, values) !=
          RESIDUA_OK);
    CHECK(residua_options_destroy(options) == RESIDUA_OK);
    printf("null spaces and meshes: ok\n");
    return 0;
}
