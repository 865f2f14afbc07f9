/* Four systems of two unknowns each, solved in one call; the third is singular, which does not affect the others. */
#include "residua.h"
#include <math.h>
#include <stdio.h>

int main(void) {
    const double values[] = {4, 1, 1, 3, 2, 0, 0, 2, 1, 2, 2, 4, 1e200, 0, 0, 1e-200};
    const double b[] = {5, 4, 2, 4, 1, 1, 1e200, 1e-200}, expected[] = {1, 1, 1, 2, 0, 0, 1, 1};
    double x[8], residuals[4];
    uint8_t solved[4];
    if (residua_solve_batch(RESIDUA_FLOAT64, 4, 2, NULL, NULL, values, 1, b, x, 0, NULL, solved, residuals)) {
        fprintf(stderr, "residua: %s\n", residua_last_error());
        return 1;
    }
    for (int s = 0; s < 4; s++) {
        const int right = s != 2;
        printf("system %d: %s, residual %.1e\n", s, solved[s] == 2 ? "converged" : "not converged", residuals[s]);
        if ((solved[s] == 2) != right || (right && !(residuals[s] <= 1e-8)))
            return 1;
        for (int i = 0; right && i < 2; i++)
            if (!(fabs(x[2 * s + i] - expected[2 * s + i]) < 1e-12))
                return 1;
    }
    /* Two systems with one pattern, a lower triangle. */
    const uint64_t offsets[] = {0, 1, 3};
    const uint32_t columns[] = {0, 0, 1};
    const double entries[] = {2, 1, 1, 4, 4, 2}, right[] = {2, 2, 4, 6};
    const char *methods[] = {"lu", "bicgstab"};
    for (int m = 0; m < 2; m++) {
        if (residua_solve_batch(RESIDUA_FLOAT64, 2, 2, offsets, columns, entries, 1, right, x, 0, methods[m], NULL, NULL))
            return 1;
        if (!(fabs(x[0] - 1) + fabs(x[1] - 1) + fabs(x[2] - 1) + fabs(x[3] - 1) < 1e-6))
            return 1;
    }
    /* A call without values, or with a method that does not exist, solves nothing. */
    if (residua_solve_batch(RESIDUA_FLOAT64, 2, 2, offsets, columns, NULL, 1, right, x, 0, NULL, NULL, NULL) !=
        RESIDUA_NULL_POINTER)
        return 1;
    return residua_solve_batch(RESIDUA_FLOAT64, 2, 2, offsets, columns, entries, 1, right, x, 0, "none", NULL, NULL) !=
           RESIDUA_INVALID_ARGUMENT;
}
