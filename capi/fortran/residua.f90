! residua for Fortran: interfaces of residua.h by iso_c_binding. Arrays count from 1, so base is 1.
module residua
    use, intrinsic :: iso_c_binding
    implicit none
    integer(c_int32_t), parameter :: residua_ok = 0
    integer(c_int32_t), parameter :: residua_f32 = 0, residua_f64 = 1, residua_c32 = 2, residua_c64 = 3

    interface
        function residua_options_create(options) bind(c) result(status)
            import
            type(c_ptr), intent(out) :: options
            integer(c_int32_t) :: status
        end function
        ! Names and values end with c_null_char.
        function residua_options_set(options, name, value) bind(c) result(status)
            import
            type(c_ptr), value :: options
            character(kind=c_char), intent(in) :: name(*), value(*)
            integer(c_int32_t) :: status
        end function
        function residua_options_destroy(options) bind(c) result(status)
            import
            type(c_ptr), value :: options
            integer(c_int32_t) :: status
        end function
        function residua_solver_from_csr(solver, options, values_type, rows, columns, entries, base, offset_bits, &
                                         offsets, column_bits, column_indices, values) bind(c) result(status)
            import
            type(c_ptr), intent(out) :: solver
            type(c_ptr), value :: options, offsets, column_indices, values
            integer(c_int32_t), value :: values_type, base, offset_bits, column_bits
            integer(c_int64_t), value :: rows, columns, entries
            integer(c_int32_t) :: status
        end function
        function residua_solver_update(solver, values, entries) bind(c) result(status)
            import
            type(c_ptr), value :: solver, values
            integer(c_int64_t), value :: entries
            integer(c_int32_t) :: status
        end function
        function residua_solver_solve(solver, b, b_length, x, x_length, report) bind(c) result(status)
            import
            type(c_ptr), value :: solver, b, x
            integer(c_int64_t), value :: b_length, x_length
            type(c_ptr), intent(out) :: report
            integer(c_int32_t) :: status
        end function
        function residua_solver_destroy(solver) bind(c) result(status)
            import
            type(c_ptr), value :: solver
            integer(c_int32_t) :: status
        end function
        function residua_report_converged(report, converged) bind(c) result(status)
            import
            type(c_ptr), value :: report
            integer(c_int32_t), intent(out) :: converged
            integer(c_int32_t) :: status
        end function
        function residua_report_number(report, name, number) bind(c) result(status)
            import
            type(c_ptr), value :: report
            character(kind=c_char), intent(in) :: name(*)
            real(c_double), intent(out) :: number
            integer(c_int32_t) :: status
        end function
        function residua_report_destroy(report) bind(c) result(status)
            import
            type(c_ptr), value :: report
            integer(c_int32_t) :: status
        end function
    end interface
end module
