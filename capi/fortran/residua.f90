! residua for Fortran: interfaces of residua.h by iso_c_binding. Arrays count from 1, so base is 1.
module residua
    use, intrinsic :: iso_c_binding
    implicit none
    integer(c_int32_t), parameter :: residua_ok = 0
    integer(c_int32_t), parameter :: residua_float32 = 0, residua_float64 = 1, residua_complex64 = 2, residua_complex128 = 3

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
        ! vectors: count columns of n numbers of a type; they are copied.
        function residua_options_set_null_space(options, values_type, n, count, vectors) bind(c) result(status)
            import
            type(c_ptr), value :: options, vectors
            integer(c_int32_t), value :: values_type
            integer(c_int64_t), value :: n, count
            integer(c_int32_t) :: status
        end function
        function residua_options_set_near_null_space(options, n, count, vectors) bind(c) result(status)
            import
            type(c_ptr), value :: options
            integer(c_int64_t), value :: n, count
            real(c_double), intent(in) :: vectors(n, *)
            integer(c_int32_t) :: status
        end function
        function residua_options_set_coordinates(options, dimensions, points, coordinates) bind(c) result(status)
            import
            type(c_ptr), value :: options
            integer(c_int32_t), value :: dimensions
            integer(c_int64_t), value :: points
            real(c_double), intent(in) :: coordinates(dimensions, *)
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
        function residua_solver_from_coo_device(solver, options, values_type, rows, columns, entries, base, &
                                                index_bits, row_indices, column_indices, values, stream) &
                                                bind(c) result(status)
            import
            type(c_ptr), intent(out) :: solver
            type(c_ptr), value :: options, row_indices, column_indices, values, stream
            integer(c_int32_t), value :: values_type, base, index_bits
            integer(c_int64_t), value :: rows, columns, entries
            integer(c_int32_t) :: status
        end function
        ! apply is c_funloc of a function with the arguments of residua_apply in residua.h, bind(c).
        function residua_solver_from_function(solver, options, values_type, n, apply, user) bind(c) result(status)
            import
            type(c_ptr), intent(out) :: solver
            type(c_ptr), value :: options, user
            integer(c_int32_t), value :: values_type
            integer(c_int64_t), value :: n
            type(c_funptr), value :: apply
            integer(c_int32_t) :: status
        end function
        ! z = M^-1 r by a function with the arguments of residua_apply; c_null_funptr removes it.
        function residua_options_set_preconditioner(options, apply, user) bind(c) result(status)
            import
            type(c_ptr), value :: options, user
            type(c_funptr), value :: apply
            integer(c_int32_t) :: status
        end function
        ! observer and log are c_funloc of functions with the arguments of residua_observer and residua_log.
        function residua_solver_set_observer(solver, observer, user) bind(c) result(status)
            import
            type(c_ptr), value :: solver, user
            type(c_funptr), value :: observer
            integer(c_int32_t) :: status
        end function
        function residua_set_log(log, user, level) bind(c) result(status)
            import
            type(c_funptr), value :: log
            type(c_ptr), value :: user
            integer(c_int32_t), value :: level
            integer(c_int32_t) :: status
        end function
        function residua_solver_cancel(solver) bind(c) result(status)
            import
            type(c_ptr), value :: solver
            integer(c_int32_t) :: status
        end function
        function residua_solver_resume(solver) bind(c) result(status)
            import
            type(c_ptr), value :: solver
            integer(c_int32_t) :: status
        end function
        function residua_solver_transposed(solver, transposed) bind(c) result(status)
            import
            type(c_ptr), value :: solver
            type(c_ptr), intent(out) :: transposed
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
        function residua_solver_update_csr(solver, rows, columns, entries, base, offset_bits, offsets, column_bits, &
                                           column_indices, values) bind(c) result(status)
            import
            type(c_ptr), value :: solver, offsets, column_indices, values
            integer(c_int32_t), value :: base, offset_bits, column_bits
            integer(c_int64_t), value :: rows, columns, entries
            integer(c_int32_t) :: status
        end function
        function residua_solver_update_coo(solver, rows, columns, entries, base, index_bits, row_indices, &
                                           column_indices, values) bind(c) result(status)
            import
            type(c_ptr), value :: solver, row_indices, column_indices, values
            integer(c_int32_t), value :: base, index_bits
            integer(c_int64_t), value :: rows, columns, entries
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
        ! Residual norms of the last solve; right_hand_side counts from 0, as in C.
        function residua_solver_history(solver, right_hand_side, norms, capacity, length) bind(c) result(status)
            import
            type(c_ptr), value :: solver
            integer(c_int64_t), value :: right_hand_side, capacity
            real(c_double), intent(out) :: norms(*)
            integer(c_int64_t), intent(out) :: length
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
        ! As much as capacity bytes hold, a c_null_char behind it; length is that of the whole text.
        function residua_report_text(report, name, buffer, capacity, length) bind(c) result(status)
            import
            type(c_ptr), value :: report
            character(kind=c_char), intent(in) :: name(*)
            character(kind=c_char), intent(out) :: buffer(*)
            integer(c_size_t), value :: capacity
            integer(c_size_t), intent(out) :: length
            integer(c_int32_t) :: status
        end function
        function residua_report_destroy(report) bind(c) result(status)
            import
            type(c_ptr), value :: report
            integer(c_int32_t) :: status
        end function
        function residua_last_error() bind(c) result(text)
            import
            type(c_ptr) :: text
        end function
        function residua_version() bind(c) result(text)
            import
            type(c_ptr) :: text
        end function
    end interface
contains
    ! A text that residua keeps, such as residua_last_error().
    function residua_string(text) result(string)
        type(c_ptr), intent(in) :: text
        character(len=:), allocatable :: string
        character(kind=c_char), pointer :: letters(:)
        integer :: i, length
        interface
            function strlen(text) bind(c) result(length)
                import
                type(c_ptr), value :: text
                integer(c_size_t) :: length
            end function
        end interface
        length = int(strlen(text))
        call c_f_pointer(text, letters, [length])
        allocate(character(len=length) :: string)
        do i = 1, length
            string(i:i) = letters(i)
        end do
    end function
end module
