//! Analysis and pictures of matrices, and the devices that can be used.

use crate::engine::by_type;
use crate::matrix::{Indices, Layout, arrays_of, layout_of};
use crate::report::json;
use crate::run::{LONG, detached, gpu_is_of_a_parent, open_gpu, raise, set_up};
use crate::typed::Value;
use num_complex::Complex;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use residua::Host;
use residua::look::{Look, MethodFit};
use residua::report::spy_svg;
use residua::work::Work;
use std::collections::BTreeMap;

fn looked<'py, T: Value>(
    values: PyReadonlyArray1<'py, T>,
    py: Python<'py>,
    matrix: (Layout, (usize, usize)),
    indices: (&Indices<'_>, &Indices<'_>),
) -> PyResult<(Bound<'py, PyAny>, Vec<String>, Bound<'py, PyAny>)> {
    let arrays = arrays_of(matrix, indices, &values)?;
    let found = set_up(py, arrays.values.len() >= LONG, || Look::of(&arrays.to_csr(&Host)?))?;
    let methods: Vec<MethodFit> = found.methods();
    Ok((json(py, &found)?, found.words(), json(py, &methods)?))
}

/// Analysis of a matrix: figures by name, sentences, and how suitable each method is.
#[pyfunction]
pub(crate) fn look<'py>(
    py: Python<'py>,
    layout: &str,
    shape: (usize, usize),
    first: Indices<'py>,
    second: Indices<'py>,
    values: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyAny>, Vec<String>, Bound<'py, PyAny>)> {
    let layout = layout_of(layout)?;
    by_type!(values, looked(py, (layout, shape), (&first, &second)))
}

fn drawn<T: Value>(
    values: PyReadonlyArray1<'_, T>,
    py: Python<'_>,
    matrix: (Layout, (usize, usize)),
    indices: (&Indices<'_>, &Indices<'_>),
    name: &str,
) -> PyResult<String> {
    let arrays = arrays_of(matrix, indices, &values)?;
    detached(py, &Work::default(), || spy_svg(&arrays.to_csr(&Host)?, name))?.map_err(raise)
}

/// A picture of the positions of a matrix's entries: the text of an SVG file.
#[pyfunction]
pub(crate) fn spy(
    py: Python<'_>,
    layout: &str,
    shape: (usize, usize),
    first: Indices<'_>,
    second: Indices<'_>,
    values: &Bound<'_, PyAny>,
    name: &str,
) -> PyResult<String> {
    let layout = layout_of(layout)?;
    by_type!(values, drawn(py, (layout, shape), (&first, &second), name))
}

/// The CPU, and each GPU that the driver finds, with the reason if there is none.
#[pyfunction]
pub(crate) fn devices(py: Python<'_>) -> PyResult<(usize, Vec<Bound<'_, PyDict>>, Bound<'_, PyDict>)> {
    use residua::backend::cuda;
    let threads = detached(py, &Work::default(), rayon::current_num_threads)?;
    let software = PyDict::new(py);
    if gpu_is_of_a_parent() {
        software.set_item("driver_missing", crate::run::forked().value(py).to_string())?;
        return Ok((threads, Vec::new(), software));
    }
    open_gpu()?;
    let (status, found) = py.detach(|| (cuda::status(), cuda::devices()));
    match status.driver {
        Ok(release) => software.set_item("driver", release)?,
        Err(reason) => software.set_item("driver_missing", reason)?,
    }
    match status.compiler {
        Ok((release, place)) => {
            software.set_item("compiler", release)?;
            software.set_item("compiler_path", place)?;
        }
        Err(reason) => software.set_item("compiler_missing", reason)?,
    }
    if let Ok(Some(archive)) = cuda::compile::installed_archive() {
        software.set_item("kernels", archive.chips().collect::<BTreeMap<_, _>>())?;
    }
    match status.direct_solver {
        Ok((release, place)) => {
            software.set_item("cudss", release)?;
            software.set_item("cudss_path", place)?;
        }
        Err(reason) => software.set_item("cudss_missing", reason)?,
    }
    let devices = found.unwrap_or_default().into_iter().map(|device| {
        let told = PyDict::new(py);
        told.set_item("name", format!("cuda:{}", device.ordinal))?;
        told.set_item("product", device.name)?;
        told.set_item("memory", device.memory)?;
        told.set_item("capability", device.capability)?;
        let packed = cuda::compile::packed_kernels(device.capability).ok().flatten();
        told.set_item("kernels", packed.map_or(0, |kernels| kernels.count()))?;
        Ok(told)
    });
    Ok((threads, devices.collect::<PyResult<_>>()?, software))
}
