// An unsymmetric system from C++: convection and diffusion on a line, whose solution is known.
#include "residua.hpp"
#include <cmath>
#include <cstdio>

int main() try {
    const int n = 500;
    std::vector<int64_t> offsets{0};
    std::vector<int32_t> columns;
    std::vector<double> values, expected(n), b(n), x(n);
    for (int i = 0; i < n; i++) {
        expected[i] = std::sin(0.1 * i) + 2;
        for (int j = i > 0 ? i - 1 : 0; j <= i + 1 && j < n; j++) {
            columns.push_back(j);
            values.push_back(j == i ? 3 : j < i ? -2 : -0.5);
        }
        offsets.push_back(static_cast<int64_t>(columns.size()));
    }
    residua::Options options;
    options.set("tolerance", "1e-12");
    residua::Solver solver(options, n, offsets, columns, values);
    for (double factor : {1.0, 3.0}) {
        std::vector<double> scaled = values;
        for (double &value : scaled)
            value *= factor;
        solver.update(scaled);
        for (int i = 0; i < n; i++) {
            b[i] = 0;
            for (int64_t k = offsets[i]; k < offsets[i + 1]; k++)
                b[i] += scaled[k] * expected[columns[k]];
        }
        const residua::Report report = solver.solve(b, x);
        if (!report.converged() || !(report.number("relative_residual") <= 1e-12) || report.text("method").empty())
            throw std::runtime_error("not solved: " + report.text("outcome"));
        for (int i = 0; i < n; i++)
            if (!(std::abs(x[i] - expected[i]) < 1e-9))
                throw std::runtime_error("a wrong solution");
    }
    /* Options that are arrays: numbers that do not come to whole vectors are refused, and ones are no null space. */
    residua::Options wrong;
    wrong.coordinates(1, b).near_null_space(n, b);
    try {
        wrong.null_space(n + 1, b);
        throw std::logic_error("half a vector was taken");
    } catch (const std::invalid_argument &) {
    }
    wrong.null_space(n, std::vector<double>(n, 1));
    try {
        residua::Solver refused(wrong, n, offsets, columns, values);
        throw std::logic_error("a null space that there is none of was taken");
    } catch (const std::runtime_error &) {
    }
    try {
        options.set("colour", "red");
        throw std::logic_error("an option that there is none of was taken");
    } catch (const std::runtime_error &) {
    }
    std::puts("C++: ok");
} catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
