/* -u'' = 1 on 100 points. The rows are distributed unevenly over the processes of MPI_COMM_WORLD; x is known. */
#include "residua.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define N 100
#define CHECK(condition)                                                                                             \
    do {                                                                                                             \
        if (!(condition)) {                                                                                          \
            fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, residua_last_error());                       \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                            \
        }                                                                                                            \
    } while (0)

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int first = N * rank * rank / (size * size), end = N * (rank + 1) * (rank + 1) / (size * size), rows = end - first;
    int32_t offsets[N + 1], columns[3 * N], entries = 0, converged = 0;
    double values[3 * N], b[2 * N], x[2 * N] = {0}, residual = 1;
    for (int i = first; i < end; i++) {
        offsets[i - first] = entries;
        for (int j = i > 0 ? i - 1 : 0; j <= i + 1 && j < N; j++) {
            columns[entries] = j;
            values[entries++] = i == j ? 2 : -1;
        }
        b[i - first] = 1, b[rows + i - first] = 3;
    }
    offsets[rows] = entries;
    residua_options *options = NULL;
    residua_solver *solver = NULL;
    residua_report *reports[2] = {NULL, NULL};
    int32_t comm = (int32_t)MPI_Comm_c2f(MPI_COMM_WORLD);
    CHECK(residua_options_create(&options) == RESIDUA_OK);
    CHECK(residua_options_set(options, "tolerance", "1e-12") == RESIDUA_OK);
    CHECK(residua_solver_create_distributed(&solver, options, comm, RESIDUA_FLOAT64, rows, N, entries, 0, 32, offsets, 32,
                                            columns, values) == RESIDUA_OK);
    CHECK(residua_solver_update(solver, values, entries) == RESIDUA_UNSUPPORTED);
    CHECK(residua_solver_solve_many(solver, 2, b, 2 * rows, x, 2 * rows, reports) == RESIDUA_OK);
    for (int k = 0; k < 2; k++) {
        CHECK(residua_report_converged(reports[k], &converged) == RESIDUA_OK && converged);
        CHECK(residua_report_number(reports[k], "relative_residual", &residual) == RESIDUA_OK && residual <= 1e-12);
        CHECK(residua_report_destroy(reports[k]) == RESIDUA_OK);
        for (int i = first; i < end; i++) {
            double error = x[k * rows + i - first] - (2 * k + 1) * (i + 1.0) * (N - i) / 2;
            CHECK(error < 1e-5 && error > -1e-5);
        }
    }
    CHECK(residua_solver_destroy(solver) == RESIDUA_OK);
    /* The last process gives a column that does not exist: all processes get the error. */
    if (rank == size - 1)
        columns[0] = N;
    int32_t status = residua_solver_create_distributed(&solver, options, comm, RESIDUA_FLOAT64, rows, N, entries, 0, 32,
                                                       offsets, 32, columns, values);
    CHECK(status == (rank == size - 1 ? RESIDUA_INVALID_MATRIX : RESIDUA_PROCESS));
    CHECK(residua_options_destroy(options) == RESIDUA_OK);
    if (rank == 0)
        printf("distributed: ok on %d processes\n", size);
    MPI_Finalize();
    return 0;
}
