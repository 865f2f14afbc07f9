//! Factors of matrices of few diagonals: the compiled half of small systems (`residua._small`).

use crate::engine::no_array;
use crate::matrix::{Indices, Layout, layout_of};
use crate::run::raise;
use crate::typed::Value;
use num_complex::Complex;
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods, ToPyArray};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use residua::backend::Op;
use residua::direct;

/// Factors of one of the two types in which small systems are solved.
enum Typed {
    Real(direct::Banded<f64>),
    Complex(direct::Banded<Complex<f64>>),
}

/// A matrix of few diagonals and its LU factors.
///
/// Calls are short: the interpreter's lock is kept.
#[pyclass(frozen, module = "residua._residua")]
pub(crate) struct Banded(Typed);

fn op_of(trans: &str) -> PyResult<Op> {
    match trans {
        "N" => Ok(Op::None),
        "T" => Ok(Op::Transpose),
        "H" => Ok(Op::ConjugateTranspose),
        _ => Err(PyValueError::new_err(format!("trans must be N, T, or H: {trans:?} was given"))),
    }
}

fn solved<'py, T: Value + direct::Factorable>(
    py: Python<'py>,
    banded: &direct::Banded<T>,
    b: &Bound<'py, PyAny>,
    op: Option<Op>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let b: PyReadonlyArray1<'_, T> = b.extract().map_err(|_| no_array(b))?;
    let x = PyArray1::<T>::zeros(py, b.len(), false);
    let good = {
        let mut place = x.readwrite();
        let (b, x) = (b.as_slice()?, place.as_slice_mut()?);
        match op {
            Some(op) => banded.solve(op, b, x),
            None => banded.solve_once(b, x),
        }
    };
    Ok(good.then(|| x.into_any()))
}

impl Banded {
    fn solve_by<'py>(
        &self,
        py: Python<'py>,
        b: &Bound<'py, PyAny>,
        op: Option<Op>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match &self.0 {
            Typed::Real(banded) => solved(py, banded, b, op),
            Typed::Complex(banded) => solved(py, banded, b, op),
        }
    }
}

#[pymethods]
impl Banded {
    /// Factors of a square matrix in "csr" or "csc", of float64 or complex128. None if it has `widest` diagonals or
    /// more, or an entry that is not finite.
    #[staticmethod]
    fn factorised(
        layout: &str,
        n: usize,
        starts: Indices<'_>,
        across: Indices<'_>,
        values: &Bound<'_, PyAny>,
        widest: usize,
    ) -> PyResult<Option<Self>> {
        let by_columns = layout_of(layout)? == Layout::Columns;
        let (starts, across) = (starts.integers()?, across.integers()?);
        if let Ok(values) = values.extract::<PyReadonlyArray1<'_, f64>>() {
            let arrays = (starts, across, values.as_slice()?);
            let made = direct::Banded::new(n, by_columns, arrays, widest).map_err(raise)?;
            return Ok(made.map(|made| Self(Typed::Real(made))));
        }
        if let Ok(values) = values.extract::<PyReadonlyArray1<'_, Complex<f64>>>() {
            let arrays = (starts, across, values.as_slice()?);
            let made = direct::Banded::new(n, by_columns, arrays, widest).map_err(raise)?;
            return Ok(made.map(|made| Self(Typed::Complex(made))));
        }
        Err(PyTypeError::new_err("values of float64 or complex128 are needed"))
    }

    /// True if A is certainly regular.
    #[getter]
    fn is_regular(&self) -> bool {
        match &self.0 {
            Typed::Real(banded) => banded.is_regular(),
            Typed::Complex(banded) => banded.is_regular(),
        }
    }

    /// The numbers of diagonals below and above the main one, and A column by column; each column goes from the
    /// farthest diagonal above to the farthest one below.
    fn diagonals<'py>(&self, py: Python<'py>) -> ((usize, usize), Bound<'py, PyAny>) {
        match &self.0 {
            Typed::Real(banded) => (banded.widths(), banded.diagonals().to_pyarray(py).into_any()),
            Typed::Complex(banded) => (banded.widths(), banded.diagonals().to_pyarray(py).into_any()),
        }
    }

    /// x of A x = b, of A^T ("T") or of A^H ("H"). None unless A is regular and x is shown to be accurate.
    fn solve<'py>(
        &self,
        py: Python<'py>,
        b: &Bound<'py, PyAny>,
        trans: &str,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.solve_by(py, b, Some(op_of(trans)?))
    }

    /// x of A x = b. None unless it is shown to be accurate, for which a small residual in all rows is enough.
    fn solve_once<'py>(&self, py: Python<'py>, b: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.solve_by(py, b, None)
    }
}
