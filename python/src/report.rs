//! Reports on how a solve ended, for Python.

use numpy::{PyArray1, ToPyArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use residua::krylov::{Outcome, Report as KrylovReport};
use residua::report::{Curve, convergence_svg};
use residua::solver::SolveReport;

/// A report of a [`residua::Solver`], or of a Krylov method alone.
enum Told {
    Solver(Box<SolveReport>),
    Krylov(KrylovReport, &'static str),
}

/// How a solve ended: only `converged` means that ||b - A x||, computed anew from x, meets the tolerance.
#[pyclass(frozen, module = "residua")]
pub(crate) struct Report {
    told: Told,
    history: Vec<f64>,
    /// The requested bound of ||b - A x|| / ||b||.
    tolerance: f64,
}

impl Report {
    pub(crate) fn of_solver(report: SolveReport, history: Vec<f64>, tolerance: f64) -> Self {
        Self { told: Told::Solver(Box::new(report)), history, tolerance }
    }

    pub(crate) fn of_krylov(
        report: KrylovReport,
        method: &'static str,
        history: Vec<f64>,
        tolerance: f64,
    ) -> Self {
        Self { told: Told::Krylov(report, method), history, tolerance }
    }

    /// Rows and entries of the levels of multigrid in the method that was used last.
    fn levels(&self) -> Vec<(usize, usize)> {
        let Told::Solver(report) = &self.told else { return Vec::new() };
        report.trail.levels().iter().map(|level| (level.rows, level.entries)).collect()
    }
}

/// A value that both types of reports have.
macro_rules! of {
    ($self:ident, $report:ident => $value:expr) => {
        match &$self.told {
            Told::Solver($report) => $value,
            Told::Krylov($report, _) => $value,
        }
    };
}

#[pymethods]
impl Report {
    /// Returns whether b - A x, computed anew, meets the tolerance.
    #[getter]
    fn converged(&self) -> bool {
        of!(self, report => report.outcome.is_converged())
    }

    /// Returns whether x is an answer: it has converged, or is the least-squares solution of a system without another
    /// solution, or is as accurate as the precision allows, with at least one correct digit.
    #[getter]
    fn solved(&self) -> bool {
        of!(self, report => report.outcome.is_solved())
    }

    /// One word: "converged", "least_squares", "precision_limit", "max_iterations", "not_positive_definite",
    /// "breakdown", "singular", "stagnated", "not_finite", "interrupted" or "time_limit".
    #[getter]
    fn outcome(&self) -> &'static str {
        of!(self, report => report.outcome.status())
    }

    /// The outcome in words, with its figures.
    #[getter]
    fn message(&self) -> String {
        of!(self, report => report.outcome.to_string())
    }

    /// The iteration at which the method broke down or found that A is not positive definite; otherwise None.
    #[getter]
    fn fault_iteration(&self) -> Option<usize> {
        match of!(self, report => report.outcome) {
            Outcome::NotPositiveDefinite { iteration, .. } | Outcome::Breakdown { iteration } => {
                Some(iteration)
            }
            _ => None,
        }
    }

    /// The method that was used last.
    #[getter]
    fn method(&self) -> &'static str {
        match &self.told {
            Told::Solver(report) => report.method.name(),
            Told::Krylov(_, method) => method,
        }
    }

    /// The preconditioner that was used.
    #[getter]
    fn preconditioner(&self) -> String {
        match &self.told {
            Told::Solver(report) => report.preconditioner.to_string(),
            Told::Krylov(..) => "own".into(),
        }
    }

    /// The precision in which it iterated: "double" is that of the vectors.
    #[getter]
    fn precision(&self) -> &'static str {
        match &self.told {
            Told::Solver(report) => report.precision.name(),
            Told::Krylov(..) => "double",
        }
    }

    /// Number of iterations that changed x, of all methods that were tried.
    #[getter]
    fn iterations(&self) -> usize {
        of!(self, report => report.iterations)
    }

    /// Number of times that an iteration was restarted from b - A x.
    #[getter]
    fn restarts(&self) -> usize {
        of!(self, report => report.restarts)
    }

    /// ||b - A x||, computed anew from the final x; NaN if it is not finite.
    #[getter]
    fn residual_norm(&self) -> f64 {
        of!(self, report => report.residual_norm)
    }

    /// residual_norm / ||b||; 0 if both are zero.
    #[getter]
    fn relative_residual(&self) -> f64 {
        of!(self, report => report.relative_residual)
    }

    /// The relative residual with each row divided by its norm in A: ||D (b - A x)|| / ||D b||; None if a method was
    /// called with Python operators.
    #[getter]
    fn row_wise_residual(&self) -> Option<f64> {
        match &self.told {
            Told::Solver(report) => Some(report.row_wise_residual),
            Told::Krylov(..) => None,
        }
    }

    /// Estimate of the condition number; None if there is none.
    #[getter]
    fn condition(&self) -> Option<f64> {
        match &self.told {
            Told::Solver(report) => report.condition,
            Told::Krylov(..) => None,
        }
    }

    /// Number of decimal digits of x, in norm, that can be trusted; None if nothing is known about them.
    #[getter]
    fn digits(&self) -> Option<f64> {
        match (&self.told, of!(self, report => report.outcome)) {
            (_, Outcome::PrecisionLimit { digits }) => Some(digits),
            (Told::Solver(report), _) => report.digits,
            (Told::Krylov(..), _) => None,
        }
    }

    /// ||A^H (b - A x)|| / (||A|| ||b - A x||) of a least-squares solution; otherwise None.
    #[getter]
    fn normal_residual(&self) -> Option<f64> {
        match &self.told {
            Told::Solver(report) => report.normal_residual,
            Told::Krylov(..) => None,
        }
    }

    /// The proof that A is singular, if it was found to be: {"structural": {"rank": ...}}, or {"null_vector": {"ratio":
    /// ...}} with the largest |A v|_i in units of the rounding of (|A| |v|)_i; otherwise None.
    #[getter]
    fn singularity<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.told {
            Told::Solver(report) => json(py, &report.singularity),
            Told::Krylov(..) => Ok(py.None().into_bound(py)),
        }
    }

    /// ||b - A x|| / (||A|| ||x|| + ||b||); None if it is not known.
    #[getter]
    fn backward_error(&self) -> Option<f64> {
        match &self.told {
            Told::Solver(report) => report.backward_error,
            Told::Krylov(..) => None,
        }
    }

    /// The norm of the part of b outside A's range, which was removed because of a null space; None without a null
    /// space.
    #[getter]
    fn outside_range(&self) -> Option<f64> {
        match &self.told {
            Told::Solver(report) => report.outside_range,
            Told::Krylov(..) => None,
        }
    }

    /// The requested relative tolerance.
    #[getter]
    fn tolerance(&self) -> f64 {
        self.tolerance
    }

    /// Minimum number of bytes that one iteration of the last method has to move.
    #[getter]
    fn bytes_per_iteration(&self) -> usize {
        of!(self, report => report.bytes_per_iteration)
    }

    /// Number of right-hand sides that were solved at the same time.
    #[getter]
    fn at_once(&self) -> usize {
        match &self.told {
            Told::Solver(report) => report.at_once,
            Told::Krylov(..) => 1,
        }
    }

    /// Seconds of each phase, by name; empty if a method was called with Python operators.
    #[getter]
    fn seconds<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.told {
            Told::Solver(report) => json(py, &report.seconds),
            Told::Krylov(..) => Ok(PyDict::new(py).into_any()),
        }
    }

    /// The storage format of the matrix.
    #[getter]
    fn format(&self) -> &'static str {
        match &self.told {
            Told::Solver(report) => report.format,
            Told::Krylov(..) => "operator",
        }
    }

    /// The type in which the matrix's values are stored.
    #[getter]
    fn stored(&self) -> &'static str {
        match &self.told {
            Told::Solver(report) => report.stored,
            Told::Krylov(..) => "",
        }
    }

    /// The device on which the solve ran.
    #[getter]
    fn device(&self) -> &str {
        match &self.told {
            Told::Solver(report) => &report.device,
            Told::Krylov(..) => "cpu",
        }
    }

    /// The decisions that were made and the stages that were tried: a dict with the lists "decisions" and "stages".
    #[getter]
    fn trail<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.told {
            Told::Solver(report) => json(py, &*report.trail),
            Told::Krylov(..) => Ok(PyDict::new(py).into_any()),
        }
    }

    /// Residual norms of the recurrences: at the start, then after each iteration.
    #[getter]
    fn history<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.history.to_pyarray(py)
    }

    /// Residual over iterations, and the levels of multigrid, as a picture: the text of an SVG file.
    fn convergence_svg(&self) -> String {
        let first = of!(self, report => report.residual_norm / report.relative_residual);
        let unit = if first.is_finite() && first > 0.0 { first } else { 1.0 };
        let relative: Vec<f64> = self.history.iter().map(|norm| norm / unit).collect();
        let confirmed = Some(self.relative_residual());
        let curve = Curve { name: self.method().into(), history: &relative, confirmed };
        let facts = format!("{} iterations, {}", self.iterations(), self.device());
        let title = format!("{} with {}: {}", self.method(), self.preconditioner(), self.message());
        convergence_svg(&title, &facts, &[curve], self.tolerance, &self.levels())
    }

    /// The report for a notebook: a table, the methods that were tried, and the convergence.
    fn _repr_html_(&self) -> String {
        let mut page = String::from("<div><table>");
        let mut row = |name: &str, value: String| {
            page.push_str(&format!("<tr><th>{}</th><td>{}</td></tr>", escaped(name), escaped(&value)));
        };
        row("outcome", self.message());
        row("method", format!("{} with {}", self.method(), self.preconditioner()));
        row("iterations", self.iterations().to_string());
        row("relative residual", format!("{:.3e}", self.relative_residual()));
        row("asked for", format!("{:.3e}", self.tolerance));
        if let Some(error) = self.backward_error() {
            row("backward error", format!("{error:.3e}"));
        }
        row("device", self.device().to_string());
        row("format", format!("{} {}", self.format(), self.stored()));
        if let Told::Solver(report) = &self.told {
            row("seconds", format!("{:.3e}", report.seconds.solve));
            for decision in &report.trail.decisions {
                row(decision.subject, format!("{}: {}", decision.chosen, decision.why));
            }
            for stage in &report.trail.stages {
                let end = stage.outcome.map_or("not needed".into(), |outcome| outcome.to_string());
                row("tried", format!("{} with {}: {end}", stage.method, stage.preconditioner));
            }
        }
        page.push_str("</table>");
        page.push_str(&self.convergence_svg());
        page.push_str("</div>");
        page
    }

    /// For pickling: in another process a report consists of the values of its attributes.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let told = slf.py().import("residua._errors")?.getattr("attributes")?.call1((slf,))?;
        Ok((slf.py().import("residua._errors")?.getattr("restored")?, PyTuple::new(slf.py(), [told])?))
    }

    fn __repr__(&self) -> String {
        format!(
            "<residua.Report: {}, {} with {}, {} iterations, relative residual {:.3e}, on {}>",
            self.message(),
            self.method(),
            self.preconditioner(),
            self.iterations(),
            self.relative_residual(),
            self.device()
        )
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A value of the library as dicts and lists.
pub(crate) fn json<'py>(py: Python<'py>, value: &impl serde::Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(value).map_err(|error| PyValueError::new_err(error.to_string()))?;
    py.import("json")?.call_method1("loads", (PyString::new(py, &text),))
}
