/* Functions of the caller: a preconditioner, an observer that ends a solve, a log, a request to stop; and A^T x = b. */
#include "residua.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 200
#define CHECK(condition)                                                                                             \
    do {                                                                                                             \
        if (!(condition)) {                                                                                          \
            fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, residua_last_error());                       \
            exit(1);                                                                                                 \
        }                                                                                                            \
    } while (0)

struct told {
    int64_t iterations, calls, lines;
    int ends_at, saw_outcome;
    residua_solver *cancelled;
};

/* Divides by the diagonal, which is 1 + row. */
static int32_t by_diagonal(void *user, int64_t n, const void *r, void *z) {
    ((struct told *)user)->calls++;
    for (int64_t i = 0; i < n; i++)
        ((double *)z)[i] = ((const double *)r)[i] / (1 + (double)i);
    return 0;
}

static int32_t fails(void *user, int64_t n, const void *r, void *z) {
    (void)user, (void)n, (void)r, (void)z;
    return 7;
}

static int32_t watch(void *user, int64_t right_hand_side, int64_t iteration, double residual_norm) {
    struct told *told = user;
    CHECK(right_hand_side == 0 && residual_norm >= 0);
    told->iterations = iteration;
    if (told->cancelled)
        CHECK(residua_solver_cancel(told->cancelled) == RESIDUA_OK);
    return told->ends_at > 0 && iteration >= told->ends_at;
}

static void log_line(void *user, int32_t level, const char *message) {
    struct told *told = user;
    told->lines++;
    told->saw_outcome |= level == RESIDUA_LOG_INFO && strstr(message, "converged") != NULL;
}

static void status_is(residua_report *report, const char *expected) {
    char text[40];
    size_t length = 0;
    CHECK(residua_report_text(report, "status", text, sizeof text, &length) == RESIDUA_OK);
    if (strcmp(text, expected) != 0) {
        fprintf(stderr, "ended as %s, not %s\n", text, expected);
        exit(1);
    }
    CHECK(residua_report_destroy(report) == RESIDUA_OK);
}

int main(void) {
    /* The diagonal grows, and each column has a smaller entry above it; in A^T it is below. */
    int32_t offsets[N + 1], columns[2 * N], entries = 0;
    double values[2 * N], b[N], x[N] = {0}, y[N] = {0};
    for (int i = 0; i < N; i++) {
        offsets[i] = entries, b[i] = 1;
        columns[entries] = i, values[entries++] = 1 + i;
        if (i + 1 < N)
            columns[entries] = i + 1, values[entries++] = 0.25;
    }
    offsets[N] = entries;
    struct told told = {0};
    residua_options *options = NULL;
    residua_solver *solver = NULL, *transposed = NULL;
    residua_report *report = NULL;

    /* With the preconditioner, few iterations are enough. */
    CHECK(residua_options_create(&options) == RESIDUA_OK);
    CHECK(residua_options_set(options, "tolerance", "1e-10") == RESIDUA_OK);
    CHECK(residua_options_set_preconditioner(options, by_diagonal, &told) == RESIDUA_OK);
    CHECK(residua_solver_from_csr(&solver, options, RESIDUA_FLOAT64, N, N, entries, 0, 32, offsets, 32, columns,
                                  values) == RESIDUA_OK);
    CHECK(residua_solver_set_observer(solver, watch, &told) == RESIDUA_OK);
    CHECK(residua_set_log(log_line, &told, 3) == RESIDUA_INVALID_ARGUMENT);
    CHECK(residua_set_log(log_line, &told, RESIDUA_LOG_DEBUG) == RESIDUA_OK);
    CHECK(residua_solver_solve(solver, b, N, x, N, &report) == RESIDUA_OK);
    status_is(report, "converged");
    CHECK(told.calls > 0 && told.iterations > 0 && told.iterations < 20 && told.lines > 0 && told.saw_outcome);
    CHECK(residua_set_log(NULL, NULL, 0) == RESIDUA_OK);
    CHECK(residua_solver_transposed(solver, &transposed) == RESIDUA_UNSUPPORTED);
    /* With values twice as large, the solution is half as large. */
    for (int k = 0; k < entries; k++)
        values[k] *= 2;
    CHECK(residua_solver_update(solver, values, entries) == RESIDUA_OK);
    CHECK(residua_solver_solve(solver, b, N, y, N, &report) == RESIDUA_OK);
    status_is(report, "converged");
    for (int i = 0; i < N; i++)
        CHECK(fabs(2 * y[i] - x[i]) < 1e-8);
    CHECK(residua_solver_destroy(solver) == RESIDUA_OK);
    CHECK(residua_options_set_preconditioner(options, fails, NULL) == RESIDUA_OK);
    CHECK(residua_solver_from_csr(&solver, options, RESIDUA_FLOAT64, N, N, entries, 0, 32, offsets, 32, columns,
                                  values) == RESIDUA_OK);
    memset(y, 0, sizeof y);
    CHECK(residua_solver_solve(solver, b, N, y, N, &report) == RESIDUA_CALLBACK);
    CHECK(residua_solver_destroy(solver) == RESIDUA_OK);
    CHECK(residua_options_set_preconditioner(options, NULL, NULL) == RESIDUA_OK);

    /* An observer ends a solve; a request to stop ends it and the next one. */
    CHECK(residua_options_set(options, "method", "gmres") == RESIDUA_OK);
    CHECK(residua_options_set(options, "preconditioner", "none") == RESIDUA_OK);
    CHECK(residua_solver_from_csr(&solver, options, RESIDUA_FLOAT64, N, N, entries, 0, 32, offsets, 32, columns,
                                  values) == RESIDUA_OK);
    told.ends_at = 3;
    CHECK(residua_solver_set_observer(solver, watch, &told) == RESIDUA_OK);
    memset(y, 0, sizeof y);
    CHECK(residua_solver_solve(solver, b, N, y, N, &report) == RESIDUA_OK);
    status_is(report, "interrupted");
    told.ends_at = 0, told.cancelled = solver;
    CHECK(residua_solver_solve(solver, b, N, y, N, &report) == RESIDUA_OK);
    status_is(report, "interrupted");
    CHECK(residua_solver_set_observer(solver, NULL, NULL) == RESIDUA_OK);
    CHECK(residua_solver_solve(solver, b, N, y, N, &report) == RESIDUA_OK);
    status_is(report, "interrupted");
    CHECK(residua_solver_resume(solver) == RESIDUA_OK);
    CHECK(residua_solver_solve(solver, b, N, y, N, &report) == RESIDUA_OK);
    status_is(report, "converged");

    /* A^T x = b. */
    CHECK(residua_solver_transposed(solver, &transposed) == RESIDUA_OK);
    memset(y, 0, sizeof y);
    CHECK(residua_solver_solve(transposed, b, N, y, N, &report) == RESIDUA_OK);
    status_is(report, "converged");
    for (int i = 0; i < N; i++) {
        double sum = 2 * (1 + i) * y[i] + (i > 0 ? 0.5 * y[i - 1] : 0);
        CHECK(fabs(sum - 1) < 1e-7);
    }
    CHECK(residua_solver_destroy(transposed) == RESIDUA_OK);
    CHECK(residua_solver_destroy(solver) == RESIDUA_OK);
    CHECK(residua_options_destroy(options) == RESIDUA_OK);
    printf("callbacks: ok\n");
    return 0;
}
