/* Random calls with random handles, null pointers and arguments, from a fixed seed. Arrays have the lengths passed. */
#include "residua.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT = 8, MOST = 12 };
static uint64_t state = 42;
static uint32_t below(uint32_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % n;
}
static int32_t apply(void *user, int64_t n, const void *x, void *y) {
    (void)user;
    /* The type is not known here, so only as many bytes are written as the shortest type has. */
    memcpy(y, x, (size_t)n * sizeof(float));
    return below(50) == 0;
}

static int32_t observe(void *user, int64_t right_hand_side, int64_t iteration, double residual_norm) {
    (void)user, (void)right_hand_side, (void)iteration, (void)residual_norm;
    return below(9) == 0;
}
static void tell(void *user, int32_t level, const char *message) {
    (void)user, (void)level, (void)message;
}

int main(int argc, char **argv) {
    long calls = argc > 1 ? atol(argv[1]) : 20000, ok = 0;
    void *handles[KEPT] = {0};
    static const char *names[] = {"tolerance", "method", "max_iterations", "updates", "restart", "trail", "", "x"};
    static const char *values[] = {"1e-3", "cg", "gmres", "yes", "5", "-1", "nan", ""};
    for (long call = 0; call < calls; call++) {
        int64_t n = below(MOST), entries = below(3 * MOST), length = 0;
        int32_t offsets[MOST + 1], rows[3 * MOST], columns[3 * MOST], flag, status = 0;
        double data[8 * MOST], x[8 * MOST], number;
        size_t bytes;
        char text[16];
        for (int i = 0; i <= MOST; i++)
            offsets[i] = below(4) ? (int32_t)(entries * i / (n ? n : 1)) : (int32_t)below(40) - 2;
        for (int k = 0; k < 3 * MOST; k++) {
            rows[k] = (int32_t)below(n ? (uint32_t)n : 1) - !below(200);
            columns[k] = (int32_t)below(n ? (uint32_t)n : 1) + !below(200);
        }
        for (int k = 0; k < 8 * MOST; k++)
            x[k] = 0, data[k] = (double)below(100) / 10 - 3;
        void **place = &handles[below(KEPT)], *h = below(20) ? *place : below(2) ? NULL : (void *)(uintptr_t)below(999);
        void *made = NULL;
        int32_t type = (int32_t)below(4) - !below(30), base = (int32_t)below(2), bits = below(20) ? 32 : 7;
        switch (below(25)) {
        case 0: status = residua_options_create((residua_options **)&made); break;
        case 1: status = residua_options_set(h, names[below(8)], below(30) ? values[below(8)] : NULL); break;
        case 2: status = residua_solver_from_csr((residua_solver **)&made, below(2) ? h : NULL, type, n, n, entries,
                                                 base, bits, offsets, bits, columns, data); break;
        case 3: status = residua_solver_from_coo((residua_solver **)&made, NULL, type, n, n, entries, base, bits, rows,
                                                 columns, below(20) ? data : NULL); break;
        case 4: status = residua_solver_from_function((residua_solver **)&made, NULL, RESIDUA_FLOAT32, n,
                                                      below(20) ? apply : NULL, NULL); break;
        case 5: status = residua_solver_update(h, data, entries); break;
        case 6: status = residua_solver_solve(h, data, n, x, n, (residua_report **)&made); break;
        case 7: status = residua_solver_history(h, below(3), x, 8, &length); break;
        case 8: status = residua_report_converged(h, &flag); break;
        case 9: status = residua_report_number(h, names[below(8)], &number); break;
        case 10: status = residua_report_text(h, names[below(8)], text, below(16), &bytes); break;
        /* Arrays on the host instead of a GPU, with the default stream. */
        case 11: status = residua_solver_from_csr_device((residua_solver **)&made, below(2) ? h : NULL, type, n, n,
                                                         entries, base, bits, offsets, bits, columns, data, NULL); break;
        case 12: status = residua_solver_from_coo_device((residua_solver **)&made, NULL, type, n, n, entries, base, bits,
                                                         below(9) ? rows : NULL, columns, data, NULL); break;
        case 13: status = residua_solver_solve_device(h, below(3), data, n, x, n, NULL, (residua_report **)&made); break;
        case 14: status = residua_solver_update_device(h, data, entries, NULL); break;
        /* MPI is not initialised. Each call searches for its library, which takes long, so calls are few. */
        case 15: status = below(50) ? RESIDUA_OK : residua_solver_create_distributed(
                     (residua_solver **)&made, below(2) ? h : NULL, 0, type, n, n, entries, base, bits, offsets, bits,
                     columns, data); break;
        case 16: status = residua_options_set_null_space(h, type, n, (int64_t)below(3) - !below(9),
                                                        below(9) ? data : NULL); break;
        case 17: status = residua_options_set_near_null_space(h, n, (int64_t)below(3) - !below(9),
                                                        below(9) ? data : NULL); break;
        case 18: status = residua_options_set_coordinates(h, (int32_t)below(5), n, below(9) ? data : NULL); break;
        case 19: status = residua_options_set_preconditioner(h, below(2) ? apply : NULL, NULL); break;
        case 20: status = residua_solver_set_observer(h, below(2) ? observe : NULL, NULL); break;
        case 21: status = below(2) ? residua_solver_cancel(h) : residua_solver_resume(h); break;
        case 22: status = residua_solver_transposed(h, below(20) ? (residua_solver **)&made : NULL); break;
        case 23: status = residua_set_log(below(2) ? tell : NULL, NULL, (int32_t)below(4)); break;
        default: status = below(2) ? residua_options_destroy(h) : residua_solver_destroy(h); break;
        }
        if (status == RESIDUA_INTERNAL) {
            fprintf(stderr, "call %ld: %s\n", call, residua_last_error());
            return 1;
        }
        ok += status == RESIDUA_OK;
        if (made) {
            residua_options_destroy(*place), residua_solver_destroy(*place), residua_report_destroy(*place);
            *place = made;
        }
    }
    for (int k = 0; k < KEPT; k++)
        residua_options_destroy(handles[k]), residua_solver_destroy(handles[k]), residua_report_destroy(handles[k]);
    printf("%ld calls, %ld of them ok\n", calls, ok);
    return 0;
}
