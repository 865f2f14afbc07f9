! -u'' = 1 on 100 points from Fortran; the solution is known.
program poisson
    use residua
    implicit none
    integer, parameter :: n = 100
    integer(c_int32_t), target :: offsets(n + 1), columns(3 * n)
    real(c_double), target :: values(3 * n), b(n), x(n)
    real(c_double) :: residual
    type(c_ptr) :: options, solver, report
    integer(c_int32_t) :: converged
    integer :: i, j, entries

    entries = 0
    do i = 1, n
        offsets(i) = entries + 1
        do j = max(1, i - 1), min(n, i + 1)
            entries = entries + 1
            columns(entries) = j
            values(entries) = merge(2.0_c_double, -1.0_c_double, i == j)
        end do
    end do
    offsets(n + 1) = entries + 1
    b = 1
    x = 0
    call check(residua_options_create(options))
    call check(residua_options_set(options, "tolerance" // c_null_char, "1e-12" // c_null_char))
    call check(residua_solver_from_csr(solver, options, residua_f64, int(n, c_int64_t), int(n, c_int64_t), &
                                       int(entries, c_int64_t), 1_c_int32_t, 32_c_int32_t, c_loc(offsets), &
                                       32_c_int32_t, c_loc(columns), c_loc(values)))
    call check(residua_solver_solve(solver, c_loc(b), int(n, c_int64_t), c_loc(x), int(n, c_int64_t), report))
    call check(residua_report_converged(report, converged))
    call check(residua_report_number(report, "relative_residual" // c_null_char, residual))
    if (converged == 0 .or. .not. residual <= 1e-12_c_double) error stop "not solved"
    do i = 1, n
        if (.not. abs(x(i) - i * (n + 1.0_c_double - i) / 2) < 1e-6) error stop "a wrong solution"
    end do
    call check(residua_report_destroy(report))
    call check(residua_solver_destroy(solver))
    call check(residua_options_destroy(options))
    print "(a)", "Fortran: ok"
contains
    subroutine check(status)
        integer(c_int32_t), intent(in) :: status
        if (status /= residua_ok) error stop "a call of residua failed"
    end subroutine
end program
