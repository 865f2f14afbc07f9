//! Python's door to residua: what `import residua._residua` finds.
//!
//! Nothing is computed here. Arrays of NumPy become slices, a solver of the library is called on them with the
//! interpreter's lock released, and its report comes back. What SciPy's callers expect (formats, types, signatures) is
//! arranged in the Python files beside it, `lib/residua`.
//!
//! | file | what it holds |
//! |---|---|
//! | `matrix` | compressed rows, columns or triplets of NumPy to a matrix of the library |
//! | `engine` | a solver for a matrix, of any of four types |
//! | `builder` | what a caller names, as settings of the library |
//! | `batch` | thousands of small systems at once |
//! | `spread` | the same with rows on several processes of MPI |
//! | `krylov`, `callable`, `watched` | methods with operators, preconditioners and callbacks that are Python's |
//! | `precondition` | preconditioners by themselves |
//! | `device` | vectors and matrices that lie on a GPU, and other libraries' streams |
//! | `report` | how a solve ended |
//! | `run` | the lock, Ctrl-C, threads after a fork |
//! | `files`, `look` | Matrix Market files, model problems, what a matrix is, devices |

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
mod watched;

use pyo3::prelude::*;

/// The compiled half of the package `residua`.
#[pymodule(gil_used = false)]
fn _residua(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add("Unsupported", m.py().get_type::<run::Unsupported>())?;
    m.add_class::<engine::Engine>()?;
    m.add_class::<batch::Batches>()?;
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
