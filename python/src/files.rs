//! Matrix Market files and model problems.

use crate::engine::{by_type, no_array};
use crate::matrix::{Indices, Layout, arrays_of, layout_of, offsets_of};
use crate::run::{detached, raise, set_up};
use crate::typed::Value;
use num_complex::Complex;
use numpy::{IntoPyArray, PyReadonlyArray1, ToPyArray};
use pyo3::exceptions::{PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use residua::files;
use residua::generate::{COMPLEX_MODELS, MODELS, Model, Parameters};
use residua::market::{self, Field, Format, ReadOptions, WriteOptions};
use residua::work::Work;
use residua::{Csr, Host, Scalar};
use std::ffi::CString;
use std::path::{Path, PathBuf};

/// Shape, offsets, columns and values of a matrix.
fn parts<'py, T: Value>(py: Python<'py>, a: &Csr<T>) -> PyResult<Bound<'py, PyAny>> {
    let shape = (a.rows(), a.columns());
    let (offsets, parts) = (offsets_of(a), a.parts());
    // SciPy's indices are signed: below 2^31 they are the same in 32 bits, otherwise it needs 64.
    let (indices, values) = (parts.indices, parts.values);
    let narrow =
        offsets.last().is_none_or(|&last| last <= i64::from(i32::MAX)) && shape.1 <= i32::MAX as usize;
    let parts = if narrow {
        let offsets: Vec<i32> = offsets.iter().map(|&offset| offset as i32).collect();
        let indices: Vec<i32> = indices.iter().map(|&index| index as i32).collect();
        (("csr", shape), offsets.into_pyarray(py).into_any(), indices.into_pyarray(py).into_any())
    } else {
        let indices: Vec<i64> = indices.iter().map(|&index| i64::from(index)).collect();
        (("csr", shape), offsets.into_pyarray(py).into_any(), indices.into_pyarray(py).into_any())
    };
    let ((kind, shape), offsets, indices) = parts;
    let parts = (kind, shape, offsets, indices, values.to_pyarray(py));
    Ok(parts.into_pyobject(py)?.into_any())
}

/// The content of a file, in memory.
enum Contents<T: Scalar> {
    /// A sparse matrix, with a note on how its entries were interpreted.
    Sparse(Box<Csr<T>>, Option<String>),
    Dense(usize, usize, Vec<T>),
}

fn contents<T: Scalar>(path: &Path, format: Format) -> residua::Result<Contents<T>> {
    let options = ReadOptions::default();
    if format == Format::Array {
        let file = files::read_dense::<T>(path, &options)?;
        return Ok(Contents::Dense(file.rows(), file.columns(), file.into_values()));
    }
    let stored = files::read_stored::<T>(path, &options)?;
    let header = stored.header();
    let note = (header.repeated() > 0).then(|| {
        let (file, symmetry) = (path.display(), header.symmetry().name());
        format!(
            "{file}: given in both triangles of a {symmetry} matrix, with values that agree: {} entries, each taken \
             once (other programs may add them up)",
            header.repeated()
        )
    });
    let a = stored.into_csr()?;
    Ok(Contents::Sparse(Box::new(a), note))
}

/// Reads a file, warns about its note if there is one, and returns its contents as Python objects.
fn told<T: Value>(py: Python<'_>, path: &Path, format: Format) -> PyResult<Py<PyAny>> {
    let found = set_up(py, true, || contents::<T>(path, format))?;
    Ok(match found {
        Contents::Sparse(a, note) => {
            if let Some(note) = note {
                let text = CString::new(note).map_err(|error| PyValueError::new_err(error.to_string()))?;
                PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 2)?;
            }
            parts(py, &a)?.unbind()
        }
        Contents::Dense(rows, columns, values) => {
            ("dense", (rows, columns), values.into_pyarray(py)).into_pyobject(py)?.into_any().unbind()
        }
    })
}

/// A file's matrix as ("csr", shape, offsets, columns, values), or its full array, column after column, as ("dense",
/// shape, values).
#[pyfunction]
pub(crate) fn read(py: Python<'_>, path: PathBuf) -> PyResult<Py<PyAny>> {
    let header = py.detach(|| files::read_header(&path)).map_err(raise)?;
    match header.field() {
        Field::Complex => told::<Complex<f64>>(py, &path, header.format()),
        _ => told::<f64>(py, &path, header.format()),
    }
}

fn options(comment: Option<&str>, detect_symmetry: bool) -> WriteOptions {
    WriteOptions::default().comment(comment.unwrap_or_default()).detect_symmetry(detect_symmetry)
}

fn written<T: Value>(
    values: PyReadonlyArray1<'_, T>,
    py: Python<'_>,
    path: &Path,
    matrix: (Layout, (usize, usize)),
    indices: (&Indices<'_>, &Indices<'_>),
    options: &WriteOptions,
) -> PyResult<()> {
    let arrays = arrays_of(matrix, indices, &values)?;
    let done = detached(py, &Work::default(), || {
        let a = arrays.to_csr(&Host)?;
        market::write_csr(path, &a, options)
    })?;
    done.map_err(raise)
}

/// Writes a matrix in one of the formats that `Engine` takes.
#[pyfunction]
#[pyo3(signature = (path, layout, shape, first, second, values, comment, detect_symmetry))]
#[allow(clippy::too_many_arguments, reason = "the parts of a matrix")]
pub(crate) fn write_matrix(
    py: Python<'_>,
    path: PathBuf,
    layout: &str,
    shape: (usize, usize),
    first: Indices<'_>,
    second: Indices<'_>,
    values: &Bound<'_, PyAny>,
    comment: Option<&str>,
    detect_symmetry: bool,
) -> PyResult<()> {
    let (layout, options) = (layout_of(layout)?, options(comment, detect_symmetry));
    by_type!(values, written(py, &path, (layout, shape), (&first, &second), &options))
}

fn full<T: Value>(
    values: PyReadonlyArray1<'_, T>,
    py: Python<'_>,
    path: &Path,
    (rows, columns): (usize, usize),
    options: &WriteOptions,
) -> PyResult<()> {
    let values = values.as_slice()?;
    let done = detached(py, &Work::default(), || market::write_dense(path, rows, columns, values, options))?;
    done.map_err(raise)
}

/// Writes a full array, column after column.
#[pyfunction]
pub(crate) fn write_dense(
    py: Python<'_>,
    path: PathBuf,
    shape: (usize, usize),
    values: &Bound<'_, PyAny>,
    comment: Option<&str>,
) -> PyResult<()> {
    by_type!(values, full(py, &path, shape, &options(comment, true)))
}

/// The parameters that a model uses; one that it does not use is an error.
fn parameters<T: Scalar>(
    model: &Model<T>,
    size: Vec<usize>,
    given: &Bound<'_, PyDict>,
) -> PyResult<Parameters> {
    let mut parameters = Parameters::default().size(size);
    for (name, value) in given {
        let name: String = name.extract()?;
        let real = || value.extract::<f64>();
        if !model.options.iter().any(|option| option.replace('-', "_") == name) {
            let known: Vec<String> = model.options.iter().map(|option| option.replace('-', "_")).collect();
            return Err(PyTypeError::new_err(format!(
                "{} has no parameter '{name}'; its parameters are size{}{}",
                model.name,
                if known.is_empty() { "" } else { ", " },
                known.join(", ")
            )));
        }
        parameters = match name.as_str() {
            "seed" => parameters.seed(value.extract()?),
            "anisotropy" => parameters.anisotropy(real()?),
            "contrast" => parameters.contrast(real()?),
            "block" => parameters.block(value.extract()?),
            "diffusion" => parameters.diffusion(real()?),
            "poisson_ratio" => parameters.poisson_ratio(real()?),
            "edge_factor" => parameters.edge_factor(value.extract()?),
            "row_lengths" => {
                let text = value.str()?.to_string();
                parameters.row_lengths(text.parse().map_err(raise)?)
            }
            "peclet" => parameters.peclet(real()?),
            "wavelength" => parameters.wavelength(real()?),
            "viscosity" => parameters.viscosity(real()?),
            _ => return Err(PyTypeError::new_err(format!("'{name}' cannot be given from Python"))),
        };
    }
    Ok(parameters)
}

fn model_of<T: Value>(
    py: Python<'_>,
    model: &Model<T>,
    size: Vec<usize>,
    given: &Bound<'_, PyDict>,
) -> PyResult<Py<PyAny>> {
    let parameters = parameters(model, size, given)?;
    let a = set_up(py, true, || model.build(&parameters))?;
    Ok(parts(py, &a)?.unbind())
}

/// A model problem as ("csr", shape, offsets, columns, values).
#[pyfunction]
pub(crate) fn generate(
    py: Python<'_>,
    name: &str,
    size: Vec<usize>,
    given: &Bound<'_, PyDict>,
) -> PyResult<Py<PyAny>> {
    match COMPLEX_MODELS.iter().find(|model| model.name == name) {
        Some(model) => model_of(py, model, size, given),
        None => model_of(py, Model::find(name).map_err(raise)?, size, given),
    }
}

/// Name, description, default size and parameters of each model problem.
#[pyfunction]
pub(crate) fn models() -> Vec<(&'static str, &'static str, Vec<usize>, Vec<String>)> {
    fn row<T: Scalar>(model: &Model<T>) -> (&'static str, &'static str, Vec<usize>, Vec<String>) {
        let options = model.options.iter().map(|option| option.replace('-', "_")).collect();
        (model.name, model.about, model.size.to_vec(), options)
    }
    MODELS.iter().map(row).chain(COMPLEX_MODELS.iter().map(row)).collect()
}

/// The array as an array of values, or an error.
pub(crate) fn read_only<'py, T: Value>(array: &Bound<'py, PyAny>) -> PyResult<PyReadonlyArray1<'py, T>> {
    array.extract().map_err(|_| no_array(array))
}
