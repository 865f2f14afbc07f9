//! Converts the caller's settings to settings of the library.

use crate::run::raise;
use numpy::PyReadonlyArray1;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use residua::scalar::Symmetry;
use residua::solver::{Builder, Device};
use std::str::FromStr;
use std::time::Duration;

fn word<W: FromStr<Err = residua::Error>>(value: &Bound<'_, PyAny>) -> PyResult<W> {
    value.extract::<String>()?.parse().map_err(raise)
}

/// The builder for these settings, and the device. A setting that is None keeps its default.
pub(crate) fn builder(settings: &Bound<'_, PyDict>) -> PyResult<(Builder, Device)> {
    let mut builder = residua::Solver::builder();
    let mut device = Device::Auto;
    for (name, value) in settings {
        if value.is_none() {
            continue;
        }
        let name: String = name.extract()?;
        let number = || value.extract::<usize>();
        builder = match name.as_str() {
            "rtol" => builder.tolerance(value.extract()?),
            "atol" => builder.absolute_tolerance(value.extract()?),
            "maxiter" => builder.max_iterations(number()?),
            "stagnation_window" => builder.stagnation_window(number()?),
            "time_limit" => builder.time_limit(duration(value.extract()?)?),
            "memory_limit" => builder.memory_limit(value.extract()?),
            "method" => builder.method(word(&value)?),
            "preconditioner" => builder.preconditioner(word(&value)?),
            "precision" => builder.precision(word(&value)?),
            "format" => builder.format(value.extract::<String>()?),
            "reorder" => builder.reorder(word(&value)?),
            "right_hand_sides" => builder.right_hand_sides(number()?),
            "updates" => builder.updates(value.extract()?),
            "symmetry" => builder.symmetry(symmetry(&value.extract::<String>()?)?),
            "coordinates" => {
                let (dimensions, entries) = vectors(&value)?;
                builder.coordinates(dimensions, entries)
            }
            "near_null_space" => {
                let (count, entries) = vectors(&value)?;
                builder.near_null_space(count, entries)
            }
            "row_wise" => builder.row_wise(value.extract()?),
            "condition" => builder.condition(value.extract()?),
            "null_space" => match value.extract::<String>() {
                Ok(name) if name == "constants" => builder.null_space_constants(),
                Ok(name) => {
                    let told =
                        format!("null_space is {name:?}, but must be \"constants\" or an array of vectors");
                    return Err(PyValueError::new_err(told));
                }
                Err(_) => {
                    let (count, entries) = vectors(&value)?;
                    let vector = |k: usize| entries.iter().skip(k).step_by(count).copied().collect();
                    builder.null_space(&(0..count).map(vector).collect::<Vec<Vec<f64>>>())
                }
            },
            "device" => {
                device = word(&value)?;
                builder.device(device)
            }
            _ => return Err(PyTypeError::new_err(format!("there is no setting '{name}'"))),
        };
    }
    Ok((builder, device))
}

/// The number of columns of an array, and its numbers row by row.
fn vectors(value: &Bound<'_, PyAny>) -> PyResult<(usize, Vec<f64>)> {
    let (count, entries): (usize, PyReadonlyArray1<'_, f64>) = value.extract()?;
    Ok((count, entries.as_slice()?.to_vec()))
}

fn duration(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        PyValueError::new_err(format!("the time limit is {seconds}, but must be at least 0 seconds"))
    })
}

fn symmetry(name: &str) -> PyResult<Symmetry> {
    match name {
        "general" => Ok(Symmetry::General),
        "symmetric" => Ok(Symmetry::Symmetric),
        "hermitian" => Ok(Symmetry::Hermitian),
        _ => Err(PyValueError::new_err(format!("symmetry '{name}': choose general, symmetric or hermitian"))),
    }
}
