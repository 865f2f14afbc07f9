//! Ruiz's scaling.

use super::pattern::Pattern;
use super::scaling::{Scaling, logarithms};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::parallel::both;
use crate::parallel::prelude::*;
use crate::scalar::Scalar;
use crate::work::look_at;

/// The maximum number of passes; each one halves the distance of all logarithms from their goal.
const PASSES: usize = 30;

/// If the largest magnitudes of all rows and columns are within a factor of 2 to this power of 1, another pass would be
/// lost in the rounding to powers of two.
const NEAR_ENOUGH: f64 = 0.25;

/// Computes factors that bring the largest magnitude of each row and column near 1 (between 1/3 and 3): Ruiz, "A
/// scaling algorithm to equilibrate both rows and columns norms in matrices", report RAL-TR-2001-034, in the maximum
/// norm. All factors are powers of two, so no entry is rounded. Rows and columns of zeros keep the factor 1. There are
/// at most 30 passes over the entries.
///
/// # Errors
/// If an entry is infinite or not a number, if there are 2^32 - 1 rows or columns or more, or if memory runs out.
pub fn equilibrate<T: Scalar>(a: &Csr<T>) -> Result<Scaling> {
    scaled(a, false)
}

/// [`equilibrate`] with equal factors for row i and column i, so that D A D is symmetric if A is. For an unsymmetric
/// matrix the larger of the largest entries of row i and of column i is brought near 1.
///
/// # Errors
/// As [`equilibrate`], and if A is not square.
pub fn equilibrate_symmetric<T: Scalar>(a: &Csr<T>) -> Result<Scaling> {
    Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
    scaled(a, true)
}

/// Fewer rows are not worth another thread.
const FEW: usize = 1 << 12;

/// [`equilibrate_symmetric`] for a matrix with A^H = A up to rounding, by all threads: its rows tell all about its
/// columns.
///
/// # Errors
/// As [`equilibrate_symmetric`].
pub(crate) fn equilibrate_hermitian<T: Scalar>(a: &Csr<T>) -> Result<Scaling> {
    Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
    let pattern = Pattern::stored(a)?;
    let (starts, entries) = (pattern.starts(), logarithms(a, pattern.starts())?);
    let (mut factors, mut largest) = (vec![0.0_f64; a.rows()], vec![0.0_f64; a.rows()]);
    for _ in 0..PASSES {
        largest.par_iter_mut().enumerate().with_min_len(FEW).for_each(|(row, most)| {
            let entries = both(pattern.row(row), &entries[starts[row]..starts[row + 1]]);
            let sizes = entries.map(|(&column, entry)| entry + factors[row] + factors[column as usize]);
            *most = sizes.fold(f64::NEG_INFINITY, f64::max);
        });
        let finite = largest.iter().filter(|size| size.is_finite());
        let farthest = finite.fold(0.0_f64, |most, size| most.max(size.abs()));
        factors.par_iter_mut().zip(&largest).with_min_len(FEW).for_each(|(factor, &size)| {
            if size.is_finite() {
                *factor -= size / 2.0;
            }
        });
        if farthest < NEAR_ENOUGH {
            break;
        }
    }
    let (rows, _) = Scaling::from_logarithms(&factors, &[]).to_powers_of_two().into_parts();
    Scaling::from_parts(rows.clone(), rows)
}

/// The largest logarithms of rows and columns with the current factors.
struct Largest {
    rows: Vec<f64>,
    columns: Vec<f64>,
}

fn scaled<T: Scalar>(a: &Csr<T>, symmetric: bool) -> Result<Scaling> {
    let pattern = Pattern::stored(a)?;
    let entries = logarithms(a, pattern.starts())?;
    let (mut rows, mut columns) = (vec![0.0; a.rows()], vec![0.0; a.columns()]);
    let mut largest = Largest { rows: rows.clone(), columns: columns.clone() };
    for _ in 0..PASSES {
        largest.find(&pattern, &entries, &rows, &columns);
        if symmetric {
            for (row, column) in largest.rows.iter_mut().zip(&mut largest.columns) {
                *row = row.max(*column);
                *column = *row;
            }
        }
        let mut farthest = 0.0_f64;
        let mut step = |factors: &mut [f64], largest: &[f64]| {
            for (factor, &size) in factors.iter_mut().zip(largest).filter(|(_, size)| size.is_finite()) {
                farthest = farthest.max(size.abs());
                *factor -= size / 2.0;
            }
        };
        step(&mut rows, &largest.rows);
        step(&mut columns, &largest.columns);
        if farthest < NEAR_ENOUGH {
            break;
        }
    }
    Ok(Scaling::from_logarithms(&rows, &columns).to_powers_of_two())
}

impl Largest {
    fn find(&mut self, pattern: &Pattern<'_>, entries: &[f64], rows: &[f64], columns: &[f64]) {
        self.columns.fill(f64::NEG_INFINITY);
        let starts = pattern.starts();
        for (row, most) in self.rows.iter_mut().enumerate() {
            look_at(row);
            *most = f64::NEG_INFINITY;
            let places = starts[row]..starts[row + 1];
            for (&column, entry) in both(pattern.row(row), &entries[places]) {
                let size = entry + rows[row] + columns[column as usize];
                *most = most.max(size);
                let column = &mut self.columns[column as usize];
                *column = column.max(size);
            }
        }
    }
}
