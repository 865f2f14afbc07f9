// residua for C++: handles that are destroyed by themselves, errors as exceptions. All else is residua.h.
#ifndef RESIDUA_HPP
#define RESIDUA_HPP

#include "residua.h"
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace residua {

/// Throws what the library says of a call that failed.
inline void check(int32_t status) {
    if (status != RESIDUA_OK)
        throw std::runtime_error(residua_last_error());
}

/// Owns a handle of the C interface; it can be moved, not copied.
template <class T, int32_t (*Destroy)(T *)> class Handle {
  public:
    Handle() = default;
    Handle(Handle &&other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
    Handle &operator=(Handle &&other) noexcept { return std::swap(handle, other.handle), *this; }
    ~Handle() {
        if (handle)
            Destroy(handle);
    }
    T *handle = nullptr;
};

/// Options by name, as residua.h lists them.
struct Options : Handle<residua_options, residua_options_destroy> {
    Options() { check(residua_options_create(&handle)); }
    Options &set(const std::string &name, const std::string &value) {
        return check(residua_options_set(handle, name.c_str(), value.c_str())), *this;
    }
    /// Vectors of n elements that A takes to zero, one behind the other.
    Options &null_space(int64_t n, const std::vector<double> &vectors) {
        const int64_t count = columns(n, vectors);
        return check(residua_options_set_null_space(handle, RESIDUA_FLOAT64, n, count, vectors.data())), *this;
    }
    /// Vectors of n elements that A takes near to zero where no boundary is near, one behind the other.
    Options &near_null_space(int64_t n, const std::vector<double> &vectors) {
        return check(residua_options_set_near_null_space(handle, n, columns(n, vectors), vectors.data())), *this;
    }
    /// The points of the mesh, one behind the other.
    Options &coordinates(int32_t dimensions, const std::vector<double> &points) {
        const int64_t count = columns(dimensions, points);
        return check(residua_options_set_coordinates(handle, dimensions, count, points.data())), *this;
    }

  private:
    static int64_t columns(int64_t n, const std::vector<double> &all) {
        if (n <= 0 || all.size() % static_cast<size_t>(n) != 0)
            throw std::invalid_argument("the numbers do not come to whole vectors");
        return static_cast<int64_t>(all.size()) / n;
    }
};

/// How a solve ended.
struct Report : Handle<residua_report, residua_report_destroy> {
    bool converged() const {
        int32_t answer = 0;
        return check(residua_report_converged(handle, &answer)), answer != 0;
    }
    double number(const std::string &name) const {
        double answer = 0;
        return check(residua_report_number(handle, name.c_str(), &answer)), answer;
    }
    std::string text(const std::string &name) const {
        size_t length = 0;
        check(residua_report_text(handle, name.c_str(), nullptr, 0, &length));
        std::vector<char> buffer(length + 1);
        check(residua_report_text(handle, name.c_str(), buffer.data(), buffer.size(), &length));
        return std::string(buffer.data(), length);
    }
};

/// One matrix in double precision and any number of right-hand sides.
struct Solver : Handle<residua_solver, residua_solver_destroy> {
    /// A matrix in CSR whose offsets and columns count from 0.
    Solver(const Options &options, int64_t columns, const std::vector<int64_t> &offsets,
           const std::vector<int32_t> &indices, const std::vector<double> &values) {
        if (offsets.empty() || indices.size() != values.size())
            throw std::invalid_argument("offsets are rows + 1 numbers, and indices as many as values");
        check(residua_solver_from_csr(&handle, options.handle, RESIDUA_FLOAT64, static_cast<int64_t>(offsets.size()) - 1,
                                      columns, static_cast<int64_t>(values.size()), 0, 64, offsets.data(), 32,
                                      indices.data(), values.data()));
    }
    /// The solver of the transposed matrix, with the same settings and factors of its own.
    Solver transposed() const {
        Solver other;
        check(residua_solver_transposed(handle, &other.handle));
        return other;
    }
    /// Asks it to stop, from any thread, until resume().
    void cancel() { check(residua_solver_cancel(handle)); }
    void resume() { check(residua_solver_resume(handle)); }
    void update(const std::vector<double> &values) {
        check(residua_solver_update(handle, values.data(), static_cast<int64_t>(values.size())));
    }
    /// Solves from the x that is given, which takes the solution.
    Report solve(const std::vector<double> &b, std::vector<double> &x) {
        Report report;
        check(residua_solver_solve(handle, b.data(), static_cast<int64_t>(b.size()), x.data(),
                                   static_cast<int64_t>(x.size()), &report.handle));
        return report;
    }

  private:
    Solver() = default;
};

} // namespace residua

#endif
