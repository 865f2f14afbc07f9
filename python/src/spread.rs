//! A solver whose rows are spread over the processes of an MPI communicator: the compiled half of
//! `residua.Solver(A, comm=comm)`.

use crate::builder::builder;
use crate::engine::{Value, by_type, no_array};
use crate::matrix::{Arrays, Indices, Layout};
use crate::report::Report;
use crate::run::{Ear, detached, raise};
use num_complex::Complex;
use numpy::{PyReadonlyArray1, PyReadwriteArray1};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use residua::ranks::Group;
use residua::scalar::Symmetry;
use residua::solver::{Builder, Device, Progress, SpreadSolver};
use residua::{Csr, Error, Host, Result};
use std::any::Any;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

type Solver<T> = SpreadSolver<T, Host, Group>;

/// Rows of a matrix on each of several processes, with the methods that solve with all of them.
#[pyclass(frozen, module = "residua._residua")]
pub(crate) struct Spread {
    group: Group,
    /// A [`Solver`] of one of four types.
    solver: Mutex<Box<dyn Any + Send>>,
    /// Rows that each process has given.
    rows: Vec<usize>,
    nnz: usize,
    device: String,
    symmetry: &'static str,
    tolerance: f64,
}

/// What a process has made, once all have made theirs: where one could not, all of them raise.
fn together<R>(group: &Group, made: Result<R>) -> Result<R> {
    let own = made.as_ref().err().map_or_else(String::new, Error::to_string);
    let all = group.all_gather(own.as_bytes())?;
    let failed = all.iter().position(|told| !told.is_empty());
    match (made, failed) {
        (Ok(_), Some(rank)) => {
            let cause = String::from_utf8_lossy(&all[rank]).into_owned();
            Err(Error::Rank { rank, ranks: group.ranks(), cause })
        }
        (made, _) => made,
    }
}

fn to_bytes<T: Value>(values: &[T]) -> Vec<u8> {
    values.iter().flat_map(|value| value.bits()).flat_map(u64::to_le_bytes).collect()
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word))
}

fn of_bytes<T: Value>(bytes: &[u8]) -> impl Iterator<Item = T> + '_ {
    bytes.as_chunks::<16>().0.iter().map(|bytes| {
        let mut bits = words(bytes);
        T::from_bits([bits.next().unwrap_or(0), bits.next().unwrap_or(0)])
    })
}

/// The entries of all processes, in their order.
fn gathered<T: Value>(group: &Group, own: &[T]) -> Result<Vec<T>> {
    Ok(group.all_gather(&to_bytes(own))?.iter().flat_map(|bytes| of_bytes(bytes)).collect())
}

/// Numbers of all processes, each one's own.
fn numbers(group: &Group, own: impl Iterator<Item = u64>) -> Result<Vec<Vec<u64>>> {
    let own: Vec<u8> = own.flat_map(u64::to_le_bytes).collect();
    Ok(group.all_gather(&own)?.iter().map(|bytes| words(bytes).collect()).collect())
}

/// The whole matrix, of the rows that each process has, and how many each has.
fn whole<T: Value>(group: &Group, own: &Csr<T>) -> Result<(Csr<T>, Vec<usize>)> {
    let parts = own.parts();
    let lengths = numbers(group, (0..own.rows()).map(|row| own.row(row).0.len() as u64))?;
    let columns = numbers(group, parts.indices.iter().map(|&column| u64::from(column)))?;
    let values = gathered(group, parts.values)?;
    let rows: Vec<usize> = lengths.iter().map(Vec::len).collect();
    let mut offsets = vec![0];
    offsets.extend(lengths.iter().flatten().scan(0, |end, &length| {
        *end += length as usize;
        Some(*end)
    }));
    let columns = columns.iter().flatten().map(|&column| column as u32).collect();
    let total = rows.iter().sum();
    let made = if own.columns() == total {
        Csr::from_parts(total, total, offsets, columns, values)
    } else {
        let cause = format!(
            "A has {} columns, and the processes have {total} rows: each gives rows of one square matrix, with the \
             numbers of its columns in the whole",
            own.columns()
        );
        Err(Error::InvalidMatrix(cause))
    };
    Ok((together(group, made)?, rows))
}

fn built<T: Value>(
    values: PyReadonlyArray1<'_, T>,
    py: Python<'_>,
    group: &Group,
    matrix: (Layout, (usize, usize)),
    indices: (&Indices<'_>, &Indices<'_>),
    (builder, tolerance): (&Builder, Option<f64>),
) -> PyResult<Spread> {
    let arrays = Arrays::of(matrix, indices, &values)?;
    let made = detached(py, &AtomicBool::new(false), || {
        group.agree_on("type of values", T::NAME.as_bytes())?;
        let (own, _) = together(group, arrays.build(false))?;
        let (a, rows) = whole(group, &own)?;
        let solver: Solver<T> = together(group, builder.build_spread(&Host, group.clone(), &a))?;
        Ok((solver, rows, a.nonzeros()))
    })?;
    let (solver, rows, nnz) = made.map_err(raise)?;
    let symmetry = match solver.symmetry() {
        Symmetry::Symmetric => "symmetric",
        Symmetry::Hermitian => "hermitian",
        Symmetry::SkewSymmetric => "skew-symmetric",
        Symmetry::General => "general",
    };
    let tolerance = tolerance.unwrap_or(if size_of::<T::Real>() == 4 { 1e-5 } else { 1e-8 });
    let device = format!("cpu, {}", group.description());
    Ok(Spread {
        group: group.clone(),
        solver: Mutex::new(Box::new(solver)),
        rows,
        nnz,
        device,
        symmetry,
        tolerance,
    })
}

fn solved<T: Value>(
    b: PyReadonlyArray1<'_, T>,
    x: &Bound<'_, PyAny>,
    spread: &Spread,
    observer: Option<&Py<PyAny>>,
) -> PyResult<Vec<Report>> {
    let py = x.py();
    let mut x: PyReadwriteArray1<'_, T> = x.extract().map_err(|_| no_array(x))?;
    let (b, x) = (b.as_slice()?, x.as_slice_mut()?);
    let own = spread.rows[spread.group.rank()];
    if b.len() != x.len() || own == 0 || b.len() % own != 0 {
        return Err(PyValueError::new_err(format!("b has {} entries, A here {own} rows", b.len())));
    }
    let stop = AtomicBool::new(false);
    let mut ear = Ear::new(observer, &stop);
    let heard = &mut ear;
    let reports = detached(py, &stop, || {
        let mut solver = spread.solver.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let solver = solver.downcast_mut::<Solver<T>>().ok_or_else(|| {
            PyTypeError::new_err(format!("values of {} for a solver of another type", T::NAME))
        })?;
        let mut solve = || {
            spread.group.agree_on("number of right-hand sides", &(b.len() / own).to_le_bytes())?;
            let columns = b.chunks_exact(own).zip(x.chunks_exact_mut(own)).enumerate();
            columns.map(|(number, (b, x))| spread.solve_one(solver, number, b, x, heard)).collect()
        };
        let reports: Result<Vec<Report>> = solve();
        reports.map_err(|error| {
            if !matches!(error, Error::Rank { .. }) {
                // The others wait for what this process can no longer do.
                spread.group.fail(&error);
            }
            raise(error)
        })
    })?;
    ear.check()?;
    reports
}

impl Spread {
    fn solve_one<T: Value>(
        &self,
        solver: &mut Solver<T>,
        number: usize,
        b: &[T],
        x: &mut [T],
        ear: &mut Ear<'_>,
    ) -> Result<Report> {
        let group = &self.group;
        let own_b = solver.own_part(&gathered(group, b)?);
        let mut own_x = solver.own_part(&gathered(group, x)?);
        let told = |now: &Progress| ear.hear(number, now.iteration, now.residual_norm);
        let report = solver.solve_with(&own_b, &mut own_x, told)?;
        let mut to_each = vec![Vec::new(); group.ranks()];
        if let Some(whole) = solver.whole(&own_x)? {
            let mut left = &whole[..];
            for (bytes, &rows) in to_each.iter_mut().zip(&self.rows) {
                let (first, rest) = left.split_at(rows);
                (*bytes, left) = (to_bytes(first), rest);
            }
        }
        let mine = group.scatter(&to_each)?;
        x.iter_mut().zip(of_bytes(&mine)).for_each(|(place, value)| *place = value);
        Ok(Report::of_solver(report, solver.history().to_vec(), self.tolerance))
    }
}

#[pymethods]
impl Spread {
    /// A solver for the rows that each process of a communicator gives, which has this Fortran number.
    #[new]
    #[pyo3(signature = (comm, layout, shape, first, second, values, settings))]
    #[allow(clippy::too_many_arguments, reason = "the parts of a matrix")]
    fn new(
        py: Python<'_>,
        comm: i32,
        layout: &str,
        shape: (usize, usize),
        first: Indices<'_>,
        second: Indices<'_>,
        values: &Bound<'_, PyAny>,
        settings: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let (builder, device) = builder(settings)?;
        if !matches!(device, Device::Auto | Device::Cpu) {
            return Err(PyRuntimeError::new_err("with comm the CPU computes: device is \"auto\" or \"cpu\""));
        }
        let tolerance = match settings.get_item("rtol")? {
            Some(rtol) if !rtol.is_none() => Some(rtol.extract()?),
            _ => None,
        };
        let group = detached(py, &AtomicBool::new(false), || Group::from_mpi(comm))?.map_err(raise)?;
        let layout: Layout = layout.parse()?;
        by_type!(values, built(py, &group, (layout, shape), (&first, &second), (&builder, tolerance)))
    }

    /// Solves from x, which takes the solution: entries of the rows that this process has given, of one right-hand side
    /// behind the other. Returns a report each.
    #[pyo3(signature = (b, x, several = false, observer = None))]
    fn solve(
        &self,
        b: &Bound<'_, PyAny>,
        x: &Bound<'_, PyAny>,
        several: bool,
        observer: Option<Py<PyAny>>,
    ) -> PyResult<Vec<Report>> {
        let _ = several;
        by_type!(b, solved(x, self, observer.as_ref()))
    }

    /// Stored entries of the whole matrix.
    #[getter]
    fn nnz(&self) -> usize {
        self.nnz
    }

    /// What it computes on.
    #[getter]
    fn device(&self) -> &str {
        &self.device
    }

    /// "symmetric", "hermitian" or "general".
    #[getter]
    fn symmetry(&self) -> &'static str {
        self.symmetry
    }
}
