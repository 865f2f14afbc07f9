/* residua: sparse linear systems A x = b on NVIDIA GPUs and any CPU. Arrays are on the host.
 * Each function returns a status, RESIDUA_OK or why not; residua_last_error() tells more. Not converging is no error:
 * residua_report_converged() tells. A handle may be used from any thread, a solver by one call at a time. */
#ifndef RESIDUA_H
#define RESIDUA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RESIDUA_OK 0
#define RESIDUA_INVALID_ARGUMENT 1
#define RESIDUA_NULL_POINTER 2
#define RESIDUA_INVALID_HANDLE 3
#define RESIDUA_INVALID_MATRIX 4
#define RESIDUA_DIMENSION 5
#define RESIDUA_OUT_OF_MEMORY 6
#define RESIDUA_DEVICE 7
#define RESIDUA_UNSUPPORTED 8
#define RESIDUA_BUSY 9
#define RESIDUA_CALLBACK 10
#define RESIDUA_INTERNAL 11

/* Types of values: float, double, pairs of float, pairs of double. */
#define RESIDUA_F32 0
#define RESIDUA_F64 1
#define RESIDUA_C32 2
#define RESIDUA_C64 3

typedef struct residua_options residua_options;
typedef struct residua_report residua_report;
typedef struct residua_solver residua_solver;

/* Writes y = A x for n elements; returns 0 where that was done. It must not throw or jump out. */
typedef int32_t (*residua_apply)(void *user, int64_t n, const void *x, void *y);

/* Why the last call of this thread that failed did; valid until the next one fails. */
const char *residua_last_error(void);
const char *residua_version(void);

/* Names: tolerance, absolute_tolerance, max_iterations, stagnation_window, time_limit (seconds), method, restart,
 * preconditioner, precision, format, device, reorder, right_hand_sides, updates (yes, no), symmetry. */
int32_t residua_options_create(residua_options **options);
int32_t residua_options_set(residua_options *options, const char *name, const char *value);
int32_t residua_options_destroy(residua_options *options);

/* Offsets and columns have 32 or 64 bits and count from base, 0 or 1. Rows need not be sorted; what stands twice adds
 * up. Arrays are copied. options may be null. */
int32_t residua_solver_from_csr(residua_solver **solver, const residua_options *options, int32_t type, int64_t rows,
                                int64_t columns, int64_t entries, int32_t base, int32_t offset_bits,
                                const void *offsets, int32_t column_bits, const void *column_indices,
                                const void *values);
int32_t residua_solver_from_coo(residua_solver **solver, const residua_options *options, int32_t type, int64_t rows,
                                int64_t columns, int64_t entries, int32_t base, int32_t index_bits,
                                const void *row_indices, const void *column_indices, const void *values);
/* Matrix-free, on the CPU, without a preconditioner: cg, minres, gmres (which auto is), bicgstab. */
int32_t residua_solver_from_function(residua_solver **solver, const residua_options *options, int32_t type, int64_t n,
                                     residua_apply apply, void *user);
/* New values in the order and number in which the matrix was given. */
int32_t residua_solver_update(residua_solver *solver, const void *values, int64_t entries);
/* Solves from the x that is given, which takes the solution. Lengths are in elements. */
int32_t residua_solver_solve(residua_solver *solver, const void *b, int64_t b_length, void *x, int64_t x_length,
                             residua_report **report);
int32_t residua_solver_solve_many(residua_solver *solver, int64_t count, const void *b, int64_t b_length, void *x,
                                  int64_t x_length, residua_report **reports);
int32_t residua_solver_history(const residua_solver *solver, int64_t right_hand_side, double *norms, int64_t capacity,
                               int64_t *length);
int32_t residua_solver_destroy(residua_solver *solver);

int32_t residua_report_converged(const residua_report *report, int32_t *converged);
/* iterations, restarts, residual_norm, relative_residual, backward_error, at_once, seconds, seconds_setup,
 * seconds_update. */
int32_t residua_report_number(const residua_report *report, const char *name, double *number);
/* outcome, status, method, preconditioner, precision, format, device, trail. Cut to capacity; length is the whole. */
int32_t residua_report_text(const residua_report *report, const char *name, char *buffer, size_t capacity,
                            size_t *length);
int32_t residua_report_destroy(residua_report *report);

#ifdef __cplusplus
}
#endif

#endif
