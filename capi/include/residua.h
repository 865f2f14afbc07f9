/* residua: sparse linear systems A x = b on NVIDIA GPUs and any CPU.
 *
 * Each function returns a status: RESIDUA_OK, or the reason of a failure, which residua_last_error() explains. It is no
 * error if a solve does not converge, see residua_report_converged(). A handle may be used from any thread, a solver by
 * one call at a time. Arrays are on the host, except those of functions whose names end in _device.
 *
 * Made by cbindgen of the Rust sources (capi/header); not to be edited. */

#ifndef RESIDUA_H
#define RESIDUA_H

#include <stddef.h>
#include <stdint.h>

/*
 Success. Whether a solve converged is said by its report, not by a status.
 */
#define RESIDUA_OK 0

/*
 An argument is outside of its domain.
 */
#define RESIDUA_INVALID_ARGUMENT 1

/*
 A pointer is null that must not be null.
 */
#define RESIDUA_NULL_POINTER 2

/*
 A handle is invalid, of another kind, or was destroyed.
 */
#define RESIDUA_INVALID_HANDLE 3

/*
 No matrix of the given shape has these arrays.
 */
#define RESIDUA_INVALID_MATRIX 4

/*
 Two sizes that must agree do not.
 */
#define RESIDUA_DIMENSION 5

/*
 Memory could not be allocated.
 */
#define RESIDUA_OUT_OF_MEMORY 6

/*
 The GPU is absent, unsuitable or broken.
 */
#define RESIDUA_DEVICE 7

/*
 Something that is not supported, or that this matrix does not allow.
 */
#define RESIDUA_UNSUPPORTED 8

/*
 The solver is in use: in another thread, or in the callback that made this call.
 */
#define RESIDUA_BUSY 9

/*
 A callback of the caller returned another number than 0.
 */
#define RESIDUA_CALLBACK 10

/*
 A fault inside residua. The objects of the call must be destroyed.
 */
#define RESIDUA_INTERNAL 11

/*
 MPI failed, or another process of a distributed solver did.
 */
#define RESIDUA_PROCESS 12

/*
 Values are `float`.
 */
#define RESIDUA_FLOAT32 0

/*
 Values are `double`.
 */
#define RESIDUA_FLOAT64 1

/*
 Values are pairs of `float`: real and imaginary part.
 */
#define RESIDUA_COMPLEX64 2

/*
 Values are pairs of `double`: real and imaginary part.
 */
#define RESIDUA_COMPLEX128 3

/*
 The level of decisions and outcomes.
 */
#define RESIDUA_LOG_INFO 1

/*
 The level of each method that was tried.
 */
#define RESIDUA_LOG_DEBUG 2

/*
 Options of a solver.
 */
typedef struct residua_options residua_options;

/*
 A report on how a solve ended.
 */
typedef struct residua_report residua_report;

/*
 A solver for one matrix and many right-hand sides.
 */
typedef struct residua_solver residua_solver;

/*
 Writes y = A x, or z = M^-1 r for a preconditioner, for the `n` elements of both, of the solver's type, and returns
 0 on success. It must not throw, jump out or unwind.
 */
typedef int32_t (*residua_apply)(void *user, int64_t n, const void *x, void *y);

/*
 Called after each iteration, in the thread that solves: `right_hand_side` counts from 0, `iteration` from 0 at the
 start, `residual_norm` is that of the method. Another result than 0 ends the solve, with x as good as it is then. It
 must not throw, jump out or unwind.
 */
typedef int32_t (*residua_observer)(void *user,
                                    int64_t right_hand_side,
                                    int64_t iteration,
                                    double residual_norm);

/*
 Called with a line of text after each solve, in the thread that solves. `message` is valid during the call. It must
 not throw, jump out or unwind.
 */
typedef void (*residua_log)(void *user, int32_t level, const char *message);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 The reason why the last failed call of this thread failed. Empty if none has failed; valid until the next call
 fails.
 */
const char *residua_last_error(void);

/*
 The version of the library, as "0.1.0".
 */
const char *residua_version(void);

/*
 Makes options, all with their default values.

 Asked of the caller:
 `options` is null or can be written to.
 */
int32_t residua_options_create(residua_options **options);

/*
 Sets an option. Values are written as for the command. Names: tolerance, absolute_tolerance, max_iterations,
 stagnation_window, time_limit (seconds), memory_limit (bytes), method, restart, preconditioner, precision, format,
 device, reorder, right_hand_sides, updates (yes, no), symmetry, condition (yes, no), row_wise (yes, no), null_space
 (constants).

 Asked of the caller:
 `name` and `value` are null or end in a zero byte.
 */
int32_t residua_options_set(residua_options *options,
                            const char *name,
                            const char *value);

/*
 Sets a preconditioner of your own: `apply` writes z = M^-1 r; null removes it. A solver that is made with it, from a
 function or from CSR or coordinates on the host, runs one method on the CPU: cg (M must be symmetric or Hermitian
 positive definite), minres (likewise), bicgstab or gmres, which auto selects and for which M may change from call to
 call. It takes the options tolerance, absolute_tolerance, max_iterations, stagnation_window, method, restart and
 updates. `user` is passed to `apply`, in the thread that solves.

 Asked of the caller:
 `apply` writes n elements and does not unwind; `user` is valid for it as long as a solver made with these options
 exists.
 */
int32_t residua_options_set_preconditioner(residua_options *options,
                                           residua_apply apply,
                                           void *user);

/*
 Destroys options; solvers that were made with them remain valid. Null is allowed.
 */
int32_t residua_options_destroy(residua_options *options);

/*
 Makes a solver for a matrix in CSR: `rows + 1` offsets of `offset_bits` (32 or 64), `entries` columns of
 `column_bits` and values of `type`. Offsets and columns count from `base`, 0 or 1. Rows need not be sorted;
 duplicate entries are added up. The arrays are copied. `options` may be null.

 Asked of the caller:
 The arrays have the lengths that are given; `solver` is null or can be written to.
 */
int32_t residua_solver_from_csr(residua_solver **solver,
                                const residua_options *options,
                                int32_t type,
                                int64_t rows,
                                int64_t columns,
                                int64_t entries,
                                int32_t base,
                                int32_t offset_bits,
                                const void *offsets,
                                int32_t column_bits,
                                const void *column_indices,
                                const void *values);

/*
 Makes a solver for a matrix in coordinates: rows and columns of `index_bits` (32 or 64), counted from `base`, in any
 order; duplicate entries are added up. The rest is as for residua_solver_from_csr.

 Asked of the caller:
 As for residua_solver_from_csr.
 */
int32_t residua_solver_from_coo(residua_solver **solver,
                                const residua_options *options,
                                int32_t type,
                                int64_t rows,
                                int64_t columns,
                                int64_t entries,
                                int32_t base,
                                int32_t index_bits,
                                const void *row_indices,
                                const void *column_indices,
                                const void *values);

/*
 Like residua_solver_from_csr, with arrays on a GPU, on which the solver then computes. `stream` is the
 `cudaStream_t` or `CUstream` whose work writes them (null: the default stream); the arrays have been read when this
 returns.

 Asked of the caller:
 As for residua_solver_from_csr; `stream` belongs to that GPU's primary context.
 */
int32_t residua_solver_from_csr_device(residua_solver **solver,
                                       const residua_options *options,
                                       int32_t type,
                                       int64_t rows,
                                       int64_t columns,
                                       int64_t entries,
                                       int32_t base,
                                       int32_t offset_bits,
                                       const void *offsets,
                                       int32_t column_bits,
                                       const void *column_indices,
                                       const void *values,
                                       void *stream);

/*
 Like residua_solver_from_coo, with arrays on a GPU, see residua_solver_from_csr_device.

 Asked of the caller:
 As for residua_solver_from_csr_device.
 */
int32_t residua_solver_from_coo_device(residua_solver **solver,
                                       const residua_options *options,
                                       int32_t type,
                                       int64_t rows,
                                       int64_t columns,
                                       int64_t entries,
                                       int32_t base,
                                       int32_t index_bits,
                                       const void *row_indices,
                                       const void *column_indices,
                                       const void *values,
                                       void *stream);

/*
 Makes a solver whose rows are distributed over the processes of an MPI communicator, given by its Fortran number
 (`MPI_Comm_c2f`). Each process gives rows in CSR that follow those of the previous process: `rows` is the number of
 its own rows, `columns` that of the whole square matrix, in which columns are numbered. `b` and `x` are then the
 entries of its rows. All processes must make this call and every solve, with the same options, on the CPU. The MPI
 library is the one that the program has loaded.

 Asked of the caller:
 As for residua_solver_from_csr; `comm` is the number of a communicator.
 */
int32_t residua_solver_create_distributed(residua_solver **solver,
                                          const residua_options *options,
                                          int32_t comm,
                                          int32_t type,
                                          int64_t rows,
                                          int64_t columns,
                                          int64_t entries,
                                          int32_t base,
                                          int32_t offset_bits,
                                          const void *offsets,
                                          int32_t column_bits,
                                          const void *column_indices,
                                          const void *values);

/*
 Makes a matrix-free solver with `n` unknowns, on the CPU, without a preconditioner or with yours
 (residua_options_set_preconditioner): `apply` writes y = A x. Methods are cg, minres, gmres (which auto selects) and
 bicgstab. `user` is passed to `apply`, in the thread that solves.

 Asked of the caller:
 `apply` writes n elements and does not unwind; `user` is valid for it as long as the solver exists; `solver` is null
 or can be written to.
 */
int32_t residua_solver_from_function(residua_solver **solver,
                                     const residua_options *options,
                                     int32_t type,
                                     int64_t n,
                                     residua_apply apply,
                                     void *user);

/*
 Makes a solver for A^T with the settings of `solver`, on the same device; it chooses and sets up anew, and keeps
 factors of its own. New values for it are those of A^T, in rows with ascending columns. For complex values, A^H x = b
 is A^T y = conj(b) with x = conj(y).

 Asked of the caller:
 `transposed` is null or can be written to.
 */
int32_t residua_solver_transposed(const residua_solver *solver,
                                  residua_solver **transposed);

/*
 Replaces the values of the matrix, in the order and number in which they were given; the pattern stays.

 Asked of the caller:
 `values` is null or has `entries` elements of the solver's type.
 */
int32_t residua_solver_update(residua_solver *solver, const void *values, int64_t entries);

/*
 Replaces the values by those of a matrix in CSR whose entries are in the same places as the solver's; rows need not
 be sorted, and duplicate entries are added up. With another pattern it returns RESIDUA_INVALID_MATRIX, the message
 names the first place that only one of the two has, and the solver is not changed. Arguments are as for
 residua_solver_from_csr.

 Asked of the caller:
 As for residua_solver_from_csr.
 */
int32_t residua_solver_update_csr(residua_solver *solver,
                                  int64_t rows,
                                  int64_t columns,
                                  int64_t entries,
                                  int32_t base,
                                  int32_t offset_bits,
                                  const void *offsets,
                                  int32_t column_bits,
                                  const void *column_indices,
                                  const void *values);

/*
 Like residua_solver_update_csr, with a matrix in coordinates. Arguments are as for residua_solver_from_coo.

 Asked of the caller:
 As for residua_solver_from_coo.
 */
int32_t residua_solver_update_coo(residua_solver *solver,
                                  int64_t rows,
                                  int64_t columns,
                                  int64_t entries,
                                  int32_t base,
                                  int32_t index_bits,
                                  const void *row_indices,
                                  const void *column_indices,
                                  const void *values);

/*
 Like residua_solver_update, with values on the GPU that the solver computes on. The GPU waits for the work that
 `stream` has so far, and later work of `stream` waits until the values have been read.

 Asked of the caller:
 As for residua_solver_update and residua_solver_from_csr_device.
 */
int32_t residua_solver_update_device(residua_solver *solver,
                                     const void *values,
                                     int64_t entries,
                                     void *stream);

/*
 Solves A x = b, starting from the given x, which is replaced by the solution. Lengths are in elements. It is no
 error if the solve does not converge: `report` says so, and must be destroyed.

 Asked of the caller:
 `b` and `x` have the lengths that are given, in elements of the solver's type; `report` is null or can be written
 to.
 */
int32_t residua_solver_solve(residua_solver *solver,
                             const void *b,
                             int64_t b_length,
                             void *x,
                             int64_t x_length,
                             residua_report **report);

/*
 Like residua_solver_solve, for `count` right-hand sides one after another; `reports` gets as many handles.

 Asked of the caller:
 As for residua_solver_solve.
 */
int32_t residua_solver_solve_many(residua_solver *solver,
                                  int64_t count,
                                  const void *b,
                                  int64_t b_length,
                                  void *x,
                                  int64_t x_length,
                                  residua_report **reports);

/*
 Like residua_solver_solve_many, with vectors on the GPU that the solver computes on. The GPU waits for the work that
 `stream` has so far, which writes them, and later work of `stream` waits for x: the caller need not synchronise
 anything.

 Asked of the caller:
 As for residua_solver_solve and residua_solver_from_csr_device.
 */
int32_t residua_solver_solve_device(residua_solver *solver,
                                    int64_t count,
                                    const void *b,
                                    int64_t b_length,
                                    void *x,
                                    int64_t x_length,
                                    void *stream,
                                    residua_report **reports);

/*
 Writes the residual norms of the last solve, at the start and after each iteration, at most `capacity` numbers;
 `length` gets the number that there are. `right_hand_side` counts from 0.

 Asked of the caller:
 `norms` has room for `capacity` numbers; `length` is null or can be written to.
 */
int32_t residua_solver_history(const residua_solver *solver,
                               int64_t right_hand_side,
                               double *norms,
                               int64_t capacity,
                               int64_t *length);

/*
 Destroys a solver. Null is allowed.
 */
int32_t residua_solver_destroy(residua_solver *solver);

/*
 Sets the function that later solves of this solver call after each iteration; null removes it. On a GPU it is called
 when later iterations are already in progress.

 Asked of the caller:
 `observer` does not unwind; `user` is valid for it until it is removed or the solver is destroyed.
 */
int32_t residua_solver_set_observer(residua_solver *solver,
                                    residua_observer observer,
                                    void *user);

/*
 Asks a solver to stop, from any thread: the current solve ends as interrupted, with x as good as it is then, and so
 does each later one at its start, until residua_solver_resume. Never RESIDUA_BUSY. A distributed solver cannot be
 cancelled: RESIDUA_UNSUPPORTED.
 */
int32_t residua_solver_cancel(residua_solver *solver);

/*
 Withdraws the request of residua_solver_cancel.
 */
int32_t residua_solver_resume(residua_solver *solver);

/*
 Sets the function that gets a line for each decision and outcome (RESIDUA_LOG_INFO) of all solves, and with `level`
 RESIDUA_LOG_DEBUG one for each method that was tried; null removes it. Solves in several threads may call it at the
 same time.

 Asked of the caller:
 `log` may be called by any thread that solves and does not unwind; `user` is valid for it until it is removed.
 */
int32_t residua_set_log(residua_log log,
                        void *user,
                        int32_t level);

/*
 Sets the null space of A, spanned by `count` vectors of `n` elements of `type`, one after another, which are copied.
 The part of b outside A's range is then removed, and x is the shortest of all solutions. Vectors that A does not map
 to zero are refused when the solver is made. For constants no array is needed: option null_space.

 Asked of the caller:
 `vectors` is null or has `n` times `count` elements.
 */
int32_t residua_options_set_null_space(residua_options *options,
                                       int32_t type,
                                       int64_t n,
                                       int64_t count,
                                       const void *vectors);

/*
 Sets the near null space for multigrid: `count` vectors of `n` elements, one after another, which are copied. A maps
 each of them almost to zero, except near boundaries.

 Asked of the caller:
 `vectors` is null or has `n` times `count` elements.
 */
int32_t residua_options_set_near_null_space(residua_options *options,
                                            int64_t n,
                                            int64_t count,
                                            const double *vectors);

/*
 Sets the points of the mesh that the unknowns belong to, for multigrid: `dimensions` (1, 2 or 3) coordinates of
 each, one point after another, which are copied. If there are as many unknowns per point as dimensions, coarse
 levels represent the rigid body modes exactly.

 Asked of the caller:
 `coordinates` is null or has `points` times `dimensions` numbers.
 */
int32_t residua_options_set_coordinates(residua_options *options,
                                        int32_t dimensions,
                                        int64_t points,
                                        const double *coordinates);

/*
 Solves many small systems of `size` unknowns at once, with values of `type`. If `offsets` is null, the matrices are
 dense, row by row; otherwise they have one pattern in CSR (`size + 1` offsets from 0, columns that ascend in each
 row) and `values` are their entries. `b` and `x` have `vectors` numbers per row, row by row, one system after
 another. `tolerance` 0 stands for the default. `method` is "lu" (elimination), "bicgstab" (iteration, for patterns of
 up to 4096 unknowns), "cg" (the same if A is Hermitian and positive definite), or "auto" or null (elimination
 whenever there is one); systems that a method leaves uncertain are solved in the next way.

 A system that fails does not affect the others, and is no error. `solved`, unless null, gets a number per system: 2
 if x meets the tolerance, 1 if x is an answer without meeting it (as accurate as the precision allows, or a
 least-squares solution), 0 if it is none. `residuals`, unless null, gets ||b - A x|| / ||b||, computed from x.

 Asked of the caller:
 The arrays have the lengths that follow from the other arguments, x overlaps no other array, and `method` is null or
 ends with a zero byte.
 */
int32_t residua_solve_batch(int32_t type,
                            int64_t systems,
                            int64_t size,
                            const uint64_t *offsets,
                            const uint32_t *columns,
                            const void *values,
                            int64_t vectors,
                            const void *b,
                            void *x,
                            double tolerance,
                            const char *method,
                            uint8_t *solved,
                            double *residuals);

/*
 Writes 1 if b - A x, computed anew from the final x, meets the tolerance, else 0.

 Asked of the caller:
 `converged` is null or can be written to.
 */
int32_t residua_report_converged(const residua_report *report, int32_t *converged);

/*
 Writes a number of the report: iterations, restarts, residual_norm, relative_residual, backward_error, condition and
 digits (with option condition), normal_residual (||A^H r|| / (||A|| ||r||) of a least-squares solution),
 outside_range (the norm of the part of b outside A's range), at_once, seconds, seconds_setup, seconds_update. A
 number that is not known is NaN. Matrix-free solves have iterations, residual_norm, relative_residual and seconds.

 Asked of the caller:
 `name` is null or ends in a zero byte; `number` is null or can be written to.
 */
int32_t residua_report_number(const residua_report *report,
                              const char *name,
                              double *number);

/*
 Writes a text of the report: outcome, status (one word), method, preconditioner, precision, format, device, trail.
 At most `capacity` bytes are written, including a final zero byte; `length` gets the number of bytes of the whole
 text without it. With a null `buffer` and capacity 0, only `length` is written.

 Asked of the caller:
 `name` is null or ends in a zero byte; `buffer` has room for `capacity` bytes; `length` is null or can be written
 to.
 */
int32_t residua_report_text(const residua_report *report,
                            const char *name,
                            char *buffer,
                            size_t capacity,
                            size_t *length);

/*
 Destroys a report. Null is allowed.
 */
int32_t residua_report_destroy(residua_report *report);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* RESIDUA_H */
