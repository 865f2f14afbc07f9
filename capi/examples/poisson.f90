! -u'' = 1 on 100 points from Fortran, by a matrix and by a function; the solution is known.
program poisson
    use residua
    implicit none
    integer, parameter :: n = 100
    integer(c_int32_t), target :: offsets(n + 1), columns(3 * n)
    real(c_double), target :: values(3 * n), b(n), x(n)
    real(c_double) :: residual
    type(c_ptr) :: options, solver, transposed, report
    real(c_double) :: norms(1000)
    integer(c_int64_t) :: length
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
    call check(residua_solver_from_csr(solver, options, residua_float64, int(n, c_int64_t), int(n, c_int64_t), &
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

    ! A is its own transpose.
    call check(residua_solver_transposed(solver, transposed))
    x = 0
    call check(residua_solver_solve(transposed, c_loc(b), int(n, c_int64_t), c_loc(x), int(n, c_int64_t), report))
    if (.not. maxval(abs(x - [(i * (n + 1.0_c_double - i) / 2, i = 1, n)])) < 1e-6) error stop "a wrong transpose"
    call check(residua_report_destroy(report))
    call check(residua_solver_destroy(transposed))
    call check(residua_solver_destroy(solver))

    ! The same by conjugate gradients of a function.
    call check(residua_options_set(options, "method" // c_null_char, "cg" // c_null_char))
    call check(residua_solver_from_function(solver, options, residua_float64, int(n, c_int64_t), c_funloc(second_difference), &
                                            c_null_ptr))
    x = 0
    call check(residua_solver_solve(solver, c_loc(b), int(n, c_int64_t), c_loc(x), int(n, c_int64_t), report))
    call check(residua_solver_history(solver, 0_c_int64_t, norms, size(norms, kind=c_int64_t), length))
    if (length < 2 .or. .not. norms(length) < norms(1)) error stop "no history"
    if (.not. maxval(abs(x - [(i * (n + 1.0_c_double - i) / 2, i = 1, n)])) < 1e-6) error stop "a wrong solution"
    call check(residua_report_destroy(report))
    call check(residua_solver_destroy(solver))
    call check(residua_options_destroy(options))

    ! Options that are arrays, and what is said of one that no matrix has.
    call check(residua_options_create(options))
    call check(residua_options_set_coordinates(options, 1_c_int32_t, int(n, c_int64_t), reshape(x, [1, n])))
    call check(residua_options_set_near_null_space(options, int(n, c_int64_t), 1_c_int64_t, reshape(b, [n, 1])))
    call check(residua_options_set_null_space(options, residua_float64, int(n, c_int64_t), 1_c_int64_t, c_loc(b)))
    if (residua_solver_from_csr(solver, options, residua_float64, int(n, c_int64_t), int(n, c_int64_t), &
                                int(entries, c_int64_t), 1_c_int32_t, 32_c_int32_t, c_loc(offsets), 32_c_int32_t, &
                                c_loc(columns), c_loc(values)) == residua_ok) error stop "ones are no null space"
    if (index(residua_string(residua_last_error()), "null space") == 0) error stop "another error was told of"
    call check(residua_options_destroy(options))
    print "(a)", "Fortran: ok"
contains
    subroutine check(status)
        integer(c_int32_t), intent(in) :: status
        if (status /= residua_ok) error stop residua_string(residua_last_error())
    end subroutine

    ! y = A x without a matrix.
    function second_difference(user, n, x, y) bind(c) result(failed)
        type(c_ptr), value :: user
        integer(c_int64_t), value :: n
        real(c_double), intent(in) :: x(n)
        real(c_double), intent(out) :: y(n)
        integer(c_int32_t) :: failed
        failed = merge(1, 0, c_associated(user))
        y = 2 * x
        y(2:) = y(2:) - x(:n - 1)
        y(:n - 1) = y(:n - 1) - x(2:)
    end function
end program
