/* -u'' = 1 on 100 points: a matrix from arrays with new values, a matrix-free one, and refusals. */
#include "residua.h"
#include <stdio.h>
#include <stdlib.h>

#define N 100
#define CHECK(condition)                                                                                             \
    do {                                                                                                             \
        if (!(condition)) {                                                                                          \
            fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, residua_last_error());                       \
            exit(1);                                                                                                 \
        }                                                                                                            \
    } while (0)

static int32_t second_difference(void *user, int64_t n, const void *from, void *to) {
    const double *x = from;
    double *y = to;
    (void)user;
    for (int64_t i = 0; i < n; i++)
        y[i] = 2 * x[i] - (i > 0 ? x[i - 1] : 0) - (i < n - 1 ? x[i + 1] : 0);
    return 0;
}

/* The solution of factor * (-u'') = 1 is known. */
static void solve_and_compare(residua_solver *solver, double factor) {
    double b[N], x[N] = {0};
    int32_t converged = 0;
    residua_report *report = NULL;
    for (int i = 0; i < N; i++)
        b[i] = 1;
    CHECK(residua_solver_solve(solver, b, N, x, N, &report) == RESIDUA_OK);
    CHECK(residua_report_converged(report, &converged) == RESIDUA_OK && converged);
    CHECK(residua_report_destroy(report) == RESIDUA_OK);
    CHECK(residua_report_destroy(report) == RESIDUA_INVALID_HANDLE);
    for (int i = 0; i < N; i++) {
        double error = x[i] - (i + 1.0) * (N - i) / 2 / factor;
        CHECK(error < 1e-5 && error > -1e-5);
    }
}

int main(void) {
    int64_t offsets[N + 1], entries = 0;
    int32_t columns[3 * N];
    double values[3 * N], b[N] = {0}, x[N];
    for (int i = 0; i < N; i++) {
        offsets[i] = entries + 1;
        for (int j = i > 0 ? i - 1 : 0; j <= i + 1 && j < N; j++) {
            columns[entries] = j + 1;
            values[entries++] = i == j ? 2 : -1;
        }
    }
    offsets[N] = entries + 1;
    residua_options *options = NULL;
    residua_solver *solver = NULL;
    residua_report *report = NULL;
    CHECK(residua_options_create(&options) == RESIDUA_OK);
    CHECK(residua_options_set(options, "tolerance", "1e-12") == RESIDUA_OK);
    CHECK(residua_options_set(options, "tolerance", "-1") == RESIDUA_INVALID_ARGUMENT);
    CHECK(residua_options_set(options, "colour", "red") == RESIDUA_INVALID_ARGUMENT);
    CHECK(residua_solver_from_csr(&solver, options, RESIDUA_FLOAT64, N, N, entries, 1, 64, offsets, 32, columns, values) ==
          RESIDUA_OK);
    solve_and_compare(solver, 1);
    for (int step = 2; step < 5; step++) {
        for (int64_t k = 0; k < entries; k++)
            values[k] *= (double)step / (step - 1);
        CHECK(residua_solver_update(solver, values, entries) == RESIDUA_OK);
        solve_and_compare(solver, step);
    }
    for (int64_t k = 0; k < entries; k++)
        values[k] *= 5.0 / 4;
    CHECK(residua_solver_update_csr(solver, N, N, entries, 1, 64, offsets, 32, columns, values) == RESIDUA_OK);
    solve_and_compare(solver, 5);
    /* Another pattern: the last entry of the first row one column to the right. */
    columns[1]++;
    CHECK(residua_solver_update_csr(solver, N, N, entries, 1, 64, offsets, 32, columns, values) ==
          RESIDUA_INVALID_MATRIX);
    columns[1]--;
    solve_and_compare(solver, 5);
    CHECK(residua_solver_solve(solver, b, N - 1, x, N, &report) == RESIDUA_DIMENSION);
    CHECK(residua_solver_solve(solver, b, N, b, N, &report) == RESIDUA_INVALID_ARGUMENT);
    CHECK(residua_solver_destroy(solver) == RESIDUA_OK);
    CHECK(residua_solver_destroy(solver) == RESIDUA_INVALID_HANDLE);
    columns[0] = 7 * N;
    CHECK(residua_solver_from_csr(&solver, options, RESIDUA_FLOAT64, N, N, entries, 1, 64, offsets, 32, columns, values) ==
          RESIDUA_INVALID_MATRIX);
    CHECK(residua_options_set(options, "method", "cg") == RESIDUA_OK);
    CHECK(residua_solver_from_function(&solver, options, RESIDUA_FLOAT64, N, second_difference, NULL) == RESIDUA_OK);
    solve_and_compare(solver, 1);
    CHECK(residua_solver_destroy(solver) == RESIDUA_OK);
    CHECK(residua_options_destroy(options) == RESIDUA_OK);
    printf("residua %s: ok\n", residua_version());
    return 0;
}
