//! The Python bindings of residua: the module `residua._residua`.
//!
//! Nothing is computed here. NumPy arrays are passed as slices to a solver of the library, which is called with the
//! interpreter's lock released, and its report is returned. The Python files in `lib/residua` provide the interfaces
//! that users of SciPy expect (formats, types, signatures).
//!
//! | file | what it holds |
//! |---|---|
//! | `matrix` | from compressed rows, columns or triplets in NumPy to a matrix of the library |
//! | `engine`, `typed` | a solver for a matrix, of any of four types |
//! | `builder` | conversion of a caller's settings |
//! | `banded` | factors of small matrices of few diagonals |
//! | `batch` | thousands of small systems at once |
//! | `spread` | a solver with rows on several MPI processes |
//! | `krylov`, `callable`, `watched` | methods with operators, preconditioners and callbacks written in Python |
//! | `precondition` | preconditioners alone |
//! | `device` | vectors and matrices on a GPU, and other libraries' streams |
//! | `report` | reports on how a solve ended |
//! | `run` | the interpreter's lock, Ctrl-C, threads after a fork |
//! | `files`, `look` | Matrix Market files, model problems, analysis of matrices, devices |

mod banded;
mod batch;
mod builder;
mod callable;
mod device;
mod engine;
mod files;
mod krylov;
mod lent;
mod look;
mod matrix;
mod precondition;
mod report;
mod run;
#[cfg(unix)]
mod spread;
mod typed;
mod watched;

use pyo3::prelude::*;

/// The compiled half of the package `residua`.
#[pymodule(gil_used = false)]
fn _residua(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add("Unsupported", m.py().get_type::<run::Unsupported>())?;
    m.add_class::<engine::Engine>()?;
    m.add_class::<banded::Banded>()?;
    m.add_class::<batch::Batches>()?;
    m.add_class::<batch::BatchVerdicts>()?;
    #[cfg(unix)]
    m.add_class::<spread::Spread>()?;
    m.add_class::<lent::Lent>()?;
    m.add_class::<precondition::Preconditioner>()?;
    m.add_class::<report::Report>()?;
    m.add_function(wrap_pyfunction!(device::stream, m)?)?;
    m.add_function(wrap_pyfunction!(device::run_after, m)?)?;
    m.add_function(wrap_pyfunction!(device::run_before, m)?)?;
    m.add_function(wrap_pyfunction!(device::wait, m)?)?;
    m.add_function(wrap_pyfunction!(krylov::krylov, m)?)?;
    m.add_function(wrap_pyfunction!(files::read, m)?)?;
    m.add_function(wrap_pyfunction!(files::write_matrix, m)?)?;
    m.add_function(wrap_pyfunction!(files::write_dense, m)?)?;
    m.add_function(wrap_pyfunction!(files::generate, m)?)?;
    m.add_function(wrap_pyfunction!(files::models, m)?)?;
    m.add_function(wrap_pyfunction!(look::look, m)?)?;
    m.add_function(wrap_pyfunction!(look::spy, m)?)?;
    m.add_function(wrap_pyfunction!(look::devices, m)?)?;
    Ok(())
}
