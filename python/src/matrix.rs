//! Compressed rows, compressed columns or triplets in NumPy arrays, as a matrix of the library. The arrays are read and
//! never written to.

use numpy::{Element, PyReadonlyArray1};
use pyo3::prelude::*;
use residua::assemble::{Arrays, Integers};
use residua::backend::OffsetsRef;
use residua::{Csr, Host, Scalar};

pub(crate) use residua::assemble::Layout;

/// Indices or offsets of 32 or 64 bits.
#[derive(FromPyObject)]
pub(crate) enum Indices<'py> {
    Short(PyReadonlyArray1<'py, i32>),
    Long(PyReadonlyArray1<'py, i64>),
}

impl Indices<'_> {
    /// The indices with their number of bits.
    ///
    /// # Errors
    /// If they are not contiguous.
    pub(crate) fn integers(&self) -> PyResult<Integers<'_, Host>> {
        Ok(match self {
            Indices::Short(array) => Integers::Short(bytemuck::cast_slice(array.as_slice()?)),
            Indices::Long(array) => Integers::Long(bytemuck::cast_slice(array.as_slice()?)),
        })
    }
}

/// The format of a matrix's arrays, by the names that the Python side uses.
///
/// # Errors
/// If the name is none of these three.
pub(crate) fn layout_of(name: &str) -> PyResult<Layout> {
    match name {
        "csr" => Ok(Layout::Rows),
        "csc" => Ok(Layout::Columns),
        "coo" => Ok(Layout::Triplets),
        _ => Err(pyo3::exceptions::PyValueError::new_err(format!("there is no layout '{name}'"))),
    }
}

/// The arrays passed by Python.
///
/// # Errors
/// If an array is not contiguous.
pub(crate) fn arrays_of<'a, T: Scalar + Element>(
    (layout, shape): (Layout, (usize, usize)),
    (first, second): (&'a Indices<'_>, &'a Indices<'_>),
    values: &'a PyReadonlyArray1<'_, T>,
) -> PyResult<Arrays<'a, T, Host>> {
    let (first, second) = (first.integers()?, second.integers()?);
    Ok(Arrays { layout, shape, base: 0, first, second, values: values.as_slice()? })
}

/// Offsets as SciPy expects them.
pub(crate) fn offsets_of<T: Scalar>(a: &Csr<T>) -> Vec<i64> {
    match a.parts().offsets {
        OffsetsRef::Lower(all) => all.iter().map(|&offset| i64::from(offset)).collect(),
        OffsetsRef::Wide(all) => all.iter().map(|&offset| offset as i64).collect(),
    }
}
