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
        function residua_solver_from_coo(solver, options, values_type, rows, columns, entries, base, index_bits, &
                                         row_indices, column_indices, values) bind(c) result(status)
            import
            type(c_ptr), intent(out) :: solver
            type(c_ptr), value :: options, row_indices, column_indices, values
            integer(c_int32_t), value :: values_type, base, index_bits
            integer(c_int64_t), value :: rows, columns, entries
            integer(c_int32_t) :: status
        end function
        ! Addresses on a GPU (c_devloc of CUDA Fortran, use_device of OpenACC); the stream may be c_null_ptr.
        function residua_solver_from_csr_device(solver, options, values_type, rows, columns, entries, base, &
                                                offset_bits, offsets, column_bits, column_indices, values, stream) &
                                                bind(c) result(status)
            import
            type(c_ptr), intent(out) :: solver
            type(c_ptr), value :: options, offsets, column_indices, values, stream
            integer(c_int32_t), value :: values_type, base, offset_bits, column_bits
            integer(c_int64_t), value :: rows, columns, entries
            integer(c_int32_t) :: status
        end function
        ! comm is a communicator as Fortran has it: MPI_COMM_WORLD, or comm%mpi_val with mpi_f08.
        function residua_solver_create_distributed(solver, options, comm, values_type, rows, columns, entries, base, &
                                                   offset_bits, offsets, column_bits, column_indices, values) &
                                                   bind(c) result(status)
            import
            type(c_ptr), intent(out) :: solver
            type(c_ptr), value :: options, offsets, column_indices, values
            integer(c_int32_t), value :: comm, values_type, base, offset_bits, column_bits
            integer(c_int64_t), value :: rows, columns, entries
            integer(c_int32_t) :: status
        end function
        function residua_solver_update_device(solver, values, entries, stream) bind(c) result(status)
            import
            type(c_ptr), value :: solver, values, stream
            integer(c_int64_t), value :: entries
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
        function residua_solver_solve_many(solver, count, b, b_length, x, x_length, reports) bind(c) result(status)
            import
            type(c_ptr), value :: solver, b, x
            integer(c_int64_t), value :: count, b_length, x_length
            type(c_ptr), intent(out) :: reports(*)
            integer(c_int32_t) :: status
        end function
        function residua_solver_solve_device(solver, count, b, b_length, x, x_length, stream, reports) bind(c) &
            result(status)
            import
            type(c_ptr), value :: solver, b, x, stream
            integer(c_int64_t), value :: count, b_length, x_length
            type(c_ptr), intent(out) :: reports(*)
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
