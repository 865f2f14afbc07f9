/* -u'' = 1 on five points, zero at both ends: a matrix in CSR, one right-hand side, x printed. */
#include "residua.h"
#include <stdio.h>

static int failed(void) {
    fprintf(stderr, "residua: %s\n", residua_last_error());
    return 1;
}

int main(void) {
    const int32_t offsets[] = {0, 2, 5, 8, 11, 13}, columns[] = {0, 1, 0, 1, 2, 1, 2, 3, 2, 3, 4, 3, 4};
    const double values[] = {2, -1, -1, 2, -1, -1, 2, -1, -1, 2, -1, -1, 2};
    const double b[] = {1, 1, 1, 1, 1};
    double x[] = {0, 0, 0, 0, 0}; /* where the solve starts, and then the solution */
    residua_solver *solver = NULL;
    residua_report *report = NULL;
    int32_t converged = 0;
    if (residua_solver_from_csr(&solver, NULL, RESIDUA_FLOAT64, 5, 5, 13, 0, 32, offsets, 32, columns, values))
        return failed();
    if (residua_solver_solve(solver, b, 5, x, 5, &report))
        return failed();
    residua_report_converged(report, &converged);
    printf("%s: x =", converged ? "converged" : "not converged");
    for (int i = 0; i < 5; i++)
        printf(" %g", x[i]);
    printf("\n");
    residua_report_destroy(report);
    residua_solver_destroy(solver);
    return !converged;
}
